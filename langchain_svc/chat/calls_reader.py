"""The reader of answers that may call tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from langchain_core.messages.tool import tool_call_chunk

from .._calls import (
    FORMATS,
    TOO_LONG,
    Format,
    PastCall,
    choice_again_text,
    placeholder,
    refusal_text,
)
from .._calls.reading import (
    MOST_CALLS,
    ArgumentsDelta,
    BadCall,
    Call,
    CallEnd,
    CallStart,
    Doubt,
    Event,
    Prose,
    Replays,
    StreamParser,
    Thought,
    ThoughtEnd,
    arguments_json,
    code_blocks,
    parse_calls,
    text_behind_calls,
)
from .._text import Pseudonymizer, restored
from .messages import PERSON, guarded
from .readers import AnswerReader, ContentPart, new_id, text_of
from .structured import JsonReader
from .tools import ToolRequest

# -- doubts ----------------------------------------------------------------------------------------
# What in an answer may be a call, and the text beside it.


def unfilled(call: Call) -> str | None:
    """What is wrong with a call in which an argument is still as the form shows it."""
    for name, value in call.arguments.items():
        if value == placeholder(name):
            return f"its argument {name} is still {value}, and no value"
    return None


def without(doubts: list[Doubt], pieces: list[Prose | Doubt]) -> list[Prose | Doubt]:
    """The pieces of an answer without these doubts, and without the ends of their fences."""
    remaining: list[Prose | Doubt] = []
    after_doubt = False
    for piece in pieces:
        is_doubt = any(piece is doubt for doubt in doubts)
        is_fence_end = after_doubt and not piece.text.strip(" \t\r\n`")
        after_doubt = is_doubt or is_fence_end
        if not after_doubt:
            remaining.append(piece)
    return remaining


def doubts_among(pieces: list[Prose | Doubt]) -> list[Doubt]:
    """The doubts of an answer."""
    return [piece for piece in pieces if isinstance(piece, Doubt)]


def call_of(doubt: Doubt | BadCall | Call) -> Call | BadCall | None:
    """What was read of a call, if anything was."""
    return doubt.call if isinstance(doubt, Doubt) else doubt


def is_loose(doubt: Doubt) -> bool:
    """Whether it is only a little like a call."""
    return doubt.call is None or doubt.call.loose


# -- calls reader ----------------------------------------------------------------------------------

_JOINT = "\n\n"
_NONE_OFFERED = "no function can be called now"
_NOTHING = "it holds neither text nor a call that can be read"
_MOST_FORMS = 5  # that a question shows
_LONGEST_FORM = 2_000  # characters
_WORD = re.compile(r"[\w.-]+")


class CallsReader(AnswerReader):
    """Reads calls of the offered tools, and the prose around them.

    Where no tool has to be called, an answer without a call is text, or JSON for a `JsonReader`.

    - A readable call is passed on, whatever its schema says of it: the tool judges its arguments.
    - An unreadable call goes back to the model with the reason, unless another call stands
      beside it.
    - About a doubtful call (an example, or the text of something that the model has read) the
      reader asks the model once. A call in the second answer counts; without one, the first answer
      stands as the model wrote it. The same call again counts in whatever form and among whatever
      words, except the text of something that the model has read: that must be alone, and in the
      form that the prompt asks for. What stands in a quotation confirms nothing.
    - So it is with an answer of which the caller would get nothing: no text, and no call.
    - A call that stays unreadable becomes an invalid call. One that the service has cut off is one,
      too, or makes the turn fail.
    """

    def __init__(
        self,
        offer: ToolRequest,
        json_reader: JsonReader | None,  # of an answer without calls
        *,
        tool_format: Format,  # of the calls that the prompt asks for
        thinks: bool,  # the model may think without saying where that begins
        stream_arguments: bool,  # a call is passed on while the model writes it
        split_reasoning: bool,  # reasoning is no part of the content
        mark_cuts: bool,  # a call that was cut off is marked in the text, and no error
        # What the model has read: each text with its speaker.
        texts_read: Callable[[], Iterable[tuple[str, str]]],
        pseudonyms: Pseudonymizer | None = None,  # what restores arguments
    ) -> None:
        self._offer = offer
        self._json_reader = json_reader
        self._format = tool_format
        self._pseudonyms = pseudonyms
        self._split_reasoning = split_reasoning
        self._mark_cuts = mark_cuts
        descriptions = ("the description of a function", offer.tools.descriptions)
        self._replays = Replays(lambda: (*texts_read(), descriptions), asking=PERSON)
        self._holds_arguments = self._was_read if stream_arguments else None
        self._new_parser = partial(
            StreamParser,
            offer.tools.parsed,
            fences=tool_format is FORMATS["fenced"],
            thinks=thinks,
            pseudonyms=pseudonyms,
        )
        # What the last question to the model was about.
        self._open_doubts: list[Doubt | BadCall] = []
        # Whether the answer that ends now is one to a question.
        self._was_asked = False
        # The answer with these doubts, from the first of them on; None before any question.
        self._doubtful_answer: list[Prose | Doubt] | None = None
        self._was_told_to_shorten = False  # a call that was too long
        # Prose that the reader has passed on of an answer that did not do.
        self._former_prose = ""
        # Whether prose waits for the end of the answer. In the first answer it does if a call is
        # required, or the prose may be JSON; in later ones it always does.
        self._delays_prose = offer.required or json_reader is not None
        self.start_answer()

    def start_answer(self) -> None:
        self.repair_prompt = None
        self.failure = None
        self.malformed: bool = False
        self.called: bool = False
        self.ended: bool = False
        self._parser = self._new_parser(holds=self._holds_arguments)
        self._texts: list[str] = []  # as they came
        self._has_said = False  # whether the caller gets some text of it
        self._prose: list[str] = []
        self._buffer: list[str] = []  # the prose that waits
        self._blanks = ""  # at the end of the prose; a call behind them drops them
        self._tail: list[Prose | Doubt] = []  # everything from the first doubt on
        self._bad_calls: list[BadCall] = []
        self._calls: list[Call] = []  # those that can run
        # With those that failed after their arguments were passed on.
        self._call_count = 0
        self._streams_call = False
        self._is_thinking = False
        if self._json_reader is not None:
            self._json_reader.start_answer()

    def read_chunk(self, text: str) -> Iterator[ContentPart]:
        self._texts.append(text)
        yield from self._read_events(self._parser.parse_chunk(text))
        self.ended = self._parser.ended and not self._gives_nothing

    @property
    def held(self) -> int:
        return self._parser.held

    def restart(self, *, streaming: bool) -> bool:
        if streaming and self._call_count:
            return False
        if streaming:
            self._delay_prose()
        self.start_answer()
        return True

    def _delay_prose(self) -> None:
        """Pass no prose on while it comes: the next answer may say again what this one said."""
        if not self._delays_prose:
            self._former_prose = "".join(self._prose)
            self._delays_prose = True

    def wants_rest(self, text: str, *, out_of_room: bool) -> bool:
        """Whether the answer ends inside a call, behind one, or before it has said anything.

        Where the service does not say that it cut the answer off, only an open call in the form
        that the prompt asks for shows that it did.
        """
        is_open = self._format.is_open(text)
        if not (out_of_room or is_open):
            return False
        parser = self._new_parser()
        events = [*parser.parse_chunk(text), *parser.close(cut=out_of_room)]
        calls = [
            call_of(event)
            for event in events
            if isinstance(event, (Doubt, BadCall, Call))
        ]
        has_cut_call = any(isinstance(call, BadCall) and call.cut for call in calls)
        self.is_inside: bool = has_cut_call or (is_open and out_of_room)
        if self.is_inside or not out_of_room:
            return self.is_inside
        if calls:
            return not text_behind_calls(events).strip()
        if self._json_reader is not None:
            wants_rest = self._json_reader.wants_rest(text, out_of_room=out_of_room)
            self.is_copy: bool = self._json_reader.is_copy
            return wants_rest
        prose = "".join(event.text for event in events if isinstance(event, Prose))
        return self._offer.required or not prose.strip()

    # -- what the parser yields -------------------------------------------------------------------

    def _read_events(self, events: Iterable[Event]) -> Iterator[ContentPart]:
        for event in events:
            if isinstance(event, Thought):
                yield self._thought_part(event.text)
                continue
            if self._is_thinking:
                self._is_thinking = False
                yield ContentPart("</think>\n")
            if isinstance(event, Prose):
                yield from self._read_prose(event.text)
            elif isinstance(event, Doubt):
                self._tail.append(event)
            elif isinstance(event, ThoughtEnd):
                yield from self._end_thought()
            elif isinstance(event, BadCall):
                self._bad_calls.append(event)
            elif isinstance(event, Call):
                yield from self._read_call(event)
            else:
                yield from self._read_streamed_call(event)

    def _thought_part(self, text: str) -> ContentPart:
        if self._split_reasoning:
            return ContentPart(reasoning=text)
        self._has_said = True
        if not self._is_thinking:
            self._is_thinking = True
            text = "<think>" + text
        return ContentPart(text)

    def _end_thought(self) -> Iterator[ContentPart]:
        """All that came was thought, as its end shows: also what waited to be passed on."""
        self._blanks = ""
        if self._split_reasoning:
            yield ContentPart(reasoning="".join(self._buffer))
            self._buffer = []
            self._prose = []
            self._has_said = False
        yield ContentPart(all_was_reasoning=True)

    def _read_prose(self, text: str) -> Iterator[ContentPart]:
        self._prose.append(text)
        self._has_said = self._has_said or bool(text.strip())
        if self._tail:
            self._tail.append(Prose(text))
            return
        text = self._blanks + text
        stripped = text.rstrip()
        self._blanks = text[len(stripped) :]
        if self._delays_prose and not self._call_count:
            self._buffer.append(stripped)
        elif stripped:
            yield ContentPart(stripped)

    def _read_call(self, call: Call) -> Iterator[ContentPart]:
        if not self._offer.tools.names:
            self._bad_calls.append(
                BadCall(call.name, _NONE_OFFERED, source=call.source)
            )
            return
        if not self._may_call(call.name, self._doubts):
            return
        if problem := unfilled(call):
            self._bad_calls.append(BadCall(call.name, problem, source=call.source))
            return
        source = self._source(call)
        if source:
            doubt = Doubt(call.text, f"its text stands in {source}", call)
            self._tail.append(doubt)
        else:
            yield from self._pass_call_on(call)

    def _read_streamed_call(
        self, event: CallStart | ArgumentsDelta | CallEnd
    ) -> Iterator[ContentPart]:
        """A call whose arguments are passed on while the model writes them."""
        if isinstance(event, CallStart):
            self._streams_call = self._may_call(event.name, self._doubts)
            if self._streams_call:
                yield from self._begin_call(event.name)
        elif not self._streams_call:
            return
        elif isinstance(event, ArgumentsDelta):
            yield self._arguments_part(event.text)
        else:
            yield from self._end_streamed_call(event.call, event.rest)

    def _end_streamed_call(
        self, call: Call | BadCall, remaining: str
    ) -> Iterator[ContentPart]:
        reason = None
        if isinstance(call, BadCall):
            reason = call.reason
        elif problem := unfilled(call):
            reason = problem
            remaining += "]"
        elif source := self._source(call):
            # It did not look like a replay before. A bracket too many keeps it from running.
            reason = f"it repeats {source}"
            remaining += "]"
        else:
            self._calls.append(call)
        if remaining:
            yield self._arguments_part(remaining)
        if reason:
            self.malformed = True
            yield ContentPart(failed=(self._id, reason))

    def _may_call(self, name: str, others: Sequence[object]) -> bool:
        """Whether the choice of tools allows this call, beside `others` of the same answer."""
        required_name = self._offer.required_name
        if required_name is not None and name != required_name:
            return False
        return self._offer.parallel or not (self._call_count or others)

    def _source(self, call: Call) -> str | None:
        """Where the model has read the text of the call, if anywhere."""
        return self._replays.source(
            call.name, call.arguments, self._restored(call.source)
        )

    def _was_read(self, text: str) -> bool:
        """Whether the beginning of a call stands in a text that the model has read."""
        return self._replays.may_be(self._restored(text))

    def _restored(self, text: str) -> str:
        return restored(text, self._pseudonyms)

    def _pass_call_on(self, call: Call) -> Iterator[ContentPart]:
        self._calls.append(call)
        yield from self._begin_call(call.name)
        yield self._arguments_part(arguments_json(call.arguments))

    def _begin_call(self, name: str) -> Iterator[ContentPart]:
        if self._doubtful_answer is None:
            yield from self._flush_buffer()
        self._blanks = ""
        self._id = new_id()
        yield ContentPart(
            call=tool_call_chunk(
                name=name, args="", id=self._id, index=self._call_count
            )
        )
        self._call_count += 1

    def _arguments_part(self, text: str) -> ContentPart:
        return ContentPart(call=tool_call_chunk(args=text, index=self._call_count - 1))

    def _flush_buffer(self) -> Iterator[ContentPart]:
        """The prose that waited, unless a former answer has said the same."""
        text = "".join(self._buffer)
        self._buffer = []
        if self._former_prose:
            is_repeated = self._former_prose.strip().startswith(text.strip())
            text = "" if is_repeated else _JOINT + text.lstrip()
        if text:
            yield ContentPart(text)

    # -- the end of an answer ---------------------------------------------------------------------

    def end_answer(self, *, cut: bool, last: bool) -> Iterator[ContentPart]:
        yield from self._read_events(self._parser.close(cut=cut))
        if self._gives_nothing and not cut:
            self._doubt_all()
        self._was_asked = bool(self._open_doubts)
        if self._was_asked:
            yield from self._pass_confirmed_on()
        self.called = bool(self._calls)
        if self._call_count:
            yield from self._end_beside_calls()
            return
        self.repair_prompt = self._shorter_prompt() if cut else self._next_prompt()
        if self.repair_prompt is None or last:
            yield from self._end_without_calls(cut=cut, last=last)
            return
        if self._doubts and self._doubtful_answer is None and not cut:
            self._doubtful_answer = [Prose(self._blanks), *self._tail]
        self._delay_prose()

    @property
    def _gives_nothing(self) -> bool:
        """Whether the caller gets nothing of this answer so far: no text and no call."""
        return not (self._has_said or self._call_count or self._tail or self._bad_calls)

    def _doubt_all(self) -> None:
        """Doubt the whole answer, which has text and gives nothing of it, unless it must call.

        Where the model does not say what it meant, the answer is handed on as it was written.
        """
        asks_anyway = self._json_reader is not None or self._offer.required
        was_asked = self._doubtful_answer is not None
        text = "".join(self._texts)
        if text.strip() and not (asks_anyway or was_asked):
            self._tail.append(Doubt(text_of(text), _NOTHING))

    @property
    def _doubts(self) -> list[Doubt]:
        return doubts_among(self._tail)

    def _end_beside_calls(self) -> Iterator[ContentPart]:
        """The rest of an answer with calls: its text, and the calls that cannot run."""
        strict = [doubt for doubt in self._doubts if not is_loose(doubt)]
        if self._doubtful_answer is None:
            # What is only a little like a call stays in the text.
            remaining = without(strict, self._tail)
        else:
            # This answer was to confirm calls. The text is that of the answer in doubt.
            doubts = doubts_among(self._doubtful_answer)
            remaining = without(doubts, self._doubtful_answer)
        text = "".join(piece.text for piece in remaining).rstrip()
        if text:
            yield ContentPart(text)
        yield from map(self._invalid_part, strict)
        yield from map(self._invalid_part, self._bad_calls)

    def _end_without_calls(self, *, cut: bool, last: bool) -> Iterator[ContentPart]:
        """The rest of an answer without a call that can run; the model is not asked again."""
        if self._json_reader is not None and not self._bad_calls:
            yield from self._end_as_json(self._json_reader, cut=cut, last=last)
            return
        is_half = self._is_half(cut=cut)
        was_asked = self._doubtful_answer is not None
        if not was_asked:
            yield from self._flush_buffer()
            if self._blanks and not is_half:
                yield ContentPart(self._blanks)
        self.malformed = bool(self._bad_calls)
        if is_half:
            yield from self._report_half()
        for piece in self._final_pieces():
            # A doubtful call of which the model could not be asked is an invalid one. In an answer
            # that was cut off it is text, as it is where the model did not confirm it.
            is_unasked = not (self._was_asked or cut)
            if is_unasked and isinstance(piece, Doubt) and piece.call:
                self.malformed = True
                yield self._invalid_part(piece)
            else:
                yield ContentPart(piece.text)
        yield from map(self._invalid_part, self._bad_calls)
        if self._offer.required and not self.malformed:
            self.failure = self._missing_call(cut=cut)

    def _end_as_json(
        self, json_reader: JsonReader, *, cut: bool, last: bool
    ) -> Iterator[ContentPart]:
        yield from json_reader.read_chunk(self._waiting_text())
        yield from json_reader.end_answer(cut=cut, last=last)
        self.repair_prompt = json_reader.repair_prompt
        if self.repair_prompt and self._doubts:
            self.repair_prompt = self._question(self._doubts)

    def _waiting_text(self) -> str:
        """All of this answer that was not passed on."""
        tail = [piece.text for piece in self._tail]
        return "".join([*self._buffer, self._blanks, *tail])

    def _final_pieces(self) -> list[Prose | Doubt]:
        """What is still to be passed on: the end of this answer, or of the one in doubt.

        Where the one in doubt was nothing but doubtful calls, this answer replaces it.
        """
        if self._doubtful_answer is None:
            return self._tail
        pieces = self._doubtful_answer
        words = [piece.text for piece in pieces if isinstance(piece, Prose)]
        text = self._waiting_text()
        if text.strip() and not "".join([self._former_prose, *words]).strip():
            return [Prose(text)]
        return pieces

    def _missing_call(self, *, cut: bool) -> str:
        when = "also when it was asked again"
        if cut:
            when = "before max_tokens cut its answer off"
        return (
            f"The model did not call {self._required_function}, as it had to, {when} "
            "(.raw has its answer)"
        )

    @property
    def _required_function(self) -> str:
        name = self._offer.required_name
        return f"the function {name}" if name else "a function"

    def _is_half(self, *, cut: bool) -> bool:
        """Whether the service cut the answer inside a call, or before it said anything."""
        if not cut:
            return False
        if any(bad.cut for bad in self._bad_calls):
            return True
        tail = "".join(piece.text for piece in self._tail)
        end = tail or "".join(self._prose)
        is_silent = not (end.strip() or self._former_prose.strip())
        return is_silent or self._format.is_open(end)

    def _report_half(self) -> Iterator[ContentPart]:
        """Say that the answer stopped.

        An agent would take an answer of words alone for the end of its work.
        """
        names = [bad.name for bad in self._bad_calls if bad.cut and bad.name]
        has_words = bool("".join(self._prose).strip())
        what = "the answer"
        where = "before it said anything"
        if self._bad_calls or self._tail or has_words:
            what = f"a call of {names[0]}" if names else "a call"
            where = f"inside {what}"
        if not self._mark_cuts:
            self.failure = (
                f"The model's answer ended {where}, so that nothing was run: max_tokens and "
                "max_continuations set how long it may be (.raw has what came)"
            )
            return
        if has_words:
            yield ContentPart(_JOINT)
        yield ContentPart(f"[{what} was cut off, and nothing was run]")

    # -- confirmation of doubtful calls -----------------------------------------------------------

    def _pass_confirmed_on(self) -> Iterator[ContentPart]:
        """The doubtful calls of this answer that repeat what the model was asked about."""
        confirmed = self._confirmed_calls()
        doubts = [
            doubt
            for doubt in self._doubts
            if any(doubt.call is call for call in confirmed)
        ]
        if confirmed and not doubts:  # the calls stand in code, and so in the prose
            self._buffer = []
            self._tail = []
        self._tail = without(doubts, self._tail)
        for call in confirmed:
            yield from self._pass_call_on(call)

    def _confirmed_calls(self) -> list[Call]:
        """Each readable call that was in doubt is confirmed once.

        A copy of a call that runs, in another wrapping, is not a second one.
        """
        open_doubts = [*self._open_doubts]
        for call in self._calls:
            self._settles(call, open_doubts)
        confirmed: list[Call] = []
        for call in self._repeated_calls():
            if not self._may_call(call.name, confirmed) or unfilled(call):
                continue
            if self._source(call) and not self._is_confirmed_replay(call):
                continue
            if self._settles(call, open_doubts):
                confirmed.append(call)
        return confirmed

    def _repeated_calls(self) -> list[Call]:
        """The calls of this answer that are in doubt; where there are none, those in its code.

        A call that stands in code amid prose is only shown there, and so the parser reads none.
        """
        calls = [doubt.call for doubt in self._doubts if isinstance(doubt.call, Call)]
        if calls or self._call_count:
            return calls
        for block in code_blocks(self._waiting_text()):
            parsed = parse_calls(
                block,
                self._offer.tools.parsed,
                cut=True,
                pseudonyms=self._pseudonyms,
            )
            calls += [call for call in parsed if isinstance(call, Call)]
            if len(calls) > MOST_CALLS:
                return []  # no model means so many
        return calls

    def _settles(self, call: Call, open_doubts: list[Doubt | BadCall]) -> bool:
        """Whether the call repeats all that was read of an open doubt, which it then settles."""
        for doubt in open_doubts:
            doubtful = call_of(doubt)
            if isinstance(doubtful, Call):
                if doubtful == call:
                    open_doubts.remove(doubt)
                    return True
            elif self._function_of(doubt) == call.name:
                # It stays open: nobody knows how many calls it was.
                return True
        return False

    def _is_confirmed_replay(self, call: Call) -> bool:
        """Whether the answer is nothing but calls in the form asked for, each asked about.

        What somebody else wrote may also have written the words around it.
        """
        if "".join(self._prose).strip() or self._bad_calls or self._call_count:
            return False
        open_calls = [call_of(doubt) for doubt in self._open_doubts]
        calls = [call, *(doubt.call for doubt in self._doubts)]
        return all(
            isinstance(call, Call) and call.asked and call in open_calls
            for call in calls
        )

    # -- what the model is asked ------------------------------------------------------------------

    def _next_prompt(self) -> str | None:
        """What to tell the model of an answer without a call that can run; None for nothing."""
        can_call = bool(self._offer.tools.names)
        if not can_call and self._has_said:
            self._bad_calls = []  # it imitates calls of the history beside its answer
        if not can_call and (self._bad_calls or self._tail):
            return refusal_text([_NONE_OFFERED], "Answer in plain text.")
        doubts = self._doubts
        if self._was_asked or self._json_reader is not None:
            # The model is asked once only; and what may be JSON is first read as that.
            doubts = []
        if doubts or self._bad_calls:
            return self._question([*doubts, *self._bad_calls])
        if self._offer.required:
            problem = f"it does not call {self._required_function}"
            return refusal_text([problem], self._offer.instruction(self._format))
        return None

    def _shorter_prompt(self) -> str | None:
        """What to tell the model, once, of a call that is too long for one answer."""
        is_cut = any(bad.cut for bad in self._bad_calls)
        if not is_cut or self._mark_cuts or self._was_told_to_shorten:
            return None
        self._was_told_to_shorten = True
        return TOO_LONG

    def _question(self, doubts: Sequence[Doubt | BadCall]) -> str:
        """Ask for these calls once more, or for an answer without them."""
        self._open_doubts = [*doubts]
        reasons = [doubt.reason for doubt in doubts]
        if self._offer.required:
            return refusal_text(reasons, self._offer.instruction(self._format))
        shown = doubts[: _MOST_FORMS if self._offer.parallel else 1]
        calls = [*map(self._call_to_show, shown)]
        forms = [
            call or self._form_of(doubt)
            for call, doubt in zip(calls, shown, strict=True)
        ]
        order = choice_again_text(
            [*dict.fromkeys(forms)],
            self._format,
            filled_in=all(calls),
            parallel=self._offer.parallel,
        )
        return refusal_text(reasons, order)

    def _call_to_show(self, doubt: Doubt | BadCall) -> str | None:
        """The call as it was read, unless others wrote it: the model is not handed that."""
        call = call_of(doubt)
        if not isinstance(call, Call) or self._source(call):
            return None
        text = self._format.call(PastCall(call.name, call.arguments))
        return text if len(text) <= _LONGEST_FORM else None

    def _form_of(self, doubt: Doubt | BadCall) -> str:
        """The form of the function that was meant, as far as that is known."""
        return self._offer.tools.form(self._function_of(doubt), self._format)

    def _function_of(self, doubt: Doubt | BadCall) -> str | None:
        """The function on offer that a doubtful call names; None where it names no such one."""
        names = self._offer.tools.names
        call = call_of(doubt)
        if call is not None and call.name is not None:
            return call.name if call.name in names else None
        text = doubt.text
        if not text and call is not None:
            text = call.source
        for word in _WORD.findall(text):
            if word in names:
                return str(word)
        return None

    def _invalid_part(self, doubt: Doubt | BadCall) -> ContentPart:
        """An unreadable call, or one that the model did not confirm, as the model wrote it."""
        call = call_of(doubt)
        name = None
        source = ""
        if call is not None:
            name = call.name
            source = call.source
        reason = doubt.reason
        if isinstance(doubt, Doubt):
            omission = "was not asked whether it"
            if self._was_asked:
                omission = "did not say that it"
            reason = f"{reason}, and the model {omission} means it"
        call_id = new_id()
        arguments = guarded(self._restored(source or doubt.text))
        return ContentPart(
            call=tool_call_chunk(name=name, args=arguments, id=call_id),
            failed=(call_id, reason),
        )
