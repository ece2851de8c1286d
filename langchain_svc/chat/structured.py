"""JSON answers: how they are asked for, how they are checked, and what users get of them.

`JsonReader` checks an answer inside the run, where the model can still be asked again.
`StructuredParser` then makes the object of it, or raises with all there is to know of the failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import cached_property
from operator import itemgetter
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
)
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.output_parsers import BaseTransformOutputParser
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough
from pydantic import InstanceOf, TypeAdapter, ValidationError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1
from typing_extensions import is_typeddict

from .. import _json
from .._base.safe_errors import safe_repr
from .._calls import problem_text, render_json
from .._calls.reading import Call, Tool, parse_calls
from .._json import Form, SchemaMismatch, form_of, shortened
from .._text import Pseudonymizer, ReasoningSplitter, defuse, restored
from .._wire import is_cut
from ..errors import SvcOutputError, SvcRequestError
from .readers import FINAL, LONG, AnswerReader, ContentPart, new_id, split_parts
from .tools import (
    NO_SCHEMA,
    is_subclass,
    read_function,
    readable,
    refuse_unwritable,
    schema_of_type,
)

_ANY_OBJECT: dict[str, Any] = {"type": "object"}
_JSON_OBJECT = {"type": "json_object"}
_WRAPPED = "answer"
_SHARED = ("$defs", "definitions")
_INTO_WHOLE = re.compile(rf"#(?!/(?:{'|'.join(map(re.escape, _SHARED))})/)")
_MOST_FIELDS = 20  # that a skeleton shows
_MOST_PROBLEMS = 20  # that a repair prompt names


class ResponseFormat(dict[str, Any]):
    """The `response_format` of a call, in the form LangChain traces, which also checks answers.

    `model`: the type to make of an answer. `partial`: a stream passes the answer on before it is
    checked. `wrapped`: the answer is the only field of an object, as lists and unions are.
    `attach_parsed`: the message carries the object of that type, as "parsed". `as_call`: the
    message carries the answer as a call of the schema's name.
    """

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        name: str = "answer",
        model: Any = None,
        partial: bool = False,
        wrapped: bool = False,
        attach_parsed: bool = False,
        as_call: bool = False,
    ) -> None:
        self.schema: dict[str, Any] = dict(schema)
        self.model = model
        self.partial = partial
        self.name = name
        self.wrapped = wrapped
        self.as_call = as_call
        self.attach_parsed = attach_parsed
        super().__init__(
            type="json_schema", json_schema={"name": name, "schema": self.schema}
        )

    def preamble(self, *, among_tools: bool) -> str:
        """The instructions that ask for such an answer."""
        when = "Answer"
        if among_tools:
            when = "When you call no function, answer"
        if self.schema == _ANY_OBJECT:
            return f"{when} with one JSON object and nothing else: no prose around it, no fence."
        if self._form:
            order = (
                f"{when} with one {_kind(self._form)} of this form and nothing else: no prose "
                "around it, no fence. Put a value in the place of each <...>:"
            )
            return "\n".join([*map(defuse, self._form.notes), order, self._form.text])
        schema = render_json(self.schema)
        return (
            f"{when} with JSON that matches this JSON Schema and with nothing else: no prose "
            f"around it, no fence, no copy of the schema.\n<schema>\n{schema}\n</schema>"
        )

    def check(
        self,
        text: str,
        *,
        cut: bool = False,
        pseudonyms: Pseudonymizer | None = None,
    ) -> object:
        """The answer in the text as plain JSON that fits the schema; `pseudonyms` restore it.

        Raises:
            SchemaMismatch: There is none.
        """
        if self.as_call:
            text = self._arguments_or_text(text, cut=cut)
        value = _json.read_answer(
            text,
            self._compiled,
            cut=cut,
            only=True,
            form=self._form,
            pseudonyms=pseudonyms,
        )
        self.make(value)
        return value

    def _arguments_or_text(self, text: str, *, cut: bool) -> str:
        """The arguments, if the model writes a call: its name could pass for an answer."""
        for call in parse_calls(text, [Tool(self.name, self.schema)], cut=cut):
            if call.name != self.name:
                continue
            if isinstance(call, Call):
                return render_json(call.arguments)
            if not self.wrapped:
                raise SchemaMismatch([call.reason])
            break
        return text

    @cached_property
    def _compiled(self) -> _json.CompiledSchema:
        return _json.CompiledSchema(self.schema)

    @cached_property
    def _form(self) -> Form | None:
        """The form that the model is shown; None where it is shown the schema."""
        if self.schema == _ANY_OBJECT:
            return None
        return form_of(self.schema, render_json)

    def repair_prompt(self, problems: Iterable[str]) -> str:
        """What to tell the model of an answer with these problems; the form stands last."""
        lines = [
            f"- {problem_text(problem)}" for problem in [*problems][:_MOST_PROBLEMS]
        ]
        order = "Write the whole answer, with these problems fixed, as"
        if self._form:
            order += f" one {_kind(self._form)} of this form and nothing else, with a value in the"
            lines += [f"{order} place of each <...>:", self._form.text]
        elif self._skeleton:
            lines += [
                f"{order} JSON of this form and nothing else:",
                problem_text(self._skeleton),
            ]
        else:
            lines.append(f"{order} JSON and nothing else.")
        return "\n".join(["An answer to this could not be used:", *lines])

    @property
    def _skeleton(self) -> str:
        """An object with the schema's fields and no values; "" where the schema names none."""
        names = [*self._compiled.fields]
        if len(self._compiled.roots) != 1 or not 0 < len(names) <= _MOST_FIELDS:
            return ""
        fields = [f"{json.dumps(name, ensure_ascii=False)}: ..." for name in names]
        return "{" + ", ".join(fields) + "}"

    def make(self, value: object) -> object:
        """Make the user's object of a value that `check` returned: of the type, if there is one."""
        if self.wrapped and isinstance(value, dict):
            value = value[_WRAPPED]
        exact = _json.with_decimals(value)
        if self.model is None:
            return value if exact is value else json.loads(_json.dump(value))
        try:
            if is_subclass(self.model, BaseModelV1):
                return self.model.parse_obj(exact)
            if exact is not value:  # in JSON, Pydantic reads floats only
                return TypeAdapter(self.model).validate_python(exact)
            return TypeAdapter(self.model).validate_json(_json.dump(value))
        except (ValidationError, ValidationErrorV1) as error:
            problems = [
                f"{_path(detail['loc'])}: {detail['msg']}" for detail in error.errors()
            ]
            raise SchemaMismatch(problems) from None


