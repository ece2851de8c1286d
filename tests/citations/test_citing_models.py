"""A citing model is a chat model: whatever streams, binds, saves or hands it on shows what was checked."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager

import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField
from langchain_core.tools import create_retriever_tool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from peers import RunKeeper, listed, summed

from langchain_svc import ChatSvc, SvcCitations, SvcRequestError
from langchain_svc.sandbox import Sandbox, ToolCall

LEAVE = Document(
    "Every employee has 28 days of paid leave a year. Unused days expire in March.",
    metadata={"title": "Leave", "source": "leave.md"},
    id="doc-1",
)
SAID = "You have 28 days. They may be sold."


def model_of(request):
    """A model that searches first, quotes what it is shown, and makes up a second quote."""
    text = request.body.decode()
    found = re.search(
        r'passage id=\\"(\d+)-(\w+)\\"[^>]*>\\n(?:(?!passage id).)*28 days of paid', text
    )
    if "stand in no passage" in text:
        return "1. NONE"
    if found is None:
        return ToolCall("search_hr", {"query": "leave"}) if "search_hr" in text else "Nothing."
    number, nonce = found.groups()
    mark = f'<cite id="{number}-{nonce}">'
    return (
        f"You have 28 days {mark}28 days of paid leave</cite>. "
        f"They may be sold {mark}Days may be sold</cite>."
    )


@contextmanager
def service(**settings):
    with Sandbox(answers=model_of) as sandbox, ChatSvc(**{**sandbox.v1, **settings}) as model:
        yield model, sandbox


class Found(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager=None):
        return [LEAVE]


def search(**options):
    return create_retriever_tool(Found(), "search_hr", "Searches HR.", **options)


def agent_of(model, *, with_artifact=True, settings=None, **options):
    found = search(response_format="content_and_artifact") if with_artifact else search()
    return create_agent(model, [found], middleware=[SvcCitations(**(settings or {}))], **options)


def cited(message):
    return [
        annotation
        for block in message.content
        if isinstance(block, dict)
        for annotation in block.get("annotations", ())
        if annotation["type"] == "citation"
    ]


QUESTION = {"messages": [("user", "How many days of leave?")]}


# -- what streams ------------------------------------------------------------------------------------


def of_agent_messages(model):
    chunks = agent_of(model).stream(QUESTION, stream_mode="messages")
    return "".join(chunk.text for chunk, _ in chunks if isinstance(chunk, AIMessage))


def of_agent_v3(model):
    run = agent_of(model).stream_events(QUESTION, version="v3")
    return "".join("".join(message.text) for message in run.messages)


def of_chain_events(model):
    chain = ChatPromptTemplate.from_template("{q}") | model.with_citations([LEAVE])
    events = asyncio.run(listed(chain.astream_events({"q": "x"}, version="v2")))
    return "".join(e["data"]["chunk"].text for e in events if e["event"] == "on_chat_model_stream")


class Tokens(BaseCallbackHandler):
    def __init__(self):
        self.text = ""

    def on_llm_new_token(self, token, *, chunk=None, **_):
        self.text += chunk.message.text if chunk else token


def of_callbacks(model):
    tokens = Tokens()
    list(model.with_citations([LEAVE]).stream("x", {"callbacks": [tokens]}))
    return tokens.text


def of_node(model):
    """A node that invokes it: LangGraph streams what it hears of the model's tokens."""
    bound = model.with_citations([LEAVE])
    graph = StateGraph(MessagesState)
    graph.add_node("answer", lambda state: {"messages": [bound.invoke(state["messages"])]})
    graph.add_edge(START, "answer")
    chunks = graph.compile().stream(QUESTION, stream_mode="messages")
    return "".join(chunk.text for chunk, _ in chunks)


async def ag_ui_events(graph):
    """The events of an agent that AG-UI's adapter sends to a page, each as its JSON."""
    ag_ui = pytest.importorskip("ag_ui_langgraph", reason="the extra dropin has AG-UI's adapter")
    from ag_ui.core import RunAgentInput

    asked = {"id": "1", "role": "user", "content": "How many days of leave?"}
    lists = {"messages": [asked], "tools": [], "context": []}
    run = RunAgentInput(thread_id="t", run_id="r", state={}, forwarded_props={}, **lists)
    events = ag_ui.LangGraphAgent(name="hr", graph=graph).run(run)
    return [event.model_dump(mode="json", by_alias=True) async for event in events]


