"""Whether a patient smokes, by LOINC 72166-2 (tobacco smoking status)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .bundle import Resource
from .concepts import codes_of
from .observations import time_of
from .report import FhirLeftOut
from .times import OLDEST, instant

SMOKING = "72166-2"
# The answers of SNOMED CT and of LOINC's own list.
_SMOKERS: Mapping[str, str] = {
    "449868002": "daily smoker", "LA18976-3": "daily smoker",
    "428041000124106": "occasional smoker", "LA18977-1": "occasional smoker",
    "428071000124103": "heavy smoker", "LA18981-3": "heavy smoker",
    "428061000124105": "light smoker", "LA18982-1": "light smoker",
    "77176002": "smoker", "LA18979-7": "smoker", "65568007": "smoker",
    "8517006": "former smoker", "LA15920-4": "former smoker",
}  # fmt: skip


@dataclass(frozen=True, order=True)
class Smoking:
    """An answer about smoking; the greatest is the newest."""

    at: datetime
    issued: datetime
    entry: int
    text: str  # empty where it is no risk factor, or no answer that is known

    def left_out(self, reason: str) -> FhirLeftOut:
        """The line of the report that it was not taken."""
        return FhirLeftOut(self.entry, "Observation", reason, SMOKING)


def read_smoking(resource: Resource, observation: Any) -> Smoking:
    """The answer of an Observation."""
    answers = codes_of(observation.valueCodeableConcept)
    text = next((_SMOKERS[code] for code in answers if code in _SMOKERS), "")
    made = time_of(observation) or OLDEST
    issued = instant(observation.issued) if observation.issued else OLDEST
    return Smoking(made, issued, resource.entry, text)
