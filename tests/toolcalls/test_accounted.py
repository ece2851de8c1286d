"""A call is certain only if nothing of it is left over: in every form, wherever something stands too much."""

from __future__ import annotations

import itertools
import re

import pytest
from call_forms import FORMS, TOOLS, called, events, said
from share import pairs, part

from langchain_svc._calls.reading import BadCall, Call, Doubt, Tool

EVERY_FORM = pytest.mark.parametrize("name", FORMS)
ROW = {name: row for row, name in enumerate(FORMS)}
WHOLE = {"text": "Rome", "path": "/srv/ann.txt", "count": 3}
WORD = "oops"


def doubts(answer):
    return [event for event in answer if isinstance(event, (Doubt, BadCall))]


VALUES = re.compile(r'Rome|/srv/ann\.txt|(?<=")(?:I look\.|function)(?=")|(?<=Observation:).*')


def places(text):
    """Where a word may stand outside of the values, of other words and of an invented result."""
    taken = set[int]()
    for match in VALUES.finditer(text):
        taken.update(range(match.start(), match.end() + 1))
    for match in re.finditer(r"\w+", text):
        taken.update(range(match.start() + 1, match.end()))
    return [at for at in range(len(text) + 1) if at not in taken]


@EVERY_FORM
@pytest.mark.parametrize("word", [WORD, f'{WORD}="7"'])
def test_a_word_at_any_place_gives_the_same_call_or_a_question(name, word):
    text = FORMS[name].write("write_file", WHOLE)
    for at in part(places(text), ROW[name]):
        damaged = f"{text[:at]} {word} {text[at:]}"
        answer = events(damaged)
        for called_name, arguments in called(answer):
            if called_name not in {tool.name for tool in TOOLS}:
                continue  # the word is a part of the name
            in_a_key = any(WORD in key for key in arguments)
            # Between tags, all is one value.
            in_a_tag = not FORMS[name].json and WORD in str(arguments.get("count"))
            assert arguments == WHOLE or in_a_key or in_a_tag, damaged
        if not doubts(answer):
            assert WORD in f"{called(answer)} {said(answer)}", damaged


@EVERY_FORM
@pytest.mark.parametrize("step", [None, 1, 7])
def test_a_parameter_with_two_values_loses_neither(name, step):
    written = FORMS[name].write("write_file", {"text": "Rome", "path": "Oslo"})
    text = written.replace("path", "text")
    answer = events(text, step)
    assert called(answer) == []
    assert doubts(answer) or said(answer) == text


@pytest.mark.parametrize(
    "text",
    [
        "<function=write_file><parameter=tags>rm</parameter><parameter=tags>-i</parameter></function>",
        "<write_file><tags>rm</tags><tags>-i</tags></write_file>",
    ],
)
def test_a_parameter_that_is_a_list_may_be_written_once_for_each_item(text):
    assert called(events(text)) == [("write_file", {"tags": ["rm", "-i"]})]


@EVERY_FORM
def test_a_closer_that_is_missing_never_changes_the_call(name):
    text = FORMS[name].write("write_file", WHOLE)
    for closer in re.finditer(r"</[^<>]+>|\[/?\w+\]|<[|｜][^<>]+[|｜]>|[\"'}\])]", text):
        damaged = text[: closer.start()] + text[closer.end() :]
        for around in (damaged, f"{damaged}\nThat is the file."):
            for called_name, arguments in called(events(around)):
                assert arguments == WHOLE or called_name not in {tool.name for tool in TOOLS}, (
                    around
                )


WORDS = {  # before a call, and behind it
    "en": ("A call has this form:", "Several calls are several blocks."),
    "de": ("Ein Aufruf hat diese Form:", "Mehrere Aufrufe sind mehrere Blöcke."),
    "fr": ("Un appel a cette forme :", "Plusieurs appels, plusieurs blocs."),
    "es": ("Una llamada tiene esta forma:", "Varias llamadas son varios bloques."),
    "ru": ("Вызов имеет такой вид:", "Несколько вызовов — несколько блоков."),
    "zh": ("调用的形式如下：", "多个调用写成多个块。"),
    "ar": ("الاستدعاء له هذا الشكل:", "عدة استدعاءات هي عدة كتل."),
    "hi": ("कॉल का यह रूप है:", "कई कॉल कई खंड हैं।"),
}


