"""What an engineer relies on who swaps another chat model for ChatSvc.

Everything goes over real sockets to a sandbox, whose request log says what was really sent.
"""

import copy

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage, ChatMessage, HumanMessage, SystemMessage
from peers import RunKeeper, hearing, summed, thawed
from pydantic import SecretStr

import langchain_svc as svc
from langchain_svc import ChatSvc
from langchain_svc.sandbox import Fault


def sent(sandbox):
    """The bodies that arrived, in order."""
    return [request.json for request in sandbox.requests]


def user(text):
    return {"role": "user", "content": text}


# -- one call is not like the other -----------------------------------------------------------------


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


SET = [
    ({"model": "svc-pro"}, {"model": "svc-pro", "temperature": 0.5, "max_tokens": 50}),
    ({"temperature": 0}, {"temperature": 0, "max_tokens": 50}),
    ({"max_tokens": 7, "temperature": None}, {"max_tokens": 7}),
    ({"max_tokens": None}, {"temperature": 0.5}),
    ({"timeout": 5, "deadline": 6.0, "max_retries": 0, "stop": ["zzz"]}, {"temperature": 0.5, "max_tokens": 50}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "fields"), SET, ids=str)
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


@pytest.mark.parametrize("word", ["timeout", "deadline"])
async def test_timeout_for_one_call(sandbox, chat, word):
    sandbox.faults = [Fault(hang=True)]
    with pytest.raises(svc.SvcTimeoutError):
        chat.invoke("Hello", max_retries=0, **{word: 0.1})
    with pytest.raises(svc.SvcTimeoutError):
        await chat.ainvoke("Hello", max_retries=0, **{word: 0.1})


def test_max_retries_for_one_call(sandbox, chat):
    sandbox.faults = [Fault(status=503, headers={"Retry-After": "0"})]
    with pytest.raises(svc.SvcServerError):
        chat.invoke("Hello", max_retries=1)
    assert len(sandbox.requests) == 2


UNKNOWN = [
    ({"temprature": 0}, "did you mean 'temperature'"),
    ({"frequency_penalty": 0.5}, "extra_body="),
    ({"zzz": {}}, "known are: "),
]


@pytest.mark.parametrize(("words", "hint"), UNKNOWN)
async def test_an_unknown_word_is_no_setting(sandbox, chat, words, hint):
    bound = chat.bind(**words)
    for call in (bound.invoke, lambda text: list(chat.stream(text, **words))):
        with pytest.raises(svc.SvcRequestError, match=hint):
            call("Hello")
    with pytest.raises(svc.SvcRequestError, match=hint):
        await chat.ainvoke("Hello", **words)
    assert sandbox.requests == []


# -- streams and events -----------------------------------------------------------------------------


async def test_invoke_with_streaming_reads_a_stream(sandbox, chat):
    streaming = chat.model_copy(update={"streaming": True})
    seen = hearing()
    answers = [
        streaming.invoke("Hello", config={"callbacks": [seen]}),
        await streaming.ainvoke("Hello"),
        chat.invoke("Hello", stream=True),
    ]
    assert all(body["stream"] for body in sent(sandbox))
    assert "on_llm_new_token" in seen.names
    plain = chat.invoke("Hello")
    for answer in answers:
        assert (type(answer), answer.content) == (AIMessage, plain.content)
        assert answer.usage_metadata == plain.usage_metadata


async def test_v1_content_blocks(sandbox, chat):
    blocks = chat.model_copy(update={"output_version": "v1"})
    plain = chat.invoke("Hello").content
    for message in (blocks.invoke("Hello"), summed(blocks.stream("Hello"))):
        assert [block["type"] for block in message.content] == ["text"]
        assert message.text == plain
    # What came as blocks is said again as text.
    chat.invoke([HumanMessage("Hello"), message, HumanMessage("And?")])
    assert sent(sandbox)[-1]["messages"][1] == {"role": "assistant", "content": plain}


# -- caches ----------------------------------------------------------------------


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


