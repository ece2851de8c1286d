"""docs/errors.md: each message of its tables is produced, and each that is produced is listed."""

import asyncio
import importlib.util
import pickle
import re

import pytest
import trio
from langchain.chat_models import init_chat_model
from pydantic import BaseModel
from test_readme import ROOT, rows

import langchain_svc as svc
from langchain_svc import ChatSvc
from langchain_svc.sandbox import Fault, Sandbox, ToolCall

PAGE = (ROOT / "docs/errors.md").read_text("utf-8")
MESSAGES = [
    row[0].strip("`")
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    for row in rows(part)
]


class Meeting(BaseModel):
    """A meeting."""

    people: int


class Place:
    city: str


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


def chat(s, **settings):
    return ChatSvc(**{**s.v1, "max_retries": 0, **settings})


def ask(**settings):
    return lambda s: chat(s, **settings).invoke("What is 2 + 2?")


def make(**settings):
    return lambda s: chat(s, **settings)


def streamed(s):
    return list(chat(s).stream("Tell me a story about Ada."))


def structured(**settings):
    return lambda s: chat(s, max_repairs=0, **settings).with_structured_output(Meeting).invoke("x")


def faulty(fault, use):
    def play(s):
        s.faults = [fault]
        return use(s)

    return play


def answered(text, use):
    def play(s):
        s.answers = [text]
        return use(s)

    return play


def half_a_call(s):
    tool = {"title": "weather", "description": "The weather.", "type": "object"}
    tool["properties"] = {"city": {"type": "string"}}
    return chat(s, max_tokens=15, max_continuations=0, max_repairs=0).bind_tools([tool]).invoke("x")


async def nested():
    wanted = asyncio.sleep(0)
    try:
        asyncio.run(wanted)
    finally:
        wanted.close()


def of_quota(s):
    model = chat(s, quota=svc.SvcQuota("v1:free"), deadline=5)
    return [model.invoke("x") for _ in range(4)]


PRODUCERS = {
    "No API key": lambda _: ChatSvc.from_env(),
    "No base URL": lambda _: ChatSvc(api_key="k").invoke("x"),
    "a key as URL": make(base_url_v1="sk-0123456789"),
    "plain http": make(base_url_v1="http://example.com/v1"),
    "password": make(base_url_v1="https://me:pw@example.com/v1"),
    "key with a space": make(api_key="a key"),
    "401": ask(api_key="wrong"),
    "403": faulty(Fault(status=403), ask()),
    "no v1": lambda s: ask(base_url_v1=s.url)(s),
    "an endpoint": lambda s: ask(base_url_v1=f"{s.url}/v1/chat/completions")(s),
    "api twice": lambda s: svc.ChatSvc(
        interface="general", api_key=s.v1["api_key"], base_url=f"{s.url}/api"
    ).invoke("x"),
    "no such model": ask(model="gpt-4o"),
    "307": faulty(Fault(status=307, headers={"Location": "https://example.com"}), ask()),
    "unreached": ask(base_url_v1="http://127.0.0.1:9/v1"),
    "lost": faulty(Fault(reset="before"), ask()),
    "timeout": faulty(Fault(delay=0.5), ask(timeout=0.05)),
    "deadline": faulty(Fault(delay=0.5), ask(deadline=0.05)),
    "HTML": faulty(Fault(body="<html>Log in</html>", content_type="text/html"), ask()),
    "trio": lambda s: trio.run(chat(s).ainvoke, "x"),
    "a loop in a loop": lambda _: asyncio.run(nested()),
    "429": faulty(Fault(status=429, headers={"Retry-After": "57"}), ask()),
    "quota": of_quota,
    "budget": ask(budget=svc.SvcBudget(max_tokens=1)),
    "too long": lambda s: chat(s).invoke("hello " * 500_000),
    "503": faulty(Fault(status=503), ask()),
    "slip": make(temprature=0),
    "top_p": make(top_p=0.9),
    "embedding": make(embedding="x"),
    "n": make(n=2),
    "out of bounds": make(temperature=3),
    "by position": lambda _: ChatSvc("svc-pro"),
    "symptoms": lambda _: svc.PatientContext(symptoms=["cough"]),
    "not registered": lambda _: init_chat_model("svc:svc-pro"),
    "nothing": lambda s: chat(s).invoke(""),
    "image": lambda s: chat(s).invoke([("user", [IMAGE])]),
    "named address": lambda s: svc.SvcAnalyzeImage(
        pseudonyms=svc.Pseudonyms(identifiers=["MRN-48291734"]), **s.general
    ).invoke({"image": "https://example.com/?q=MRN-48291734", "task": "ocr"}),
    "name of a tool": lambda s: chat(s).bind_tools(["weather"]),
    "one tool": lambda s: chat(s).bind_tools(Meeting),
    "toolkit": lambda s: chat(s).bind_tools([svc.SvcToolkit(**s.general)]),
    "plain class": lambda s: chat(s).with_structured_output(Place),
    "no schema": lambda s: chat(s).with_structured_output({"name": "string", "age": "int"}),
    "a list of arguments": lambda s: chat(s).bind_tools(
        [{"name": "a", "description": "Look.", "parameters": {"type": "array"}}]
    ),
    "twins": lambda s: chat(s).invoke("x", tools=[{"name": "a", "description": "Look."}] * 2),
    "name of a schema": lambda s: chat(s).with_structured_output("Meeting"),
    "slip in a schema": lambda s: chat(s).with_structured_output(
        {"title": "Person", "type": "object", "properties": {"age": {"type": "strng"}}}
    ),
    "another answer": answered("I cannot.", structured()),
    "cut off": answered('{"people": 12, "and": "so on, and so on"}', structured(max_tokens=3)),
    "cut off, an error": answered("so on and so on", ask(max_tokens=3, on_cut="error")),
    "cut call": answered(ToolCall("weather", {"city": "Rome"}), half_a_call),
    "broken": faulty(Fault(cut=True, after=3), streamed),
    "ended": faulty(Fault(end=True, after=3), streamed),
    "pickle": lambda s: pickle.loads(pickle.dumps(chat(s))).invoke("x"),
    "no file": lambda _: svc.ImageStore().add("/nowhere/a.png"),
}