def _kind(form: Form) -> str:
    """What the form is, in the words of an instruction."""
    if form.text.startswith("{"):
        return "JSON object"
    return "JSON value"


def _path(location: Iterable[object]) -> str:
    """The place of a problem that Pydantic reports; a key in it may be the model's text."""
    return ".".join(["answer", *(shortened(str(step)) for step in location)])


def _schema_of(kind: Any) -> dict[str, Any]:
    """The JSON schema of what users pass for one.

    Raises:
        SvcRequestError: It has none, or constrains nothing somewhere.
    """
    if isinstance(kind, Mapping):
        return _written_schema(kind)
    try:
        return {"title": "answer", **schema_of_type(kind)}
    except NO_SCHEMA as error:
        refuse_unwritable(kind)
        raise SvcRequestError(
            f"{safe_repr(kind)} is not a schema: pass a Pydantic class, a TypedDict, a "
            "dataclass, a list or union of these, a JSON schema, or an OpenAI function"
        ) from error


def _written_schema(written: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema that somebody wrote, or the parameters of a function, under its name."""
    function = read_function(written)
    if "parameters" not in function:
        raise SvcRequestError(
            f"The function {function['name']!r} has no parameters, which are what an answer has: "
            "write 'parameters', a schema of type object, or pass a JSON schema"
        )
    schema = {**function.pop("parameters")}
    name = function.pop("name") or "answer"
    return {"title": name, **function, **schema}


def format_for(
    schema: object, *, method: str = "json_schema", attach_parsed: bool = False
) -> ResponseFormat:
    """The response format of `with_structured_output(schema)`."""
    json_mode = method == "json_mode"
    as_call = method == "function_calling"
    if schema is None or (json_mode and schema == _JSON_OBJECT):
        json_schema = _ANY_OBJECT
    else:
        json_schema = _schema_of(schema)
    model = None
    if not (isinstance(schema, Mapping) or is_typeddict(schema)):
        model = readable(schema)
    name = str(json_schema.get("title") or "answer")
    types = _json.CompiledSchema(json_schema).types
    if json_mode and model is None and types != ["array"]:
        json_schema = _ANY_OBJECT  # the user's prompt says which object it wants
        types = ["object"]
    wrapped = types != ["object"]
    if wrapped:
        json_schema = _wrapping(json_schema, name)
    return ResponseFormat(
        json_schema,
        name=name,
        model=model,
        partial=model is None and not (wrapped or as_call),
        wrapped=wrapped,
        attach_parsed=attach_parsed,
        as_call=as_call,
    )


def _wrapping(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The schema of an object with a value of this schema as its only field."""
    shared = {key: schema[key] for key in _SHARED if key in schema}
    alone = {key: schema[key] for key in schema if key not in _SHARED}
    return {key: _moved(shared[key]) for key in shared} | {
        "title": name,
        "type": "object",
        "properties": {_WRAPPED: _moved(alone)},
        "required": [_WRAPPED],
    }


def _moved(part: Any) -> Any:
    """A part of a schema that is wrapped, with its references to what is now the only field."""
    if isinstance(part, list):
        return [*map(_moved, part)]
    if not isinstance(part, Mapping):
        return part
    part = {key: _moved(part[key]) for key in part}
    reference = part.get("$ref")
    if isinstance(reference, str) and _INTO_WHOLE.match(reference):
        part["$ref"] = f"#/properties/{_WRAPPED}{reference[1:]}"
    return part


def structured_output(
    model: BaseChatModel,
    schema: object,
    parameters: dict[str, Any],
    *,
    include_raw: bool,
    method: str,
    strict: bool | None,
) -> Runnable[LanguageModelInput, Any]:
    """The model bound to a response format, and the parser of its answers behind it."""
    if method not in {"json_schema", "function_calling", "json_mode"}:
        raise SvcRequestError(
            f"method must be json_schema, function_calling or json_mode, not {safe_repr(method)}"
        )
    if schema is None and method != "json_mode":
        raise SvcRequestError(f"The method {method} needs a schema")
    response_format = format_for(schema, method=method)
    if schema is not None:
        parameters["ls_structured_output_format"] = {
            "kwargs": {"method": method, "strict": strict},
            "schema": {"title": response_format.name, **response_format.schema},
        }
    bound: Runnable[LanguageModelInput, AIMessage] = model.bind(
        response_format=response_format, **parameters
    )
    parser = StructuredParser(response_format=response_format)
    if not include_raw:
        return bound | parser
    parsed = RunnablePassthrough.assign(
        parsed=itemgetter("raw") | parser, parsing_error=lambda _: None
    )
    unparsed = RunnablePassthrough.assign(
        parsed=lambda _: None, parsing_error=_parsing_error
    )
    return RunnableMap(raw=bound) | parsed.with_fallbacks(
        [unparsed], exception_key="parsing_error"
    )


def _parsing_error(output: dict[str, Any]) -> BaseException:
    """The error to return, without frames: they hold the conversation as long as it lives."""
    error: BaseException = output["parsing_error"]
    cause: BaseException | None = error
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__
    return error


def read_response_format(value: object) -> ResponseFormat | None:
    """The `response_format` of a call: a class, or what `create_agent` binds.

    Raises:
        SvcRequestError: It has another form.
    """
    if value is None or isinstance(value, ResponseFormat):
        return value
    if isinstance(value, type):
        return format_for(value, attach_parsed=True)
    if isinstance(value, Mapping):
        kind = value.get("type")
        if kind == "text":
            return None
        if kind == "json_object":
            return ResponseFormat(_ANY_OBJECT)
        inner = value.get("json_schema")
        if kind == "json_schema" and isinstance(inner, Mapping):
            schema = inner.get("schema")
            if isinstance(schema, Mapping):
                name = str(inner.get("name") or "answer")
                _json.check_schema(schema, f"the schema {name!r}")
                return ResponseFormat(schema, name=name)
    raise SvcRequestError(
        'response_format must be a class, {"type": "json_schema", "json_schema": {"name", '
        f'"schema"}}}}, {{"type": "json_object"}} or {{"type": "text"}}, not {safe_repr(value)}'
    )


class JsonReader(AnswerReader):
    """Reads one JSON value that fits a schema; the content is that JSON and nothing else.

    A stream shows nothing before the answer was checked, unless the format asks for partial
    objects. Then the JSON is shown as it comes, and the checked answer comes beside it. Of several
    answers only the first is shown: a second JSON behind it would be no JSON.
    """

    is_inside = True

    def __init__(
        self,
        response_format: ResponseFormat,
        *,
        streaming: bool,
        pseudonyms: Pseudonymizer | None = None,
    ) -> None:
        self._format = response_format
        self._pseudonyms = pseudonyms
        self._shows_partial = streaming and response_format.partial
        self._showing = False
        self._replaces = False  # an answer of which a part was shown
        self.start_answer()

    def start_answer(self) -> None:
        self.repair_prompt = None
        self._text: list[str] = []
        self._content: list[str] = []  # the text without its reasoning
        self._replaces = self._was_shown
        self._showing = False
        self._splitter = ReasoningSplitter(spoken=True)

    def read_chunk(self, text: str) -> Iterator[ContentPart]:
        self._text.append(text)
        for part in split_parts(self._splitter.parse_chunk(text)):
            yield from self._read_part(part)

    def wants_rest(self, text: str, *, out_of_room: bool) -> bool:
        self.is_copy: bool = False
        if not out_of_room:
            return False
        try:
            self._format.check(text, cut=True, pseudonyms=self._pseudonyms)
        except SchemaMismatch as error:
            self.is_copy = error.is_copy
            return not error.is_copy
        return False

    def restart(self, *, streaming: bool) -> bool:
        del streaming  # the new answer comes beside what was shown, once it is checked
        self.start_answer()
        return True

    @property
    def _was_shown(self) -> bool:
        return self._showing or self._replaces

    def _read_part(self, part: ContentPart) -> Iterator[ContentPart]:
        if part.all_was_reasoning and not self._showing:
            yield ContentPart(reasoning="".join(self._content))
            self._content = []
            return
        if not part.content:
            yield part
            return
        self._content.append(part.content)
        if not self._shows_partial or self._replaces:
            return
        text = part.content
        if not self._showing:
            start = text.find("{")
            if start < 0:
                return
            text = text[start:]
        self._showing = True
        yield ContentPart(text)

    def end_answer(self, *, cut: bool, last: bool) -> Iterator[ContentPart]:
        for part in split_parts(self._splitter.close()):
            yield from self._read_part(part)
        try:
            value = self._format.check(
                "".join(self._text), cut=cut, pseudonyms=self._pseudonyms
            )
        except SchemaMismatch as error:
            # An answer that max_tokens cut would only be cut again, unless it was a copy.
            if not cut or error.is_copy:
                self.repair_prompt = self._format.repair_prompt(error.problems)
            if last or self.repair_prompt is None:
                yield self._rejected_part()
            return
        if self._format.as_call:
            yield from self._call_parts(value)
        elif self._was_shown:
            yield ContentPart(final=_json.dump(value))
        else:
            yield ContentPart(json=_json.dump(value))
        if self._format.attach_parsed:
            yield ContentPart(parsed=self._format.make(value))

    def _rejected_part(self) -> ContentPart:
        """An answer that cannot be used, as far as it was not shown."""
        text = "".join(self._content)
        if self._replaces:
            return ContentPart(final=restored(text, self._pseudonyms))
        return ContentPart("" if self._showing else text)

    def _call_parts(self, value: object) -> Iterator[ContentPart]:
        """The value as the arguments of a call, as `with_structured_output` may ask for."""
        self.called = True
        arguments = value if isinstance(value, dict) else {"answer": value}
        name = tool_call_chunk(name=self._format.name, args="", id=new_id(), index=0)
        yield ContentPart(call=name)
        yield ContentPart(call=tool_call_chunk(args=_json.dump(arguments), index=0))


class StructuredParser(BaseTransformOutputParser[Any]):
    """Makes the user's object of a checked answer; in a stream, also of each part of it."""

    response_format: InstanceOf[ResponseFormat]

    @property
    def _type(self) -> str:
        return "svc-structured"

    def parse(self, text: str) -> Any:
        """The object in a text."""
        return self.parse_result([ChatGeneration(message=AIMessage(text))])

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        """The object in a message."""
        del partial
        message, text = self._message_and_text(result)
        response_format = self.response_format
        reason = message.response_metadata.get("finish_reason")
        cut = is_cut(reason)
        try:
            return response_format.make(response_format.check(text, cut=cut))
        except SchemaMismatch as error:
            what = f"does not fit the schema {response_format.name!r}"
            if cut:
                what = f"was cut off (finish_reason {reason!r}; max_tokens sets its length)"
            raise SvcOutputError(
                f"The answer {what} (.problems says why, .raw has the answer)",
                problems=error.problems,
                raw=text,
                usage=getattr(message, "usage_metadata", None),
                finish_reason=reason if cut else None,
            ) from None

    async def aparse_result(
        self, result: list[Generation], *, partial: bool = False
    ) -> Any:
        """The same, in a thread of LangChain's where the text is long."""
        _, text = self._message_and_text(result)
        if len(text) <= LONG:
            return self.parse_result(result)
        return await super().aparse_result(result, partial=partial)

    def _message_and_text(self, result: list[Generation]) -> tuple[BaseMessage, str]:
        """The message of a generation, and what in it is the answer."""
        generation = result[0]
        if not isinstance(generation, ChatGeneration):
            return AIMessage(generation.text), generation.text
        message = generation.message
        if self.response_format.as_call and isinstance(message, AIMessage):
            for call in message.tool_calls:
                if call["name"] == self.response_format.name:
                    return message, render_json(call["args"])
        return message, message.additional_kwargs.get(FINAL) or message.text

    def _transform(self, input: Iterator[str | BaseMessage]) -> Iterator[Any]:  # noqa: A002
        growing = _Growing(partial=self.response_format.partial)
        for piece in input:
            yield from growing.add_piece(piece)
        yield from growing.if_new(self.parse_result(growing.whole))

    async def _atransform(
        self,
        input: AsyncIterator[str | BaseMessage],  # noqa: A002  # LangChain's name
    ) -> AsyncIterator[Any]:
        growing = _Growing(partial=self.response_format.partial)
        async for piece in input:
            for value in growing.add_piece(piece):
                yield value
        for value in growing.if_new(await self.aparse_result(growing.whole)):
            yield value


class _Growing:
    """The object of a stream as far as it has come, each stage once; then the checked one."""

    def __init__(self, *, partial: bool) -> None:
        self._partial = partial
        self._message: BaseMessage | None = None
        self._parser = _json.PartialObject()
        self._last: object = None

    def add_piece(self, piece: str | BaseMessage) -> list[object]:
        """Add a piece of the stream; the object, if the piece adds to it."""
        message = piece
        if isinstance(message, str):
            message = AIMessageChunk(content=message)
        if isinstance(self._message, BaseMessageChunk):
            self._message += message
        else:
            self._message = message
        if not self._partial:
            return []
        value = self._parser.parse_chunk(message.text)
        return self.if_new(value) if value else []

    @property
    def whole(self) -> list[Generation]:
        """The whole stream, as the parser takes it."""
        return [ChatGeneration(message=self._message or AIMessage(""))]

    def if_new(self, value: object) -> list[object]:
        """The object, unless it is the last that was yielded."""
        if value == self._last:
            return []
        self._last = value
        return [value]
