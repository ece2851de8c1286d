"""People of seven languages, their FHIR records, and the writings in which texts name them."""

from __future__ import annotations

import random
import unicodedata
from dataclasses import dataclass, field
from datetime import date, timedelta

# Given names, family names, streets, cities, a title, and the sentences that surround a name.
WORLDS = {
    "de": (
        "Jürgen Annegret Bärbel Günther Sören Heike Lukas Mechthild Anna-Lena Uwe",
        "Müller Schröder Weiß Groß-Bölting Hübner Kowalke Brinkmann Özdemir Jäger Vogt",
        "Goethestraße Birkenallee Mühlenweg",
        "Göttingen Wuppertal Fürth",
        "Frau",
        (
            "Aufnahme von {} wegen Fieber.",
            "Wir berichten über {}, die seit gestern hustet.",
            "{} war nicht nüchtern.",
        ),
    ),
    "en": (
        "Oliver Gwendolyn Siobhan Reginald Imogen Nigel Harriet Desmond Zoë Alastair",
        "Thornbury O'Connell Fitzgerald Pemberton Winterbourne Ashcroft Loughlin MacAllister Hargreaves Osbourne",
        "Harcourt Street|Willowbrook Road|Kensington Avenue",
        "Birmingham Sheffield Wolverhampton",
        "Mrs",
        (
            "Admitted {} with chest pain.",
            "I reviewed {} on the ward round today.",
            "{} has no known allergies.",
        ),
    ),
    "fr": (
        "Geneviève Benoît Chloé Anaïs Jérôme Jean-Baptiste Édith Gaspard Solène Théo",
        "Lefèvre Bélanger Dubreuil Guérinot Charbonneau Saint-Amand Thibault Desrosiers Maréchal Béraud",
        "rue Montorgueil|avenue Foch|rue Bonaparte",
        "Besançon Montpellier Perpignan",
        "Mme",
        (
            "Nous avons vu {} en consultation.",
            "La fièvre de {} a disparu.",
            "{} se plaint de douleurs.",
        ),
    ),
    "es": (
        "Íñigo Begoña José Ramón Concha Nuria Álvaro Jesús Ximena Raúl",
        "Muñoz Ibáñez Echeverría Gutiérrez Peñalver Cárdenas Zubiri Barrientos Figueroa Ordóñez",
        "calle Velázquez|avenida Cervantes|calle Alcalá",
        "Badajoz Valladolid Cáceres",
        "Sra.",
        ("Se valora a {} en urgencias.", "El dolor de {} ha mejorado.", "{} niega alergias."),
    ),
    "nl": (
        "Joost Marijke Sjoerd Annelies Daniël Wouter Femke Gijs Liesbeth Koen",
        "Hoekstra van der Meulen Dijkstra Terpstra Wiersma van den Broek Postma Veenstra Zijlstra Kooistra",
        "Keizersgracht Prinsenlaan Molenstraat",
        "Apeldoorn Leeuwarden Enschede",
        "mevrouw",
        (
            "Wij zagen {} op de polikliniek.",
            "De koorts van {} is gezakt.",
            "{} heeft geen klachten.",
        ),
    ),
    "pl": (
        "Paweł Małgorzata Łukasz Agnieszka Marek Barbara Zdzisław Monika Piotr Wojciech",
        "Kowalski Wiśniewska Dąbrowski Lewandowska Wójcik Kamińska Szymański Woźniak Kaczmarek Zieliński",
        "Marszałkowska Piłsudskiego Słowackiego",
        "Łódź Białystok Rzeszów",
        "pani",
        ("Przyjęto {} z powodu gorączki.", "Stan {} jest dobry.", "{} nie zgłasza bólu."),
    ),
    "tr": (
        "Ayşe Mehmet Gülşah Özgür Çağla Tuğrul Şebnem İbrahim Zeynep Hüseyin",
        "Yılmaz Öztürk Çelikoğlu Karadeniz Şahinoğlu Kılıçdar Büyükyıldız Erdoğmuş İnönülü Doğanay",
        "Atatürk Caddesi|Bağdat Caddesi|İstiklal Caddesi",
        "İzmir Eskişehir Diyarbakır",
        "Sayın",
        ("Bugün {} ateş ile geldi.", "Dün {} muayene edildi.", "{} ağrısı yok."),
    ),
}
ENDINGS = {
    "de": ("s",),
    "en": ("'s",),
    "es": (),
    "fr": (),
    "nl": ("s", "'s"),
    "tr": ("'ın", "'a", "'den", "'nin"),
}
CASES = {  # of Polish, of the names above
    "Paweł": "Pawła Pawłowi Pawłem",
    "Marek": "Marka Markowi Markiem",
    "Małgorzata": "Małgorzaty Małgorzacie Małgorzatę",
    "Barbara": "Barbary Barbarze Barbarą",
    "Monika": "Moniki Monice Monikę",
    "Piotr": "Piotra Piotrowi Piotrze",
    "Kowalski": "Kowalskiego Kowalskiemu Kowalskim Kowalska",
    "Wiśniewska": "Wiśniewskiej Wiśniewską",
    "Wójcik": "Wójcika Wójcikowi Wójcikiem",
    "Kaczmarek": "Kaczmarka Kaczmarkowi",
    "Woźniak": "Woźniaka Woźniakiem",
    "Zieliński": "Zielińskiego Zielińskiemu",
}
TRANSCRIBED = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"}
)
MONTHS = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "en": "January February March April May June July August September October November December",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia",
    "tr": "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",
}
COUNTRIES = {"de": "49", "en": "44", "fr": "33", "es": "34", "nl": "31", "pl": "48", "tr": "90"}


