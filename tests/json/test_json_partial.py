"""Values while they stream in: what is shown after each piece, for every way of cutting."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_svc._json.partial import PartialReader, partial

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("Well, let me", None),
        ("{", None),
        ('{"', {}),
        ('{"na', {}),
        ('{"name"', {}),
        ('{"name": ', {}),
        ('{"name": "', {"name": ""}),
        ('{"name": "Ad', {"name": "Ad"}),
        ('{"name": "Ada\\', {"name": "Ada"}),
        ('{"name": "Ada\\u00', {"name": "Ada"}),
        ('{"name": "Ada\\ud83d', {"name": "Ada"}),
        ('{"name": "Ada\\ud83d\\ude00', {"name": "Ada\U0001f600"}),
        ('{"n": 1', {}),
        ('{"n": 12,', {"n": 12}),
        ('{"ok": tru', {}),
        ('{"ok": true}', {"ok": True}),
        ('{"ok": null ', {"ok": None}),
        ('{"l": [1, 2', {"l": [1]}),
        ('{"l": [{"a": [', {"l": [{"a": []}]}),
        ('[{"a": "x', [{"a": "x"}]),
        ("[1, ", [1]),
        ("{}", {}),
        ("[]", []),
        # as models write it
        ('```json\n{"a": "x"}\n``` {"b": 1}', {"a": "x"}),
        ('<think>{"no": 1}</think>{"a": "x', {"a": "x"}),
        ('<think>{"no": 1}', None),
        ('thought of </think>{"a": "x', {"a": "x"}),
        ('For {name} and [see above]: {"a": "x', {"a": "x"}),
        ("For {name", None),
        ("{a: 'x', b: True, c: \"it's", {"a": "x", "b": True, "c": "it's"}),
        ('{"a": 1, // "no": 2\n "b": /* 3 */ 4,}', {"a": 1, "b": 4}),
        ('{"a": 1 / 2, "b": 3}', {"a": 1, "b": 3}),
        ('{{"a": 1}}', {"a": 1}),
        ('{"a": [1, 2}, "b": 3}', {"a": [1, 2]}),
        ('{"a": "one" "b": "two"', {"a": "one", "b": "two"}),
        ('{"a": undefined, "b": [undefined, 1]}', {"b": [1]}),
        ("[" * 300, None),
    ],
)
def test_what_is_shown(text, value):
    assert partial(text) == value


def test_what_was_shown_stays_as_it_was():
    reader = PartialReader()
    shown = [
        reader.feed(piece) for piece in ('{"l": [', "1, ", '{"s": "a', 'b"}', "], ", '"n": 2}')
    ]
    assert shown == [
        {"l": []},
        {"l": [1]},
        {"l": [1, {"s": "a"}]},
        {"l": [1, {"s": "ab"}]},
        {"l": [1, {"s": "ab"}]},
        {"l": [1, {"s": "ab"}], "n": 2},
    ]
    assert reader.feed(' {"more": 1}') == shown[-1]


def test_the_root_may_be_known():
    text = 'As [1] says: {"a": 1}'
    assert partial(text) == [1]
    assert PartialReader(root="{").feed(text) == {"a": 1}


@settings(deadline=None)
@given(OBJECTS, st.sampled_from([None, 1]), st.booleans(), st.lists(st.integers(0, 400)))
def test_every_way_of_cutting_shows_the_same(value, indent, ascii_only, cuts):
    text = "So: " + json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    reader = PartialReader()
    at = 0
    for cut in sorted({min(cut, len(text)) for cut in [*cuts, len(text)]}):
        shown = reader.feed(text[at:cut])
        assert shown == partial(text[:cut])
        assert shown is None or begins(shown, value)
        at = cut
    assert shown == value


def begins(part, whole):
    if isinstance(part, dict):
        return all(key in whole and begins(item, whole[key]) for key, item in part.items())
    if isinstance(part, list):
        return len(part) <= len(whole) and all(map(begins, part, whole))
    if isinstance(part, str):
        return whole.startswith(part)
    return part == whole


SCRAPS = st.text(st.sampled_from("{}[]\"'`:,\\/*tuDd83- 1a\n<>think"), max_size=80)


@settings(max_examples=400, deadline=None)
@given(SCRAPS, st.lists(st.integers(0, 80)))
def test_any_text_is_shown_without_complaint(text, cuts):
    reader = PartialReader()
    at = 0
    for cut in sorted({min(cut, len(text)) for cut in [*cuts, len(text)]}):
        shown = reader.feed(text[at:cut])
        at = cut
    assert shown == partial(text)