# -- copies ----------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, ChatSvc.model_copy, thawed])
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
    with pytest.raises(svc.SvcConnectionError):
        elsewhere.invoke("Hello")


# -- what traces show -------------------------------------------------------------------------------


async def test_traces_name_what_was_called(chat):
    recorder = RunKeeper()
    words = {"model": "svc-pro", "temperature": 0.1, "max_tokens": 5, "stop": ["zzz"]}
    chat.invoke("Hello", **words, config={"callbacks": [recorder]})
    (run,) = recorder.runs
    metadata = run.extra["metadata"]
    assert metadata["ls_provider"] == "svc"
    assert metadata["ls_model_name"] == "svc-pro"
    assert (metadata["ls_temperature"], metadata["ls_max_tokens"]) == (0.1, 5)
    assert metadata["lc_versions"]["langchain-svc"] == svc.__version__
    assert metadata["ls_stop"] == ["zzz"]
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


human, ai, system = HumanMessage, AIMessage, SystemMessage
ANN, BOB = (f'<user_message name="{name}">\nHello\n</user_message>' for name in ("ann", "bob"))
# What tests/chat/test_turns.py reads back, letter by letter.
ON_THE_WIRE = [
    ("Hello", [user("Hello")]),
    ([("system", "Be brief."), ("human", "Hello")], [folded("Be brief.", "Hello")]),
    ([user("Hello")], [user("Hello")]),
    ([system("Be brief.")], [folded("Be brief.")]),
    ([system("One."), system("Two."), human("So")], [folded("One.\n\nTwo.", "So")]),
    ([human("Hi"), ai("Yes?"), system("S"), human("So")], [user("Hi"), assistant("Yes?"), folded("S", "So")]),
    ([human("One"), human("Two")], [user("One\n\nTwo")]),
    ([human("Hi"), ai("One"), ai("Two"), human("Go")], [user("Hi"), assistant("One\n\nTwo"), user("Go")]),
    ([human("Hello", name="ann")], [user(ANN)]),
    ([human("Hello", name="ann"), human("Hello", name="bob")], [user(f"{ANN}\n\n{BOB}")]),
    ([human("Hi"), ai("Yes?", name="a"), human("So")], [user("Hi"), assistant("Yes?"), user("So")]),
    ([human("Hi"), ai("Yes?", name="a"), ai("No.", name="b")], [user("Hi"), assistant("a: Yes?\n\nb: No.")]),
    ([human(TEXT_BLOCKS)], [user("How \ndeep is \nit?")]),
    ([human("Hi"), ai(THOUGHT), human("And?")], [user("Hi"), assistant("Deep."), user("And?")]),
    ([human("Hello"), ai(""), human("So")], [user("Hello\n\nSo")]),
    ([ChatMessage("Hello", role="user")], [user("Hello")]),
    ([ChatMessage("Brief.", role="developer"), human("So")], [folded("Brief.", "So")]),
    ([human("\u4f60\u597d \U0001f30a \u20ac")], [user("\u4f60\u597d \U0001f30a \u20ac")]),
    ([human("lone \ud800 surrogate")], [user("lone \ufffd surrogate")]),
    ([human("  spaces and\nlines\n")], [user("  spaces and\nlines\n")]),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "turns"), ON_THE_WIRE)
async def test_messages_on_the_wire(sandbox, chat, messages, turns):
    await every_way(chat, messages)
    assert [body["messages"] for body in sent(sandbox)] == [turns] * 4
    assert not any(request.unknown_fields for request in sandbox.requests)


def test_system_role_of_its_own(sandbox, chat):
    native = chat.model_copy(update={"system_role": "system"})
    native.invoke([system("One."), system("Two."), human("Hello"), human("So")])
    of_the_system = {"role": "system", "content": "One.\n\nTwo."}
    assert sent(sandbox)[0]["messages"] == [of_the_system, user("Hello\n\nSo")]


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
    with pytest.raises(svc.SvcRequestError, match=complaint):
        chat.invoke(messages)
    with pytest.raises(svc.SvcRequestError, match=complaint):
        list(chat.stream(messages))
    assert sandbox.requests == []
