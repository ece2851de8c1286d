"""What an engineer relies on who swaps another chat model for ChatSvc.

Everything goes over real sockets to a sandbox, whose request log says what was really sent.
"""

import asyncio
import copy
import json
import multiprocessing
import pickle
import time
from concurrent.futures import ProcessPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain.chat_models import base as langchain_chat_models
from langchain.chat_models import init_chat_model
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.exceptions import ModelAuthenticationError, ModelError
from langchain_core.globals import set_llm_cache
from langchain_core.language_models.chat_model_stream import ChatModelStream
from langchain_core.load import dumps, loads
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    trim_messages,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.rate_limiters import BaseRateLimiter, InMemoryRateLimiter
from langchain_core.runnables import (
    ConfigurableField,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tracers.base import BaseTracer
from langchain_tests.utils.stream_lifecycle import assert_valid_event_stream
from langgraph.graph import END, START, MessagesState, StateGraph
from peers import thawed
from pydantic import SecretStr

import langchain_svc
from langchain_svc import (
    ChatSvc,
    SvcAuthenticationError,
    SvcConnectionError,
    SvcRequestError,
    SvcServerError,
    SvcTimeoutError,
)
from langchain_svc.sandbox import Fault

KEY = "sandbox-key"
UNREACHABLE = "http://127.0.0.1:9/v1"


def sent(sandbox):
    """The bodies that arrived, in order."""
    return [request.json for request in sandbox.requests]


def said(text):
    """What the sandbox shall answer, whatever it is asked."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    return Fault(body={"model": "svc-turbo", "choices": [choice]})


def user(text):
    return {"role": "user", "content": text}


# -- chains -----------------------------------------------------------------------------------------

PROMPT = ChatPromptTemplate.from_messages(
    [("system", "You answer in {language}."), ("human", "{question}")]
)
QUESTION = {"language": "French", "question": "What is the sea?"}
FOLDED = [user("<system_message>\nYou answer in French.\n</system_message>\n\nWhat is the sea?")]


def test_chain(sandbox, chat):
    text = (PROMPT | chat | StrOutputParser()).invoke(QUESTION)
    assert isinstance(text, str)
    assert text
    assert sent(sandbox) == [{"model": "svc-turbo", "messages": FOLDED}]


def test_chain_streams_pieces_that_add_up(sandbox, chat):
    chain = PROMPT | chat.model_copy(update={"merge_events": False}) | StrOutputParser()
    pieces = list(chain.stream(QUESTION))
    assert len([piece for piece in pieces if piece]) > 2
    assert "".join(pieces) == chain.invoke(QUESTION)
    assert [body.get("stream") for body in sent(sandbox)] == [True, None]


async def test_chain_asynchronously(sandbox, chat):
    chain = PROMPT | chat | StrOutputParser()
    pieces = [piece async for piece in chain.astream(QUESTION)]
    assert "".join(pieces) == await chain.ainvoke(QUESTION)
    assert [body["messages"] for body in sent(sandbox)] == [FOLDED, FOLDED]


def test_parallel_branches(sandbox, chat):
    both = RunnableParallel(
        short=chat.bind(max_tokens=3) | StrOutputParser(),
        long=chat | StrOutputParser(),
        asked=RunnablePassthrough(),
    )
    came = both.invoke("Tell me of the sea")
    assert came["asked"] == "Tell me of the sea"
    assert came["long"].startswith(came["short"])
    assert sorted(body.get("max_tokens", 0) for body in sent(sandbox)) == [0, 3]


def test_a_function_joins_a_chain(chat, sandbox):
    chain = RunnableLambda(str.upper) | chat | (lambda message: message.response_metadata)
    assert chain.invoke("hello")["model_name"] == "svc-turbo"
    assert sent(sandbox)[0]["messages"] == [user("HELLO")]


# -- when something fails ---------------------------------------------------------------------------


@pytest.fixture
def once(chat):
    """A model that tries once."""
    return chat.model_copy(update={"max_retries": 0})


def test_with_retry(sandbox, once):
    sandbox.faults = [Fault(status=503, times=2)]
    patient = once.with_retry(wait_exponential_jitter=False, stop_after_attempt=3)
    assert patient.invoke("Hello").content
    assert [request.status for request in sandbox.requests] == [503, 503, 200]


def test_with_retry_of_our_errors_only(sandbox, once):
    sandbox.faults = [Fault(status=404)]
    patient = once.with_retry(
        retry_if_exception_type=(SvcServerError,), wait_exponential_jitter=False
    )
    with pytest.raises(langchain_svc.SvcNotFoundError):
        patient.invoke("Hello")
    assert len(sandbox.requests) == 1


@pytest.mark.parametrize("handled", [(Exception,), (SvcAuthenticationError,), (ModelError,)])
def test_with_fallbacks(sandbox, chat, handled):
    wrong = ChatSvc(**{**sandbox.v1, "api_key": "wrong"}, max_retries=0)
    safe = wrong.with_fallbacks([chat.bind(model="svc-pro")], exceptions_to_handle=handled)
    assert safe.invoke("Hello").response_metadata["model_name"] == "svc-pro"
    assert [request.status for request in sandbox.requests] == [401, 200]


def test_fallback_is_only_for_what_it_names(sandbox, chat):
    nowhere = ChatSvc(api_key=KEY, base_url_v1=UNREACHABLE, max_retries=0)
    for_keys = nowhere.with_fallbacks([chat], exceptions_to_handle=(ModelAuthenticationError,))
    with pytest.raises(SvcConnectionError):
        for_keys.invoke("Hello")
    assert nowhere.with_fallbacks([chat]).invoke("Hello").content
    assert len(sandbox.requests) == 1


async def test_fallbacks_stream(sandbox, once, chat):
    safe = once.with_fallbacks([chat])
    sandbox.faults = [Fault(status=500, times=1)]
    text = "".join(chunk.content for chunk in safe.stream("Hello"))
    assert text
    sandbox.faults = [Fault(status=500, times=1)]
    assert text == "".join([chunk.content async for chunk in safe.astream("Hello")])
    assert [request.status for request in sandbox.requests] == [500, 200, 500, 200]


# -- many at once -----------------------------------------------------------------------------------

QUESTIONS = [f"Question {number}" for number in range(12)]


def questions(sandbox):
    return sorted(body["messages"][0]["content"] for body in sent(sandbox))


def test_batch_keeps_the_order(sandbox, chat):
    answers = chat.batch(QUESTIONS, config={"max_concurrency": 4})
    assert [answer.content for answer in answers] == [
        chat.invoke(question).content for question in QUESTIONS
    ]
    assert questions(sandbox) == sorted(QUESTIONS * 2)


async def test_abatch_keeps_the_order(sandbox, chat):
    answers = await chat.abatch(QUESTIONS, config={"max_concurrency": 4})
    assert [answer.content for answer in answers] == [
        chat.invoke(question).content for question in QUESTIONS
    ]


BAD = [HumanMessage([{"type": "image", "base64": "aGk=", "mime_type": "image/png"}])]


@pytest.mark.parametrize("way", ["batch", "abatch"])
async def test_batch_returns_exceptions_in_their_places(sandbox, chat, way):
    inputs = ["one", BAD, "three"]
    if way == "batch":
        came = chat.batch(inputs, return_exceptions=True)
    else:
        came = await chat.abatch(inputs, return_exceptions=True)
    assert [type(each) for each in came] == [AIMessage, SvcRequestError, AIMessage]
    assert questions(sandbox) == ["one", "three"]


def test_batch_raises_the_first_exception(chat):
    with pytest.raises(SvcRequestError):
        chat.batch(["one", BAD, "three"])


async def test_batch_as_completed(sandbox, chat):
    came = dict(chat.batch_as_completed(QUESTIONS))
    async for index, answer in chat.abatch_as_completed(QUESTIONS):
        assert answer.content == came[index].content
    assert sorted(came) == list(range(len(QUESTIONS)))
    assert came[3].content == chat.invoke(QUESTIONS[3]).content


def test_batch_with_a_config_for_each(sandbox, chat):
    seen = [Seen(), Seen()]
    chat.batch(["one", "two"], config=[{"callbacks": [handler]} for handler in seen])
    assert [len(handler.starts) for handler in seen] == [1, 1]


# -- one call is not like the other -----------------------------------------------------------------


class Seen(BaseCallbackHandler):
    """Keeps what LangChain tells about runs."""

    def __init__(self):
        self.starts, self.tokens, self.ends, self.errors = [], [], [], []

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.starts.append({"serialized": serialized, "messages": messages, **kwargs})

    def on_llm_new_token(self, token, **kwargs):
        self.tokens.append(token)

    def on_llm_end(self, response, **kwargs):
        self.ends.append(response)

    def on_llm_error(self, error, **kwargs):
        self.errors.append(error)


def test_with_config(chat):
    seen = Seen()
    named = chat.with_config(
        run_name="the sea", tags=["blue"], metadata={"depth": 11}, callbacks=[seen]
    )
    named.invoke("Hello", config={"tags": ["salty"]})
    (start,) = seen.starts
    assert start["name"] == "the sea"
    assert {"blue", "salty"} <= set(start["tags"])
    assert start["metadata"]["depth"] == 11


def test_configurable_fields(sandbox, chat):
    open_ = chat.configurable_fields(
        model=ConfigurableField(id="which"), temperature=ConfigurableField(id="heat")
    )
    first = open_.invoke("Hello")
    second = open_.invoke("Hello", config={"configurable": {"which": "svc-pro", "heat": 0.1}})
    assert first.response_metadata["model_name"] == "svc-turbo"
    assert second.response_metadata["model_name"] == "svc-pro"
    assert [(body["model"], body.get("temperature")) for body in sent(sandbox)] == [
        ("svc-turbo", None),
        ("svc-pro", 0.1),
    ]


def test_configurable_alternatives(sandbox, chat):
    open_ = chat.configurable_alternatives(
        ConfigurableField(id="model"),
        default_key="quick",
        thorough=chat.model_copy(update={"model": "svc-pro"}),
    )
    chain = PROMPT | open_
    chain.invoke(QUESTION)
    chain.with_config(configurable={"model": "thorough"}).invoke(QUESTION)
    assert [body["model"] for body in sent(sandbox)] == ["svc-turbo", "svc-pro"]


async def every_way(chat, question, **words):
    """The same call in all four ways; the texts that came."""
    streamed = [chunk.content for chunk in chat.stream(question, **words)]
    astreamed = [chunk.content async for chunk in chat.astream(question, **words)]
    return [
        chat.invoke(question, **words).content,
        (await chat.ainvoke(question, **words)).content,
        "".join(streamed),
        "".join(astreamed),
    ]


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ({}, {"temperature": 0.5, "max_tokens": 50}),
        ({"model": "svc-pro"}, {"model": "svc-pro", "temperature": 0.5, "max_tokens": 50}),
        ({"temperature": 0}, {"temperature": 0, "max_tokens": 50}),
        ({"temperature": 2}, {"temperature": 2, "max_tokens": 50}),
        ({"temperature": None}, {"max_tokens": 50}),
        ({"max_tokens": 7}, {"temperature": 0.5, "max_tokens": 7}),
        ({"max_tokens": None, "temperature": None}, {}),
        (
            {"timeout": 5, "deadline": 6.0, "max_retries": 0, "stop": ["zzz"]},
            {"temperature": 0.5, "max_tokens": 50},
        ),
    ],
    ids=str,
)
async def test_what_one_call_sets(sandbox, words, fields):
    body = {"model": "svc-turbo", "messages": [user("Hello")], **fields}
    async with ChatSvc(**sandbox.v1, temperature=0.5, max_tokens=50) as model:
        await every_way(model, "Hello", **words)
        await every_way(model.bind(**words), "Hello")
    streaming = {**body, "stream": True}
    assert sent(sandbox) == 2 * [streaming, streaming, body, body]


async def test_stop_for_one_call(sandbox, chat):
    whole = chat.invoke("Hello").content
    stop = whole[5:8]
    before = whole[: whole.index(stop)]
    assert await every_way(chat, "Hello", stop=[stop]) == [before] * 4
    assert await every_way(chat.bind(stop=[stop]), "Hello") == [before] * 4
    strict = chat.model_copy(update={"stop": [stop]})
    assert await every_way(strict, "Hello") == [before] * 4
    assert await every_way(strict, "Hello", stop=[]) == [whole] * 4
    assert await every_way(strict, "Hello", stop="") == [whole] * 4
    assert ChatSvc(**sandbox.v1, stop="").invoke("Hello").content == whole
    assert not any("stop" in body for body in sent(sandbox))


async def test_timeout_for_one_call(sandbox, once):
    sandbox.faults = [Fault(delay=3)]
    for word in ("timeout", "deadline"):
        began = time.monotonic()
        with pytest.raises(SvcTimeoutError):
            once.invoke("Hello", **{word: 0.1})
        with pytest.raises(SvcTimeoutError):
            await once.ainvoke("Hello", **{word: 0.1})
        assert time.monotonic() - began < 2


def test_max_retries_for_one_call(sandbox, chat):
    sandbox.faults = [Fault(status=503, headers={"Retry-After": "0"})]
    with pytest.raises(SvcServerError) as caught:
        chat.invoke("Hello", max_retries=1)
    assert caught.value.retries == 1
    assert len(sandbox.requests) == 2


UNKNOWN = [
    ({"temprature": 0}, "did you mean 'temperature'"),
    ({"max_token": 5}, "did you mean 'max_tokens'"),
    ({"frequency_penalty": 0.5}, "extra_body="),
    ({"zzz": {}}, "known are: "),
]


@pytest.mark.parametrize(("words", "hint"), UNKNOWN)
async def test_an_unknown_word_is_no_setting(sandbox, chat, words, hint):
    with pytest.raises(ValueError, match=hint):
        ChatSvc(**sandbox.v1, **words)
    with pytest.raises(SvcRequestError, match=hint):
        chat.invoke("Hello", **words)
    with pytest.raises(SvcRequestError, match=hint):
        await chat.ainvoke("Hello", **words)
    with pytest.raises(SvcRequestError, match=hint):
        list(chat.stream("Hello", **words))
    with pytest.raises(SvcRequestError, match=hint):
        _ = [chunk async for chunk in chat.bind(**words).astream("Hello")]
    assert sandbox.requests == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ({"api_base": UNREACHABLE}, "'base_url_v1'"),
        ({"openai_api_key": KEY}, "'api_key'"),
    ],
)
def test_words_of_other_chat_models(sandbox, words, hint):
    with pytest.raises(ValueError, match=f"did you mean {hint}") as caught:
        ChatSvc(**sandbox.v1, **words)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("word", "value", "complaint"),
    [
        ("temperature", 2.1, "from 0 to 2, not 2.1"),
        ("temperature", -0.1, "from 0 to 2, not -0.1"),
        ("temperature", "warm", "a number"),
        ("temperature", True, "a number"),
        ("temperature", float("nan"), "a number"),
        ("max_tokens", 0, "a whole number from 1"),
        ("max_tokens", 1.5, "a whole number from 1"),
        ("max_retries", -1, "a whole number from 0"),
        ("timeout", 0, "a number above 0"),
        ("deadline", float("inf"), "a number above 0"),
        ("model", "", "list_models"),
        ("model", " svc-pro", "list_models"),
        ("stop", [""], "none of them empty"),
        ("stop", 3, "a list of texts"),
    ],
)
def test_a_setting_out_of_its_bounds(sandbox, chat, word, value, complaint):
    with pytest.raises(ValueError, match=complaint):
        ChatSvc(**sandbox.v1, **{word: value})
    with pytest.raises(SvcRequestError, match=complaint):
        chat.invoke("Hello", **{word: value})
    assert sandbox.requests == []


# -- streams and events -----------------------------------------------------------------------------


async def test_invoke_with_streaming_reads_a_stream(sandbox, chat):
    streaming = chat.model_copy(update={"streaming": True})
    seen = Seen()
    answers = [
        streaming.invoke("Hello", config={"callbacks": [seen]}),
        await streaming.ainvoke("Hello"),
        chat.invoke("Hello", stream=True),
    ]
    assert all(body["stream"] for body in sent(sandbox))
    assert seen.tokens
    plain = chat.invoke("Hello")
    for answer in answers:
        assert type(answer) is AIMessage
        assert answer.content == plain.content
        assert answer.usage_metadata == plain.usage_metadata
        assert answer.response_metadata["finish_reason"] == "stop"
        assert answer.response_metadata["model_name"] == "svc-turbo"


async def test_disable_streaming(sandbox, chat):
    whole = chat.model_copy(update={"disable_streaming": True})
    assert len(list(whole.stream("Hello"))) <= 2
    assert [chunk async for chunk in whole.astream("Hello")]
    assert not any("stream" in body for body in sent(sandbox))


async def test_astream_events_v2(chat):
    events = [event async for event in (PROMPT | chat).astream_events(QUESTION, version="v2")]
    ours = [event for event in events if event["event"].startswith("on_chat_model")]
    kinds = [event["event"].removeprefix("on_chat_model_") for event in ours]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert set(kinds[1:-1]) == {"stream"}
    pieces = [event["data"]["chunk"].content for event in ours[1:-1]]
    final = ours[-1]["data"]["output"]
    assert "".join(pieces) == final.content
    assert final.usage_metadata["output_tokens"] > 0
    assert ours[0]["metadata"]["ls_provider"] == "svc"


async def test_events_v3(chat):
    stream = chat.stream_events("Hello", version="v3")
    assert isinstance(stream, ChatModelStream)
    events = list(stream)
    astream = await chat.astream_events("Hello", version="v3")
    aevents = [event async for event in astream]
    for found, output in ((events, stream.output), (aevents, await astream.output)):
        assert_valid_event_stream(found)
        assert found[0]["metadata"] == {"provider": "svc", "model": "svc-turbo"}
        deltas = [e["delta"]["text"] for e in found if e["event"] == "content-block-delta"]
        assert "".join(deltas) == output.text == chat.invoke("Hello").content
        assert found[-1]["usage"] == output.usage_metadata
        assert output.usage_metadata["output_tokens"] > 0
        assert output.response_metadata["finish_reason"] == "stop"


async def test_v1_content_blocks(sandbox, chat):
    blocks = chat.model_copy(update={"output_version": "v1"})
    plain = chat.invoke("Hello").content
    whole = None
    for chunk in blocks.stream("Hello"):
        whole = chunk if whole is None else whole + chunk
    for message in (blocks.invoke("Hello"), await blocks.ainvoke("Hello"), whole):
        assert [block["type"] for block in message.content] == ["text"]
        assert message.text == plain
        assert message.response_metadata["output_version"] == "v1"
    # What came as blocks is said again as text.
    chat.invoke([HumanMessage("Hello"), blocks.invoke("Hello"), HumanMessage("And?")])
    assert sent(sandbox)[-1]["messages"][1] == {"role": "assistant", "content": plain}


def test_chunks_carry_usage_once(chat):
    chunks = list(chat.stream("Hello"))
    assert [bool(chunk.usage_metadata) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert [chunk.chunk_position for chunk in chunks] == [None] * (len(chunks) - 1) + ["last"]
    assert all(isinstance(chunk, AIMessageChunk) for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == 1


# -- caches, limits, histories ----------------------------------------------------------------------


async def test_cache(sandbox, chat):
    cached = chat.model_copy(update={"cache": InMemoryCache()})
    first = cached.invoke("Hello")
    again = [cached.invoke("Hello"), await cached.ainvoke("Hello"), *cached.batch(["Hello"] * 2)]
    assert {answer.content for answer in again} == {first.content}
    assert len(sandbox.requests) == 1
    for other in ({"temperature": 0.1}, {"model": "svc-pro"}, {"stop": ["zzz"]}):
        cached.invoke("Hello", **other)
    assert len(sandbox.requests) == 4
    chat.invoke("Hello")
    assert len(sandbox.requests) == 5


def test_global_cache(sandbox, chat):
    set_llm_cache(InMemoryCache())
    try:
        assert chat.invoke("Hello").content == chat.invoke("Hello").content
        assert len(sandbox.requests) == 1
        chat.model_copy(update={"cache": False}).invoke("Hello")
        assert len(sandbox.requests) == 2
    finally:
        set_llm_cache(None)


class Gate(BaseRateLimiter):
    """Counts who passes."""

    def __init__(self):
        self.passed = []

    def acquire(self, *, blocking=True):
        self.passed.append("sync")
        return True

    async def aacquire(self, *, blocking=True):
        self.passed.append("async")
        return True


async def test_rate_limiter(sandbox):
    gate = Gate()
    with ChatSvc(**sandbox.v1, rate_limiter=gate) as model:
        await every_way(model, "Hello")
        model.batch(["one", "two"])
        await model.aclose()
    assert sorted(gate.passed) == ["async"] * 2 + ["sync"] * 4


def test_langchains_own_rate_limiter(sandbox):
    limiter = InMemoryRateLimiter(
        requests_per_second=20, check_every_n_seconds=0.01, max_bucket_size=1
    )
    with ChatSvc(**sandbox.v1, rate_limiter=limiter) as model:
        began = time.monotonic()
        model.batch(QUESTIONS[:5])
    assert time.monotonic() - began > 0.18


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_message_history(sandbox, chat):
    histories = {}
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("past"), ("human", "{said}")])
    talk = RunnableWithMessageHistory(
        prompt | chat,
        lambda session_id: histories.setdefault(session_id, InMemoryChatMessageHistory()),
        input_messages_key="said",
        history_messages_key="past",
    )
    ann, bob = ({"configurable": {"session_id": name}} for name in ("ann", "bob"))
    first = talk.invoke({"said": "I am Ann"}, config=ann)
    talk.invoke({"said": "I am Bob"}, config=bob)
    talk.invoke({"said": "Who am I?"}, config=ann)
    assert sent(sandbox)[1]["messages"] == [user("I am Bob")]
    assert sent(sandbox)[2]["messages"] == [
        user("I am Ann"),
        {"role": "assistant", "content": first.content},
        user("Who am I?"),
    ]


def test_trim_messages_counts_with_the_model(sandbox, chat):
    talk = [SystemMessage("Be brief.")]
    for number in range(20):
        talk += [HumanMessage(f"Question number {number}"), AIMessage(f"Answer number {number}")]
    talk.append(HumanMessage("And now?"))
    limit = 60
    trimmer = trim_messages(
        max_tokens=limit,
        token_counter=chat,
        strategy="last",
        include_system=True,
        start_on="human",
    )
    kept = trimmer.invoke(talk)
    assert 3 < len(kept) < 20
    assert kept[0].content == "Be brief."
    assert kept[-1].content == "And now?"
    assert chat.get_num_tokens_from_messages(kept) <= limit
    (trimmer | chat).invoke(talk)
    assert sent(sandbox)[0]["messages"][0]["content"].startswith(
        "<system_message>\nBe brief.\n</system_message>\n\nQuestion number"
    )


# -- agents and graphs ------------------------------------------------------------------------------


@pytest.fixture
def registered(monkeypatch):
    """`register()` is undone after the test."""
    table = dict(langchain_chat_models._BUILTIN_PROVIDERS)
    monkeypatch.setattr(langchain_chat_models, "_BUILTIN_PROVIDERS", table)
    langchain_svc.register()
    langchain_svc.register()


def test_init_chat_model_does_not_know_us_by_itself():
    with pytest.raises(ValueError, match="svc"):
        init_chat_model("svc:svc-pro")


@pytest.mark.usefixtures("registered")
def test_init_chat_model(sandbox, monkeypatch):
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    with init_chat_model("svc:svc-pro", temperature=0) as model:
        assert type(model) is ChatSvc
        assert model.invoke("Hello").response_metadata["model_name"] == "svc-pro"
    late = init_chat_model(configurable_fields="any", model_provider="svc")
    late.invoke("Hello", config={"configurable": {"model": "svc-code", "max_tokens": 5}})
    assert [
        (body["model"], body.get("temperature"), body.get("max_tokens")) for body in sent(sandbox)
    ] == [("svc-pro", 0, None), ("svc-code", None, 5)]


async def test_agent_without_tools(sandbox, chat):
    agent = create_agent(chat, tools=[], system_prompt="You are a sailor.")
    state = agent.invoke({"messages": [user("Hello")]})
    state = await agent.ainvoke({"messages": [*state["messages"], HumanMessage("And?")]})
    assert [type(message) for message in state["messages"]] == [
        HumanMessage,
        AIMessage,
        HumanMessage,
        AIMessage,
    ]
    assert sent(sandbox)[1]["messages"] == [
        user("<system_message>\nYou are a sailor.\n</system_message>\n\nHello"),
        {"role": "assistant", "content": state["messages"][1].content},
        user("And?"),
    ]


@pytest.mark.usefixtures("registered")
def test_agent_by_name(sandbox, monkeypatch):
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    agent = create_agent("svc:svc-pro", tools=[])
    answer = agent.invoke({"messages": [user("Hello")]})["messages"][-1]
    assert answer.response_metadata["model_name"] == "svc-pro"
    assert len(sandbox.requests) == 1


async def test_graph_streams_tokens(sandbox, chat):
    eager = chat.model_copy(update={"merge_events": False})

    def answer(state):
        return {"messages": [eager.invoke(state["messages"])]}

    async def aanswer(state):
        return {"messages": [await eager.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", RunnableLambda(answer, aanswer))
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    graph = graph.compile()
    given = {"messages": [user("Tell me of the sea")]}
    pieces = [piece for piece, _ in graph.stream(given, stream_mode="messages")]
    apieces = [piece async for piece, _ in graph.astream(given, stream_mode="messages")]
    assert all(body["stream"] for body in sent(sandbox))
    whole = graph.invoke(given)["messages"][-1]
    for found in (pieces, apieces):
        assert len(found) > 3
        assert all(isinstance(piece, AIMessageChunk) for piece in found)
        assert "".join(piece.content for piece in found) == whole.content
        assert [bool(piece.usage_metadata) for piece in found].count(True) == 1


# -- copies, other processes, saved models ----------------------------------------------------------


def test_pickled_to_another_process(sandbox, chat, monkeypatch):
    monkeypatch.setenv("SVC_API_KEY", sandbox.v1["api_key"])  # a pickle carries no key
    here = chat.invoke("Hello")  # so that there are connections, which must stay behind
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        there = pool.submit(ChatSvc.invoke, chat, "Hello").result(60)
        moved = pool.submit(ChatSvc.with_config, chat, tags=["moved"]).result(60)
    assert there.content == here.content
    assert there.usage_metadata == here.usage_metadata
    assert moved.invoke("Hello").content == here.content
    mine, theirs, *_ = [request.client_port for request in sandbox.requests]
    assert mine != theirs


def test_errors_come_back_from_another_process(sandbox):
    with ChatSvc(**{**sandbox.v1, "api_key": "wrong"}) as model:
        with pytest.raises(SvcAuthenticationError) as caught:
            model.invoke("Hello")
        error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is SvcAuthenticationError
    assert vars(error) == vars(caught.value)
    assert str(error) == str(caught.value)


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        ChatSvc.model_copy,
        lambda model: model.model_copy(deep=True),
        thawed,
        lambda model: copy.deepcopy(PROMPT | model).last,
    ],
)
def test_copies_work_and_are_their_own(sandbox, chat, copied):
    chat.invoke("Hello")
    other = copied(chat)
    other.temperature = 0.25
    assert other.invoke("Hello").content == chat.invoke("Hello").content
    assert [body.get("temperature") for body in sent(sandbox)] == [None, 0.25, None]
    other.close()
    assert chat.invoke("Hello").content


def test_a_copy_with_another_proxy_uses_it(chat):
    chat.invoke("Hello")
    elsewhere = chat.model_copy(update={"proxy": SecretStr("http://127.0.0.1:9"), "max_retries": 0})
    with pytest.raises(SvcConnectionError):
        elsewhere.invoke("Hello")


def load(text):
    return loads(
        text,
        allowed_objects=[ChatSvc, *_PARTS_OF_A_CHAIN],
        valid_namespaces=["langchain_svc"],
        secrets_from_env=True,
    )


_PARTS_OF_A_CHAIN = [ChatPromptTemplate, *map(type, [*PROMPT.messages, PROMPT | str.upper])]
_PARTS_OF_A_CHAIN += [type(message.prompt) for message in PROMPT.messages]


def test_saved_and_loaded(sandbox, monkeypatch):
    with ChatSvc(**sandbox.v1, model="svc-pro", temperature=0.3, stop=["zzz"]) as model:
        text = dumps(model)
        answer = model.invoke("Hello")
    assert KEY not in text
    assert json.loads(text)["kwargs"]["api_key"] == {
        "lc": 1,
        "type": "secret",
        "id": ["SVC_API_KEY"],
    }
    monkeypatch.setenv("SVC_API_KEY", KEY)
    loaded = load(text)
    assert type(loaded) is ChatSvc
    assert loaded.model_dump() == model.model_dump()
    assert loaded.invoke("Hello").content == answer.content
    assert sent(sandbox)[0] == sent(sandbox)[1]


def test_a_chain_saved_and_loaded(sandbox, monkeypatch, chat):
    text = dumps(PROMPT | chat)
    assert KEY not in text
    monkeypatch.setenv("SVC_API_KEY", KEY)
    assert load(text).invoke(QUESTION).content == (PROMPT | chat).invoke(QUESTION).content


SECRETS = {
    "api_key": "sk-secret-of-the-key",
    "proxy": "http://user:secret-of-the-proxy@127.0.0.1:9",
    "default_headers": {"X-Team": "secret-of-the-header"},
}


@pytest.mark.parametrize(
    "shown", [repr, str, dumps, ChatSvc.model_dump_json, lambda model: str(model.model_dump())]
)
def test_no_secret_is_shown(monkeypatch, shown):
    given = ChatSvc(base_url_v1=UNREACHABLE, **SECRETS)
    monkeypatch.setenv("SVC_API_KEY", SECRETS["api_key"])
    found = ChatSvc(base_url_v1=UNREACHABLE)
    assert "secret-of" not in shown(given)
    assert "secret-of" not in shown(found)
    assert "secret-of" not in shown(given.bind(stop=["zzz"]).bound)


def test_without_key_or_address_a_model_says_what_to_set(monkeypatch):
    with pytest.raises(SvcRequestError, match=r"pass api_key=\.\.\. or set SVC_API_KEY"):
        ChatSvc(base_url_v1=UNREACHABLE).invoke("Hello")
    with pytest.raises(SvcRequestError, match=r"pass base_url_v1=\.\.\. or set SVC_BASE_URL_V1"):
        ChatSvc(api_key=KEY).invoke("Hello")


# -- what traces show -------------------------------------------------------------------------------


def test_langsmith_parameters(sandbox):
    model = ChatSvc(**sandbox.v1, model="svc-pro", temperature=0.5, max_tokens=50, stop=["zzz"])
    assert model._get_ls_params() == {
        "ls_provider": "svc",
        "ls_model_name": "svc-pro",
        "ls_model_type": "chat",
        "ls_temperature": 0.5,
        "ls_max_tokens": 50,
        "ls_stop": ["zzz"],
    }
    changed = model._get_ls_params(stop=["yyy"], model="svc-code", temperature=0, max_tokens=5)
    assert changed["ls_model_name"] == "svc-code"
    assert changed["ls_temperature"] == 0
    assert changed["ls_max_tokens"] == 5
    assert changed["ls_stop"] == ["yyy"]
    bare = ChatSvc(**sandbox.v1)._get_ls_params()
    assert set(bare) == {"ls_provider", "ls_model_name", "ls_model_type"}


class Recorder(BaseTracer):
    """A tracer that keeps whole runs, as LangSmith would get them."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def _persist_run(self, run):
        self.kept.append(run)


async def test_traces_hold_no_key(sandbox, chat):
    recorder = Recorder()
    config = {"callbacks": [recorder]}
    key = "sk-a-key-that-is-wrong"
    wrong = ChatSvc(
        **{**sandbox.v1, "api_key": key}, max_retries=0, default_headers={"X-Team": "sk-team"}
    )
    (PROMPT | chat).invoke(QUESTION, config=config)
    await chat.ainvoke("Hello", temperature=0.1, config=config)
    list(chat.stream("Hello", config=config))
    with pytest.raises(SvcAuthenticationError):
        wrong.invoke("Hello", config=config)
    with pytest.raises(SvcAuthenticationError):
        _ = [chunk async for chunk in wrong.astream("Hello", config=config)]
    assert len(recorder.kept) == 5
    text = json.dumps([run.model_dump() for run in recorder.kept], default=str)
    for secret in (KEY, key, "sk-team", "Bearer"):
        assert secret not in text
    assert [bool(run.error) for run in recorder.kept] == [False] * 3 + [True] * 2
    assert all("SvcAuthenticationError" in run.error for run in recorder.kept[3:])


async def test_traces_name_what_was_called(chat):
    recorder = Recorder()
    words = {"model": "svc-pro", "temperature": 0.1, "stop": ["zzz"]}
    chat.invoke("Hello", **words, config={"callbacks": [recorder]})
    (run,) = recorder.kept
    metadata = run.extra["metadata"]
    assert metadata["ls_provider"] == "svc"
    assert metadata["ls_model_name"] == "svc-pro"
    assert metadata["ls_temperature"] == 0.1
    assert metadata["lc_versions"]["langchain-svc"] == langchain_svc.__version__
    params = run.extra["invocation_params"]
    assert {name: params[name] for name in words} == words
    assert params["_type"] == "svc-chat"


# -- what becomes of messages -----------------------------------------------------------------------

TEXT_BLOCKS = [{"type": "text", "text": "How "}, "deep is ", {"type": "text", "text": "it?"}]
THOUGHT = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Deep."}]


def assistant(text):
    return {"role": "assistant", "content": text}


def folded(system, text=""):
    said = f"<system_message>\n{system}\n</system_message>"
    return user(f"{said}\n\n{text}" if text else said)


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        ("Hello", [user("Hello")]),
        (["Hello"], [user("Hello")]),
        ([("system", "Be brief."), ("human", "Hello")], [folded("Be brief.", "Hello")]),
        ([{"role": "user", "content": "Hello"}], [user("Hello")]),
        ([SystemMessage("Be brief.")], [folded("Be brief.")]),
        (
            [SystemMessage("One."), SystemMessage("Two."), HumanMessage("Hello")],
            [folded("One.\n\nTwo.", "Hello")],
        ),
        (
            [
                HumanMessage("Hello"),
                AIMessage("Yes?"),
                SystemMessage("Be brief."),
                HumanMessage("So"),
            ],
            [user("Hello"), assistant("Yes?"), folded("Be brief.", "So")],
        ),
        ([HumanMessage("One"), HumanMessage("Two")], [user("One\n\nTwo")]),
        (
            [HumanMessage("Hello"), AIMessage("One"), AIMessage("Two"), HumanMessage("Go on")],
            [user("Hello"), assistant("One\n\nTwo"), user("Go on")],
        ),
        ([AIMessage("Welcome"), HumanMessage("Hello")], [assistant("Welcome"), user("Hello")]),
        (
            [HumanMessage("Hello", name="ann")],
            [user('<user_message name="ann">\nHello\n</user_message>')],
        ),
        (
            [HumanMessage("Hello", name="ann"), HumanMessage("Hi", name="bob")],
            [
                user(
                    '<user_message name="ann">\nHello\n</user_message>\n\n<user_message name="bob">\nHi\n</user_message>'
                )
            ],
        ),
        (
            [HumanMessage("Hello"), AIMessage("Yes?", name="helper"), HumanMessage("So")],
            [user("Hello"), assistant("Yes?"), user("So")],
        ),
        (
            [
                HumanMessage("Hello"),
                AIMessage("Yes?", name="a"),
                HumanMessage("So"),
                AIMessage("No.", name="b"),
            ],
            [user("Hello"), assistant("a: Yes?"), user("So"), assistant("b: No.")],
        ),
        ([HumanMessage(TEXT_BLOCKS)], [user("How \ndeep is \nit?")]),
        (
            [HumanMessage("How deep?"), AIMessage(THOUGHT), HumanMessage("And?")],
            [user("How deep?"), assistant("Deep."), user("And?")],
        ),
        ([HumanMessage("Hello"), AIMessage(""), HumanMessage("So")], [user("Hello\n\nSo")]),
        ([ChatMessage("Hello", role="user")], [user("Hello")]),
        ([ChatMessage("Brief.", role="developer"), HumanMessage("So")], [folded("Brief.", "So")]),
        (
            [HumanMessage("\u4f60\u597d \U0001f30a \u20ac")],
            [user("\u4f60\u597d \U0001f30a \u20ac")],
        ),
        ([HumanMessage("lone \ud800 surrogate")], [user("lone \ufffd surrogate")]),
        ([HumanMessage("  spaces and\nlines\n")], [user("  spaces and\nlines\n")]),
    ],
)
async def test_messages_on_the_wire(sandbox, chat, messages, turns):
    await every_way(chat, messages)
    assert [body["messages"] for body in sent(sandbox)] == [turns] * 4
    assert not any(request.unknown_fields for request in sandbox.requests)


