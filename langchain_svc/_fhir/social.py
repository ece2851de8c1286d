"""Findings about how somebody lives, which a third party seldom needs; and what else to leave out.

Rests on the category `sdoh` of US Core and those of the Gravity project, on ICD-10's Z55 to Z65
(socioeconomic and psychosocial circumstances), and on SNOMED CT for the findings that synthetic
and real records hold among conditions. Stress and misuse of substances are health: they are taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeAlias

from .bundle import objects

Filter: TypeAlias = "Collection[str] | Callable[[Mapping[str, Any]], bool]"

_CATEGORIES = re.compile(
    r"sdoh.*|social-history|food-insecurity|housing-instability|homelessness|inadequate-housing"
    r"|transportation-insecurity|financial-insecurity|material-hardship|employment-status"
    r"|educational-attainment|veteran-status|stress|social-connection|intimate-partner-violence"
    r"|elder-abuse|medical-cost-burden|health-insurance-coverage-status|utility-insecurity"
)
_ICD10 = re.compile(r"Z(?:5[5-9]|6[0-5])(?:\..*)?")
_SNOMED = frozenset({
    "160903007", "160904001", "73438004", "741062008",  # employment
    "224294005", "224295006", "224297003", "224299000", "473461003", "5251000175109",  # education
    "105531004", "32911000", "266934004", "713458007",  # housing, transport
    "422650009", "423315002", "424393004", "706893006",  # social contact, violence
    "266948004", "446654005", "1187604002",  # criminal record, refuge, military service
})  # fmt: skip


def is_social(raw: Mapping[str, Any]) -> bool:
    """Whether a resource is a social finding, by its category or code."""
    if any(_CATEGORIES.fullmatch(code) for _, code in _codings(raw.get("category"))):
        return True
    return any(
        code in _SNOMED if system == "http://snomed.info/sct" else _ICD10.fullmatch(code)
        for system, code in _codings(raw.get("code"))
        if "snomed" in system or "icd-10" in system or "6.90" in system
    )


def named_by(wanted: Filter, raw: Mapping[str, Any]) -> bool:
    """Whether the application's filter names a resource: by a function, or a code or category."""
    if callable(wanted):
        return bool(wanted(raw))
    codings = (*_codings(raw.get("category")), *_codings(raw.get("code")))
    return any(code in wanted for _, code in codings)


def _codings(concepts: Any) -> Iterator[tuple[str, str]]:
    """The unchecked systems and codes of one concept or several."""
    for concept in objects(concepts if isinstance(concepts, (list, tuple)) else [concepts]):
        for coding in objects(concept.get("coding")):
            if isinstance(coding.get("code"), str):
                yield str(coding.get("system", "")), coding["code"]
