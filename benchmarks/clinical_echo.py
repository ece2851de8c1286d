"""How often guidance stays whole, and how often a sentence that repeats the record is withheld.

    python benchmarks/clinical_echo.py [RECORDS] [--show]

Records are drawn at random; guidance and quotations are made up for this file, and worthless as
medicine. Their words were written in seven parts, each before it was ever run, and after each the
rules of `langchain_svc/_clinical/echo.py` were changed; docs/assumptions.md has what each showed at
its first run, which is what new words will show.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from string import Formatter
from typing import Any

from langchain_svc import PatientContext
from langchain_svc._clinical.echo import Echo, without_echo
from langchain_svc.patient import on_wire

CONDITIONS = (
    """
hypertension|asthma|heart failure|type 2 diabetes|atrial fibrillation|chronic kidney disease stage 3
COPD|hypothyroidism|osteoarthritis|depression|migraine|epilepsy|Alzheimer disease|stroke|obesity
Essential hypertension (disorder)|Prediabetes|Hyperlipidemia|Acute bronchitis (disorder)|Anemia
Chronic sinusitis (disorder)|Coronary Heart Disease|Myocardial infarction (disorder)|gout|psoriasis
Diabetes mellitus type 2 (disorder)|Chronic obstructive bronchitis (disorder)|breast cancer (past)
Viral sinusitis (disorder)|Rheumatoid arthritis|ulcerative colitis|hepatitis B (unconfirmed)
Body mass index 30+ - obesity (finding)|Malignant neoplasm of colon|deep vein thrombosis|pneumonia
Chronic intractable migraine without aura (disorder)|penicillin allergy|sleep apnea|glaucoma
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
MEDICINES = (
    """
aspirin 75 mg|metformin|salbutamol|amlodipine 5 mg|Ibuprofen 100 mg|warfarin|ramipril 2.5 mg daily
Hydrochlorothiazide 25 MG Oral Tablet|Simvastatin 10 MG Oral Tablet|Donepezil 10 mg|insulin glargine
Acetaminophen 325 MG Oral Tablet|Metoprolol succinate 50 MG|levothyroxine 100 mcg|prednisolone
Amoxicillin 250 MG / Clavulanate 125 MG Oral Tablet|clopidogrel|bisoprolol|omeprazole 20 mg|lithium
120 ACTUAT Fluticasone propionate 0.044 MG/ACTUAT Metered Dose Inhaler|furosemide 40 mg|adrenaline
Naproxen sodium 220 MG Oral Tablet|paracetamol|atorvastatin 80 mg|apixaban|sertraline|methotrexate
""".replace("\n", "|")
    .strip("|")
    .split("|")
)
RISKS = [
    "smoking",
    "asbestos exposure",
    "family history: breast cancer (mother)",
    "alcohol",
    "BRCA1",
]
RISKS += ["former smoker, 20 pack-years", "family history of melanoma", "obesity"]


