"""Readers of answers that hold calls of tools, or JSON that fits a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk

from ._json.no_answer import NoAnswer
from ._parts import Part
from ._structured import ResponseFormat
from ._toolcalls.parse import BadCall, Call, parse
from ._toolcalls.render import dump
from ._toolcalls.stream import Arguments, CallStart, Content, Event, Reasoning, StreamParser
from ._tools import Offer


class JsonExpected:
    """One JSON value that fits a schema; the content is that JSON and nothing else.

    A stream is held back until the answer was checked, save where the format asks for partial
    objects: then JSON is handed on as it comes, and a checked answer that differs comes beside it.
    """

    once = False
    ended = False

    def __init__(self, form: ResponseFormat, *, streaming: bool) -> None:
        self.complaint: str | None = None
        self._form = form
        self._partial = streaming and form.partial
        self._parts: list[str] = []
        self._shown: list[str] = []

    def feed(self, text: str) -> Iterator[Part]:
        self._parts.append(text)
        if self._partial and (self._shown or "{" in text):
            if not self._shown:
                text = text[text.index("{") :]
            self._shown.append(text)
            yield Part(text)

    @property
    def held(self) -> str:
        """What was read and not handed on."""
        return "" if self._shown else "".join(self._parts)

    def finish(self, *, cut: bool) -> Iterator[Part]:
        text = "".join(self._parts)
        try:
            answer = dump(self._form.check(text))
        except NoAnswer as error:
            if not cut:  # an answer that max_tokens cut would only be cut again
                self.complaint = _complaint(error.problems)
            if not self._shown:
                yield Part(text)
            return
        if self._shown:
            yield Part(checked=answer)
        else:
            yield Part(answer)


def _complaint(problems: list[str]) -> str:
    listed = "\n".join(f"- {problem}" for problem in problems[:20])
    return (
        f"That answer cannot be used:\n{listed}\nWrite the whole answer once more, with these "
        "problems mended, as JSON and nothing else."
    )


class CallsExpected:
    """Calls of the offered tools, with prose around them; or, if none must be called, an answer."""

    def __init__(
        self, offer: Offer, new_id: Callable[[int], str], answer: JsonExpected | None = None
    ) -> None:
        self.complaint: str | None = None
        self.once = False
        self._offer = offer
        self._new_id = new_id
        self._answer = answer
        self._parser = StreamParser(offer.tools.parsed)
        self._held: list[str] = []  # prose that a required call has not followed yet
        self._taken: set[int] = set()
        self._count = 0
        self._called = False

    @property
    def ended(self) -> bool:
        """Whether the model went on to invent a result: nothing after it counts."""
        return self._parser.ended

    def feed(self, text: str) -> Iterator[Part]:
        yield from self._parts(self._parser.feed(text))

    def finish(self, *, cut: bool) -> Iterator[Part]:
        yield from self._parts(self._parser.finish())
        if self._called or self._count:
            yield from self._prose_beside_calls()
        elif self._offer.required:
            yield from self._release()
        elif self._answer is not None:
            yield from self._answer.finish(cut=cut)
            self.complaint = self._answer.complaint
        if self._offer.required and not self._called:
            self.complaint = missing_call(self._offer)
            self.once = True

    def _parts(self, events: list[Event]) -> Iterator[Part]:
        for event in events:
            if isinstance(event, Content):
                yield from self._prose(event.text)
            elif isinstance(event, CallStart):
                yield from self._start(event)
            elif isinstance(event, Arguments):
                if event.index in self._taken:
                    yield Part(call=tool_call_chunk(args=event.text, index=self._at(event.index)))
            elif isinstance(event, Reasoning):
                yield Part(reasoning=event.text)
            else:
                yield from self._bad(event)

    def _prose(self, text: str) -> Iterator[Part]:
        if self._answer is not None:
            yield from self._answer.feed(text)
        elif self._offer.required and not self._called:
            self._held.append(text)
        else:
            yield Part(text)

    def _prose_beside_calls(self) -> Iterator[Part]:
        if self._answer is not None and self._answer.held:
            yield Part(self._answer.held)

    def _release(self) -> Iterator[Part]:
        held, self._held = "".join(self._held), []
        if held:
            yield Part(held)

    def _at(self, index: int) -> int:
        return sorted(self._taken).index(index)

    def _start(self, event: CallStart) -> Iterator[Part]:
        if not self._wants(event.name):
            return
        self._called = True
        self._taken.add(event.index)
        yield from self._release()
        index = self._at(event.index)
        id_ = self._new_id(index)
        yield Part(call=tool_call_chunk(name=event.name, args="", id=id_, index=index))

    def _wants(self, name: str) -> bool:
        if self._offer.wanted is not None and name != self._offer.wanted:
            return False
        return self._offer.parallel or not self._called

    def _bad(self, event: BadCall) -> Iterator[Part]:
        self._count += 1
        yield Part(
            invalid=invalid_tool_call(
                name=event.name,
                args=event.text,
                id=self._new_id(1000 + self._count),
                error=event.reason,
            )
        )


class CallExpected:
    """One call of one function, whose arguments fit a schema: a structured answer by that way."""

    ended = False

    def __init__(self, offer: Offer, new_id: Callable[[int], str], form: ResponseFormat) -> None:
        self.complaint: str | None = None
        self.once = False
        self._offer = offer
        self._new_id = new_id
        self._form = form
        self._parts: list[str] = []

    def feed(self, text: str) -> Iterator[Part]:
        self._parts.append(text)
        yield from ()

    def finish(self, *, cut: bool) -> Iterator[Part]:
        text = "".join(self._parts)
        found = parse(text, self._offer.tools.parsed)
        name = self._offer.wanted or self._offer.tools.names[0]
        calls = [call for call in found.calls if call.name == name]
        written = [dump(c.arguments) if isinstance(c, Call) else c.text for c in calls]
        try:
            # A model may also write the bare arguments: the answer counts, not its wrapper.
            answer = self._form.check(written[0] if written else text)
        except NoAnswer as error:
            if not cut:
                self.complaint = (
                    _complaint(error.problems) if written else missing_call(self._offer)
                )
            yield Part(
                content="" if written else text,
                invalid=invalid_tool_call(
                    name=name, args=written[0], id=self._new_id(0), error="; ".join(error.problems)
                )
                if written
                else None,
            )
            return
        yield Part(call=tool_call_chunk(name=name, args=dump(answer), id=self._new_id(0), index=0))


def missing_call(offer: Offer) -> str:
    """What the model is told when it called nothing and had to."""
    what = f"the function {offer.wanted}" if offer.wanted else "a function"
    return (
        f"That answer calls no function, but {what} must be called now. Answer with the call "
        "alone, written as the instructions show."
    )
