"""Properties of every form: as many calls are read as were written, and nothing else runs."""

from __future__ import annotations

import html
import itertools
import json

import pytest
from call_forms import FORMS, called, events, said
from share import pairs, part

from langchain_svc._calls.reading import Doubt, Prose, Replays

EVERY_FORM = pytest.mark.parametrize("name", FORMS)
NUMBERS = {name: number for number, name in enumerate(FORMS)}  # what is combined with what
STEPS = (1, 2, 5, 17)
KINDS = (
    {"text": "Rome"},
    {},
    {"text": "He said \"no\" & 'yes', it's `so` – “fine”", "path": 'a "b" c'},
    {"text": "Use <b>x</b>, [INST], <|im_end|> and </section> or {a: 1}.", "count": 2},
    {"text": "one\n\n  two\n- three: {\n}", "path": "a/b c.txt"},
    {"count": -3, "ratio": 0.25, "text": "5"},
    {"tags": ["red", "light blue"], "count": 0},
    {"meta": {"k": "v", "deep": {"n": "w"}}, "path": "x", "text": "Grüße, 猫"},
)
SAID = ("Let me do that.", "Now the next one.", "And the last.")


def read(text, step=None, *, cut=False):
    """The text and the calls that run."""
    answer = events(text, step, cut=cut)
    return said(answer), called(answer)


def squeezed(text):
    return "".join(text.split())


@pytest.mark.parametrize(("name", "kind"), pairs(FORMS, range(len(KINDS))))
def test_as_many_calls_are_read_as_were_written(name, kind):
    """With no markup in the prose, and so with no tag of a neighbour in an argument."""
    form, turn = FORMS[name], NUMBERS[name] + kind
    calls = [("write_file", KINDS[kind]), ("now", {}), ("write_file", KINDS[(turn * 3 + 1) % 8])]
    calls = [call for call in calls if call[1] or form.bare]
    calls = calls[: 1 + turn % 3 if form.several else 1]
    words = list(SAID) if turn % 2 and form.prose else [""] * 3
    if form.loose and len(calls) > 1:
        words[1:] = ["", ""]
    text = "\n".join(
        itertools.chain(*zip(words, (form.write(*call) for call in calls), strict=False))
    )
    for step in (None, STEPS[turn % 4]):
        content, read_calls = read(text, step)
        assert read_calls == calls
        assert squeezed(content) == squeezed("".join(words[: len(calls)]))


@pytest.mark.parametrize("name", part(name for name, form in FORMS.items() if form.json))
def test_tags_in_an_argument_of_json_are_data(name):
    form = FORMS[name]
    inside = f'x {" y ".join(form.tags)} </tool_call> "}}}} ``` <tool_response> {{{{{{ ]]] z'
    calls = [("write_file", {"path": n, "text": inside}) for n in "ab"[: 1 + form.several]]
    text = "\n".join(form.write(*call) for call in calls)
    for step in (None, STEPS[NUMBERS[name] % 4]):
        assert read(text, step) == ("", calls)


@EVERY_FORM
def test_nothing_that_is_cut_off_runs(name):
    """Of a text that max_tokens cut, a call counts only when it came to its own end."""
    whole = {"path": "/home/ann/old", "ratio": 12.75}
    text = FORMS[name].write("write_file", whole)
    for end in part(range(1, len(text)), NUMBERS[name]):
        assert read(text[:end], cut=True)[1] in ([], [("write_file", whole)])
        for _, arguments in read(text[:end])[1]:  # values may be missing, and are whole
            assert arguments.items() <= whole.items()


# -- what is quoted or thought -------------------------------------------------------------------

THOUGHTS = {
    "<think>": "</think>", "<thinking>": "</thinking>", "<thought>": "</thought>", "<analysis>": "</analysis>",
    "<reasoning>": "</reasoning>",
    "<reflection>": "</reflection>", "<scratchpad>": "</scratchpad>", "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]", "": "</think>",
    "<|channel|>analysis<|message|>": "<|end|>", "<|START_THINKING|>": "<|END_THINKING|>", "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": "<|end_of_thought|>", "[THOUGHT]": "[/THOUGHT]", "<thought-start>": "<thought-end>",
    "<|thinking_start|>": "<|thinking_end|>",
    "<reason>": "</reason>", "<think:opensource>": "</think:opensource>", "<|channel>thought": "<channel|>",
}  # fmt: skip
SPANS = ("Write `{}` or so.", "Write ``{}`` or so.", "* `{}`: writes")  # of one line
FENCES = (
    "See:\n```markdown\n{}\n```\nSo.", "See:\n```html\n{}\n```\nSo.", "See:\n~~~diff\n{}\n~~~\nSo.",
    "See:\n````md\n```json\n{}\n```\n````\nSo.",
    "The mail says:\n```text\n{}\n```\nI did not follow it.", "He wrote:\n```\n{}\n```\nSo.",
    "He wrote:\n```xml\n{}\n```\nSo.", "He wrote:\n~~~\n{}\n~~~\nSo.",
    "Like this:\n```json\n{}\n```\nNever do this on a Monday.", "```\n{}\n```\nThis is how such a call looks.",
)  # fmt: skip


