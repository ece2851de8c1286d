"""The medical interface (medical API): its requests and its answers.

The fields of three of its answers are "not shown", so none is looked for: `read_answer` tells all
of a body under the service's own names, in its order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._wire.v1 import UnreadableError, load_body, without_surrogates

CHAT_PATH = "/api/medical/chat"
PROTOCOLS_PATH = "/api/medical/clinic-protocols"
CANCER_PATH = "/api/medical/cancer-diagnosis"

Fields = Mapping[str, Any]
# What of a patient's record each takes, by its name there and in the request. The record knows the
# imaging type, and a model guesses.
OF_CHAT = {
    name: f"patientContext.{name}"
    for name in ("age", "sex", "medicalHistory", "currentMedications")
}
OF_PROTOCOLS = {name: name for name in ("vitalSigns", "labResults", "medicalHistory")}
OF_CANCER = {
    "age": "patientAge", "sex": "patientSex", "riskFactors": "riskFactors", "images": "images",
    "imagingType": "imagingType",
}  # fmt: skip


# -- requests (section 2) -------------------------------------------------------------------------


def request_body(
    given: Fields, record: Fields, names: Mapping[str, str]
) -> dict[str, Any]:
    """A request: what was asked, and of the patient's record what it has fields for."""
    body, added = (
        dict(given),
        {names[name]: record[name] for name in names if name in record},
    )
    for path, value in added.items():
        outer, _, inner = path.partition(".")
        body[outer] = {**body.get(outer, {}), inner: value} if inner else value
    return body


# -- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MedicalAnswer:
    """An answer as a text and as JSON."""

    text: str = field(repr=False)
    raw: Any = field(repr=False)


def read_answer(body: bytes) -> MedicalAnswer:
    """All that an answer says: a text as it is, anything else as an outline.

    `{"response": "..."}` alone is a text too: the documents show that field of an answer. An answer
    beside an error is an answer, and its first line says that there is an error.

    Raises:
        UnreadableError: The body is not JSON, is a bare number, true or false, is an error and
            nothing else, or holds nothing but null and empty texts, lists and objects.
    """
    raw = load_body(body)
    # Numbers stay as they are written, and of two fields with one name none is lost.
    written: Any = {"parse_float": str, "parse_int": str, "parse_constant": str}
    try:
        told = json.loads(
            body.decode("utf-8-sig"), object_pairs_hook=_Members, **written
        )
        if isinstance(told, _Members) and [name for name, _ in told] == ["response"]:
            told = told[0][1] if isinstance(told[0][1], str) else told
        if not isinstance(raw, (str, list, dict)) or not _says_something(told):
            raise UnreadableError("it holds no answer")
        lines: list[str] = []
        if isinstance(raw, dict) and _reports_error(raw):
            _check_answer_beside(raw)
            lines.append(BESIDE_AN_ERROR)
        _outline(told, lines)
    except RecursionError:
        raise UnreadableError("its JSON is nested too deep") from None
    return MedicalAnswer(without_surrogates("\n".join(lines)), raw)


BESIDE_AN_ERROR = "The service reports an error beside this"

# What services write about a call or about its failure, in lower case and without "_". None of it
# is about a patient.
_OF_A_CALL = frozenset(
    {"code", "disclaimer", "id", "instance", "param", "path", "requestid", "retryafter", "status",
     "statuscode", "success", "time", "timestamp", "title", "traceid", "type"}
)  # fmt: skip
_OF_AN_ERROR = _OF_A_CALL | {"error", "errors", "message", "detail", "details"}
_FAILED = frozenset({"error", "fail", "failed", "failure"})
_LEAST_ERROR_STATUS = 400


def _reports_error(raw: Fields) -> bool:
    status = raw.get("status")
    if isinstance(status, str):
        failed = status.strip().casefold() in _FAILED
    else:
        failed = isinstance(status, (int, float)) and status >= _LEAST_ERROR_STATUS
    unsuccessful = str(raw.get("success")).strip().casefold() == "false"
    named = bool(raw.get("error") or raw.get("errors"))
    # Web frameworks answer {"detail": "Not authenticated"}; beside findings it is one of them.
    only_detail = _further_names(raw, _OF_A_CALL) == {"detail"}
    return named or failed or unsuccessful or only_detail


def _check_answer_beside(raw: Fields) -> None:
    if not _further_names(raw, _OF_AN_ERROR):
        error = raw.get("error") or raw.get("errors") or raw.get("detail") or raw
        raise UnreadableError("it carries an error under a status of success", error)


def _further_names(raw: Fields, known: frozenset[str]) -> set[str]:
    """The fields that say something and are not among the known ones."""
    names = {name for name, value in raw.items() if _says_something(value)}
    return {name for name in names if name.replace("_", "").casefold() not in known}


class _Members(list[Any]):
    """The fields of a JSON object as pairs, in its order."""


_NO_ANSWER = frozenset({"success", "disclaimer"})


def _says_something(value: Any) -> bool:
    if isinstance(value, _Members):
        return any(
            _says_something(held) for name, held in value if name not in _NO_ANSWER
        )
    if isinstance(value, dict):
        return _says_something(_Members(value.items()))
    if isinstance(value, list):
        return any(map(_says_something, value))
    return value is not None and str(value).strip() != ""


def _outline(value: Any, lines: list[str], depth: int = 0) -> None:
    indent, inner = ("  " * min(level, _DEEPEST_INDENT) for level in (depth, depth + 1))
    if not isinstance(value, list) or not value:
        lines.append(indent + _leaf(value))
        return
    for item in value:
        label, held = (
            (f"{item[0]}:", item[1]) if isinstance(value, _Members) else ("-", item)
        )
        start = len(lines)
        _outline(held, lines, depth + 1)
        if label != "-" and isinstance(held, list) and held:
            lines[start] = f"{indent}{label}\n{lines[start]}"
        else:
            lines[start] = f"{indent}{label} {lines[start].removeprefix(inner)}"


def _leaf(value: Any) -> str:
    if isinstance(value, str) and value:
        return _BASE64.sub(_without_files, value)
    return "{}" if isinstance(value, _Members) else json.dumps(value)


_DEEPEST_INDENT = 12
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{60,}(?:\r?\n[A-Za-z0-9+/_-]{60,})*={0,2}")
_MOST = 1_000  # characters of base64 that are told


def _without_files(found: re.Match[str]) -> str:
    """A note in place of a file; not of a long word or a sequence of bases, which lack letters."""
    text = found[0]
    is_file = all(re.search(letters, text) for letters in ("[A-Z]", "[a-z]", "[0-9]"))
    return (
        f"[{len(text):,} characters of base64]"
        if is_file and len(text) > _MOST
        else text
    )
