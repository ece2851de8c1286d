"""An error of the service keeps its own words, and none that a user, a tool or the model wrote.

Whatever an agent is asked, the words of its instructions for tools and objects are not the user's.
"""

from __future__ import annotations

import asyncio
import json
import string
from typing import Annotated

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from peers import answering, listed
from pydantic import AfterValidator, create_model
from share import fewer

from langchain_svc import ChatSvc, Pseudonyms, SvcError

SENTENCES = [  # of services that people use
    "You exceeded your current quota, please check your plan and billing details",
    "Your account is suspended: unpaid invoice INV-2231. Contact billing@example.com",
    "Your account is not active, please check your billing details on our website",
    "Your credit balance is too low. Go to Plans & Billing to upgrade or purchase credits",
    "You have no credits left: add a payment method and call the API again",
    "This organization has been disabled",
    "Billing hard limit has been reached",
    "Rate limit reached for requests. Limit: 3 / min. Current: 4 / min. Try again in 20s",
    "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead",
    "Unrecognized request argument supplied: functions",
    "'temperature' does not support 0.2 with this model. Only the default (1) value is supported",
    "tools.0.custom.input_schema: JSON schema is invalid. It must match draft 2020-12",
    "Invalid schema for function: 'items' and 'properties' need a description and a title",
    "tool_calls must be followed by tool messages responding to each tool result block",
    "messages: first message must use the user role, then the instructions that follow it",
    "The script has no answer",
    "The server is overloaded or not ready yet. That model is being loaded in plain form",
    "Nothing is wrong with what you wrote: a real mark stands inside every data line",
]
# No vowels, so that no word of a sentence stands inside one of the user's.
LETTERS = "".join(sorted({*string.ascii_letters} - {*"aeiouyAEIOUY"})) + "ßłñçжд漢字"
WORDS = st.lists(
    st.text(LETTERS, min_size=3, max_size=9).map("zq".__add__),
    min_size=50,
    max_size=50,
    unique=True,
)
MODEL = {"api_key": "sk-test-12345678", "max_retries": 0}


# -- what users give, with a word of theirs in each place of it -------------------------------------


def tool(word):
    field = {"type": "string", "title": next(word), "description": next(word)}
    field |= {"enum": [next(word)], "default": next(word)}
    shared = {next(word): {"type": "object", "properties": {next(word): {"type": "integer"}}}}
    parameters = {"type": "object", "properties": {next(word): field}, "$defs": shared}
    parameters |= {"additionalProperties": False, "required": [], "title": next(word)}
    function = {"name": next(word), "description": next(word), "parameters": parameters}
    return {"type": "function", "function": function}


def conversation(word):
    arguments = {next(word): next(word), "list": [{next(word): f"{next(word)}\n{next(word)}"}]}
    name = next(word)
    halves = [{"type": "text", "text": text} for text in ("Zqmeyer", f"ling {next(word)}")]
    broken = {"name": next(word), "args": f'{{"a": {next(word)}', "id": "c2", "error": None}
    return [
        SystemMessage(f"Be {next(word)}"),
        HumanMessage([next(word), {"type": "text", "text": next(word)}], name=next(word)),
        HumanMessage([{"type": next(word), next(word): [{next(word): next(word)}]}]),
        AIMessage(
            halves,
            tool_calls=[{"name": name, "args": arguments, "id": "c1"}],
            invalid_tool_calls=[{"type": "invalid_tool_call", **broken}],
        ),
        ToolMessage(f"[ {next(word)}", tool_call_id="c1"),
        ToolMessage(next(word), tool_call_id="c2", name=next(word), status="error"),
        ToolMessage([{next(word): {next(word): next(word)}}], tool_call_id="c3"),
        HumanMessage(next(word)),
    ]


def refusing(word):
    """A class whose check says more than it was asked, as one that looks into a database may."""
    reason = f"the one of {next(word)} is {next(word)}"

    def refuse(value):
        raise ValueError(reason)

    return create_model("Report", text=(Annotated[str, AfterValidator(refuse)], ...))


