"""The medical interface (medical API): its requests and its answers.

The fields of three of its answers are "not shown". `read_answer` takes every plausible shape, puts
what it found into a text in the service's wording, and keeps the whole; docs/medical.md lists the
shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .chunks import read_object
from .v1 import UnreadableError, _load

CHAT_PATH = "/api/medical/chat"
PROTOCOLS_PATH = "/api/medical/clinic-protocols"
CANCER_PATH = "/api/medical/cancer-diagnosis"

Fields = Mapping[str, Any]


# -- requests (section 2) -------------------------------------------------------------------------


def consult_body(given: Fields, record: Fields) -> dict[str, Any]:
    """A chat request: what was asked, and of the patient's record what it has fields for."""
    about = ("age", "sex", "medicalHistory", "currentMedications")
    context = {name: record[name] for name in about if name in record}
    return {**given, "patientContext": context} if context else dict(given)


def decision_body(given: Fields, record: Fields) -> dict[str, Any]:
    """A decision support request."""
    about = ("vitalSigns", "labResults", "medicalHistory")
    return {**given, **{name: record[name] for name in about if name in record}}


def cancer_body(given: Fields, record: Fields) -> dict[str, Any]:
    """A cancer diagnosis request."""
    about = {
        "age": "patientAge",
        "sex": "patientSex",
        "riskFactors": "riskFactors",
        "images": "images",
        "imagingType": "imagingType",  # the record knows it, and a model guesses
    }
    return {**given, **{to: record[name] for name, to in about.items() if name in record}}


_OBJECTS: Mapping[str, frozenset[str]] = {
    "patientContext": frozenset({"age", "sex", "medicalHistory", "currentMedications"}),
    "vitalSigns": frozenset(
        {"systolic", "diastolic", "heartRate", "temperature", "respiratoryRate"}
    ),
    "labResults": frozenset({"troponin", "bnp", "creatinine"}),
}


def names_sent(body: Fields) -> tuple[str, ...]:
    """The names of a request's fields; readings that are not documented count as `.*`."""
    names: list[str] = []
    for name, value in body.items():
        known = _OBJECTS.get(name)
        if known is None:
            names.append(name)
        else:
            names += dict.fromkeys(f"{name}.{key if key in known else '*'}" for key in value)
    return tuple(names)


_PARTS: Mapping[str, tuple[str, str]] = {
    "age": ("age", "age"),
    "sex": ("sex", "sex"),
    "medicalHistory": ("condition", "conditions"),
    "currentMedications": ("medication", "medications"),
    "vitalSigns": ("vital sign", "vital signs"),
    "labResults": ("laboratory result", "laboratory results"),
    "riskFactors": ("risk factor", "risk factors"),
    "images": ("image", "images"),
    "imagingType": ("imaging type", "imaging type"),
}


def sent_notice(record: Fields, fields: Iterable[str]) -> str:
    """What of a record is sent and what it does not have, by names and counts alone."""
    sent = [_part(name, record[name]) for name in fields if name in record]
    missing = [_PARTS[name][1] for name in fields if name not in record and name != "imagingType"]
    told = f"Sent of the patient's record: {', '.join(sent) or 'nothing'}"
    return f"{told}; it has no {', no '.join(missing)}." if missing else f"{told}."


def _part(name: str, value: Any) -> str:
    one, several = _PARTS[name]
    if isinstance(value, Mapping):
        known = [_words(key) for key in value if key in _OBJECTS[name]]
        others = len(value) - len(known)
        listed = [*known, *([f"{others} other{'' if others == 1 else 's'}"] if others else [])]
        return f"{several} ({', '.join(listed)})"
    if isinstance(value, (list, tuple)):
        return f"{len(value)} {one if len(value) == 1 else several}"
    return one


_IMAGE_ENDS = 4_000


def values_sent(body: Fields) -> tuple[str, ...]:
    """Every value of a request as a text, for masking what an error of the service says of it.

    Of an image only both ends: an answer that quotes it begins or ends with them.
    """
    return tuple(_values(body, frozenset(body) | frozenset().union(*_OBJECTS.values())))


