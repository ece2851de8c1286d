"""What a program needs of a medical answer: its risk, its urgency, what it recommends, its files.

No document shows these fields (medical API, section 2), so each is read from every plausible
name and place; docs/assumptions.md lists them. What is not there is None or empty, never a guess.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .._wire import UnreadableError, as_text, normalized_name, unwrap_answer
from .sentences import LIST_MARK


@dataclass(frozen=True)
class Findings:
    """The findings of an answer, as the service worded them."""

    risk_level: str | None = None
    risk_score: float | None = None
    urgency: str | None = None
    recommendations: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON object, without what is not there."""
        found = asdict(self) | {"recommendations": [*self.recommendations]}
        return {name: value for name, value in found.items() if value not in (None, [])}


@dataclass(frozen=True)
class Attachment:
    """A file that came in an answer in base64.

    Attributes:
        data: Its bytes, which may hold anything of the patient.
        content_type: Its media type, by what the answer says or by how it begins.
        name: Its name, if the answer gives one.
    """

    data: bytes = field(repr=False)
    content_type: str
    name: str | None = field(default=None, repr=False)


# Compared without case, `_` and `-`; the first that is there counts.
_LEVELS = ("risklevel", "riskcategory", "riskclass", "overallrisk", "cancerrisk", "risk")
_SCORES = ("riskscore", "riskpercentage", "riskpercent", "riskprobability", "probability", "score")
_URGENCIES = (
    "urgency",
    "urgencylevel",
    "triagelevel",
    "triagecategory",
    "triage",
    "priority",
    "acuity",
)
_ADVICE = (
    "recommendations", "recommendation", "recommendedactions", "recommendedtests",
    "diagnosticrecommendations", "treatmentrecommendations", "protocolrecommendations",
    "suggestedtests", "nextsteps", "actions",
)  # fmt: skip
# Under an object that is named after one of the first three: {"risk": {"level": "high"}}.
_OF_RISK = {"level": "risklevel", "category": "risklevel"}
_OF_RISK |= dict.fromkeys(("score", "value", "percentage"), "riskscore")
_OF_URGENCY = {"level": "urgency", "category": "urgency", "value": "urgency"}
_OTHERS = frozenset({"patient", "patientcontext", "request", "input", "images", "usage"})
_DEEPEST = 12
_SCORE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:%|/\s*(?:100|10|1))?\s*")


def read_findings(raw: Any) -> Findings:
    """The findings of an answer's JSON; empty where it has none."""
    try:
        found = dict(reversed([*_fields(unwrap_answer(raw))]))
    except UnreadableError:
        return Findings()
    return Findings(
        risk_level=_first(_text(found.get(name)) for name in _LEVELS),
        risk_score=_first(_score(found.get(name)) for name in (*_SCORES, *_LEVELS)),
        urgency=_first(_text(found.get(name)) for name in _URGENCIES),
        recommendations=tuple(
            dict.fromkeys(one for name in _ADVICE for one in _advice(found.get(name)))
        ),
    )


def _first(values: Iterator[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def _fields(found: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The fields of an object by their plain names, then those of the objects in it."""
    inner: list[tuple[str, Mapping[str, Any]]] = []
    for name, value in found.items():
        key = normalized_name(name)
        if key in _OTHERS:
            continue
        if isinstance(value, Mapping):
            inner.append((key, value))
        yield key, value
    for key, value in inner if depth < _DEEPEST else ():
        short = _OF_RISK if "risk" in key else _OF_URGENCY if key in _URGENCIES else {}
        for name, held in _fields(value, depth + 1):
            yield short.get(name, name), held


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) and not _SCORE.fullmatch(value) else None


def _score(value: Any) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    written = _SCORE.fullmatch(value) if isinstance(value, str) else None
    return float(written[1]) if written else None


def _advice(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        lines = value.splitlines()
        value = [LIST_MARK.sub("", one, count=1) for one in lines] if len(lines) > 1 else lines
    for one in value if isinstance(value, list) else [value]:
        text = as_text(one)
        if text:
            yield text


# -- files -----------------------------------------------------------------------------------------

_MAGIC = {
    b"%PDF-": "application/pdf",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"PK\x03\x04": "application/zip",
    b"{\\rtf": "application/rtf",
}
_DATA = ("data", "base64", "content", "contentbase64", "file", "bytes", "body")
_TYPES = ("contenttype", "mimetype", "mediatype", "format", "type")
_TITLES = ("filename", "name", "title")
_DATA_URI = re.compile(r"data:([\w.+/-]+)(?:;[\w=.-]+)*;base64,", re.ASCII)
_SHORTEST = 16


def read_attachments(raw: Any) -> tuple[Attachment, ...]:
    """The files in base64 that stand in an answer's JSON, but for those of an echoed request."""
    return tuple(_attachments(raw, 0))


def _attachments(value: Any, depth: int) -> Iterator[Attachment]:
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if made := _attachment(value, None, None):
            yield made
    elif isinstance(value, list):
        for held in value:
            yield from _attachments(held, depth + 1)
    elif isinstance(value, Mapping):
        made, content = _described(value)
        if made:
            yield made
        for name, held in value.items():
            if normalized_name(name) not in _OTHERS and name != content:
                yield from _attachments(held, depth + 1)


def _described(value: Mapping[str, Any]) -> tuple[Attachment | None, str | None]:
    """The file that an object describes, and the name of the field that holds its bytes."""
    texts = {
        normalized_name(name): (name, held) for name, held in value.items() if isinstance(held, str)
    }
    kind, title = (
        next((texts[known][1] for known in keys if known in texts), None)
        for keys in (_TYPES, _TITLES)
    )
    for key in _DATA:
        name, held = texts.get(key, ("", ""))
        if made := _attachment(held, kind, title):
            return made, name
    return None, None


def _attachment(text: str, kind: str | None, name: str | None) -> Attachment | None:
    uri = _DATA_URI.match(text)
    if uri:
        kind, text = uri[1], text[uri.end() :]
    if len(text) < _SHORTEST or " " in text.strip():
        return None
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    known = next((label for start, label in _MAGIC.items() if data.startswith(start)), None)
    typed = (
        kind.strip().lower() if kind and re.fullmatch(r"\s*[\w.+-]+/[\w.+-]+\s*", kind) else None
    )
    # A word of sixteen letters is base64 too: it is a file if something says so.
    return Attachment(data, known or typed, name) if known or typed else None  # type: ignore[arg-type]  # one is
