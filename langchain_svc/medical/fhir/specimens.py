"""What a specimen says of a result: whose it is, and whether it is of blood.

The laboratory codes of the table are all of blood. The same substance in urine is another result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .bundle import Resource, objects, text
from .subject import Subject

# Kinds of blood, serum and plasma: of SNOMED CT and of HL7's table 0487.
_OF_BLOOD = frozenset({
    "119297000", "119364003", "119361006", "122555007", "122552005", "122554006", "119298005",
    "119300005", "258580003", "258450006", "258500001", "441510007", "258590006",
    "BLD", "BLDA", "BLDC", "BLDCAP", "BLDV", "BLDMV", "SER", "PLAS", "PPP", "PRP", "WB",
})  # fmt: skip
_BLOOD = re.compile(
    r"\b(?:whole ?|voll)?(?:blood|blut|bloed|sang|sangre|sangue|serum|siero|suero|s[ée]rum|"
    r"plasma|plasme)",
    re.IGNORECASE,
)


def problem_of_specimen(observation: Resource, subject: Subject) -> tuple[str, str]:
    """Why an Observation is not of this patient, and why it is not of blood; empty if it may be."""
    specimen = next(objects([observation.raw.get("specimen")]), None)
    if specimen is None:
        return "", ""
    whose = ""
    kinds: list[object] = [{"text": specimen.get("display")}]
    found = subject.resolved(text(specimen.get("reference")), observation)
    if found is not None:
        raw, holder = found
        kinds.append(raw.get("type"))
        if subject.is_another(raw, "Specimen", holder):
            whose = "its specimen is of somebody else"
    said = list(_said(kinds))
    if not said or any(word in _OF_BLOOD or _BLOOD.search(word) for word in said):
        return whose, ""
    return whose, "its specimen is not known to be of blood"


def _said(concepts: list[object]) -> Iterator[str]:
    """The codes and words of unchecked concepts."""
    for concept in objects(concepts):
        for part in (concept, *objects(concept.get("coding"))):
            for name in ("code", "display", "text"):
                if word := text(part.get(name)):
                    yield word