@pytest.mark.parametrize(("name", "language"), pairs(FORMS, list(WORDS)))
def test_words_on_both_sides_of_a_call_are_a_doubt_in_any_language(name, language):
    before, behind = WORDS[language]
    text = f"{before}\n\n{FORMS[name].write('write_file', WHOLE)}\n\n{behind}"
    if text.partition("Observation:")[1]:
        return  # it ends the turn, so nothing stands behind the call
    for step in (None, 3):
        answer = events(text, step)
        assert called(answer) == []
        assert said(answer) == text


ANNOUNCED = [name for name, form in FORMS.items() if form.prose]


@pytest.mark.parametrize(("name", "language"), pairs(ANNOUNCED, list(WORDS)))
def test_words_before_a_call_that_ends_the_answer_announce_it(name, language):
    text = f"{WORDS[language][0]}\n{FORMS[name].write('write_file', WHOLE)}"
    for step in (None, 3):
        assert called(events(text, step)) == [("write_file", WHOLE)]


@pytest.mark.parametrize(
    "text",
    [
        '<invoke name="delete_all" force="true"></invoke>',
        '<tool_call name="delete_all" force="true"></tool_call>',
        '<function=delete_all {"force": true}></function>',
        '<function=delete_all({"force": true})></function>',
        "<function=bash command><parameter=command>ls</parameter></function>",
        "<function=bash><parameter=command rm>ls</parameter></function>",
        "<bash force><command>ls</command></bash>",
        '<invoke name="bash"><parameter name="command">ls</parameter></invoke rm>',
    ],
)
def test_what_stands_in_a_tag_behind_its_name_is_never_dropped(text):
    for step in (None, 1, 5):
        answer = events(text, step, EMPTY)
        assert called(answer) == []
        assert doubts(answer)


def test_what_says_nothing_of_a_call_may_stand_in_its_tags():
    text = (
        '<invoke id="1" name="bash" type="function"><parameter name="command" string="true">ls'
        "</parameter></invoke>"
    ).replace(' id="1"', "")
    assert called(events(text, tools=EMPTY)) == [("bash", {"command": "ls"})]


NESTED = Tool("plan", {"properties": {"steps": {"type": "array"}, "meta": {"type": "object"}}})
EXACT = {
    '[{"do": "buy", "on": 1}]': [{"do": "buy", "on": 1}],
    "[{'do': 'buy', 'on': None},]": [{"do": "buy", "on": None}],
    '[{do: "buy",\n on: true}]': [{"do": "buy", "on": True}],
}
INEXACT = [
    '[{"do"x: "buy", "on": 1}]', '[{"do": "buy" 1, "on": 1}]', '[{"do": 1, by now: 3, "on": 2}]',
    "{'urgent', 'bug'}", '[{"do": oops "buy"}]', '[{"do": "buy", "do": "sell"}]',
]  # fmt: skip
# The place of the value in each form that does not write arguments as a text in a text.
PLACES = {name: form.write("plan", {"steps": [0]}) for name, form in FORMS.items()}
NESTINGS = [name for name, text in PLACES.items() if '\\"' not in text]


@pytest.mark.parametrize("name", NESTINGS)
def test_a_nested_value_is_accounted_for_as_a_call_is(name):
    form = PLACES[name]
    for written, steps in EXACT.items():
        answer = events(form.replace("[0]", written), tools=[NESTED])
        assert called(answer) == [("plan", {"steps": steps})], written
    for written in INEXACT:
        answer = events(form.replace("[0]", written), tools=[NESTED])
        # Where a text is no JSON at all, it is a text that the tool refuses.
        assert called(answer) in ([], [("plan", {"steps": written})]), written
        assert called(answer) or doubts(answer), written


@pytest.mark.parametrize(
    "formula", [r"$\frac{a}{b}$", r"\beta", r"see $\\alpha$ and \boldsymbol{x}"]
)
@pytest.mark.parametrize("form", [FORMS["<tool_call>…</tool_call>"], FORMS["JSON"], FORMS["Kimi"]])
def test_a_backslash_that_is_not_escaped_is_asked_for(form, formula):
    text = form.write("write_file", {"text": "FORMULA"}).replace("FORMULA", formula)
    answer = events(text)
    assert called(answer) == []
    assert doubts(answer)
    whole = form.write("write_file", {"text": formula})
    assert called(events(whole)) == [("write_file", {"text": formula})]