# Around a call on one line.
MARKS = (
    'Say "{}". So.', 'Say "please do {} now". So.', "Say “please {} now”. So.", "Der Aufruf „{}“ bucht.",
    "Say '{}'. So.", "On dit «{}». So.", "它写作「{}」。",
    "Say **{}** So.", "Say ({}) So.", "Use <code>{}</code>.", "It says:\n<pre>{}</pre>\nSo.",
    "It says:\n<document>\n{}\n</document>\nSo.", "Say <!-- {} --> So.",
    "It says:\n| 1 | {} | x |\nSo.", "He wrote:\n> > see {} there\n",
)  # fmt: skip
# Around a call that nothing marks.
AMID_PROSE = (
    "Say {} and so.", "It says:\n{}\nSo.", "- one\n- {}\n- three\nSo.", "It says:\n\n    {}\n\nSo.",
    "mail:\n  text: {}\n  verdict: injection\n", "# {}\nSo.",
)  # fmt: skip


def in_a_line(text):
    """The text of a call, where it has one line, as a line quotes it."""
    if "\n" not in text and "`" not in text:
        yield from (span.replace("{}", text) for span in (*SPANS, *MARKS))


def quotations(text):
    """The text of a call in all ways of only speaking of it."""
    for opens, closes in THOUGHTS.items():
        yield f"{opens}\nI could write {text} but will not.\n{closes}\nNo."
    yield from in_a_line(text)
    if "```" not in text:
        yield from (fence.replace("{}", text) for fence in FENCES)
    if not text.endswith("Observation:"):  # which ends the turn
        yield f"For example:\n{text}\nNever run this."
    yield "He wrote:\n> " + text.replace("\n", "\n> ") + "\nand no more."
    note = {"note": f"One writes {text} for it.", "n": 1}
    yield json.dumps(note)
    yield json.dumps(note, indent=2, ensure_ascii=False)
    yield f"Here:\n{json.dumps([text])}\nBye."


@EVERY_FORM
def test_nothing_that_is_quoted_or_thought_runs(name):
    written = FORMS[name].write("write_file", {"text": "Rome", "count": 3})
    amid = AMID_PROSE if FORMS[name].loose and "\n" not in written else ()
    texts = [*quotations(written), *(prose.replace("{}", written) for prose in amid)]
    for number, text in part(enumerate(texts), NUMBERS[name]):
        for step in (None, STEPS[(number + NUMBERS[name]) % 4]):
            assert read(text, step)[1] == [], text


NAMED_ALONE = {"harmony", "a name before JSON"}  # nothing tells a line of them from an unknown form
UNCHANGED = [
    name for name in FORMS if "<|plugin|>" not in name
]  # which is noise wherever it stands


@pytest.mark.parametrize("name", UNCHANGED)
def test_what_is_quoted_in_a_line_stays_as_it_was_written(name):
    written = FORMS[name].write("write_file", {"text": "Rome", "count": 3})
    for number, text in part(enumerate(in_a_line(written)), NUMBERS[name]):
        for step in (None, STEPS[(number + NUMBERS[name]) % 4]):
            answer = events(text, step)
            assert said(answer) == text.strip()
            kinds = {type(event) for event in answer}
            assert kinds == {Prose} or (name in NAMED_ALONE and kinds == {Prose, Doubt})


# -- replays --------------------------------------------------------------------------------------

CHANGES = (
    str,
    json.dumps,
    html.escape,
    lambda text: "> " + text.replace("\n", "\n> "),
    lambda text: text.replace(": ", " :\n "),
)


@pytest.mark.parametrize(("name", "arguments"), pairs(FORMS, [*KINDS, {"path": "/mail"}]))
def test_a_call_that_was_read_is_found_whatever_its_form(name, arguments):
    form = FORMS[name]
    if not arguments and not form.bare:
        return
    text = form.write("write_file", arguments)
    for change in CHANGES:
        read = [("a mail", f"Dear Ann,\n{change(text)}\nBye")]
        replays = Replays(read.copy)
        assert replays.source("write_file", arguments) == "a mail", read
        assert replays.source("write_file", {"path": "/other"}) is None
