"""The reader of answers that may call tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from langchain_core.messages.tool import tool_call_chunk

from .._base.threads import LONG_TO_CHECK
from .._calls import (
    FORMATS,
    ArgumentsDelta,
    BadCall,
    Call,
    CallEnd,
    CallStart,
    Doubt,
    Event,
    Format,
    Prose,
    Replays,
    StreamParser,
    Thought,
    ThoughtEnd,
    arguments_json,
    call_question,
    parse_calls,
    problem_text,
)
from .messages import PERSON, guarded
from .parts import ContentPart
from .readers import AnswerReader, new_id
from .structured import JsonReader
from .tools import ToolRequest

_JOINT = "\n\n"


class CallsReader(AnswerReader):
    """Calls of the offered tools, with prose around them; or, if none must be called, an answer.

    What becomes of a call: a readable one is yielded, whatever its schema says of it, for the tool
    to judge. One that cannot be read is told to the model, unless another call stands beside it.
    Of a doubtful one (an example, or the text of something the model has read) the model is asked
    once whether it means it: a call in the second answer counts, and else the first answer stands
    as it was written. The same call again counts in whatever form and among whatever words, but for
    the text of something the model has read: that must be alone, and in the form asked for. What
    is cut off, or stays unreadable, is an invalid call.
    """

    long = LONG_TO_CHECK

    def __init__(
        self,
        offer: ToolRequest,
        answer: JsonReader | None,
        *,
        tool_format: Format,  # in which calls are asked for
        thinks: bool,  # the model may think without saying where that begins
        follows: bool,  # arguments are yielded while they are written
        split: bool,  # reasoning is split from the content
        marks: bool,  # a call that was cut off is shown as such, and no error
        read: Callable[
            [], Iterable[tuple[str, str]]
        ],  # what the model has read, and of whom
    ) -> None:
        self._offer = offer
        self._answer = answer
        self._format = tool_format
        self._split = split
        self._marks = marks
        described = ("the description of a function", offer.tools.descriptions)
        self._replays = Replays(lambda: (*read(), described), asking=PERSON)
        self._new_parser = partial(
            StreamParser,
            offer.tools.parsed,
            fences=tool_format is FORMATS["fenced"],
            thinks=thinks,
            holds=self._replays.may_be if follows else None,
        )
        self._probe = partial(
            StreamParser,
            offer.tools.parsed,
            fences=tool_format is FORMATS["fenced"],
            thinks=thinks,
        )
        # The answer that the model was asked about, from its first doubt on; None before.
        self._first: list[Prose | Doubt] | None = None
        self._earlier = ""  # prose that the first try has yielded
        self._open_doubts: list[Doubt | BadCall] = []  # in the answer before this one
        # Prose waits for a call, or to be read as JSON; in later tries it always does.
        self._holds = offer.required or answer is not None
        self.start_answer()

    def start_answer(self) -> None:
        self.repair_prompt = None
        self.failure = None
        self.malformed = False
        self.called = False
        self.ended = False
        self._parser = self._new_parser()
        self._said: list[str] = []  # all prose of this try
        self._held: list[str] = []  # what of it is held back
        self._blanks = ""  # at the end of the prose, which vanish before a call
        self._rest: list[Prose | Doubt] = []  # all from the first doubt on
        self._bad: list[BadCall] = []
        self._calls: list[Call] = []  # that were yielded
        self._count = 0  # calls that were begun
        self._good = 0  # those of them that can run
        self._following = False
        self._thinking = False
        if self._answer is not None:
            self._answer.start_answer()

    def read_chunk(self, text: str) -> Iterator[ContentPart]:
        yield from self._parts(self._parser.parse_chunk(text))
        self.ended = self._parser.ended

    def wants_rest(self, text: str, *, out_of_room: bool) -> bool:
        """Whether the answer ends inside a call, behind one, or before it has said anything.

        Where the service does not say that it was cut off, only an open call in the form asked for
        does.
        """
        is_open = self._format.is_open(text)
        if not (out_of_room or is_open):
            return False
        parser = self._probe()
        pieces = [*parser.parse_chunk(text), *parser.close(cut=out_of_room)]
        calls = [
            _call_of(piece)
            for piece in pieces
            if isinstance(piece, (Doubt, BadCall, Call))
        ]
        is_cut_call = any(isinstance(call, BadCall) and call.cut for call in calls)
        self.is_inside = is_cut_call or (is_open and out_of_room)
        if self.is_inside or not out_of_room:
            return self.is_inside
        if calls:
            return not _text_behind(pieces).strip()
        is_silent = not any(
            piece.text.strip() for piece in pieces if isinstance(piece, Prose)
        )
        return is_silent or self._offer.required or self._answer is not None

    def restart(self, *, streaming: bool) -> bool:
        if streaming and self._count:
            return False
        if streaming and not self._holds:
            self._earlier = "".join(self._said)
            self._holds = True
        self.start_answer()
        return True

    def end_answer(self, *, cut: bool, last: bool) -> Iterator[ContentPart]:
        yield from self._parts(self._parser.close(cut=cut))
        confirmed = self._confirmed()
        doubts = [
            doubt
            for doubt in self._doubts
            if any(doubt.call is call for call in confirmed)
        ]
        if confirmed and not doubts:  # the calls stand in code, and so in the prose
            self._held = []
            self._rest = []
        self._rest = _without(doubts, self._rest)
        for call in confirmed:
            yield from self._yield_call(call)
        self.called = self._good > 0
        if self._count:
            yield from self._beside_calls()
            return
        self.repair_prompt = None if cut else self._what_is_wrong()
        if self.repair_prompt is None or last:
            yield from self._for_good(cut=cut, last=last)
            return
        if self._doubts and self._first is None:
            self._first = [Prose(self._blanks), *self._rest]
        if not self._holds:
            self._earlier = "".join(self._said)
            self._holds = True

    @property
    def _doubts(self) -> list[Doubt]:
        return [piece for piece in self._rest if isinstance(piece, Doubt)]

    def _beside_calls(self) -> Iterator[ContentPart]:
        """What else stands in an answer with calls, or in the one that it confirms."""
        pieces = self._rest if self._first is None else self._first
        doubts = [piece for piece in pieces if isinstance(piece, Doubt)]
        if self._first is None:
            doubts = [doubt for doubt in doubts if not _is_loose(doubt)]
        if text := "".join(piece.text for piece in _without(doubts, pieces)).rstrip():
            yield ContentPart(text)
        yield from (
            self._invalid_part(one) for one in self._doubts if not _is_loose(one)
        )
        yield from map(self._invalid_part, self._bad)

    def _for_good(self, *, cut: bool, last: bool) -> Iterator[ContentPart]:
        """The answer has no call, and the model is not asked again."""
        if self._answer is not None and not self._bad:
            yield from self._answer.read_chunk(self._waiting())
            yield from self._answer.end_answer(cut=cut, last=last)
            self.repair_prompt = self._answer.repair_prompt
            if self.repair_prompt and self._doubts:
                self.repair_prompt = self._question([*self._doubts, *self._bad])
            return
        is_half = self._is_half(cut=cut)
        if self._first is None:
            yield from self._held_back("" if is_half else self._blanks)
        self.malformed = bool(self._bad)
        if is_half:
            yield from self._tell_half()
        unasked = self._first is None and not cut
        for piece in self._rest if self._first is None else self._stands(self._first):
            if unasked and isinstance(piece, Doubt):
                self.malformed = True
                yield self._invalid_part(piece)
            else:
                yield ContentPart(piece.text)
        yield from map(self._invalid_part, self._bad)
        if self._offer.required and not self.malformed:
            self.failure = self._uncalled(cut=cut)

    def _uncalled(self, *, cut: bool) -> str:
        when = (
            "before max_tokens cut its answer off"
            if cut
            else "also when it was asked again"
        )
        return (
            f"The model did not call {self._required}, as it had to, {when} "
            "(.raw has its answer)"
        )

    def _is_half(self, *, cut: bool) -> bool:
        """Whether the answer stopped inside a call, or before it said anything."""
        if any(bad.cut for bad in self._bad):
            return True
        end = "".join(piece.text for piece in self._rest) or "".join(self._said)
        is_empty = not (end.strip() or self._earlier.strip())
        return cut and (is_empty or self._format.is_open(end))

    def _tell_half(self) -> Iterator[ContentPart]:
        """An agent would take an answer without calls and words for the end of its work."""
        names = [bad.name for bad in self._bad if bad.cut and bad.name]
        has_words = bool("".join(self._said).strip())
        what = "the answer"
        where = "before it said anything"
        if self._bad or has_words or self._rest:
            what = f"a call of {names[0]}" if names else "a call"
            where = f"inside {what}"
        if self._marks:
            text = f"[{what} was cut off, and nothing was run]"
            yield ContentPart(_JOINT + text if has_words else text)
        else:
            self.failure = (
                f"The model's answer ended {where}, so that nothing was run: max_tokens and "
                "max_continuations set how long it may be (.raw has what came)"
            )

    @property
    def _required(self) -> str:
        return (
            f"the function {self._offer.wanted}" if self._offer.wanted else "a function"
        )

    def _stands(self, first: list[Prose | Doubt]) -> list[Prose | Doubt]:
        """The first answer, or the second one where the first was nothing but the doubtful."""
        second = self._waiting()
        words = [piece.text for piece in first if isinstance(piece, Prose)]
        is_only_doubtful = not self._earlier and not "".join(words).strip()
        if is_only_doubtful and second.strip():
            return [Prose(second)]
        return first

    def _waiting(self) -> str:
        """All of this try that nothing was yielded for."""
        return "".join(
            [*self._held, self._blanks, *(piece.text for piece in self._rest)]
        )

    def _held_back(self, blanks: str = "") -> Iterator[ContentPart]:
        """The prose that waited, without what the first try has said."""
        text = "".join(self._held)
        self._held = []
        if self._earlier:
            is_repeated = self._earlier.strip().startswith(text.strip())
            text = "" if is_repeated else _JOINT + text.lstrip()
        if text or blanks:
            yield ContentPart(text + blanks)

    # -- what the parser found --------------------------------------------------------------------

    def _parts(self, pieces: Iterable[Event]) -> Iterator[ContentPart]:
        for piece in pieces:
            if isinstance(piece, Thought):
                yield from self._thought(piece.text)
                continue
            if self._thinking:
                self._thinking = False
                if not self._split:
                    yield ContentPart("</think>\n")
            if isinstance(piece, Prose):
                yield from self._take_prose(piece.text)
            elif isinstance(piece, Doubt):
                self._rest.append(piece)
            elif isinstance(piece, ThoughtEnd):
                self._blanks = ""
                yield ContentPart(all_was_reasoning=True)
            elif isinstance(piece, BadCall):
                self._bad.append(piece)
            elif isinstance(piece, Call):
                yield from self._take_call(piece)
            else:
                yield from self._follow(piece)

    def _follow(
        self, event: CallStart | ArgumentsDelta | CallEnd
    ) -> Iterator[ContentPart]:
        """A call whose arguments are yielded while they are written."""
        if isinstance(event, CallStart):
            self._following = self._wants(event.name)
            if self._following:
                yield from self._begin_call(event.name)
        elif self._following and isinstance(event, ArgumentsDelta):
            yield self._arguments(event.text)
        elif self._following and isinstance(event, CallEnd):
            yield from self._end_followed(event.call, event.rest)

    def _end_followed(self, call: Call | BadCall, rest: str) -> Iterator[ContentPart]:
        reason = call.reason if isinstance(call, BadCall) else None
        if isinstance(call, Call) and (where := self._source(call)):
            # It did not look like one before. A bracket too many keeps it from running.
            reason = f"it repeats {where}"
            rest += "]"
        if rest:
            yield self._arguments(rest)
        if isinstance(call, Call) and not reason:
            self._calls.append(call)
        if reason:
            self._good -= 1
            self.malformed = True
            yield ContentPart(failed=(self._id, reason))

    def _thought(self, text: str) -> Iterator[ContentPart]:
        begins = not self._thinking
        self._thinking = True
        if self._split:
            yield ContentPart(reasoning=text)
        else:
            yield ContentPart("<think>" * begins + text)

    def _take_prose(self, text: str) -> Iterator[ContentPart]:
        self._said.append(text)
        if self._rest:
            self._rest.append(Prose(text))
        else:
            text = self._blanks + text
            bare = text.rstrip()
            self._blanks = text[len(bare) :]
            if self._holds and not self._count:
                self._held.append(bare)
            elif bare:
                yield ContentPart(bare)

    def _take_call(self, call: Call) -> Iterator[ContentPart]:
        if not self._offer.tools.names:
            self._bad.append(BadCall(call.name, _NONE_OFFERED, source=call.source))
        elif self._wants(call.name):
            if where := self._source(call):
                self._rest.append(Doubt(call.text, f"its text stands in {where}", call))
            else:
                yield from self._yield_call(call)

    def _source(self, call: Call) -> str | None:
        """Where the text of the call was read, if it was."""
        return self._replays.source(call.name, call.arguments, call.source)

    def _wants(self, name: str) -> bool:
        if self._offer.wanted is not None and name != self._offer.wanted:
            return False
        return self._offer.parallel or not (self._count or self._doubts)

    def _yield_call(self, call: Call) -> Iterator[ContentPart]:
        self._calls.append(call)
        yield from self._begin_call(call.name)
        yield self._arguments(arguments_json(call.arguments))

    def _begin_call(self, name: str) -> Iterator[ContentPart]:
        if self._first is None:
            yield from self._held_back()
        self._blanks = ""
        self._id = new_id()
        yield ContentPart(
            call=tool_call_chunk(name=name, args="", id=self._id, index=self._count)
        )
        self._count += 1
        self._good += 1

    def _arguments(self, text: str) -> ContentPart:
        return ContentPart(call=tool_call_chunk(args=text, index=self._count - 1))

    # -- what becomes of those that are not calls -----------------------------------------------

    def _confirmed(self) -> list[Call]:
        """The doubtful calls of this answer that repeat what the model was asked about.

        Each readable call that was in doubt is confirmed once: a copy of a call that runs, in
        another wrapping, is not a second one.
        """
        if not self._open_doubts:
            return []
        unanswered = [*self._open_doubts]
        for call in self._calls:
            self._answers(call, unanswered)
        confirmed: list[Call] = []
        for call in self._written_again():
            if not self._may_follow(call, confirmed):
                continue
            if self._source(call) and not self._is_confirmed_replay(call):
                continue
            if self._answers(call, unanswered):
                confirmed.append(call)
        return confirmed

    def _written_again(self) -> list[Call]:
        """The calls of this answer that are in doubt; where there are none, those in its code.

        A call that stands in code amid prose is only shown there, and so the parser reads none.
        """
        calls = [doubt.call for doubt in self._doubts if isinstance(doubt.call, Call)]
        if calls or self._count:
            return calls
        tools = self._offer.tools.parsed
        blocks = _code_blocks(self._waiting())
        in_code = [
            call for block in blocks for call in parse_calls(block, tools, cut=True)
        ]
        return [call for call in in_code if isinstance(call, Call)]

    def _may_follow(self, call: Call, confirmed: list[Call]) -> bool:
        """Whether the choice of tools leaves room for one more call, and for this one."""
        if self._offer.wanted is not None and call.name != self._offer.wanted:
            return False
        return self._offer.parallel or not (self._count or confirmed)

    def _answers(self, call: Call, unanswered: list[Doubt | BadCall]) -> bool:
        """Whether the call repeats all that was read of a doubtful one, which it then answers."""
        for doubt in unanswered:
            read = _call_of(doubt)
            if isinstance(read, Call) and read == call:
                unanswered.remove(doubt)
                return True
            if not isinstance(read, Call) and self._name_of(doubt) == call.name:
                return True  # nobody knows how many calls it was
        return False

    def _is_confirmed_replay(self, call: Call) -> bool:
        """Whether the answer is nothing but calls asked about, this one too, in the form asked for.

        What somebody else wrote may also have written the words around it.
        """
        if "".join(self._said).strip() or self._bad or self._count:
            return False
        asked_about = [_call_of(doubt) for doubt in self._open_doubts]
        calls = [doubt.call for doubt in self._doubts]
        return all(
            isinstance(one, Call) and one.asked and one in asked_about
            for one in (call, *calls)
        )

    def _what_is_wrong(self) -> str | None:
        """What the model is told of an answer without a call that counts."""
        if not self._offer.tools.names and self._said:
            self._bad = []  # calls of the history that it imitates beside its answer
        if any(bad.cut for bad in self._bad):
            return None  # it would only be cut again
        if self._bad and not self._offer.tools.names:
            return f"That answer calls a function, but {_NONE_OFFERED}. Answer in plain text."
        asked = self._first is not None or self._answer is not None
        if self._bad or (self._doubts and not asked):
            return self._question([*([] if asked else self._doubts), *self._bad])
        if self._offer.required:
            return (
                f"That answer does not call {problem_text(self._required)}, which must be called "
                "now. Answer with the call alone, written as the instructions show."
            )
        return None

    def _question(self, doubts: list[Doubt | BadCall]) -> str:
        """What the model is asked where it may have meant a call, or only shown one."""
        self._open_doubts = doubts
        shown = doubts[:_MOST_FORMS] if self._offer.parallel else doubts[:1]
        known = [
            (self._name_of(doubt), self._arguments_to_show(doubt)) for doubt in shown
        ]
        forms = [self._format.form(name, arguments) for name, arguments in known]
        return call_question(
            [*dict.fromkeys(forms)],
            [doubt.reason for doubt in doubts],
            readable=any(isinstance(_call_of(doubt), Call) for doubt in doubts),
            filled_in=all(None not in pair for pair in known),
        )

    def _arguments_to_show(self, doubt: Doubt | BadCall) -> Mapping[str, Any] | None:
        """The arguments that were read, unless others wrote them: nobody hands the model those."""
        call = _call_of(doubt)
        if not isinstance(call, Call) or self._source(call):
            return None
        return call.arguments

    def _name_of(self, doubt: Doubt | BadCall) -> str | None:
        """The function on offer that a doubtful call names; None where it names no such one."""
        names = self._offer.tools.names
        call = _call_of(doubt)
        if call is not None and call.name is not None:
            return call.name if call.name in names else None
        text = doubt.text or (call.source if call else "")
        return next((word for word in _WORD.findall(text) if word in names), None)

    def _invalid_part(self, doubt: Doubt | BadCall) -> ContentPart:
        """What cannot be read, or what the model did not confirm: as it was written."""
        call = _call_of(doubt)
        reason = doubt.reason
        source = call.source if call else ""
        if isinstance(doubt, Doubt):
            unanswered = (
                "did not say that it"
                if self._open_doubts
                else "was not asked whether it"
            )
            reason = f"{reason}, and the model {unanswered} means it"
        id_ = new_id()
        name = call.name if call else None
        written = tool_call_chunk(name=name, args=guarded(source or doubt.text), id=id_)
        return ContentPart(call=written, failed=(id_, reason))


_NONE_OFFERED = "no function can be called now"
_MOST_FORMS = 5  # that a question shows
_WORD = re.compile(r"[\w.-]+")


def _code_blocks(text: str) -> Iterator[str]:
    """What stands between the lines that open and close a fence; an open fence holds nothing."""
    block: list[str] | None = None
    for line in text.splitlines(keepends=True):
        if not line.lstrip().startswith("```"):
            if block is not None:
                block.append(line)
        elif block is None:
            block = []
        else:
            yield "".join(block)
            block = None


def _text_behind(pieces: list[Event]) -> str:
    """The prose behind the last call."""
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, Prose):
            texts.append(piece.text)
        elif isinstance(piece, (Call, BadCall, Doubt)):
            texts.clear()
    return "".join(texts)


def _without(doubts: list[Doubt], pieces: list[Prose | Doubt]) -> list[Prose | Doubt]:
    """The pieces of an answer without these doubts, and without the ends of their fences."""
    kept: list[Prose | Doubt] = []
    after_doubt = False
    for piece in pieces:
        is_doubt = any(piece is doubt for doubt in doubts)
        is_fence_end = after_doubt and not piece.text.strip(" \t\r\n`")
        after_doubt = is_doubt or is_fence_end
        if not after_doubt:
            kept.append(piece)
    return kept


def _call_of(doubt: Doubt | BadCall | Call) -> Call | BadCall | None:
    return doubt.call if isinstance(doubt, Doubt) else doubt


def _is_loose(doubt: Doubt) -> bool:
    return doubt.call is None or doubt.call.loose
