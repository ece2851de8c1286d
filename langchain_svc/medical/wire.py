"""The medical interface (medical API): its requests and its answers.

The documents do not show the fields of three of its answers, so the reader looks for none:
`read_answer` shows all of a body under the service's own names, in its order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._text import without_base64
from .._wire.v1 import UnreadableError, load_body, without_surrogates
from ..config import MEDICAL, Endpoint

CHAT = Endpoint(MEDICAL, "POST", "/api/medical/chat")
PROTOCOLS = Endpoint(MEDICAL, "POST", "/api/medical/clinic-protocols")
CANCER = Endpoint(MEDICAL, "POST", "/api/medical/cancer-diagnosis", images=("images",))
STATUS = Endpoint(MEDICAL, "GET", "/api/medical/clinic-protocols")

Fields = Mapping[str, Any]
# The fields of a patient's record that each takes: their names there and in the request. The
# imaging type is among them because the record knows it and a model guesses.
OF_CHAT = {
    name: f"patientContext.{name}"
    for name in ("age", "sex", "medicalHistory", "currentMedications")
}
OF_PROTOCOLS = {name: name for name in ("vitalSigns", "labResults", "medicalHistory")}
OF_CANCER = {
    "age": "patientAge", "sex": "patientSex", "riskFactors": "riskFactors", "images": "images",
    "imagingType": "imagingType",
}  # fmt: skip


# -- requests (section 2) --------------------------------------------------------------------------


def request_body(
    arguments: Fields, record: Fields, names: Mapping[str, str]
) -> dict[str, Any]:
    """A request: the tool's arguments, and the values of the record that it has fields for."""
    body = dict(arguments)
    for name, path in names.items():
        if name not in record:
            continue
        outer, _, inner = path.partition(".")
        if inner:
            body[outer] = {**body.get(outer, {}), inner: record[name]}
        else:
            body[outer] = record[name]
    return body


# -- answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MedicalAnswer:
    """An answer as a text and as JSON."""

    text: str = field(repr=False)
    raw: Any = field(repr=False)


def read_answer(body: bytes) -> MedicalAnswer:
    """The whole of an answer: a text as it is, anything else as an outline.

    `{"response": "..."}` alone is a text too: the documents show that field of an answer. An answer
    beside an error is an answer, and its first line says that there is an error.

    Raises:
        UnreadableError: The body is not JSON, is a bare number, true or false, is an error and
            nothing else, or holds nothing but null and empty texts, lists and objects.
    """
    raw = load_body(body)
    try:
        # Numbers stay as the service wrote them, and two fields of one name both stay.
        answer = json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=_Members,
            parse_float=str,
            parse_int=str,
            parse_constant=str,
        )
        if isinstance(answer, _Members) and len(answer) == 1:
            name, value = answer[0]
            if name == "response" and isinstance(value, str):
                answer = value
        if not isinstance(raw, (str, list, dict)) or not _says_something(answer):
            raise UnreadableError("it holds no answer")
        lines: list[str] = []
        if isinstance(raw, dict) and _reports_error(raw):
            _check_answer_beside(raw)
            lines.append(BESIDE_AN_ERROR)
        _outline(answer, lines)
    except RecursionError:
        raise UnreadableError("its JSON is nested too deep") from None
    return MedicalAnswer(without_surrogates("\n".join(lines)), raw)


BESIDE_AN_ERROR = "The service reports an error beside this"

# Fields that services write about a call or its failure, in lower case and without "_". None of
# them is about a patient.
_OF_A_CALL = frozenset(
    {"code", "disclaimer", "id", "instance", "param", "path", "requestid", "retryafter", "status",
     "statuscode", "success", "time", "timestamp", "title", "traceid", "type"}
)  # fmt: skip
_OF_AN_ERROR = _OF_A_CALL | {"error", "errors", "message", "detail", "details"}
_FAILED = frozenset({"error", "fail", "failed", "failure"})
_LEAST_ERROR_STATUS = 400


def _reports_error(raw: Fields) -> bool:
    if raw.get("error") or raw.get("errors"):
        return True
    if str(raw.get("success")).strip().casefold() == "false":
        return True
    if _is_failure(raw.get("status")):
        return True
    # Web frameworks answer {"detail": "Not authenticated"}. A detail beside findings is a finding.
    return _further_names(raw, _OF_A_CALL) == {"detail"}


def _is_failure(status: object) -> bool:
    if isinstance(status, str):
        return status.strip().casefold() in _FAILED
    return isinstance(status, (int, float)) and status >= _LEAST_ERROR_STATUS


def _check_answer_beside(raw: Fields) -> None:
    """Refuse an error that has no answer beside it."""
    if not _further_names(raw, _OF_AN_ERROR):
        error = raw.get("error") or raw.get("errors") or raw.get("detail") or raw
        raise UnreadableError("it carries an error under a status of success", error)


def _further_names(raw: Fields, ignored: frozenset[str]) -> set[str]:
    """The names of the fields that say something, without the ignored ones."""
    names = {name for name, value in raw.items() if _says_something(value)}
    return {name for name in names if name.replace("_", "").casefold() not in ignored}


class _Members(list[Any]):
    """The fields of a JSON object as pairs, in its order."""


_NO_ANSWER = frozenset({"success", "disclaimer"})


def _says_something(value: object) -> bool:
    if isinstance(value, _Members):
        return any(
            _says_something(item) for name, item in value if name not in _NO_ANSWER
        )
    if isinstance(value, dict):
        return _says_something(_Members(value.items()))
    if isinstance(value, list):
        return any(map(_says_something, value))
    return value is not None and str(value).strip() != ""


def _outline(value: object, lines: list[str], depth: int = 0) -> None:
    """Add the lines of a value: an object's fields after their names, a list's items after "-"."""
    indent = _indent(depth)
    if not isinstance(value, list) or not value:
        lines.append(indent + _leaf(value))
    elif isinstance(value, _Members):
        for name, item in value:
            if isinstance(item, list) and item:
                lines.append(f"{indent}{name}:")
                _outline(item, lines, depth + 1)
            else:
                lines.append(f"{indent}{name}: {_leaf(item)}")
    else:
        for item in value:
            start = len(lines)
            _outline(item, lines, depth + 1)
            first_line = lines[start].removeprefix(_indent(depth + 1))
            lines[start] = f"{indent}- {first_line}"


def _indent(depth: int) -> str:
    return "  " * min(depth, _DEEPEST_INDENT)


def _leaf(value: object) -> str:
    if isinstance(value, str) and value:
        return without_base64(value)
    if isinstance(value, _Members):
        return "{}"
    return json.dumps(value)


_DEEPEST_INDENT = 12
