"""Numbers and other scalars of an object: as they were written, by Pydantic's rules for JSON."""

from __future__ import annotations

import datetime as dt
import enum
import json
from decimal import Decimal
from typing import Any

import pydantic.v1
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peers import Scripted, summed
from pydantic import BaseModel, ConfigDict


class Amounts(BaseModel):
    """Some amounts."""

    total: Decimal
    parts: list[Decimal] = []
    by_name: dict[str, Decimal | None] = {}
    rate: float = 0
    more: Any = None


FIGURES = st.text("0123456789", min_size=1, max_size=30)
DIGITS = st.builds(
    "{}{}.{}{}".format,
    st.sampled_from(["", "-"]),
    FIGURES.map(lambda figures: figures.lstrip("0") or "0"),
    FIGURES,
    st.sampled_from(["", "e7", "E-12", "e+40"]),
)
WRITTEN = {
    "plain": "{}",
    "fenced": "Here it is:\n```json\n{}\n```",
    "with a comma too many": "{}",
}


@given(DIGITS, DIGITS, st.sampled_from([*WRITTEN]), st.sampled_from(["invoke", "stream"]))
def test_a_decimal_has_the_digits_that_were_written(total, part, how, way):
    fields = f'"total": {total}, "parts": [{part}, 1.10], "by_name": {{"a": {part}, "b": null}}, "rate": {part}'
    if how == "with a comma too many":
        fields += ","
    service = Scripted(WRITTEN[how].format(f"{{{fields}}}"))
    chain = service.model().with_structured_output(Amounts)
    made = chain.invoke("?") if way == "invoke" else [*chain.stream("?")][-1]
    assert (made.total, made.parts[0], made.by_name["a"]) == (
        Decimal(total),
        *[Decimal(part)] * 2,
    )
    assert (str(made.parts[1]), made.rate) == ("1.1", float(part))
    assert len(service.asked) == 1


LONG = "12345678901234567890.12"


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_dict_has_floats_and_its_message_the_digits(way):
    schema = {"title": "A", "properties": {"a": {"type": "number"}, "b": {}}, "required": ["a"]}
    service = Scripted(*[f'{{"a": {LONG}, "b": [{LONG}]}}'] * 2)
    chain = service.model().with_structured_output(schema)
    made = chain.invoke("?") if way == "invoke" else [*chain.stream("?")][-1]
    assert made == {"a": float(LONG), "b": [float(LONG)]}
    assert type(made["a"]) is type(made["b"][0]) is float
    message = chain.steps[0].invoke("?")
    assert json.loads(message.text, parse_float=Decimal)["a"] == Decimal(LONG)


def test_the_arguments_of_a_call_are_floats():
    def pay(amount: float) -> str:
        """Pay it."""

    call = f'<tool_call>{{"name": "pay", "arguments": {{"amount": {LONG}}}}}</tool_call>'
    model = Scripted(call, call).model().bind_tools([pay])
    for message in (model.invoke("?"), summed(model.stream("?"))):
        (made,) = message.tool_calls
        assert type(made["args"]["amount"]) is float


class Whole(BaseModel):
    """A number."""

    n: int


@pytest.mark.parametrize(
    ("text", "n"), [(f"{LONG}", None), ("12345678901234567890.0", 12345678901234567890)]
)
def test_a_long_number_with_a_fraction_is_no_integer(text, n):
    service = Scripted(f'{{"n": {text}}}', '{"n": 7}')
    assert service.model().with_structured_output(Whole).invoke("?") == Whole(n=n or 7)
    assert len(service.asked) == (1 if n else 2)


@pytest.mark.parametrize(
    ("one", "other"), [("1234567890.123456789012", "1234567890.123456789013"), ("1", "true")]
)
def test_two_objects_whose_numbers_differ_are_two_answers(one, other):
    service = Scripted(f'{{"more": {one}}} {{"more": {other}}}', '{"more": 2}')
    schema = {"title": "More", "properties": {"more": {}}, "required": ["more"]}
    assert service.model().with_structured_output(schema).invoke("?") == {"more": 2}
    assert "two objects that differ" in service.asked[1][-1]["content"]


def test_a_long_number_is_none_of_its_neighbours():
    schema = {"title": "More", "properties": {"more": {"enum": [0.1, 0.2]}}, "required": ["more"]}
    service = Scripted('{"more": 0.1000000000000000000001}', '{"more": 0.1}')
    assert service.model().with_structured_output(schema).invoke("?") == {"more": 0.1}
    assert len(service.asked) == 2


class Name(BaseModel):
    """A name that is written in figures."""

    name: str


def test_a_text_that_is_written_as_a_number_has_all_of_its_figures():
    service = Scripted(f'{{"name": {LONG}}}')
    assert service.model().with_structured_output(Name).invoke("?").name == LONG


class OldAmount(pydantic.v1.BaseModel):
    """An amount, in Pydantic's old way."""

    total: Decimal


def test_so_it_is_for_an_older_class():
    service = Scripted(f'{{"total": {LONG}}}')
    made = service.model().with_structured_output(OldAmount).invoke("?")
    assert made.total == Decimal(LONG)


class Size(enum.Enum):
    SMALL = "small"


class Strict(BaseModel):
    """What Pydantic takes strictly, and out of JSON."""

    model_config = ConfigDict(strict=True, val_json_bytes="base64")
    day: dt.date
    raw: bytes
    size: Size
    pair: tuple[int, str]
    names: set[str]
    amount: Decimal


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_a_strict_class_is_made_as_out_of_json(method):
    text = (
        '{"day": "2026-02-28", "raw": "aGk=", "size": "small", "pair": [1, "a"], "names": ["x"], '
        '"amount": 1.5}'
    )
    written = text
    if method == "function_calling":
        written = f'<tool_call>{{"name": "Strict", "arguments": {text}}}</tool_call>'
    service = Scripted(written)
    made = service.model().with_structured_output(Strict, method=method).invoke("?")
    assert made == Strict.model_validate_json(text)
    assert made.raw == b"hi"