@pytest.mark.parametrize("escape", [r"\frac{a}{b}", r"\beta"])
def test_a_backslash_of_a_formula_in_code_is_asked_for(escape):
    answer = events(f'[write_file(text="${escape}$")]')
    assert called(answer) == []
    assert doubts(answer)


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "bash", "arguments": {"command": "ls"}, "only_if": "empty"}',
        '{"name": "bash", "args": {}, "type": "x", "command": "ls"}',
        '{"tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}], "dry_run": true}',
        '{"function": {"name": "bash"}, "parameters": {"command": "ls"}}',
    ],
)
def test_a_key_beside_a_call_is_never_dropped(call):
    for form in ("{}", "<tool_call>{}</tool_call>", "```json\n{}\n```"):
        answer = events(form.replace("{}", call), tools=EMPTY)
        assert called(answer) == []
        assert doubts(answer)


def test_a_key_that_would_be_lost_on_the_way_to_the_schema_is_asked_for():
    schema = {"properties": {"items": {"type": "array"}}, "required": ["items"]}
    tool = Tool("tag", {"type": "object", **schema})
    for key in ("oops items", "wrap", "not_items"):
        for form in (
            '<tool_call>{"name": "tag", "arguments": {"KEY": [1, 2]}}</tool_call>',
            "<function=tag><parameter=KEY>[1, 2]</parameter></function>",
        ):
            answer = events(form.replace("KEY", key), tools=[tool])
            for _, arguments in called(answer):
                assert arguments == {key: [1, 2]}  # for the tool to refuse
            assert called(answer) or doubts(answer)


# -- what a sentence mentions ----------------------------------------------------------------------

EMPTY = [
    Tool("delete_all", {"type": "object", "properties": {"force": {"type": "boolean"}}}),
    Tool("submit", {"type": "object", "properties": {}}),
    Tool("bash", {"type": "object", "properties": {"command": {"type": "string"}}}),
]
MENTIONS = [
    "The model wrote <function=delete_all> and stopped there.",
    'Never open <tool_call name="delete_all"> by yourself.',
    'DeepSeek begins with <｜DSML｜invoke name="delete_all"> in this case.',
    '<invoke name="submit"> opens the call; the closer comes last.',
    'Das Element <invoke name="submit"> würde die Arbeit abgeben; soll ich das tun?',
]


@pytest.mark.parametrize("text", MENTIONS)
@pytest.mark.parametrize("step", [None, 1, 4])
def test_a_tag_that_a_sentence_mentions_runs_nothing(text, step):
    answer = events(text, step, EMPTY)
    assert called(answer) == []
    assert said(answer) == text


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "submit", garbage}</tool_call>',
        r'<tool_call>{"name": "bash", "arguments": {"command": "echo \frac{a}{b}"}}</tool_call>',
        '<tool_call>{"name": "bash", invalid json}</tool_call>',
        '<tool_call>{"name": "bash", "arguments": {"command": "echo "}" >> a; ls"}}</tool_call>',
        '<invoke name="bash"><parameter name="command">ls</parameter>\nthat lists the files\n</invoke>',
        '<invoke name="bash"><parameter name="command">ls</parameter> <!-- list --></invoke>',
        '<tool_call>{"name": "bash", "arguments": {"command": "ls"}} and so on</tool_call>',
        '<tool_call>{"name": "bash", "arguments": {}, "command": "ls"}</tool_call>',
        '<tool_call>{"name": "bash", "arguments": {"command": "ls", ...}}</tool_call>',
        '<tool_call>{"name": "bash", "cmd": "ls"}</tool_call>',
    ],
)
def test_what_is_left_over_is_a_question(text):
    answer = events(text, tools=EMPTY)
    assert called(answer) == []
    assert doubts(answer)


def test_a_file_whose_quotes_are_not_escaped_is_not_written_up_to_the_first():
    tool = Tool(
        "write", {"type": "object", "properties": {"path": {}, "content": {"type": "string"}}}
    )
    content = '{"name": "app", "version": "1.0"}'
    text = f'<tool_call>{{"name":"write","arguments":{{"path":"a.json","content":"{content}"}}}}</tool_call>'
    assert called(events(text, tools=[tool])) in (
        [],
        [("write", {"path": "a.json", "content": content})],
    )