def of_ag_ui(model):
    events = asyncio.run(ag_ui_events(agent_of(model, checkpointer=InMemorySaver())))
    return "".join(e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CONTENT")


STREAMS = [of_agent_messages, of_agent_v3, of_chain_events, of_callbacks, of_node, of_ag_ui]


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.filterwarnings("ignore:`get_config_jsonschema` is deprecated")
@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.__name__)
def test_every_stream_shows_what_was_checked(stream):
    with service() as (model, _):
        text = stream(model)
    assert "<cite" not in text
    assert "NONE" not in text
    assert SAID in text


def test_what_is_dropped_is_in_no_stream():
    with service() as (model, _):
        chunks = agent_of(model, settings={"unsupported": "drop"}).stream(
            QUESTION, stream_mode="messages"
        )
        text = "".join(chunk.text for chunk, _ in chunks if isinstance(chunk, AIMessage))
    assert "sold" not in text
    assert "You have 28 days" in text


@pytest.mark.filterwarnings("ignore:`get_config_jsonschema` is deprecated")
def test_a_page_of_ag_ui_gets_the_annotations_with_the_text_and_at_the_end():
    with service() as (model, _):
        events = asyncio.run(ag_ui_events(agent_of(model, checkpointer=InMemorySaver())))
    assert not re.search("<cite|NONE", json.dumps(events))
    streamed = [
        annotation
        for event in events
        if event["type"] == "TEXT_MESSAGE_CONTENT"
        for block in event["rawEvent"]["data"]["chunk"]["content"]
        for annotation in block.get("annotations", ())
    ]
    state = [event["snapshot"] for event in events if event["type"] == "STATE_SNAPSHOT"][-1]
    (block,) = state["messages"][-1]["content"]
    assert block["annotations"] == streamed
    assert [one["type"] for one in streamed] == ["citation", "non_standard_annotation"]
    assert streamed[0]["cited_text"] == "28 days of paid leave"


@pytest.mark.parametrize("unsupported", ["keep", "drop"])
def test_the_chunk_with_the_finish_reason_has_no_text(unsupported):
    with service() as (model, _):
        chunks = list(model.with_citations([LEAVE], unsupported=unsupported).stream("x"))
    *before, last = chunks
    assert not any("finish_reason" in chunk.response_metadata for chunk in before)
    assert last.response_metadata["finish_reason"] == "stop"
    assert not last.content


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_call_is_one_run_with_the_checked_answer(asynchronous):
    keeper = RunKeeper()
    with service() as (model, sandbox):
        bound = model.with_citations([LEAVE])
        if asynchronous:
            asyncio.run(bound.ainvoke("x", {"callbacks": [keeper]}))
        else:
            bound.invoke("x", {"callbacks": [keeper]})
        assert len(sandbox.requests) == 2
    (run,) = keeper.every
    assert "<cite" not in str(run.outputs)
    assert SAID in str(run.outputs)


# -- what it is bound to -----------------------------------------------------------------------------


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return city


BOUND = {
    "bind": lambda m, cite: cite(m.bind(temperature=0.125)),
    "bind_tools": lambda m, cite: cite(m.bind_tools([weather], temperature=0.125)),
    "bind behind": lambda m, cite: cite(m).bind(temperature=0.125),
    "bind_tools behind": lambda m, cite: cite(m).bind_tools([weather], temperature=0.125),
    "with_config": lambda m, cite: cite(m.bind(temperature=0.125).with_config(tags=["t"])),
    "configurable": lambda m, cite: cite(m.configurable_fields(temperature=ConfigurableField("t"))),
    "configurable behind": lambda m, cite: cite(m).configurable_fields(
        temperature=ConfigurableField("t")
    ),
    "retry": lambda m, cite: cite(m.bind(temperature=0.125)).with_retry(),
    "fallbacks": lambda m, cite: cite(m.bind(temperature=0.125)).with_fallbacks([m]),
    "a sequence": lambda m, cite: (
        ChatPromptTemplate.from_template("{q}") | cite(m.bind(temperature=0.125))
    ),
}


@pytest.mark.parametrize("privacy", [None, "phi"])
@pytest.mark.parametrize("name", BOUND)
def test_what_is_bound_before_or_behind_is_kept(name, privacy):
    if privacy and name == "configurable behind":
        pytest.skip("a private model is made configurable before it is bound")
    with service(privacy=privacy) as (model, sandbox):
        bound = BOUND[name](model, lambda runnable: runnable.with_citations([LEAVE]))
        asked = {"q": "x"} if name == "a sequence" else "x"
        message = bound.invoke(asked, {"configurable": {"t": 0.125}})
        assert [request.json.get("temperature") for request in sandbox.requests] == [0.125] * 2
        assert ("weather" in sandbox.requests[0].body.decode()) == ("tools" in name)
        assert "weather" not in sandbox.requests[1].body.decode()
    assert cited(message)