def test_system_role_of_its_own(sandbox, chat):
    native = chat.model_copy(update={"system_role": "system"})
    native.invoke(
        [SystemMessage("One."), SystemMessage("Two."), HumanMessage("Hello"), HumanMessage("So")]
    )
    assert sent(sandbox)[0]["messages"] == [
        {"role": "system", "content": "One.\n\nTwo."},
        user("Hello\n\nSo"),
    ]


IMAGE_BLOCKS = [
    {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
    {"type": "image", "url": "https://example.invalid/cat.png"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
]


@pytest.mark.parametrize("block", IMAGE_BLOCKS, ids=["base64", "url", "openai"])
async def test_an_image_is_refused_with_a_way_out(sandbox, chat, block):
    message = HumanMessage([{"type": "text", "text": "A secret of mine"}, block])
    with pytest.raises(SvcRequestError, match=r"holds an image .* described") as caught:
        await chat.ainvoke([message])
    assert "A secret" not in str(caught.value)
    assert "aGk=" not in str(caught.value)
    assert sandbox.requests == []


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "nothing to send"),
        ([HumanMessage("")], "nothing to send"),
        ([HumanMessage([{"type": "audio", "base64": "aGk="}])], "type 'audio'"),
        ([HumanMessage([{"type": "file", "base64": "aGk="}])], "type 'file'"),
        ([ChatMessage("Hello", role="referee")], "role 'referee'"),
    ],
)
def test_what_cannot_be_said_is_refused(sandbox, chat, messages, complaint):
    with pytest.raises(SvcRequestError, match=complaint):
        chat.invoke(messages)
    with pytest.raises(SvcRequestError, match=complaint):
        list(chat.stream(messages))
    assert sandbox.requests == []


def test_what_the_service_says_comes_through(sandbox, chat):
    sandbox.faults = [said("the sea is deep")]
    assert chat.invoke("Hello").content == "the sea is deep"
    assert chat.invoke("Hello").usage_metadata["output_tokens"] > 0
    assert chat.invoke("Hello").response_metadata["usage_source"] == "estimated"


async def test_one_model_from_one_loop_after_another(sandbox, chat):
    def in_a_loop_of_its_own():
        return asyncio.run(chat.ainvoke("Hello")).content

    answers = [await asyncio.to_thread(in_a_loop_of_its_own) for _ in range(3)]
    assert answers == [(await chat.ainvoke("Hello")).content] * 3
    await chat.aclose()
    assert len(sandbox.requests) == 4
