"""The lenient reader: rows of broken JSON and what their writers meant, then its properties."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_svc._json.parser import read_json

BRACKETS = [
    # closing brackets that are missing, too many, or of the wrong kind
    ('{"city": "Bonn", "at": {"lat": 50.7', {"city": "Bonn", "at": {"lat": 50.7}}),
    ('{"tags": ["a", "b"}', {"tags": ["a", "b"]}),
    ('[{"n": 1], {"n": 2}]', [{"n": 1}]),
    ('[{"n": 1}}, {"n": 2}]', [{"n": 1}, {"n": 2}]),
    ('{"o": {"s": "x"]}, "n": 1}', {"o": {"s": "x"}, "n": 1}),
    ('{{"n": {{"m": 1}}, "o": 2}}', {"n": {"m": 1}, "o": 2}),
    ("{", {}),
    ("[{]", [{}]),
]
COMMAS = [
    ('{"n": 1,}', {"n": 1}),
    ('{, "n": 1,, "m": 2}', {"n": 1, "m": 2}),
    ('{"n": 1 "m": 2}', {"n": 1, "m": 2}),
    ('{"s": "x"\n  t: 5\n}', {"s": "x", "t": 5}),
    ('{"l": ["x" , "y" ] "n": 2}', {"l": ["x", "y"], "n": 2}),
    ('["x" "y" 3', ["x", "y", 3]),
    ('{"n": 1; "m": 2}', {"n": 1, "m": 2}),
    ("[1, ..., 9]", [1, 9]),
    ("[1, : 2]", [1, 2]),
    ('[{"s": "x", ...}, ["y", ...]]', [{"s": "x"}, ["y"]]),
]
KEYS = [
    ("{name: 'Ada', last-name: \"L\", 3: {}}", {"name": "Ada", "last-name": "L", "3": {}}),
    ("{first name: Ada}", {"first name": "Ada"}),
    ('{name": "Ada"}', {"name": "Ada"}),
    ('{"name: Ada, "n": 1}', {"name": "Ada", "n": 1}),
    ('{"s": "x", "t: "y"}', {"s": "x", "t": "y"}),
    ('{"n" = 1, "m" => 2, "o":: 3}', {"n": 1, "m": 2, "o": 3}),
    ('{"s" "x", "n": 1}', {"s": "x", "n": 1}),
    ('{"s": "x", "lost"}', {"s": "x"}),
    ('{"n": , "m": 2}', {"m": 2}),
    ('{"n": 1, "m', {"n": 1}),
    ("{“n”: 1, «m»: 2, ‘o’: 3}", {"n": 1, "m": 2, "o": 3}),
]
WORDS = [
    ("{y: True, n: False, none: None, N: NULL}", {"y": True, "n": False, "none": None, "N": None}),
    ("{gone: undefined, nan: NaN, inf: -Infinity}", {"gone": None, "nan": None, "inf": None}),
    ("[1_000, .5, 5., +1, 1e3, -2.5E-1]", [1000, 0.5, 5.0, 1, 1000.0, -0.25]),
    ('{"zip": 01234, "sum": -2,000.00, "n": 1}', {"zip": "01234", "sum": "-2,000.00", "n": 1}),
    ("{day: 2024-01-02, at: 12:30, v: v1.2}", {"day": "2024-01-02", "at": "12:30", "v": "v1.2"}),
    ("{url: https://example.com/a?b=c, n: 1}", {"url": "https://example.com/a?b=c", "n": 1}),
    ("{colour: #ff0000, n: 1}", {"colour": "#ff0000", "n": 1}),
    ('{"s": Oslo, Norway, "n": 1}', {"s": "Oslo, Norway", "n": 1}),
    ('{"s": Oslo", "n": 5"}', {"s": "Oslo", "n": 5}),
    ("{s: f(x, {y}), n: 1}", {"s": "f(x, {y})", "n": 1}),
    ("{s: a `b` < c, n: 1}", {"s": "a `b` < c", "n": 1}),
    ('{"s": **One, two**\n\nThree "four".\n}', {"s": '**One, two**\n\nThree "four".'}),
    ("[red, 'blue', green]", ["red", "blue", "green"]),
    ("{at: (1, 2), few: (4,)}", {"at": [1, 2], "few": [4]}),
]
COMMENTS = [
    ('{"n": 1, // one\n "m": 2 /* two */ # three\n}', {"n": 1, "m": 2}),
    ("[\n // ] not here\n 1]", [1]),
    ('{"n": 1 <!-- no --> }', {"n": 1}),
]
FOREIGN = [
    ("\ufeff{\u200b“n”：1，“l”：［1，2］}", {"n": 1, "l": [1, 2]}),
    ('｛"n": 1｝', {"n": 1}),
    ('{\\"s\\": \\"x \\\\\\"y\\\\\\"\\", \\n \\"n\\": 1}', {"s": 'x "y"', "n": 1}),
    ('{"s": "a" + "b" +\n "c", "n": 1}', {"s": "abc", "n": 1}),
]


@pytest.mark.parametrize(("text", "value"), BRACKETS + COMMAS + KEYS + WORDS + COMMENTS + FOREIGN)
def test_what_was_meant(text, value):
    found = read_json(text)
    assert found is not None
    assert found.value == value
    assert types(found.value) == types(value)
    assert found.repairs > 0


def types(value):
    if isinstance(value, dict):
        return {key: types(item) for key, item in value.items()}
    return [types(item) for item in value] if isinstance(value, list) else type(value)


ENDED = [
    *((text, True, False) for text in ('{"s": "x"}', '{"s": "x",}', '{"s": "x}')),
    *((f'{{"s": "x"{end}', False, False) for end in ("", "\n```\nDone.", "\n</answer>")),
    *((f'{{"s": "x"{end}', False, True) for end in (", ", ', "', ', "t', ', "t"')),
    *((text, False, True) for text in ('{"s": "x', '{"s": "x\\', '{"n": 12', '{"b": tru')),
    *((text, False, True) for text in ("[1, 2", "[1, 2 ", "[1, 2,")),
]


@pytest.mark.parametrize(("text", "complete", "cut"), ENDED)
def test_where_the_text_ended(text, complete, cut):
    found = read_json(text)
    assert (found.complete, found.cut_in_value) == (complete, cut)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{"n": 1} and more', " and more"),
        ("{'n': 1} and more", " and more"),
        ('{"n": 1}\n```', "\n```"),
        ("{'n': 1\n```\nand more", "```\nand more"),
        ("[1, 2,], [3]", ", [3]"),
        ('{"n": [1, 2]\n\nHope this helps! Note: no', "Hope this helps! Note: no"),
    ],
)
def test_where_the_value_ends(text, rest):
    assert text[read_json(text).end :] == rest


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), (" -1.5 x", -1.5), ('"a" b', "a"), ("True", True), ("null", None), ("'a'", "a")],
)
def test_scalars(text, value):
    found = read_json(text)
    assert found.value == value
    assert found.complete


@pytest.mark.parametrize(
    "text",
    ["", "  ", "hello", "}", ", 1", "{name} is a placeholder", "{see above}", "{1, 2}", "// {}"],
)
def test_where_no_value_begins(text):
    assert read_json(text) is None


def test_a_value_is_read_where_it_begins():
    assert read_json('x [1] {"n": 2}', 6).value == {"n": 2}
    assert read_json('x [1] {"n": 2}', 5).value == {"n": 2}
    assert read_json("x [1]", 1).value == [1]
    assert read_json("x [1]", 0) is None


@pytest.mark.parametrize("text", ["[" * 201 + "]" * 201, '{"a": ' * 201, "[" * 100_000])
def test_what_is_too_deep_is_not_read(text):
    assert read_json("[" * 200 + "]" * 200).repairs == 0
    assert read_json(text) is None


def test_half_of_a_surrogate_pair_is_replaced():
    assert read_json('{"s": "\\\\ud83c\\').value == {"s": "\\ud83c"}
    assert read_json(r'{"s": ["\ud83d"]}').value == {"s": ["\ufffd"]}


# -- properties -----------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
CONTAINERS = st.one_of(st.lists(VALUES, max_size=4), st.dictionaries(TEXTS, VALUES, max_size=4))
LAYOUTS = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([None, (",", ":"), (" ,\n", " : ")]),
    }
)


@settings(deadline=None)
@given(CONTAINERS, LAYOUTS)
def test_the_repairing_reader_reads_sound_json_as_it_is(value, layout):
    # An unclosed bracket before it is what sends the reader on its long way.
    text = "[" + json.dumps(value, **layout)
    found = read_json(text)
    assert found.value == [value]
    assert not found.complete


@pytest.mark.parametrize("cut", ['"', '"t', '"t\\', '"t"', '"t":', '"t": '])
@pytest.mark.parametrize("value", ["x", "", "x y.", "10%", "\\"])
@pytest.mark.parametrize("comma", [", ", ",", ",\n  "])
def test_a_key_cut_off_takes_nothing_into_the_value_before_it(value, comma, cut):
    text = f'{{"s": {json.dumps(value)}{comma}{cut}'
    assert read_json(text).value == {"s": value}
    assert read_json(f'{{"in": [{text}').value == {"in": [{"s": value}]}


@pytest.mark.parametrize("cut", ["t", "fals", "nu", "-"])
def test_a_word_cut_off_takes_nothing_into_the_item_before_it(cut):
    assert read_json(f'["x", {cut}').value[0] == "x"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('{"n": ' + "9" * 5_000 + "}", "9" * 5_000),  # more digits than Python reads
        ('{"n": -1e999}', None),
        ("{'n': 1e400,}", None),
    ],
)
def test_a_number_too_large_for_any_is_no_number(text, number):
    found = read_json(text)
    assert found.value == {"n": number}
    assert found.repairs


LEFT_OVER = [
    "{'s': {1, 2}}",
    "{'s': {'x', 'y'}}",
    "[{see above}]",
    '{"n": , "m": 2}',
    '{"s" oops : "x", "n": 1}',
    '["x" oops, "y"]',
    '{"s": "x", ...}',
    # a key that stands twice
    '{"n": 1, "n": 2}',
    '[{"drug": "a", "mg": 5}, "drug": "b"}]',
    # brackets that may be missing, or too many, in several places
    '{"in": {"n": 1}}, "out": 2}',
    '{"n": 1, }"m": 2}',
    '[{"n": 1}, "m": 2}]',
    '[{"n": 1}], {"n": 2}]',
    '[]{"n": 1}]',
    '{"a": [n}ull], "b": 1}',
    '{"a"}: {"b": 1}}',
    '{"a":} {"b": 1}}',
    '[{"n": 1, {"n": 2}]',
    '{"tags": ["a", "b"}, "n": 1}',
    '{"tags": ["a"], "b", "c"], "n": 1}',
    '{"rows": [[1]], [[2]], "n": 1}',
    '{"o": {"s": "x"]}, "n": 1}',
    '{"both": {"n": 1}, {"n": 2}}',
    # quotes without a backslash, one of which may end the string
    '{"s": "one", two "three", "n": 1}',
    # a formula that lacks a backslash
    r'{"s": "$\frac{a}{b}$"}',
    r'{"s": "\beta", "t": ["x"]}',
    r"""{'s': '\\ \frac'}""",
]


@pytest.mark.parametrize("text", LEFT_OVER)
def test_what_is_left_over_is_said(text):
    assert read_json(text).spare


@pytest.mark.parametrize(
    "text",
    [
        '{"s": "he said "no" and left"}',
        '{"s": "a, "b" c"}',
        "{'n': 1, }",
        '{"n": 1}}',
        '{"n": 1}, as I said',
        '{"n": 1}\n{"n": 2}',
        "[1]\n[2]",
        r'{"s": "\\frac \\beta"}',
        r'{"s": "a\fb"}'.replace("b", "1"),
        '{"s": abc", "n": 1}',
    ],
)
def test_where_nothing_is_left_over(text):
    assert not read_json(text).spare
