"""Objects while they stream in: what is shown after each piece; `fuzz/json_text.py` cuts any."""

import pytest

from langchain_svc._json.parser import PartialObject


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
    assert PartialObject().parse_chunk(text) == value


def test_what_was_shown_stays_as_it_was():
    parser = PartialObject()
    pieces = ('{"l": [', "1, ", '{"s": "a', 'b"}', "], ", '"n": 2}', ' {"more": 1}')
    shown = [parser.parse_chunk(piece) for piece in pieces]
    assert shown == [
        {"l": []},
        {"l": [1]},
        {"l": [1, {"s": "a"}]},
        {"l": [1, {"s": "ab"}]},
        {"l": [1, {"s": "ab"}]},
        {"l": [1, {"s": "ab"}], "n": 2},
        {"l": [1, {"s": "ab"}], "n": 2},
    ]