KINDS = {
    "plain": lambda model, word: model,
    "tools": lambda model, word: model.bind_tools([tool(word), tool(word)]),
    "a call required": lambda model, word: model.bind_tools([tool(word)], tool_choice="any"),
    "one call required": lambda model, word: model.bind_tools(
        [offer := tool(word)], tool_choice=offer["function"]["name"], parallel_tool_calls=False
    ),
    "fenced": lambda model, word: model.bind_tools([tool(word)], tool_format="fenced"),
    "object": lambda model, word: model.with_structured_output(tool(word)["function"]),
    "bool": lambda model, word: model.with_structured_output(bool),
    "list": lambda model, word: model.with_structured_output(list[str], method="function_calling"),
    "json mode": lambda model, word: model.with_structured_output(None, method="json_mode"),
    "tools and an object": lambda model, word: model.bind_tools(
        [tool(word)], response_format=refusing(word)
    ),
    "a check": lambda model, word: model.with_structured_output(refusing(word)),
    "a further field": lambda model, word: model.bind(
        extra_body={"metadata": {next(word): [next(word), 4711]}}
    ),
    "a system turn": lambda model, word: model.model_copy(
        update={"system_role": "system"}
    ).bind_tools([tool(word)]),
    "one text": lambda model, word: ChatSvc(
        interface="general",
        base_url="https://svc.example",
        http_client=model.http_client,
        http_async_client=model.http_async_client,
        **MODEL,
    ).bind_tools([tool(word)]),
}
ANSWERS = [  # before the error: asked again, and told to go on
    lambda word: [],
    lambda word: [(f'{{"text": "{next(word)}"}}', "stop")],
    lambda word: [(f'```json\n{{"name": "{next(word)}"', "length"), (next(word), "length")],
    lambda word: [
        (f"I think {next(word)}: {{", "stop"),
        (f'```json\n{{"{next(word)}": ', "length"),
    ],
]


class Failing:
    """A service that gives these answers, and then an error with all the words that it was sent."""

    def __init__(self, answers, words, sentence, status):
        self.answers = list(answers)
        self.words = words
        self.sentence = sentence
        self.status = status
        self.quoted = []

    def __call__(self, request):
        if not self.answers:
            self.quoted = [word for word in self.words if word in request.content.decode()]
            message = f"{', '.join(self.quoted)}; {self.sentence}; {' '.join(self.quoted)}"
            error = {"message": message, "type": self.quoted[-1], "code": f"a_{self.quoted[0]}"}
            return httpx.Response(self.status, json={"error": error})
        text, reason = self.answers.pop(0)
        choice = {"index": 0, "message": {"content": text}, "finish_reason": reason}
        if json.loads(request.content).get("stream"):
            choice["delta"] = choice.pop("message")
            line = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n"
            return httpx.Response(200, text=line, headers={"content-type": "text/event-stream"})
        return httpx.Response(200, json={"choices": [choice]})


WAYS = {
    "invoke": lambda runnable, asked: runnable.invoke(asked),
    "stream": lambda runnable, asked: [*runnable.stream(asked)],
    "ainvoke": lambda runnable, asked: asyncio.run(runnable.ainvoke(asked)),
    "astream": lambda runnable, asked: asyncio.run(listed(runnable.astream(asked))),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=fewer(40))
@given(
    words=WORDS,
    sentence=st.sampled_from(SENTENCES),
    answers=st.sampled_from(ANSWERS),
    way=st.sampled_from([*WAYS]),
    status=st.sampled_from([400, 402, 429, 500, 200]),
    pseudonyms=st.booleans(),
)
def test_errors_keep_their_words_and_none_of_the_users(
    kind, words, sentence, answers, way, status, pseudonyms
):
    word = iter(words)
    messages = conversation(word)
    service = Failing(answers(word), [*words, "Zqmeyerling"], sentence, status)
    model = ChatSvc(
        base_url_v1="https://svc.example/v1",
        on_cut="continue",
        pseudonyms=Pseudonyms(names=["Ann Meyer"]) if pseudonyms else None,
        **MODEL,
        **answering(service),
    )
    runnable = KINDS[kind](model, word)
    try:
        WAYS[way](runnable, messages)
    except SvcError as error:
        text = f"{error} {error!r} {vars(error)}"
    else:
        assert not service.quoted
        return
    if service.quoted:
        assert sentence in text
    for quote in service.quoted:
        assert quote.casefold() not in text.casefold()
