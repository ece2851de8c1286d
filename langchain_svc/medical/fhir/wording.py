"""The words in which a clinician reads of a record: its resources, readings and units by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_KINDS: Mapping[str, str] = {
    "AllergyIntolerance": "allergy",
    "DiagnosticReport": "report",
    "FamilyMemberHistory": "family history",
    "MedicationRequest": "medication",
    "MedicationStatement": "medication",
    "Observation": "result",
    "component": "part of a result",
    "text": "typed text",
}
# Who, where, when and for how much: they say nothing of the patient's health. Every other type may,
# also one that nobody knows.
_ADMINISTRATIVE = """
    Account Appointment AppointmentResponse AuditEvent ChargeItem Claim ClaimResponse Consent
    Contract Coverage CoverageEligibilityRequest CoverageEligibilityResponse Encounter Endpoint
    EnrollmentRequest EnrollmentResponse EpisodeOfCare ExplanationOfBenefit Group HealthcareService
    InsurancePlan Invoice Location MessageHeader OperationOutcome Organization
    OrganizationAffiliation PaymentNotice PaymentReconciliation Person Practitioner
    PractitionerRole Provenance RelatedPerson Schedule Slot Subscription VerificationResult
"""
ADMINISTRATIVE = frozenset(_ADMINISTRATIVE.split())
# Readings whose names are not the words for them.
_READINGS: Mapping[str, str] = {
    "systolic": "systolic pressure", "diastolic": "diastolic pressure", "bmi": "BMI",
    "troponinT": "troponin T", "hsTroponinI": "high-sensitivity troponin I",
    "hsTroponinT": "high-sensitivity troponin T", "bnp": "BNP", "ntProBnp": "NT-proBNP",
    "mcv": "MCV", "mch": "MCH", "mchc": "MCHC", "hdlCholesterol": "HDL cholesterol",
    "ldlCholesterol": "LDL cholesterol", "hba1c": "HbA1c", "totalCo2": "total CO2",
    "egfr": "eGFR", "alt": "ALT", "ast": "AST", "ggt": "GGT", "tsh": "TSH", "freeT4": "free T4",
    "freeT3": "free T3", "crp": "CRP", "inr": "INR", "arterialPh": "arterial pH",
    "arterialPco2": "arterial pCO2", "arterialPo2": "arterial pO2",
}  # fmt: skip
_CAMEL_CASE = re.compile(r"[a-z]+(?:[A-Z][a-z]+|_[a-z]+)*")
_UNITS: Mapping[str, str] = {
    "1": "", "[pH]": "", "Cel": "°C", "[degF]": "°F", "a": "years",
}  # fmt: skip
# What UCUM writes otherwise than people do, within a unit. Other annotations are not of the unit.
_PARTS_OF_UNITS: tuple[tuple[str, str], ...] = (
    (r"\{1\.73_m2\}", "1.73 m2"),
    (r"\{[^{}]*\}", ""),
    (r"\[iU\]", "IU"),
    (r"\[([A-Za-z0-9]+)(?:_[a-z]+)?\]", r"\1"),
    (r"\bu(?=[A-Za-z])", "µ"),
)
_POWER = re.compile(r"(?<=\b10)\*([0-9]+)|(?<=m)([23])\b")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_MOST = 20  # of a list that people read


def kind_in_words(kind: str) -> str:
    """A type of resource, or a part of one: `MedicationDispense` is "medication dispense"."""
    return _KINDS.get(kind) or spaced(kind)


def reading_in_words(name: str) -> str:
    """The name of a reading: `urea_nitrogen` and `ureaNitrogen` are "urea nitrogen".

    A name that an application gave stands as it is.
    """
    if name in _READINGS:
        return _READINGS[name]
    return spaced(name) if _CAMEL_CASE.fullmatch(name) else name


def spaced(name: str) -> str:
    """`heartRate`, `HeartRate` and `heart_rate` are all "heart rate"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def unit_in_words(unit: str) -> str:
    """A UCUM unit as people write it: mmHg, °C, µmol/L, 10³/µL; empty where there is none."""
    if unit in _UNITS:
        return _UNITS[unit]
    for pattern, words in _PARTS_OF_UNITS:
        unit = re.sub(pattern, words, unit)
    return _POWER.sub(
        lambda power: (power[1] or power[2]).translate(_SUPERSCRIPTS), unit
    )


def counted(count: int, word: str) -> str:
    """A number of things: "1 allergy", "2,300 allergies", "2 explanations of benefit"."""
    if count == 1:
        return f"1 {word}"
    head, of, rest = word.partition(" of ")
    plural = f"{head[:-1]}ies" if head.endswith("y") else f"{head}s"
    return f"{count:,} {plural}{of}{rest}"


def listed(items: Sequence[str]) -> str:
    """A list that a person can read: of more than twenty only their number."""
    further = len(items) - _MOST
    shown = ", ".join(items[:_MOST])
    return f"{shown} and {further:,} more" if further > 0 else shown
