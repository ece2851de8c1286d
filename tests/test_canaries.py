"""The names of others that they may change without notice: where each is used, and who would notice.

`.ci/canaries` runs this file, and needs nothing else of tests/, with the newest versions there are.
A row that fails says what users lose. Nothing else of the package may use such a name.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from contextlib import aclosing, closing
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    AsyncCallbackManager,
    BaseCallbackHandler,
    CallbackManager,
    StdOutCallbackHandler,
)
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.callbacks import GraphCallbackHandler
from share import pairs

import langchain_svc as svc
from langchain_svc import PrivateCallbacks
from langchain_svc._http.connections import AsyncPool, Pool, PoolKey, new_transport
from langchain_svc.sandbox import Sandbox

PACKAGE = Path(svc.__file__).parent
SECRET = "Zebulon-Quux, 61, takes warfarin"


def calls_go_over_our_connections():
    with (
        Sandbox() as box,
        closing(new_transport(httpx.HTTPTransport, Pool, PoolKey(box.url))) as transport,
    ):
        transport.handle_request(httpx.Request("GET", box.url)).read()
        return len(transport._pool._idle) == 1


def calls_of_a_loop_go_over_our_connections():
    async def look():
        with Sandbox() as box:
            async with aclosing(
                new_transport(httpx.AsyncHTTPTransport, AsyncPool, PoolKey(box.url))
            ) as transport:
                response = await transport.handle_async_request(httpx.Request("GET", box.url))
                await response.aread()
                return len(transport._pool._idle) == 1

    return asyncio.run(look())


def a_lock_is_free_again():
    lock = threading.Lock()
    lock.acquire()
    lock._at_fork_reinit()
    return not lock.locked()


def a_model_is_loaded_as_one_of_all():
    loading = import_module("langchain_core.load.load")
    assert isinstance(loading._default_class_paths_cache, dict)
    return isinstance(
        load(dumpd(svc.ChatSvc()), allowed_objects="all", valid_namespaces=["langchain_svc"]),
        svc.ChatSvc,
    )


def init_chat_model_finds_it():
    base = import_module("langchain.chat_models.base")  # part of langchain, which nobody must have
    return isinstance(base._BUILTIN_PROVIDERS, dict)


def a_tool_knows_whether_a_model_called_it():
    tool = svc.SvcTranslate(api_key="k", base_url="https://x.invalid")
    wrong = {"text": "hi"}
    call = {"name": tool.name, "args": wrong, "id": "1", "type": "tool_call"}
    try:
        tool.invoke(wrong)
    except svc.SvcRequestError:
        return tool.invoke(call).status == "error"
    return False


def a_profile_is_the_documents():
    return svc.ChatSvc(model="svc-pro").profile["max_input_tokens"] == 200_000


def the_version_stands_in_traces():
    return "langchain-svc" in str(svc.ChatSvc().metadata)


def what_a_caller_streams_is_not_masked():
    async def texts():
        config = {"callbacks": PrivateCallbacks()}
        events = FakeListChatModel(responses=[SECRET]).astream_events("hi", config, version="v2")
        return [e["data"]["chunk"].content async for e in events if e["event"].endswith("_stream")]

    return "".join(asyncio.run(texts())) == SECRET


def a_handler_is_known_by_its_class():
    given = PrivateCallbacks([StdOutCallbackHandler()])
    return len(CallbackManager.configure(given, verbose=True).handlers) == 1


def an_empty_list_keeps_its_masks():
    def masked(manager):
        manager.add_handler(BaseCallbackHandler())
        found = (*manager.handlers, *manager.inheritable_handlers)
        return len(found) == 2 and all("masked" in repr(handler) for handler in found)

    def managers():
        yield PrivateCallbacks()
        yield PrivateCallbacks().copy()
        yield PrivateCallbacks().merge(CallbackManager([]))
        for kind in (CallbackManager, AsyncCallbackManager):
            yield kind.configure(PrivateCallbacks())
            yield kind.configure(PrivateCallbacks()).copy()

    return all(map(masked, managers()))


def logs_say_no_more_than_what_happened():
    records = []
    hear = logging.Handler()
    hear.emit = records.append
    loggers = [logging.getLogger(name) for name in ("httpcore", "httpx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(hear)
        logger.setLevel(logging.DEBUG)
    try:
        with Sandbox() as box, httpx.Client() as client:
            svc.ChatSvc(**box.v1, http_client=client).invoke("hi")
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(hear)
            logger.setLevel(level)
    told = [(record.name.partition(".")[0], record.getMessage()) for record in records]
    steps = [text for name, text in told if name == "httpcore"]
    (request,) = [text for name, text in told if name == "httpx"]
    whole = [text for text in steps if " " in text]
    return bool(steps) and not whole and request.endswith(' "HTTP/1.1 200 "')


@dataclass(frozen=True)
class Canary:
    """One name of others."""

    name: str
    used: str
    lost: str
    holds: Callable[[], bool]


CANARIES = [
    Canary("httpx.HTTPTransport._pool", "_http/connections.py", "No call works.", calls_go_over_our_connections),
    Canary("httpx.AsyncHTTPTransport._pool", "_http/connections.py", "No asynchronous call works.",
        calls_of_a_loop_go_over_our_connections),
    Canary("threading.Lock._at_fork_reinit", "_base/threads.py",
        "A forked child may wait for ever for a lock that a thread of its parent held.", a_lock_is_free_again),
    Canary("langchain_core.load.load._default_class_paths_cache", "chat/chat_models.py",
        "load(..., allowed_objects='all') does not know ChatSvc; allowed_objects=[ChatSvc] works.",
        a_model_is_loaded_as_one_of_all),
    Canary("langchain.chat_models.base._BUILTIN_PROVIDERS", "chat/chat_models.py",
        "register() raises ImportError; ChatSvc(...) works.", init_chat_model_finds_it),
    Canary("langchain_core: BaseChatModel._resolve_model_profile", "chat/chat_models.py",
        "Models have no profile, and agents do not know their context windows.", a_profile_is_the_documents),
    Canary("langchain_core: BaseTool._to_args_and_kwargs", "tools/base.py",
        "A failed tool raises where a model's call is to be answered with its text.",
        a_tool_knows_whether_a_model_called_it),
    Canary("langchain_core: BaseLanguageModel._add_version", "chat/chat_models.py",
        "Traces do not name the version of this package.", the_version_stands_in_traces),
    Canary("langchain_core and langgraph: tap_output_iter", "privacy/private_runs.py",
        "Who streams events of a private run reads masks.", what_a_caller_streams_is_not_masked),
    Canary("langchain_core: handlers are told apart by isinstance, so by __class__", "privacy/private_runs.py",
        "In private runs LangChain adds a tracer twice, and each run is told twice.", a_handler_is_known_by_its_class),
    Canary("langchain_core: the lists of a manager are copied, or replaced where they are false: __bool__",
        "privacy/private_runs.py", "Texts of private runs reach the handlers that the environment adds.",
        an_empty_list_keeps_its_masks),
    Canary("httpx and httpcore: the loggers, and the arguments of getMessage", "_client/drivers.py",
        "At DEBUG and INFO, logs repeat what the service says, which may be a key.",
        logs_say_no_more_than_what_happened),
]  # fmt: skip


@pytest.mark.parametrize("canary", CANARIES, ids=attrgetter("name"))
def test_what_is_used_of_others_is_still_there(canary):
    assert re.findall(r"\w+", canary.name)[-1] in (PACKAGE / canary.used).read_text("utf-8")
    try:
        held = canary.holds()
    except Exception as error:  # whatever it is
        raise AssertionError(f"{canary.name} has changed. {canary.lost}") from error
    assert held, f"{canary.name} has changed. {canary.lost}"


def test_every_private_name_of_others_has_a_row():
    """The linter wants a word about each; of our own classes it says so."""
    used = {
        (name, path.relative_to(PACKAGE).as_posix())
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if "noqa: SLF001" in line and "our own" not in line and "same package" not in line
        for name in re.findall(r"\w\.(_\w+)", line)
    }
    assert {name for name, _ in used} >= {"_at_fork_reinit", "_BUILTIN_PROVIDERS"}
    rows = [(canary.name, canary.used) for canary in CANARIES]
    for name, file in used:
        assert any(name in row and file == place for row, place in rows), (name, file)


# -- every event that a handler can be told --------------------------------------------------------

HANDLERS = (BaseCallbackHandler, AsyncCallbackHandler, GraphCallbackHandler)
EVENTS = sorted({name for kind in HANDLERS for name in dir(kind) if name.startswith("on_")})
TOLD = [
    SECRET, [SECRET], [[HumanMessage(SECRET)]], {"key": SECRET}, {SECRET: 1}, AIMessage(SECRET), Document(SECRET),
    ValueError(SECRET), SimpleNamespace(text=SECRET),
    LLMResult(generations=[[ChatGeneration(message=AIMessage(SECRET))]]), (SECRET, {"deep": [SECRET]}),
]  # fmt: skip


def listener(heard):
    def hear(self, *args, **kwargs):
        heard.append((args, kwargs))

    return type("Listener", (BaseCallbackHandler,), dict.fromkeys(EVENTS, hear))()


@pytest.mark.parametrize(("event", "value"), pairs(EVENTS, TOLD))
def test_no_event_tells_a_text(event, value):
    heard = []
    (handler,) = PrivateCallbacks([listener(heard)]).handlers
    first = "label" if event == "on_custom_event" else value  # it is the application's own name
    getattr(handler, event)(first, value, chunk=None, inputs=value, further=value)
    assert "Zebulon" not in str([[*args, *kwargs.values()] for args, kwargs in heard])
    assert "warfarin" not in repr(heard)


def test_langchain_asks_nothing_else_of_a_handler():
    """What does not begin with on_ is passed through as it is, and could tell a text."""
    asked = set()

    class Spy(BaseCallbackHandler):
        def __getattribute__(self, name):
            asked.add(name)
            return super().__getattribute__(name)

    @tool
    def echo(text: str) -> str:
        """Echo."""
        return text

    model = FakeListChatModel(responses=[SECRET])
    chain = RunnableLambda(lambda text: text) | model | (lambda said: echo.invoke(said.content))
    config = {"callbacks": PrivateCallbacks([Spy()])}

    async def run():
        assert await chain.ainvoke("hi", config) == SECRET
        assert [piece async for piece in model.astream("hi", config)]

    assert chain.invoke("hi", config) == SECRET
    assert list(model.stream("hi", config))
    asyncio.run(run())
    others = {name for name in asked if not name.startswith(("on_", "__"))}
    assert "on_chat_model_start" in asked
    assert others <= {name for name in dir(BaseCallbackHandler) if name.startswith("ignore_")} | {
        "raise_error", "run_inline", "tap_output_aiter", "tap_output_iter"
    }  # fmt: skip
