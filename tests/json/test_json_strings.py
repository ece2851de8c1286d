"""Strings as models write them: quotes unescaped or forgotten, other quotes, escapes, cut ends."""

import pytest

from langchain_svc._json.parser import read_json

# The inside of a field's string, with quotes in it that should have been escaped.
INNER_QUOTES = [
    'the "best" cake',
    'a 27" screen',
    'he said "no", "never" and left',
    'he said: "Go!". Then: "Stop"',
    'if x == "y": z = {"k": "v"}',
    'send {"k": 1, "l": "x"} to it',
    '<a href="x.html" class="y">link</a>',
    '[link]("https://example.com")',
    'graph A ||--o{ B : "has many"',
    'echo "$HOME" | grep "x"',
    'it\'s "fine"',
    '„so" genannt',
    'x"y',
    'see "[1]" and "{2}"',
    'either "a" "b" or "c" + d',
    'the title, t: "one" and two',
]


@pytest.mark.parametrize("inside", INNER_QUOTES)
@pytest.mark.parametrize("rest", ["}", ', "n": [1]}', '\n,"n": [1]\n}', ', "t": "u"}'])
def test_quotes_inside_a_field(inside, rest):
    expected = {"s": inside, **read_json('{"_": 0' + rest).value}
    del expected["_"]
    assert read_json('{"s": "' + inside + '"' + rest).value == expected


@pytest.mark.parametrize(
    ("inside", "items"),
    [
        ('"the "best" cake"', ['the "best" cake']),
        ('"say "hi"", "x, y", "it is "so", ok"', ['say "hi"', "x, y", 'it is "so", ok']),
        ('"a", "b" c"', ["a", "b", "c"]),
        ('"a" b", "c"', ["a", "b", "c"]),
        ('"a 7" nail", "b"', ['a 7" nail', "b"]),
        ('"a, "b", "c"', ["a", "b", "c"]),
        ("'it's', 'O'Brien'", ["it's", "O'Brien"]),
        ("'say 'hi'', 2", ["say 'hi'", 2]),
    ],
)
def test_quotes_inside_an_item(inside, items):
    assert read_json("[" + inside + "]").value == items
    assert read_json('{"l": [' + inside + '], "n": 1}').value == {"l": items, "n": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # a closing quote was forgotten
        ('{"s": "one, "t": "two"}', {"s": "one", "t": "two"}),
        ('{"s": "one\n  "t": 2,\n  "u": "three"}', {"s": "one", "t": 2, "u": "three"}),
        ('{"s": "one,\n  "t": {"n": 1}}', {"s": "one", "t": {"n": 1}}),
        ('{"s": "Une fin brusq"t": 4,\n "u": false}', {"s": "Une fin brusq", "t": 4, "u": False}),
        ('{"s": "one"t": 4}', {"s": "one", "t": 4}),
        ('{"s": "one. }', {"s": "one."}),
        ('{"l": ["one, two]}', {"l": ["one, two"]}),
        ('{\n  "o": {\n    "s": "one\n  },\n  "n": 1\n}', {"o": {"s": "one"}, "n": 1}),
        # an opening quote was forgotten, or there is one too many
        ('{"s": one", "n": 1}', {"s": "one", "n": 1}),
        ('{"s": "one"", "n": 1}', {"s": "one", "n": 1}),
        ('{"s": ""one", "n": 1}', {"s": "one", "n": 1}),
        ('{""s"": ""one"", "n": 1}', {"s": "one", "n": 1}),
        ('{"s": "one""t": "two"}', {"s": "one", "t": "two"}),
        ('{"s": "say "hi""}', {"s": 'say "hi"'}),
        ('{"n": true, "s": "one" oops }', {"n": True, "s": "one"}),
        # cut off
        ('{"s": "one, "two" thr', {"s": 'one, "two" thr'}),
        ('{"s": "one\\u00', {"s": "one"}),
        ('{"s": "one\\\\', {"s": "one\\"}),
        ('{"s": "f() { return 1; }', {"s": "f() { return 1; }"}),
    ],
)
def test_quotes_forgotten(text, value):
    assert read_json(text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'s': 'say \"hi\"'}", 'say "hi"'),
        ("{'s': \"it's\"}", "it's"),
        (r"{'s': 'it\'s'}", "it's"),
        ('{“s”: “he said "no" twice”}', 'he said "no" twice'),
        ("{«s»: «oui»}", "oui"),
        ('{`s`: `log("x")`}', 'log("x")'),
        ('{"s": `log(`x`)`}', "log(`x`)"),
        ('{"s": """say "hi"."""}', 'say "hi".'),
        ('{"s": """print("""x""")"""}', 'print("""x""")'),
        ('{"s": """"hi", she said"""}', '"hi", she said'),
        ('{"s": """\n    def f():\n      pass\n    """\n}', "def f():\n  pass"),
        ("{\"s\": ```python\nprint('x')\n```\n}", "print('x')"),
        ('{"s": ```\n{"k": [1}}]\n```,\n}', '{"k": [1}}]'),
        ('{"s": "two\nlines\tand a tab"}', "two\nlines\tand a tab"),
    ],
)
def test_other_quotes(text, value):
    assert read_json(text).value == {"s": value}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (r"\"\\\/\b\f\n\r\tA", '"\\/\b\f\n\r\tA'),
        (r"it\'s \`x\`", "it's `x`"),
        (r"snake\_case", "snake_case"),
        (r"\x41\u{1F600}\U0001F600", "A\U0001f600\U0001f600"),
        (r"^\d+\.\w*$", r"^\d+\.\w*$"),
        (r"area \(\pi r^2\)", r"area \(\pi r^2\)"),
        (r"\frac{1}{2} \theta \neq \alpha", r"\frac{1}{2} \theta \neq \alpha"),
        (r"\d one\nnext \tline", "\\d one\nnext \tline"),
        (r"C:\Users\new\tmp", r"C:\Users\new\tmp"),
        ("docker run \\\n  -it", "docker run \\\n  -it"),
        (r"\U99999999", r"\U99999999"),
    ],
)
def test_escapes(raw, value):
    assert read_json('{"s": "' + raw + '"}').value == {"s": value}


def test_an_escaped_quote_ends_nothing():
    assert read_json(r"""{"s": "a \", \"b\": \"c", }""").value == {"s": 'a ", "b": "c'}


@pytest.mark.parametrize("tail", ["\n```", "\n</answer>", "<|im_end|>", "\n```\n", "`````"])
def test_what_closes_the_fence_is_no_part_of_a_string_cut_off(tail):
    assert read_json('{"s": "one two' + tail).value == {"s": "one two"}
