"""Objects while they stream in: what is shown after each piece."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_svc._json.partial import PartialObject

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("Well, let me", None),
        ('{"na', None),
        ('{"name": "', {"name": ""}),
        ('{"name": "Ad', {"name": "Ad"}),
        ('{"name": "Ada\\', {"name": "Ada"}),
        ('{"name": "Ada\\u00', {"name": "Ada"}),
        ('{"name": "Ada\\ud83d\\ude00"', {"name": "Ada\U0001f600"}),
        ('{"dose_mg": 1', None),
        ('{"dose_mg": 12.75,', {"dose_mg": 12.75}),
        ('{"ok": tru', None),
        ('{"ok": true}', {"ok": True}),
        ('{"l": [1, 2', {"l": [1]}),
        ('{"l": [{"a": [', {"l": [{"a": []}]}),
        # as models write it
        ('```json\n{"a": "x"}\n``` {"b": 1}', {"a": "x"}),
        ('For {name} and [see above]: {"a": "x', {"a": "x"}),
        ('{{"a": 1}}', {"a": 1}),
        ("{'a': {\"b\": 1}}", None),
        ('{"a": ' * 3_000, None),
    ],
)
def test_what_is_shown(text, value):
    assert PartialObject().feed(text) == value


def test_what_was_shown_stays_as_it_was():
    reader = PartialObject()
    pieces = ('{"l": [', "1, ", '{"s": "a', 'b"}', "], ", '"n": 2}', ' {"more": 1}')
    shown = [reader.feed(piece) for piece in pieces]
    assert shown == [
        {"l": []},
        {"l": [1]},
        {"l": [1, {"s": "a"}]},
        {"l": [1, {"s": "ab"}]},
        {"l": [1, {"s": "ab"}]},
        {"l": [1, {"s": "ab"}], "n": 2},
        {"l": [1, {"s": "ab"}], "n": 2},
    ]


@settings(deadline=None)
@given(OBJECTS, st.sampled_from([None, 1]), st.booleans(), st.lists(st.integers(0, 400)))
def test_every_value_shown_is_the_beginning_of_the_whole(value, indent, ascii_only, cuts):
    text = "So: " + json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    reader = PartialObject()
    at = 0
    for cut in sorted({min(cut, len(text)) for cut in [*cuts, len(text)]}):
        shown = reader.feed(text[at:cut])
        assert shown is None or begins(shown, value)
        at = cut
    assert PartialObject().feed(text) == value


def begins(part, whole):
    if isinstance(part, dict):
        return all(key in whole and begins(item, whole[key]) for key, item in part.items())
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(begins, part, whole))
    if isinstance(part, str):
        return whole.startswith(part)
    return part == whole