def _values(value: Any, documented: frozenset[str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, held in value.items():
            if name not in documented:
                yield name  # what was measured tells of the patient too
            yield from _values(held, documented)
    elif isinstance(value, (list, tuple)):
        for held in value:
            yield from _values(held, documented)
    elif isinstance(value, str):
        yield value if len(value) <= 2 * _IMAGE_ENDS else value[:_IMAGE_ENDS]
        if len(value) > 2 * _IMAGE_ENDS:
            yield value[-_IMAGE_ENDS:]
    else:
        yield str(int(value) if value == int(value) else value)
        if abs(value) > _ROUNDED_FROM:
            yield str(round(value))  # as an answer may quote it


_ROUNDED_FROM = 10


# -- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What could be read of an answer, and the whole of it."""

    text: str = field(repr=False)
    raw: Any = field(repr=False)


# Keys are compared without case, `_` and `-`. First those that hold the answer itself.
_MAIN = tuple(
    """
    response answer reply message content text consultation summary assessment analysis result
    output diagnosis interpretation conclusion report guidance advice
    """.split()  # noqa: SIM905  # a list of so many quoted words reads worse
)
_FURTHER = frozenset(
    """
    risklevel riskscore risk riskcategory riskassessment probability likelihood score urgency
    severity priority triage confidence confidencescore findings abnormalfindings imagingfindings
    imageanalysis imageresults differential differentialdiagnosis differentialdiagnoses
    differentials diagnoses possiblediagnoses possibleconditions conditions suspectedconditions
    cancertype cancertypes recommendations recommendation recommendedactions recommendedtests
    suggestedtests tests workup nextsteps actions plan careplan treatment treatments treatmentplan
    treatmentoptions medications protocol protocols guideline guidelines protocolrecommendations
    diagnosticrecommendations treatmentrecommendations alerts warnings redflags flags
    contraindications followup factors riskfactors explanation rationale reasoning evidence
    staging stage
    """.split()  # noqa: SIM905  # the same
)
_ENVELOPES = ("data", "result", "results", "response", "output", "payload", "body", "answer")
# Neither of use to a model nor part of the answer; the last row repeats the request.
_SILENT = frozenset(
    """
    success ok error errors status statuscode code id requestid sessionid conversationid timestamp
    time date created createdat updatedat object model version usage tokens processingtime duration
    choices synthetic
    patient patientcontext patientage patientsex patientcontextused request input query images
    """.split()  # noqa: SIM905  # the same
)
_BAD_STATUS = frozenset({"error", "failed", "failure"})
_ENVELOPES_DEEP = 4
_DEEPEST = 12


def read_answer(body: bytes) -> Answer:
    """What an answer of the chat, decision support or cancer diagnosis endpoint says.

    Raises:
        UnreadableError: The body is not JSON, carries an error, or holds nothing known.
    """
    raw = _load(body)
    found = unwrap_answer(raw)
    known = {normalized_name(name): (name, value) for name, value in found.items()}
    main = [text for key in _MAIN if key in known and (text := _paragraph(known[key][1]))]
    rows = [
        (key in _FURTHER, row)
        for key, (name, value) in known.items()
        if key not in _SILENT and key not in _MAIN and (row := _row(name, value))
    ]
    if any(map(_PAGE.match, main)):
        raise UnreadableError("it is a page of HTML")
    if not main and not any(clinical for clinical, _ in rows):
        raise UnreadableError("it has none of the fields of a medical answer")
    clinical = [row for is_clinical, row in rows if is_clinical]
    others = [row for is_clinical, row in rows if not is_clinical]
    return Answer("\n".join([*main, *clinical, *others]), raw)


def read_status(body: bytes) -> Answer:
    """What the status endpoint says (section 2, "Status response").

    Raises:
        UnreadableError: The body is not JSON, carries an error, or has none of the four fields.
    """
    raw = _load(body)
    found = unwrap_answer(raw, failed=frozenset())
    rows = [
        row
        for name in ("status", "uptime", "latency", "capabilities")
        if (row := _row(name, found.get(name)))
    ]
    if not rows:
        raise UnreadableError("it has none of the fields of a status")
    return Answer("\n".join(rows), raw)


def unwrap_answer(raw: Any, failed: frozenset[str] = _BAD_STATUS) -> dict[str, Any]:
    """The fields of an answer, out of whatever is around them."""
    if isinstance(raw, str):
        return {"response": raw}
    if isinstance(raw, list):
        return {"findings": raw}
    if not isinstance(raw, dict):
        raise UnreadableError("it is not a JSON object")
    found = raw
    for _ in range(_ENVELOPES_DEEP):
        if _is_error(found, failed):
            raise UnreadableError("it carries an error under a status of success", found)
        if isinstance(found.get("choices"), list):
            read = read_object(found)
            return {"response": read.text if read else None}
        inner = next(
            (k for k in found if normalized_name(k) in _ENVELOPES and _is_object(found[k])), None
        )
        if inner is None:
            break
        around = {name: value for name, value in found.items() if name != inner}
        found = {**around, **found[inner]}
    return found


def _is_error(found: Fields, failed: frozenset[str]) -> bool:
    status = found.get("status")
    return (
        bool(found.get("error") or found.get("errors"))
        or found.get("success") is False
        or (isinstance(status, str) and status.lower() in failed)
    )


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def normalized_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _words(name: str) -> str:
    """A field's name as words: `riskLevel` and `risk_level` are both "risk level"."""
    words = re.sub(r"(?<=[a-z\d])(?=[A-Z])|[\W_]+", " ", name[:60]).split()
    return " ".join(word.lower() if word[1:].islower() else word for word in words)


def _label(name: str) -> str:
    words = _words(name)
    return words[:1].upper() + words[1:]


def _paragraph(value: Any) -> str:
    items = _items(value)
    return "\n".join(f"- {item}" for item in items) if len(items) > 1 else "".join(items)


def _row(name: str, value: Any) -> str:
    items = _items(value)
    if len(items) > 1:
        return f"{_label(name)}:\n" + "\n".join(f"- {item}" for item in items)
    return f"{_label(name)}: {items[0]}" if items else ""


def _items(value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [text for held in values if (text := as_text(held))]


def as_text(value: Any, depth: int = 0) -> str:
    """A value as a text in the service's wording; "" for what holds nothing or lies too deep."""
    if isinstance(value, str):
        return _BLOB.sub("[data]", _UNPRINTABLE.sub(" ", value)).strip()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return repr(value) if abs(value) < _LARGEST else ""
    if depth >= _DEEPEST:
        return ""
    if isinstance(value, list):
        return "; ".join(text for held in value if (text := as_text(held, depth + 1)))
    if isinstance(value, dict):
        held = {name: text for name, v in value.items() if (text := as_text(v, depth + 1))}
        return ", ".join(f"{_words(name)}: {text}" for name, text in held.items())
    return ""


_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]+")
_BLOB = re.compile(r"[A-Za-z0-9+/_=-]{200,}")  # an image in base64 is nothing to a model
_LARGEST = 1e15
_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html|head|body|\?xml)\b", re.IGNORECASE)