@pytest.fixture(scope="module")
def produced():
    """What each producer says."""
    said = {}
    with Sandbox() as sandbox, pytest.MonkeyPatch.context() as patch:
        for name in sandbox.env:
            patch.delenv(name, raising=False)
        patch.setattr("langchain.chat_models.base._BUILTIN_PROVIDERS", {})
        for name, produce in PRODUCERS.items():
            sandbox.faults, sandbox.answers = [], []
            with pytest.raises(Exception) as raised:  # noqa: PT011  # its message is what is looked at
                produce(sandbox)
            said[name] = str(raised.value)
    return said


def is_in(message, said):
    parts = map(re.escape, message.split("…"))
    return re.search(".+".join(part for part in parts if part), said, re.DOTALL) is not None


OF_OTHERS = ["a loop in a loop", "not registered"]  # Python's and LangChain's own words


@pytest.mark.parametrize("name", OF_OTHERS)
def test_what_others_say_is_on_the_page(name, produced):
    assert [message for message in MESSAGES if is_in(message, produced[name])]


@pytest.fixture(scope="module")
def all_messages():
    """The script that reads the messages of the code."""
    place = ROOT / "docs/messages.py"
    spec = importlib.util.spec_from_file_location("messages", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def listed(all_messages):
    return [text for texts in all_messages.messages().values() for text in texts]


def test_all_messages_stand_on_the_page_of_the_site(all_messages, listed):
    hook = (ROOT / "docs/site_hooks.py").read_text("utf-8")
    (mark,) = re.findall(r'MESSAGES = "(.+)\\n"', hook)
    assert PAGE.endswith(f"{mark}\n")
    assert all_messages.lists().count("\n- `` ") == len(listed) > 250


@pytest.mark.parametrize("name", sorted(PRODUCERS.keys() - set(OF_OTHERS)))
def test_what_is_said_is_read_from_the_code(name, produced, listed):
    # What varies may be nothing.
    patterns = (".*".join(map(re.escape, text.split("…"))) for text in listed)
    assert any(re.search(one, produced[name], re.DOTALL) for one in patterns), produced[name]


@pytest.mark.parametrize("message", MESSAGES)
def test_what_is_on_the_page_is_said(message, produced):
    assert any(is_in(message, said) for said in produced.values())