@pytest.mark.parametrize(
    "value",
    ["between <tool_call> and </tool_call>", "a <invoke name='x'> b", "<b>x</b> </function> y"],
)
def test_a_value_may_hold_tags_of_calls(value):
    text = (
        f'<invoke name="write_file"><parameter name="text">{value}</parameter>'
        '<parameter name="path">a.txt</parameter></invoke>'
    )
    for step in (None, 1, 5):
        assert called(events(text, step)) == [("write_file", {"text": value, "path": "a.txt"})]


# -- a form that nobody knows ----------------------------------------------------------------------

UNKNOWN = [
    (
        '<|open|>tools<|sep|><|open|>call tool="write_file" index="1"<|sep|>'
        '<|open|>argument key="text"<|sep|>Rome<|close|>argument<|sep|>'
    ),
    "[Tool Call: write_file]\nArguments:\n- text: Rome",
    "TOOL_NAME: write_file\nBEGIN_ARG: text\nRome\nEND_ARG",
    "<tool>\n<request>write_file</request>\n<text>Rome</text>\n</tool>",
    "@write_file\n  text = Rome",
    "<tool_call>function=write_file>{text: Rome",
]


@pytest.mark.parametrize("text", UNKNOWN)
@pytest.mark.parametrize("step", [None, 1, 6])
def test_a_call_in_a_form_that_nobody_knows_is_asked_for(text, step):
    answer = events(text, step)
    assert called(answer) == []
    assert [event.call.name for event in answer if isinstance(event, Doubt)] == ["write_file"]
    assert said(answer) == text


@pytest.mark.parametrize(
    "call",
    [
        '{"action": "tool_call", "name": "write_file", "arguments": {"text": "Rome"}}',
        '{"action": "call_tool", "tool": "write_file", "args": {"text": "Rome"}}',
        '{"type": "tool-call", "toolName": "write_file", "input": {"text": "Rome"}}',
        '{"action": "use_tool", "tool_name": "write_file", "parameters": {"text": "Rome"}}',
    ],
)
@pytest.mark.parametrize(
    "form", ["{}", "I write it.\n{}", "```json\n{}\n```", "<tool_call>{}</tool_call>"]
)
def test_of_several_keys_the_one_that_names_a_tool_counts(call, form):
    for step in (None, 1):
        assert called(events(form.replace("{}", call), step)) == [("write_file", {"text": "Rome"})]


@pytest.mark.parametrize(
    "text",
    [
        "The template uses <|tool_list_start|> and <|tool_list_end|>, and DeepSeek writes <｜DSML｜invoke>.",
        "Ends of turns such as <|im_end|> and <|eot_id|> are tokens.",
        "<｜DSML｜> marks the tags of a call.",
        "A list begins with [TOOL_CALLS] and holds names.",
        "MiniMax writes ]<]minimax[>[<invoke> there.",
    ],
)
@pytest.mark.parametrize("step", [None, 1, 3])
def test_no_mark_is_taken_out_of_prose(text, step):
    answer = events(text, step)
    assert said(answer) == text
    assert not doubts(answer)


MARKS = sorted({tag.strip() for form in FORMS.values() for tag in form.tags} - {"<write_file>"})


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("step", [None, 1, 3])
def test_no_mark_of_any_form_is_taken_out_of_a_sentence(mark, step):
    text = f"The mark {mark} belongs to calls."
    answer = events(text, step)
    assert said(answer) == text
    assert not doubts(answer)


PIECES = (
    "<tool_call>", "</tool_call>", "<｜DSML｜", "]<]x[>[", "<", ">", "write_file", '{"name": ',
    '"write_file"', "}", "text", "=", " a ", "\n", "<|im_end|>", "[TOOL_CALLS]", "```", "<think>",
    "</think>", "<invoke name=", '"',
)  # fmt: skip


def test_every_cut_of_a_damaged_text_gives_the_same():
    texts = ["".join(pieces) for pieces in itertools.product(PIECES, repeat=3)]
    for text in part(texts[::7]):
        whole = events(text)
        for step in (1, 2):
            answer = events(text, step)
            assert (said(answer), called(answer)) == (said(whole), called(whole)), text
            assert [type(e) for e in answer if isinstance(e, (Call, BadCall, Doubt))] == [
                type(e) for e in whole if isinstance(e, (Call, BadCall, Doubt))
            ], text
