"""Which calls a question needs now: split into parts, a tool for each part, arguments for each.

A question is cut where it enumerates or goes on to something else. A part that names another
tool, or brings new values for a tool that has all it needs, is a call of its own; any other part
belongs to the call before it. A part that speaks of "it" waits for the result of the one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._facts import LONGEST, facts_of
from langchain_svc.sandbox.engine._fields import fields_of
from langchain_svc.sandbox.engine._fill import Filler
from langchain_svc.sandbox.engine._invent import Rules
from langchain_svc.sandbox.engine._mentions import call_arguments, plain_request
from langchain_svc.sandbox.engine._offer import Call, Tool
from langchain_svc.sandbox.engine._schema import mapping
from langchain_svc.sandbox.engine._select import THRESHOLD, Chooser, is_form
from langchain_svc.sandbox.engine._source import Source, points_back
from langchain_svc.sandbox.engine._words import content_stems, name_words, sentences, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_svc.sandbox.engine._jsontext import Json
    from langchain_svc.sandbox.engine._reading import Reading

_MOST_ATOMS = 60
_MOST_CALLS = 16
_MARGIN = 0.5


@dataclass(frozen=True)
class Part:
    """One part of a question and the tool it asks for."""

    tool: Tool
    text: str
    given: tuple[tuple[str, str], ...] = ()


# --- Atoms ---------------------------------------------------------------------------------

_JOINT = re.compile(
    r";\s|,?\s(?:and\s)?(?:then|also|finally)\s|,?\sand\s|,?\sas well as\s|,?\splus\s|,\s"
    r"|,?\salong with\s|\s&\s"
)
_WHOLE = {"quoted", "place", "list", "object", "date", "expr", "number", "url"}


def atoms_of(question: str) -> list[str]:
    """Cut a question at its sentences and its conjunctions, but never inside a value."""
    atoms: list[str] = []
    for sentence in sentences(question[:LONGEST]):
        kept = [(f.start, f.end) for f in facts_of(sentence) if f.kind in _WHOLE]
        done = 0
        for joint in _JOINT.finditer(sentence):
            if not any(start < joint.end() and joint.start() < end for start, end in kept):
                atoms.append(sentence[done : joint.start()])
                done = joint.end()
        atoms.append(sentence[done:])
    return [atom.strip() for atom in atoms if atom.strip()][:_MOST_ATOMS]


# --- Parts ---------------------------------------------------------------------------------


def _values(tool: Tool, text: str, question: str = "") -> dict[str, Json]:
    """Return the values that a text has for the required parameters of a tool."""
    source = Source(text, background=question)
    values = Filler(tool.parameters, source, Rules(text)).object(tool.parameters)
    fields = fields_of(tool.parameters, tool.parameters)
    required = {one.name for one in fields if one.required} or set(values)
    return {name: value for name, value in values.items() if name in source.found & required}


def _found(tool: Tool, text: str) -> set[str]:
    return set(_values(tool, text))


def _is_complete(part: Part) -> bool:
    """Tell whether a part has a value for every required parameter of its tool."""
    fields = fields_of(part.tool.parameters, part.tool.parameters)
    return {one.name for one in fields if one.required} <= _found(part.tool, part.text)


def _first_word(text: str) -> str:
    return next(iter(words(plain_request(text))), "")


@dataclass
class _Grouping:
    chooser: Chooser
    question: str
    parts: list[Part]

    def add(self, atom: str) -> None:
        """Give an atom to the part before it, or open a new part with it."""
        at, score = self.chooser.best(atom)
        tool = self.chooser.tools[at]
        asks = score >= THRESHOLD
        if not self.parts:
            self.parts.append(Part(tool if asks else _NO_TOOL, atom))
            return
        last = self.parts[-1]
        if last.tool is _NO_TOOL:
            self._extend(atom, tool if asks else _NO_TOOL)
        elif asks and tool is not last.tool and self._changes(last.tool, tool, atom, score):
            self.parts.append(Part(tool, atom))
        elif self._repeats(last, atom):
            self.parts.append(Part(last.tool, atom))
        else:
            self._extend(atom, last.tool)

    def _extend(self, atom: str, tool: Tool) -> None:
        last = self.parts[-1]
        self.parts[-1] = Part(tool, f"{last.text}, {atom}")

    def _changes(self, old: Tool, new: Tool, atom: str, score: float) -> bool:
        same = self.chooser.score(self.chooser.tools.index(old), atom)
        meant = self.chooser.is_meant(self.chooser.tools.index(new), atom)
        return meant and score > same + _MARGIN

    def _repeats(self, last: Part, atom: str) -> bool:
        """Tell whether an atom starts the same work again with new values."""
        at = self.chooser.tools.index(last.tool)
        if _first_word(atom) == _first_word(last.text) and self.chooser.is_meant(at, atom):
            return True
        had = _values(last.tool, last.text, self.question)
        brought = _values(last.tool, atom, self.question)
        rivals = {n for n in brought if n in had and brought[n] != had[n]} - _lists(last.tool)
        return bool(rivals) and _found(last.tool, self.question) <= set(had)


_NO_TOOL = Tool("", "", {})


def _lists(tool: Tool) -> set[str]:
    """Return the parameters that take a list: a further item for one is no further call."""
    fields = fields_of(tool.parameters, tool.parameters)
    return {one.name for one in fields if one.kind == "array"}


def parts_of(question: str, chooser: Chooser) -> list[Part]:
    """Return the parts of a question that ask for a tool, in order."""
    grouping = _Grouping(chooser, question, [])
    for atom in atoms_of(question):
        grouping.add(atom)
    parts = [part for part in grouping.parts if part.tool is not _NO_TOOL]
    at, score = chooser.best(question)
    if not parts and score >= THRESHOLD:
        parts = [Part(chooser.tools[at], question)]
    if len(parts) == 1:
        parts = [Part(parts[0].tool, question)]
    return _written_calls(question, chooser.tools) or parts


def _written_calls(question: str, tools: Sequence[Tool]) -> list[Part]:
    """Return the calls that are written out in the question, as in `add(1, 2)`."""
    written: list[Part] = []
    for tool in tools:
        names = list(mapping(tool.parameters.get("properties")))
        for positional, named in call_arguments(tool.name, question):
            given = {**dict(zip(names, positional, strict=False)), **named}
            written.append(Part(tool, question, tuple(given.items())))
    return written


_CONTINUES = re.compile(
    r"\W{0,3}(?:and|or|what about|how about|now|also|same|the same|then)\b", re.IGNORECASE
)
_BRIEF = 12  # words
_ATTACHED = re.compile(
    r"<(image|attachment)\b[^<>]{0,80}?\b(?:handle|name|id)=[\"']([\w.-]{1,80})[\"'][^<>]{0,80}>"
    r"[^<]{0,8000}</\1>"
)

# --- The plan ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planner:
    """Plans the calls that a prompt needs now; `reply` answers its question in words."""

    reading: Reading
    reply: Callable[[], str]

    def calls(self) -> list[Call]:
        """Return the calls to make now; none when words are due."""
        reading = self.reading
        if reading.demand.forbidden or not reading.tools or _newest_failed(reading):
            return []
        parts = self._due(self._parts())
        calls = self._fresh([self._call(part, alone=len(parts) == 1) for part in parts])
        return calls[: 1 if reading.demand.single else _MOST_CALLS]

    def _parts(self) -> list[Part]:
        """Return what the question asks for, or what the instructions insist on."""
        reading = self.reading
        tools = [tool for tool in reading.tools if tool.name == reading.demand.name]
        actions = [tool for tool in reading.tools if not is_form(tool)]
        chooser = Chooser.of(tools or actions or reading.tools)
        # What is attached is no request; its name is what a tool may be given.
        parts = parts_of(_ATTACHED.sub(r"\2", reading.question), chooser) or self._continued()
        parts = self._pending(parts)
        if parts or not reading.demand.required:
            return parts
        return self._insisted(chooser)

    def _continued(self) -> list[Part]:
        """Return the last tool again for a question such as "And in Rome?"."""
        question = self.reading.question
        called = [call.name for turn in self.reading.history for call in turn.calls]
        if not called or not _CONTINUES.match(question) or len(words(question)) > _BRIEF:
            return []
        tools = [tool for tool in self.reading.tools if tool.name == called[-1]]
        return [Part(tool, question) for tool in tools if _found(tool, question)]

    def _insisted(self, chooser: Chooser) -> list[Part]:
        """Return one call that the instructions require although nothing asks for it."""
        reading = self.reading
        called = {call.name for call in reading.calls}
        tools = [tool for tool in chooser.tools if tool.name not in called]
        if reading.results or not tools:
            forms = [t for t in reading.tools if is_form(t) and t.name not in called]
            tools = forms or (tools if reading.demand.insists else [])
        if not tools:
            return []
        at, _ = Chooser.of(tools).best(reading.question)
        return [Part(tools[at], reading.question)]

    def _pending(self, parts: list[Part]) -> list[Part]:
        """Leave out the parts whose tool has been called for them."""
        done = [call.name for call in self.reading.calls]
        pending: list[Part] = []
        for part in parts:
            if part.tool.name in done:
                done.remove(part.tool.name)
            else:
                pending.append(part)
        return pending

    def _due(self, parts: list[Part]) -> list[Part]:
        """Return the parts that can be called now, without a result that is still to come."""
        due: list[Part] = []
        for part in parts:
            if not due or not points_back(part.text) or _is_complete(part):
                due.append(part)
        return due

    def _call(self, part: Part, *, alone: bool) -> Call:
        reading, tool = self.reading, part.tool
        form = is_form(tool) or (len(reading.tools) == 1 and reading.demand.name == tool.name)
        previous = tuple(result.text for result in reading.results if not result.failed)
        text = "\n".join([part.text, *previous]) if form else part.text
        source = Source(
            text,
            background="" if alone and not reading.calls else reading.question,
            previous=() if form else previous,
            given=dict(part.given),
            known=frozenset(content_stems(" ".join([*name_words(tool.name), tool.description]))),
        )
        rules = Rules(reading.question, self.reply)
        filler = Filler(tool.parameters, source, rules, form=form and is_form(tool))
        return Call(tool.name, filler.object(tool.parameters))

    def _fresh(self, calls: list[Call]) -> list[Call]:
        """Drop what has been called already with the same arguments."""
        fresh: list[Call] = []
        for call in calls:
            if call not in self.reading.calls and call not in fresh:
                fresh.append(call)
        return fresh


def _newest_failed(reading: Reading) -> bool:
    return bool(reading.results) and reading.results[-1].failed


def with_names(reading: Reading) -> Reading:
    """Give results without a name the names of the calls they answer."""
    if len(reading.results) != len(reading.calls):
        return reading
    named = [
        replace(result, name=result.name or call.name)
        for result, call in zip(reading.results, reading.calls, strict=True)
    ]
    return replace(reading, results=tuple(named))