def records(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Records as they are sent, of patients from a few months to 95 years."""
    draw = random.Random(seed)  # noqa: S311  # no secret
    for _ in range(count):
        low = draw.randint(50, 100)
        ages = round(draw.uniform(0.2, 2), 2), draw.randint(2, 15), draw.randint(16, 95)
        patient = PatientContext(
            age=draw.choices(ages, [3, 20, 77])[0],
            sex=draw.choice(["female", "male"]),
            medical_history=draw.sample(CONDITIONS, draw.randint(0, 8)),
            current_medications=draw.sample(MEDICINES, draw.randint(0, 6)),
            vital_signs={
                "systolic": low + draw.randint(25, 90),
                "diastolic": low,
                "heart_rate": draw.randint(45, 150),
                "temperature": round(draw.uniform(35, 40.5), 1),
                "respiratory_rate": draw.randint(8, 34),
                "oxygenSaturation": draw.randint(80, 100),
            },
            lab_results={
                "troponin": round(draw.uniform(0, 1), 2),
                "bnp": draw.randint(5, 2000),
                "creatinine": round(draw.uniform(0.4, 4), 1),
                "glucose": draw.randint(50, 300),
                "potassium": round(draw.uniform(2.8, 6.2), 1),
            },
            risk_factors=draw.sample(RISKS, draw.randint(0, 3)),
        )
        yield on_wire(patient)


# -- guidance that quotes nobody -------------------------------------------------------------------

GUIDANCE = [
    """Suspected acute coronary syndrome: record a 12-lead ECG within 10 minutes and repeat troponin at 0 and 3 hours.
Give aspirin 300 mg, then 75 mg daily; add clopidogrel 300 mg or ticagrelor 180 mg. Give oxygen only if SpO2 is below 90 %.
Glyceryl trinitrate 0.4 mg every 5 minutes, up to 3 doses, unless systolic pressure is below 90 mmHg. Atorvastatin 80 mg at night.
Bisoprolol 1.25 to 10 mg, if the heart rate is above 60/min. In heart failure start ramipril 2.5 mg twice daily.
Risk rises in patients with hypertension, diabetes and smoking. Urgency: high""",
    """Anaphylaxis: adrenaline 0.01 mg/kg (max 0.5 mg) of 1:1000 into the thigh, i.e. 0.15 mg under 6 years, 0.3 mg from 6 to 12 years and 0.5 mg over 12 years.
Repeat every 5 minutes. Give 20 ml/kg of crystalloid. Prednisolone 1.5 mg/kg for 5 days; paracetamol 250 mg every 6 hours.
Patients with asthma are at higher risk. Observe for 6 to 12 hours. People taking beta blockers may need glucagon 1 mg.""",
    """Community-acquired pneumonia. CURB-65: confusion, urea > 7 mmol/L, respiratory rate 30/min or more, blood pressure below 90/60 mmHg, age 65 or over.
1. Amoxicillin 500 mg three times a day for 5 days. 2. With penicillin allergy: doxycycline 200 mg on day 1, then 100 mg daily.
Target SpO2 is 94-98 %, or 88-92 % in COPD. Repeat the X-ray after 6 weeks in people aged 50 and over.""",
    """Hypertension in adults: the target is 140/90 mmHg, or 130/80 mmHg with diabetes; from age 80, 150/90 mmHg.
Step 1: amlodipine 5 mg or ramipril 2.5 mg. Step 2: both. Step 3: add hydrochlorothiazide 25 mg. Check potassium and creatinine after 2 weeks; stop if potassium exceeds 6.0 mmol/L.
Review every 12 months. Consider sleep apnea, chronic kidney disease and alcohol as causes.""",
    """Cancer referral: women aged 50 to 70 years are invited every 3 years. Refer within 2 weeks anyone aged 40 and over with unexplained weight loss of 5 % or more.
Risk factors include smoking, asbestos exposure, obesity and a family history of cancer. Risk score: 61
Colonoscopy from age 45; PSA above 4 ng/mL needs an MRI. Tamoxifen 20 mg daily for 5 years halves the risk.""",
    """Fever in children: 38 °C or higher under 3 months is urgent. Ibuprofen 10 mg/kg every 8 hours (100 mg at 3 to 5 years), paracetamol 15 mg/kg.
A heart rate over 160/min in infants, or a respiratory rate over 60/min, is a red flag. Rewarm at 37 °C.
Dr. Example advises 1.5 litres of fluid, e.g. water.""",
    """Acute severe asthma: oxygen to keep saturations at 94-98%. Salbutamol 5 mg nebulised back to back, ipratropium 0.5 mg 4-6 hourly, prednisolone 40 mg daily for at least 5 days or hydrocortisone 100 mg IV.
Life-threatening signs are SpO2 <92%, PEF <33% predicted, silent chest, and a heart rate >110/min. Magnesium sulphate 1.2 g to 2 g over 20 minutes.
Asthma is often worse at night. Do not give sedatives.""",
    """Sepsis (adult). Lactate above 2 mmol/L, systolic BP 90 mmHg or less, heart rate 130 or above, respiratory rate 25 or above. Start antibiotics within 1 hour. 500 ml crystalloid over 15 minutes, up to 30 ml/kg. Noradrenaline to a mean arterial pressure of 65 mmHg.
Monitor hourly urine output, at least 0.5 ml/kg/h. Glucose target 8-10 mmol/L.""",
    """Atrial fibrillation. Score 1 point each for heart failure, hypertension, diabetes, vascular disease, age 65-74 and female sex, 2 points for age 75 or over and for stroke. Apixaban 5 mg twice daily; 2.5 mg if two of: age 80 or more, weight 60 kg or less, creatinine 1.5 mg/dL or more.
Rate control: bisoprolol 2.5 mg to a resting rate of under 110 bpm. Warfarin to an INR of 2.5 (range 2.0 to 3.0).""",
    """Diabetic ketoacidosis:
- 0.9% saline 1 L over 1 hour, then 1 L over 2 hours with potassium 40 mmol/L if serum potassium is 3.5-5.5 mmol/L
- Fixed rate insulin 0.1 units/kg/h; continue insulin glargine
- When glucose falls below 14 mmol/L (252 mg/dL) add 10% dextrose 125 ml/h
- Aim for a fall in ketones of 0.5 mmol/L/h""",
    """Migraine: ibuprofen 400 mg or aspirin 900 mg with metoclopramide 10 mg. Sumatriptan 50 mg, no more than 2 doses in 24 hours; it is contraindicated in coronary heart disease and after a stroke. Prevention: propranolol 40 mg twice daily (not in asthma), topiramate 25 mg.
Chronic intractable migraine needs a specialist. Medication overuse is likely from 10 days a month.""",
    """Bronchiolitis and croup: dexamethasone 0.15 mg/kg once. Admit if SpO2 is persistently less than 92%, if under 6 weeks old, or if intake is 50-75% of normal. A 2-year-old weighs about 12 kg.
Salbutamol is not advised in infants. Review in 24 h. Call for help if breathing stops for 10 seconds.""",
    """COPD exacerbation: prednisolone 30 mg for 5 days, doxycycline 100 mg. Controlled oxygen 24 % or 28 % by Venturi mask, target 88-92 %. Non-invasive ventilation if pH < 7.35 and pCO2 > 6.5 kPa. Smoking cessation is the most effective treatment.
Comorbidities such as heart failure, sleep apnea, depression and osteoporosis are common; screen for them.""",
    """Hyperkalaemia of 6.5 mmol/L or more: calcium gluconate 10% 30 ml, insulin 10 units with 25 g glucose, salbutamol 10-20 mg. Stop ACE inhibitors such as ramipril. Recheck potassium at 1, 2, 4, 6 and 24 hours.
Chronic kidney disease, lithium and NSAIDs (ibuprofen, naproxen) are frequent causes.
Creatinine rises of 0.3 mg/dL within 48 hours define stage 1 injury.""",
    """Breast lump: triple assessment within two weeks. Mammography from 40 years, ultrasound below 40 years. BRCA1 carriers have a lifetime risk of 60 to 80 %. Genetic counselling is offered where one first-degree relative fell ill before 40, or two before 60.
Risk level: moderate
Risk score: 0.42
Follow-up: 12 months""",
    """Paediatric doses. Amoxicillin: 1-11 months 125 mg, 1-4 years 250 mg, 5-11 years 500 mg, three times a day for 7 days. Paracetamol: 6-8 years 250 mg, 8-10 years 375 mg, 10-12 years 500 mg. Minimum systolic pressure = 70 + 2 x age in years. Weight = (age + 4) x 2.""",
    """Gout: naproxen 500 mg twice daily with omeprazole 20 mg, or colchicine 0.5 mg up to four times daily; in chronic kidney disease prednisolone 30 mg for 5 days. Start allopurinol 100 mg after 2-4 weeks; target urate < 360 µmol/L (6 mg/dL).
Thiazides, aspirin 75 mg and alcohol raise urate. Obesity, hypertension and psoriasis are associated with gout.""",
    """Depression: sertraline 50 mg, increased after 4 weeks to 100 mg, max. 200 mg. Review at 1 week in people aged 18-25. Lithium levels of 0.6-0.8 mmol/L, monthly then every 3 months. PHQ-9 of 10 or more is moderate, 20 or more severe. Hypothyroidism should be excluded. Alcohol makes it worse.""",
    """Pulmonary embolism: enoxaparin 1.5 mg/kg once daily or apixaban 10 mg twice daily for 7 days, then 5 mg. Wells score: heart rate above 100 scores 1.5, previous deep vein thrombosis 1.5, haemoptysis 1. D-dimer limits are age x 10 µg/L from 50 years.
Thrombolysis (alteplase 100 mg over 2 h) is kept for a systolic pressure under 90 mmHg lasting 15 minutes.""",
    """Status epilepticus. 0-5 min: airway, glucose. 5 min: lorazepam 0.1 mg/kg (max. 4 mg), may be repeated once; 20 min: levetiracetam 60 mg/kg, max. 4,500 mg.
Children: midazolam buccal 2.5 mg (6 months to 1 year), 5 mg (1-4 years), 7.5 mg (5-9 years), 10 mg (10 years and older).
Epilepsy plans should be reviewed yearly.""",
    """Pre-eclampsia is defined by a pressure of at least 140/90 mmHg after 20 weeks with proteinuria of 300 mg/24 h. Labetalol 100 mg twice daily; aim for 135/85 mmHg. Magnesium 4 g over 5 minutes, then 1 g/h for 24 h. Aspirin 75-150 mg from 12 weeks if two moderate risk factors are present: first pregnancy, age 40 or older, obesity, family history.""",
    """Hypothyroidism: levothyroxine 1.6 mcg/kg; 25 mcg in those over 65 or with coronary heart disease. Check TSH after 6-8 weeks. Typical maintenance is 100 mcg.
Anemia and depression may be caused by it. Omeprazole 20 mg and iron reduce absorption: leave 4 hours between them.""",
    """1. Chest X-ray within 14 days for anyone aged 40 or more with two of: cough, fatigue, breathlessness, chest pain, weight loss, and one if they have ever smoked.
2. Low-dose CT yearly at 50 to 80 years with 20 pack-years.
3. Former smokers keep a raised risk for 15 years.
Risk: low (score 23 of 100). Urgency: routine""",
    """Neonatal sepsis: benzylpenicillin 25 mg/kg 12-hourly and gentamicin 5 mg/kg every 36 h. Temperature below 36 °C or of 38 °C or above, heart rate under 100 or over 180, breathing rate over 60. Blood glucose below 2.6 mmol/L is treated with 2.5 ml/kg of 10 % glucose.""",
    """Stroke: CT at once; alteplase 0.9 mg/kg (max 90 mg, 10 % as a bolus) within 4.5 hours. Lower the pressure only above 185/110 mmHg. Keep glucose at 4-11 mmol/L, SpO2 at 95 % or more, temperature under 37.5 °C. Aspirin 300 mg for 14 days, then clopidogrel 75 mg. Atrial fibrillation: apixaban or warfarin. ABCD2: age 60 or over 1 point, BP 140/90 1 point, diabetes 1 point.""",
    """Rheumatoid arthritis is treated with methotrexate 7.5 mg weekly, raised by 2.5 mg to 20 mg, with folic acid 5 mg. Prednisolone 7.5 mg as a bridge. Hepatitis B must be excluded. Naproxen and ibuprofen are used at the lowest dose, e.g. ibuprofen 400 mg; not with warfarin. Vaccinate. Creatinine, ALT and blood count are checked every 2 weeks.""",
    """Urinary tract infection. Nitrofurantoin 100 mg modified release twice a day for 3 days in women, 7 days in men; avoid below an eGFR of 45. Trimethoprim 200 mg. In pregnancy, cefalexin 500 mg. Fever above 38 °C, rigors or flank pain suggest pyelonephritis. Diabetes and a catheter make it complicated.""",
    """Opioid overdose: naloxone 0.4 mg IV every 2 to 3 minutes to a respiratory rate of 10 or more; maximum 10 mg. In children 0.1 mg/kg. The half-life is 60 to 90 minutes, so observe for 6 hours. A saturation that falls under 90 % on 15 L/min needs ventilation.""",
    """Bleeding on warfarin: vitamin K 5 mg and prothrombin complex 25-50 IU/kg. INR 5.0 to 8.0 without bleeding: withhold 1 or 2 doses. INR > 8.0: vitamin K 1 to 5 mg by mouth. Restart when the INR is below 5.0. Apixaban is stopped 24 h before minor and 48 h before major surgery.""",
    """Acute heart failure (pulmonary oedema): furosemide 40 mg IV, doubled after 1 h if urine stays under 100 ml/h. Nitrate if the systolic pressure is over 110 mmHg. CPAP of 5 to 10 cmH2O. BNP under 100 pg/mL makes it unlikely, over 400 pg/mL likely. Morphine is no longer routine. Asthma and COPD are the main differentials, pneumonia another.""",
    """Skin lesions: refer with 3 points or more (change in size 2, irregular shape 2, irregular colour 2, diameter of 7 mm or more 1, inflammation 1, oozing 1).
- Melanoma: excision with a 2 mm margin
- Psoriasis, gout and obesity need no referral
Cancer risk: 12 %, confidence 0.8""",
    """Type 2 diabetes: metformin 500 mg, raised weekly to 1 g twice daily; halve it at an eGFR under 45 and stop at under 30. HbA1c goal 48 mmol/mol (6.5 %), 53 mmol/mol on insulin glargine. Blood pressure goal 140/80 mmHg. Statin: atorvastatin 20 mg from 40 years, 80 mg after a myocardial infarction. Foot check every 12 months; eye check every 1-2 years from age 12.""",
    """Acute gout or septic arthritis? A hot joint with fever above 38.5 °C is aspirated within 6 hours. Flucloxacillin 2 g every 6 hours. CRP over 100 mg/L and a white count over 12 are suggestive. Colchicine 0.5 mg, two to four times daily, for 3 to 5 days. Obesity and furosemide promote gout.""",
    """Bradycardia: atropine 0.5 mg IV, repeated every 3-5 minutes to 3 mg. Adrenaline 2-10 mcg/min or pacing if the rate stays under 40/min with a systolic pressure under 90 mmHg. Common causes are bisoprolol, diltiazem, hypothyroidism and potassium above 6.5 mmol/L.""",
    """Bowel cancer screening runs from 50 to 74 years, every 2 years; a FIT of 10 µg/g or more leads to colonoscopy. Iron deficiency anemia at 60 years and over, rectal bleeding at 50 years and over, or a change of habit at 60 and over: refer within 2 weeks. Aspirin 75 mg lowers the risk in Lynch syndrome. Smoking, alcohol and ulcerative colitis raise it.
riskLevel: low""",
    """Paracetamol overdose: acetylcysteine 150 mg/kg over 1 hour, 50 mg/kg over 4 hours and 100 mg/kg over 16 hours. Treat above the line at 100 mg/L at 4 h. Repeat INR, creatinine and ALT at 24 h. Children under 6 years rarely need it. Depression should be assessed.""",
    """Hypoglycaemia under 4.0 mmol/L: 15-20 g glucose, again after 15 minutes; glucagon 1 mg (0.5 mg under 25 kg or 8 years). Then a meal. Insulin glargine is reduced by 10-20 %. Check every 2 hours until it is above 5 mmol/L on 2 occasions. Driving: 5 to drive.""",
    """Chronic kidney disease: ACR of 30 mg/mmol or more with a pressure target of 130/80 mmHg: ramipril 10 mg. Do not start above a potassium of 5.0 mmol/L; stop at 6.0 mmol/L or more. A creatinine rise of up to 30 % is accepted. Haemoglobin 10-12 g/dL. Metformin is stopped under 30 ml/min. Naproxen and lithium are avoided.""",
    """Sit the patient up and give salbutamol 5 mg with oxygen. Reassure the patient. Reassess every 15 minutes; the patient may go home when the peak flow exceeds 75 %. Asthma is rarely fatal if treated early. You should not stop prednisolone before 5 days. Ask your pharmacist about paracetamol.""",
    """Explain to the patient that hypertension needs lifelong treatment. Check the blood pressure after 4 weeks. Ramipril 2.5 mg is doubled every 2 weeks to 10 mg. Drink 1.5 to 2 litres. Call your doctor if your temperature rises above 38.5 °C or your pulse exceeds 120.""",
    """Call 112 if you have chest pain for more than 15 minutes. Chew aspirin 300 mg unless you are allergic. Your doctor may order troponin at 0 and 3 hours. Stop smoking; it halves the risk in 1 year. Lose 5-10 % of your weight.""",
    """Elderly patient with a fall: measure pressure lying and standing (a drop of 20 mmHg systolic or 10 mmHg diastolic counts). Review furosemide, sertraline and amlodipine. Vitamin D 800 units. The patient should use a frame. Osteoarthritis, glaucoma and stroke are contributors.""",
    """Refer the patient within 2 weeks if the lump is larger than 5 cm. The record of the examination should name size and site. Obesity, alcohol and a family history raise her risk only slightly. At 50 to 70 years, mammography every 3 years. MRI for BRCA1 carriers from 30 years.""",
    """Delirium: look for infection, urinary retention and drugs. Haloperidol 0.5 mg, at most 5 mg in 24 hours; not in Parkinson disease. The patient needs light, sleep and familiar faces. Dementia such as Alzheimer disease is the strongest risk factor. Donepezil 10 mg is continued.""",
    """Croup in children of 6 months to 3 years. Dexamethasone 0.15-0.6 mg/kg once. Adrenaline 5 ml of 1:1000 nebulised if stridor persists at rest. Discharge after 4 hours without stridor. Intubation is needed in 1 %. A respiratory rate over 50 or SpO2 of 92 % or less is a warning.""",
    """Ulcerative colitis flare: mesalazine 4.8 g daily, prednisolone 40 mg reduced by 5 mg a week. Six or more stools a day with a pulse over 90, temperature over 37.8 °C or haemoglobin under 10.5 g/dL means admission and hydrocortisone 100 mg four times daily. VTE prophylaxis: enoxaparin 40 mg.""",
    """Osteoarthritis of the knee: exercise, weight loss, topical NSAIDs. Paracetamol 1 g up to four times daily helps little. Naproxen 500 mg with omeprazole 20 mg for the shortest time. Steroid injections last 4 to 10 weeks. Replace the joint when pain limits life. Obesity doubles the risk.""",
    """Breast cancer follow-up: mammography every 12 months for 5 years, then by age. Tamoxifen 20 mg for 5-10 years. Recurrence is most frequent in years 2 and 3. Risk level: moderate. Alcohol should be limited to 10 g a day. Depression is screened for at every visit.""",
    """Epilepsy: levetiracetam 250 mg twice daily, up to 1.5 g. Women of child-bearing age should avoid valproate. No driving for 12 months after a seizure. If a seizure lasts more than 5 minutes, give midazolam 10 mg. Migraine and sleep apnea may mimic it.""",
]

# -- sentences that repeat a record ----------------------------------------------------------------

QUOTES = [
    "For a {age}-year-old {sex} patient with a history of {condition}, admission is advised.",
    "The patient is {age} years old.", "Patient age: {age}", "This {sex}, aged {age}, is at higher risk.",
    "You are {age} years of age.", "Age {age}, {sex}.", "A {age}-year-old {sex} presents with chest pain.",
    "History of {condition} taken into account.", "The patient has {condition}.", "Your {condition} makes this likely.",
    "Known {condition}.", "Given the history of {condition}, avoid NSAIDs.", "Medical history: {condition}",
    "The patient is taking {medicine}.", "Current medications: {medicine}", "{medicine} was noted.",
    "Since the patient takes {medicine}, check the kidneys.", "On {medicine}, potassium may fall.",
    "systolic pressure {systolic} mmHg is high (threshold 140 mmHg)", "Blood pressure of {systolic}/{diastolic} mmHg is noted.",
    "The heart rate is {heartRate}.", "With a temperature of {temperature} °C, cultures are needed.",
    "SpO2 {oxygenSaturation} % on air.", "Creatinine of {creatinine} mg/dL and troponin {troponin} ng/mL are reported.",
    "Factor: {risk}, points: 25", "Your glucose of {glucose} mg/dL is out of range.",
    "In this {age} y/o {sex} an early review is sensible.", "Because you are {age}, the dose is halved.",
    "Considering the patient's age of {age} years, start low.", "Age: {age} | Sex: {sex}",
    "At {age} years old with {condition}, you should be seen today.", "Summary: {sex}, {age} years, {condition}.",
    "Relevant background includes {condition}.", "PMH: {condition}", "She was diagnosed with {condition} some time ago.",
    "In view of {condition} a cautious approach is wise.", "{condition} is documented in the record.",
    "Your record mentions {condition}.", "As someone living with {condition}, you need a plan.",
    "Regular medicines are {medicine}.", "You already take {medicine}, so no change is needed.",
    "Interaction with the patient's {medicine} is possible.", "Because he is on {medicine}, bleeding is a concern.",
    "Home medication ({medicine}) continues.", "BP {systolic}/{diastolic}, HR {heartRate}, RR {respiratoryRate}.",
    "A pulse of {heartRate} bpm with a saturation of {oxygenSaturation}% is worrying.",
    "The reported temperature ({temperature} °C) suggests infection.", "Respiratory rate: {respiratoryRate}/min",
    "Blood tests show BNP {bnp} pg/mL.", "potassium = {potassium}", "Troponin came back at {troponin}.",
    "The systolic reading, {systolic} mmHg, needs a second measurement.", "Risk factor present: {risk}.",
    "We note a {sex} of {age} years.", "Patient: {age} yo {sex}.", "{age}-year-old {sex} with {condition} and cough.",
    "The patient, who is {age} years old, should rest.", "As you are {age} years old, screening applies.",
    "Since {condition} is known, beta blockers are avoided.", "The {condition} mentioned in your record matters here.",
    "Past medical history includes {condition}.", "He suffers from {condition}.", "With your {condition}, be careful.",
    "Comorbidities: {condition}", "Existing {condition} complicates the picture.", "You take {medicine}; keep taking it.",
    "Current therapy with {medicine} should go on.", "Medication list: {medicine}", "The patient's {medicine} may be the cause.",
    "Because {medicine} is already being taken, do not double it.", "Blood pressure ({systolic}/{diastolic}) is the main problem.",
    "Vital signs: BP {systolic}/{diastolic} mmHg, pulse {heartRate}/min, temp {temperature} °C.", "Fever of {temperature} °C since yesterday.",
    "Breathing {respiratoryRate} times a minute with SpO2 {oxygenSaturation}%.", "Serum creatinine {creatinine} is raised.",
    "BNP: {bnp}", "A troponin level of {troponin} ng/mL was measured.", "Oxygen saturation was only {oxygenSaturation} percent.",
    "Identified risk factors: {risk}", "Considering {risk}, the risk is raised.",
    "At the age of {age}, recovery takes longer.", "{sex}, {age}y, {condition}", "Being {age} years of age is a factor.",
    "The history ({condition}) supports this.", "{condition} has been diagnosed before.", "Her {condition} is stable.",
    "There is a record of {condition}.", "You told us about your {condition}.", "Relevant conditions: {condition}.",
    "The current prescription of {medicine} is fine.", "{medicine} is on the list of medicines.",
    "Do not stop your {medicine}.", "She takes {medicine} every day.", "Drug history: {medicine}",
    "His blood pressure was {systolic} over {diastolic}.", "Obs: HR {heartRate}, sats {oxygenSaturation}%, T {temperature}.",
    "The pulse rate ({heartRate}) is out of range.", "Temperature {temperature}; respiratory rate {respiratoryRate}.",
    "Your potassium level is {potassium} mmol/L.", "Laboratory: creatinine {creatinine}, BNP {bnp}, troponin {troponin}.",
    "With glucose at {glucose} mg/dL, insulin may be needed.", "A systolic value of {systolic} is concerning.",
    "The exposure ({risk}) matters.", "You reported {risk}.",
    "A {sex} aged {age} years should have this checked.", "This concerns a {sex} patient, {age} years old.", "Age {age} is a risk factor.",
    "He is {age} now.", "Your age ({age}) matters.", "The chart lists {condition}.", "{condition}: noted.",
    "Being known to have {condition}, caution applies.", "You live with {condition}.", "Current problems: {condition}.",
    "Due to your {condition}, start low.", "With {condition} on record, a lower dose fits.", "The patient reports {condition}.",
    "You are currently taking {medicine}.", "Medicines: {medicine}", "{medicine} (already prescribed) may be continued.",
    "As you are on {medicine}, avoid grapefruit.", "Her regular {medicine} can continue.",
    "The BP reading of {systolic}/{diastolic} was high.", "Pulse {heartRate}, temp {temperature}, sats {oxygenSaturation}.",
    "A heart rate as high as {heartRate} bpm is unusual.", "{temperature} °C was measured.", "O2 saturation: {oxygenSaturation}%",
    "creatinine ({creatinine} mg/dL) is out of range", "Your glucose was {glucose}.", "Potassium of {potassium} mmol/L is to be repeated.",
    "Contributing factor: {risk}", "History of {risk} adds to it.",
    "I see that you are a {age}-year-old {sex}.", "Patient ({sex}, {age}): stable.", "{age} years old and {sex}, so a low dose.",
    "Note the {condition}.", "{condition} was mentioned.", "The file shows {condition}.", "You have had {condition} for years.",
    "This patient's main problem is {condition}.", "Active diagnoses: {condition}.", "Her long-standing {condition} is under control.",
    "The person has {condition} and should be seen.", "Patient with {condition}.", "Keep taking the {medicine} you are on.",
    "The patient's list contains {medicine}.", "He uses {medicine}.", "{medicine} has already been started.", "You reported taking {medicine}.",
    "{systolic}/{diastolic} mmHg was measured.", "The heart beats {heartRate} times a minute.", "With {temperature} °C there is fever.",
    "Sat {oxygenSaturation}%, RR {respiratoryRate}.", "creatinine: {creatinine}; potassium: {potassium}", "The glucose reading was {glucose} mg/dL.",
    "NB: {risk}.", "{risk} increases your risk.",
    "The patient ({age}, {sex}) was assessed.", "A {sex} of {age} with a cough.", "Age is {age} years.", "Your {age} years do not matter here.", "At {age}, you are in the screening group.",
    "{condition} makes this more likely in your case.", "There is {condition} in the history.", "As a person with {condition}, get vaccinated.", "The listed {condition} has been considered.", "{condition}, which you have, is a contraindication.",
    "The assessment took {condition} into account.", "Background: {condition}.", "{medicine} is part of the current treatment.", "You are prescribed {medicine}.", "The patient already receives {medicine}.", "Given {medicine}, check the INR.",
    "A blood pressure measurement of {systolic}/{diastolic} is above the goal.", "Pulse: {heartRate}.", "The temperature reached {temperature} °C.", "Oxygen saturation ({oxygenSaturation} %) is too low.", "Respirations {respiratoryRate}/min.",
    "Creatinine is {creatinine}.", "BNP of {bnp} pg/mL suggests strain.", "K {potassium} mmol/L, glucose {glucose} mg/dL.", "Risk factors: {risk}.", "Your {risk} counts most.",
]  # fmt: skip


def quotations(record: dict[str, Any], draw: random.Random) -> Iterator[str]:
    """The templates that the record has values for, filled."""
    values = {**record, **record["vitalSigns"], **record["labResults"]}
    values |= {
        name: draw.choice(record[field])
        for name, field in (
            ("condition", "medicalHistory"),
            ("medicine", "currentMedications"),
            ("risk", "riskFactors"),
        )
        if record.get(field)
    }
    for template in QUOTES:
        if {name for _, name, _, _ in Formatter().parse(template) if name} <= values.keys():
            yield template.format(**values)


def rates(drawn: list[dict[str, Any]], *, show: bool) -> None:
    """Print both rates."""
    draw = random.Random(1)  # noqa: S311  # no secret
    whole = asked = withheld = quoted = spared = 0
    for record in drawn:
        echo = Echo(record)
        for text in GUIDANCE:
            asked += 1
            made = without_echo(text, echo)
            whole += made == text
            if show and made != text:
                lost = [s for s in text.split("\n") if s not in made]
                print("LOST", lost, {k: v for k, v in record.items() if k != "images"})
        for sentence in quotations(record, draw):
            quoted += 1
            before, after = "Rest and drink 1.5 litres.", "Give 250 mg every 6 hours."
            made = without_echo(f"{before} {sentence}\n{after}", echo)
            withheld += sentence not in made
            spared += before in made and after in made
            if show and sentence in made:
                print("READ", sentence)
    print(f"  guidance unchanged   {whole:>6,} of {asked:,} answers ({whole / asked:.2%})")
    print(
        f"  quotations withheld  {withheld:>6,} of {quoted:,} sentences ({withheld / quoted:.2%})"
    )
    print(f"  sentences beside them kept  {spared:,} of {quoted:,}")


def main() -> None:
    """Measure."""
    given = [word for word in sys.argv[1:] if not word.startswith("-")]
    rates(list(records(int(given[0]) if given else 300, 1)), show="--show" in sys.argv)


if __name__ == "__main__":
    main()