def test_fallbacks_of_two_models_both_cite():
    with service() as (model, _):
        broken = model.model_copy(update={"base_url_v1": "http://127.0.0.1:9", "max_retries": 0})
        assert cited(broken.with_fallbacks([model]).with_citations([LEAVE]).invoke("x"))
        assert cited(model.with_citations([LEAVE]).with_fallbacks([model]).invoke("x"))


def test_an_object_answers_from_the_documents_without_marks():
    with Sandbox() as sandbox, ChatSvc(**sandbox.v1) as model:
        schema = {"title": "A", "type": "object", "properties": {"days": {"type": "integer"}}}
        bound = model.with_citations([LEAVE]).with_structured_output(schema)
        assert bound.invoke("How many days of leave?") == {"days": 28}
        assert "<cite" not in sandbox.requests[0].body.decode()


def test_a_cache_tells_documents_apart():
    with service(cache=InMemoryCache()) as (model, sandbox):
        for documents in ([LEAVE], [LEAVE, "More."], [LEAVE]):
            model.with_citations(documents, max_repairs=0).invoke("x")
        assert len(sandbox.requests) == 2


# -- sources -----------------------------------------------------------------------------------------


def test_documents_are_citable_after_a_checkpoint_and_an_interrupt():
    config = {"configurable": {"thread_id": "1"}}
    with service() as (model, _):
        agent = agent_of(model, checkpointer=InMemorySaver(), interrupt_after=["tools"])
        agent.invoke(QUESTION, config)
        first = agent.invoke(None, config)["messages"][-1]
        second = agent.invoke({"messages": [("user", "again?")]}, config)["messages"][-1]
    for message in (first, second):
        (annotation,) = cited(message)
        assert annotation["extras"]["id"] == "doc-1"
        (document,) = message.response_metadata["citations"]["documents"]
        assert document == {"index": 0, "id": "doc-1", "title": "Leave", "url": "leave.md"}


def test_the_text_of_a_tool_without_an_artifact_is_cited():
    with service() as (model, _):
        state = agent_of(model, with_artifact=False).invoke(QUESTION)
    (annotation,) = cited(state["messages"][-1])
    assert annotation["title"] == "search_hr"
    assert annotation["extras"]["id"] == state["messages"][1].tool_calls[0]["id"]


def test_a_search_that_finds_nothing_is_answered():
    with service() as (model, sandbox):
        message = model.with_citations().invoke({"messages": [("user", "x")], "documents": []})
        assert message.text == "Nothing."
        assert "Say that nothing was found" in sandbox.requests[0].body.decode()
    assert not cited(message)
    assert message.response_metadata["citations"]["uncited"] == 1


def test_a_statement_that_another_agent_has_cited_keeps_its_citations():
    with service() as (model, _):
        sub = model.with_citations([LEAVE]).invoke("x")
    call = AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": "1"}])
    result = ToolMessage(sub.content, tool_call_id="1", name="ask")
    with Sandbox(answers=["You have **28 days**. Ask HR."]) as sandbox:
        parent = ChatSvc(**sandbox.v1).with_citations()
        message = parent.invoke([HumanMessage("x"), call, result])
    (annotation,) = cited(message)
    assert annotation["cited_text"] == "28 days of paid leave"
    assert (
        message.text[annotation["start_index"] : annotation["end_index"]] == "You have **28 days**."
    )


def test_another_model_is_named():
    from langchain_core.language_models import FakeListChatModel

    agent = create_agent(FakeListChatModel(responses=["x"]), [], middleware=[SvcCitations()])
    with pytest.raises(SvcRequestError, match="SvcCitations needs a ChatSvc"):
        agent.invoke(QUESTION)


def test_chunks_add_up_to_the_message():
    with service() as (model, _):
        bound = model.with_citations([LEAVE])
        whole = bound.invoke("x")
        for streamed in (
            summed(list(bound.stream("x"))),
            summed(asyncio.run(listed(bound.astream("x")))),
            asyncio.run(bound.ainvoke("x")),
        ):
            assert streamed.content == whole.content
            assert streamed.usage_metadata == whole.usage_metadata
    (block,) = whole.content
    begin, end = cited(whole)[0]["start_index"], cited(whole)[0]["end_index"]
    assert block["text"][begin:end].rstrip(".") == "You have 28 days"