def without_accents(text):
    plain = text.replace("ß", "ss").translate(str.maketrans("łŁı", "lLi"))
    return "".join(c for c in unicodedata.normalize("NFD", plain) if not unicodedata.combining(c))


@dataclass
class Someone:
    """A patient with a doctor: the record, the exact identifiers, and tolerant writings of them."""

    language: str
    record: dict
    exact: list[str]
    writings: list[str] = field(default_factory=list)
    birth: date = date(1950, 3, 4)

    def text(self, rng, identifiers):
        """A clinical text in which these identifiers stand."""
        sentences = WORLDS[self.language][5]
        return " ".join(rng.choice(sentences).format(identifier) for identifier in identifiers)


def words_of(text):
    return text.split("|") if "|" in text else text.split()


def family_names(text):
    names = text.replace("van der ", "van_der_").replace("van den ", "van_den_").split()
    return [name.replace("_", " ") for name in names]


def someone(seed):
    """A person of one of the seven languages, always the same for a seed."""
    rng = random.Random(seed)
    language = list(WORLDS)[seed % len(WORLDS)]
    given_names, families, streets, cities, title, _ = WORLDS[language]
    given = rng.choice(given_names.split())
    family = rng.choice(family_names(families))
    doctor_given, doctor_family = (
        rng.choice(given_names.split()),
        rng.choice(family_names(families)),
    )
    birth = date(1925, 1, 1) + timedelta(days=rng.randrange(365 * 80))
    number = f"{rng.randrange(10**8, 10**9)}"
    local = f"{rng.randrange(20, 99)}{rng.randrange(10**6, 10**7)}"
    country = COUNTRIES[language]
    street, city = rng.choice(words_of(streets)), rng.choice(cities.split())
    house, postal = f"{rng.randrange(1, 200)}", f"{rng.randrange(10000, 99999)}"
    mail = f"{without_accents(given).lower()}.{rng.randrange(10, 99)}@mail.example"
    record = {
        "resourceType": "Bundle",
        "entry": [
            {
                "resource": {
                    "resourceType": "Patient",
                    "name": [{"family": family, "given": [given]}],
                    "identifier": [{"value": f"MRN-{number}"}],
                    "telecom": [{"value": f"+{country} {local}"}, {"value": mail}],
                    "birthDate": birth.isoformat(),
                    "address": [
                        {"line": [f"{street} {house}"], "city": city, "postalCode": postal}
                    ],
                }
            },
            {
                "resource": {
                    "resourceType": "Encounter",
                    "participant": [
                        {
                            "individual": {
                                "reference": "Practitioner/7",
                                "display": f"Dr. {doctor_given} {doctor_family}",
                            }
                        }
                    ],
                }
            },
        ],
    }
    full = f"{given} {family}"
    exact = [full, f"MRN-{number}", f"+{country} {local}", mail, birth.isoformat()]
    exact += [f"{street} {house}", city, f"{doctor_given} {doctor_family}"]
    person = Someone(language, record, exact, birth=birth)
    person.writings = [
        full.upper(),
        full.lower(),
        f"{family}, {given}",
        f"{given[0]}. {family}",
        f"{title} {family}",
        f"{title} {family.upper()}",
        without_accents(full),
        unicodedata.normalize("NFD", full),
        f"{given}\n{family}",
        f"{given}  {family}",
        f"mrn {number}",
        f"MRN{number[:3]} {number[3:6]} {number[6:]}",
        f"00{country} {local[:2]} {local[2:5]}-{local[5:]}",
        f"0{local[:2]}/{local[2:]}",
        f"+{country} (0){local[:4]} {local[4:]}",
        mail.upper(),
        *dates_of(birth, language),
    ]
    if language in ("de", "nl"):
        person.writings.append(full.translate(TRANSCRIBED))
    for ending in ENDINGS.get(language, ()):
        if not (ending == "s" and family[-1] in "sxzß"):
            person.writings.append(f"{title} {family}{ending}")
    for name in (given, family):
        if language == "pl" and name in CASES:
            person.writings.append(rng.choice(CASES[name].split()))
    return person


def dates_of(day, language):
    """A date in the usual forms."""
    month = MONTHS[language].split()[day.month - 1]
    forms = [
        f"{day:%d.%m.%Y}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day:%d.%m.%y}",
        f"{day:%d/%m/%Y}",
        f"{day:%m/%d/%Y}",
        f"{day:%d-%m-%Y}",
        f"{day:%Y/%m/%d}",
        f"{day:%Y%m%d}",
        f"{day.day} {month} {day.year}",
    ]
    if language == "de":
        forms += [f"{day.day}. {month} {day.year}"]
    if language == "es":
        forms += [f"{day.day} de {month} de {day.year}"]
    if language == "en":
        forms += [f"{month} {day.day}, {day.year}", f"{day.day} {month[:3]} {day.year}"]
    return forms
