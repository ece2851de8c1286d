"""The page that shows what the sandbox receives and sends: what it shows, and to whom."""

import base64
import contextlib
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from sandbox_peer import BEARER, detail, inspect, until
from share import part

from langchain_svc import ChatSvc
from langchain_svc.sandbox import Fault, Sandbox

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</pre></div>\u202egpj.exe\u2066 \x1b[2J {{7*7}} ]]> -->"
)


@pytest.fixture
def sandbox():
    with Sandbox() as s:
        yield s


def say(sandbox, text, path="/v1/chat/completions", **extra):
    chat = {"model": "svc-pro", "messages": [{"role": "user", "content": text}]}
    body = {"message": text} if path == "/api/chat" else chat
    headers = {**BEARER, "Content-Type": "application/json"}
    content = json.dumps({**body, **extra})
    return httpx.post(sandbox.url + path, content=content, headers=headers, timeout=20)


def token(sandbox):
    return sandbox.inspector_url.partition("token=")[2]


def state(sandbox):
    return inspect(sandbox, "state").json()


# -- what it shows ------------------------------------------------------------------------------------


def test_a_request_with_its_answer_pieces_and_tokens(sandbox):
    say(sandbox, "Say hello.", stream=True)
    (summary,) = state(sandbox)["exchanges"]
    assert (summary["method"], summary["path"]) == ("POST", "/v1/chat/completions")
    assert summary["status"] == 200
    assert all(count > 0 for count in summary["tokens"])
    shown = detail(sandbox)
    assert shown["messages"] == [["user", [["question", "Say hello."]]]]
    assert shown["parameters"] == {"model": "svc-pro", "stream": "true"}
    assert len(shown["raw"]) == summary["pieces"] > 3
    assert shown["raw"][-1][1] == "data: [DONE]\n\n"
    times = [at for at, _ in shown["raw"]]
    assert times == sorted(times)
    assert "hello" in shown["answer"].lower()
    assert detail(sandbox, piece=2)["raw"] == shown["raw"][2:]


def test_it_is_live(sandbox):
    sandbox.faults = [Fault(stall=True, after=2)]
    with pytest.raises(httpx.ReadTimeout), httpx.Client(headers=BEARER, timeout=0.5) as client:
        client.post(sandbox.url + "/api/chat", json={"message": "Go", "stream": True})
        assert state(sandbox)["exchanges"][0]["seconds"] is None
    until(lambda: state(sandbox)["exchanges"][0]["left"])
    assert state(sandbox)["exchanges"][0]["pieces"] == 2


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return city


def test_where_the_parts_of_a_prompt_come_from(sandbox):
    call = {"name": "weather", "args": {"city": "Paris"}, "id": "1"}
    turns = [
        SystemMessage("Be brief."),
        HumanMessage("What is the weather in Paris?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("sunny", tool_call_id="1"),
        AIMessage("It is sunny."),
        HumanMessage("Context:\nRome has seven hills.\n\nQuestion: What is the weather in Rome?"),
    ]
    city = {"title": "City", "type": "object", "properties": {"name": {"type": "string"}}}
    with ChatSvc(model="svc-pro", **sandbox.v1) as model:
        model.bind_tools([weather]).invoke(turns)
        model.with_structured_output(city).invoke("Rome")
    shown = detail(sandbox, 1)
    kinds = {}
    for _role, parts in shown["messages"]:
        for kind, text in parts:
            kinds[kind] = kinds.get(kind, "") + text
    assert "Be brief." in kinds["system"]
    assert "The weather in a city." in kinds["tools"]
    assert "The weather in a city." not in kinds["system"]
    assert "sunny" in kinds["results"]
    assert kinds["calls"].startswith("<tool_call>")
    assert kinds["calls"].endswith("</tool_call>")
    assert "in Paris?" in kinds["history"]
    assert "It is sunny." in kinds["history"]
    assert kinds["documents"] == "Context:\nRome has seven hills.\n\n"
    assert "What is the weather in Rome?" in kinds["question"]
    assert set(shown["tokens_by"]) == set(kinds)
    assert sum(shown["tokens_by"].values()) == pytest.approx(shown["tokens"][0], rel=0.1)
    assert [json.loads(c) for c in shown["calls"]] == [
        {"name": "weather", "arguments": {"city": "Rome"}}
    ]
    assert '{"name": "<string>"}' in dict(detail(sandbox, 2)["messages"][0][1])["schema"]


def test_nothing_of_a_prompt_is_lost_or_doubled(sandbox):
    for content in ("a<image x>b", "<system_message>\n\n{}</system_message>", HOSTILE * 3):
        say(sandbox, content)
        (parts,) = [parts for _, parts in detail(sandbox, len(sandbox.requests))["messages"]]
        assert "".join(text for _, text in parts) == content


@pytest.mark.parametrize("stream_format", ["sse", "sse-text", "ndjson", "text", "json"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
def test_the_answer_is_read_in_every_format(path, stream_format):
    with Sandbox(answers=["One two\nthree."], stream_format=stream_format) as s:
        say(s, "Go", path, stream=True)
        assert detail(s)["answer"] == "One two\nthree."


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_fault_sends_instead_is_no_answer(sandbox, stream):
    sandbox.faults = [Fault(body=b"{", times=1), Fault(cut=True, after=2)]
    for number, said in ((1, ""), (2, "One two" if stream else "")):
        sandbox.answers = ["One two three."]
        with contextlib.suppress(httpx.RemoteProtocolError):
            say(sandbox, "Hello", stream=stream)
        assert detail(sandbox, number)["answer"] == said


def test_the_plans_limits(sandbox):
    with Sandbox(plan="pro") as s:
        say(s, "Hello")
        limits = {(m["unit"], m["seconds"]): m for m in state(s)["meters"]["v1"]}
        assert limits["requests", 60]["used"] == 1
        assert limits["requests", 60]["amount"] == 60
        assert limits["tokens", 60]["used"] == sum(state(s)["exchanges"][0]["tokens"])


def test_no_key_and_no_cookie_is_shown():
    secret = {
        "Authorization": "Bearer sk-secret-1",
        "X-API-Key": "sk-secret-2",
        "Cookie": "sk-secret-3",
    }
    with Sandbox(api_key="sk-secret-1") as s:
        assert httpx.get(s.url + "/v1/models", headers=secret).status_code == 200
        shown = inspect(s, "exchange/1/0").text + inspect(s, "state").text
        assert "secret" not in shown + httpx.get(s.inspector_url).text
        assert "Bearer ***" in shown


# -- making the next one fail -------------------------------------------------------------------------


with Sandbox() as _sandbox:
    BUTTONS = state(_sandbox)["faults"]


@pytest.mark.parametrize("name", part(BUTTONS))
def test_each_button_makes_the_next_request_fail_and_no_other(sandbox, name):
    assert inspect(sandbox, "fail", name).json()["next"] == [name]
    try:
        answer = httpx.get(sandbox.url + "/v1/models", headers=BEARER, timeout=0.3)
        labelled = answer.headers["content-type"] == "application/json"
        failed = answer.status_code != 200 or not labelled or "data" not in answer.json()
    except (httpx.HTTPError, ValueError):
        failed = True
    assert failed
    assert say(sandbox, "Hello").json()["choices"]
    assert state(sandbox)["next"] == []
    assert state(sandbox)["exchanges"][0]["fault"] == name


def test_the_next_fault_may_be_taken_back_and_must_be_known(sandbox):
    inspect(sandbox, "fail", "503")
    inspect(sandbox, "forget", "")
    assert say(sandbox, "Hello").status_code == 200
    wrong = inspect(sandbox, "fail", "everything")
    assert (wrong.status_code, "silence inside" in wrong.text) == (400, True)


# -- who may see it -----------------------------------------------------------------------------------


PATHS = ["/?token={token}", "/_inspector/state", "/_inspector/exchange/1/0", "/_inspector/fail"]
STRANGERS = [
    *(
        {"Host": name}
        for name in ("evil.example", "127.0.0.1.evil.example:80", "localhost.evil", "")
    ),
    *({"X-Inspector-Token": token} for token in ("", "x", b"\xe9")),
]


@pytest.mark.parametrize("headers", STRANGERS, ids=str)
def test_who_has_another_name_for_this_machine_or_no_token_sees_and_changes_nothing(
    sandbox, headers
):
    say(sandbox, "Jane Roe")
    named = "Host" in headers
    for path in PATHS:
        url = sandbox.url + path.format(token=token(sandbox) if named else "no")
        given = {"X-Inspector-Token": token(sandbox), **headers}
        answer = httpx.request(
            "POST" if "fail" in path else "GET", url, content="503", headers=given
        )
        assert answer.status_code == 403
        assert "Jane" not in answer.text
        assert token(sandbox) not in answer.text
    assert state(sandbox)["next"] == []


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1", "[::1]:1", "127.9.9.9"])
def test_the_names_of_this_machine_see_it(sandbox, host):
    assert httpx.get(sandbox.inspector_url, headers={"Host": host}).status_code == 200


def test_other_machines_see_nothing(sandbox, monkeypatch):
    monkeypatch.setattr("langchain_svc.sandbox.server.is_loopback", lambda _peer: False)
    assert httpx.get(sandbox.inspector_url).status_code == 403
    assert inspect(sandbox, "state").status_code == 403


def test_a_row_tells_the_model_the_first_words_and_the_run(sandbox):
    first = {"role": "user", "content": "What is the weather in Rome?"}
    asked = [{"role": "assistant", "content": "Which day?"}, {"role": "user", "content": "Today."}]
    say(sandbox, first["content"])
    say(sandbox, "", messages=[first, *asked])
    say(sandbox, "Another.")
    one, two, other = state(sandbox)["exchanges"]
    assert (one["model"], one["words"]) == ("svc-pro", first["content"])
    assert two["words"] == "Today."
    assert one["run"] == two["run"] != other["run"]


def test_a_copy_is_sent_again_as_it_was_and_holds_no_key(sandbox, tmp_path):
    text = 'It\'s "quoted" $HOME `id`\n\\ é'
    say(sandbox, text)
    shown = detail(sandbox)
    assert "sandbox-key" not in shown["curl"] + shown["python"]
    environment = {**os.environ, **sandbox.env}
    for command in (["sh", "-c", shown["curl"]], [sys.executable, "-c", shown["python"]]):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        assert "You asked" in done.stdout
    assert [r.json["messages"][0]["content"] for r in sandbox.requests] == [text] * 3


def test_the_page_may_load_nothing_and_run_nothing_else(sandbox):
    answer = httpx.get(sandbox.inspector_url)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    for tag in ("script", "style"):
        (held,) = re.findall(f"(?s)<{tag}>(.*?)</{tag}>", answer.text)
        digest = base64.b64encode(hashlib.sha256(held.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://|innerHTML|insertAdjacent|document\.write|eval\(", answer.text)
    assert answer.headers["cache-control"] == "no-store"


def test_it_is_no_request_of_the_log_and_may_be_cleared_and_switched_off(sandbox):
    say(sandbox, "Jane Roe")
    state(sandbox)
    assert len(sandbox.requests) == 1
    sandbox.clear()
    assert state(sandbox)["exchanges"] == []
    assert inspect(sandbox, "exchange/1/0").status_code == 404
    with Sandbox(inspector=False) as s:
        assert [httpx.get(s.url + path).status_code for path in ("/", "/_inspector/state")] == [
            404
        ] * 2


# -- hostile requests ---------------------------------------------------------------------------------


def test_memory_is_bounded(sandbox):
    with httpx.Client(headers=BEARER, timeout=20) as client:
        for _ in range(210):
            client.get(sandbox.url + "/v1/models")
    assert len(state(sandbox)["exchanges"]) == 200
    say(sandbox, "x " * 1_500_000)
    assert len(sandbox.requests[-1].body) > 3_000_000  # the user's own log keeps all of it
    assert len(json.dumps(detail(sandbox, 211))) < 300_000


def test_a_hostile_prompt_comes_as_data(sandbox):
    say(sandbox, HOSTILE)
    shown = inspect(sandbox, "exchange/1/0")
    assert shown.headers["content-type"] == "application/json"
    assert shown.headers["x-content-type-options"] == "nosniff"
    first = "".join(part for _, part in shown.json()["messages"][0][1])
    assert first.startswith(HOSTILE)


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
CHROMIUM_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=2000",
    "--dump-dom",
)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH (apt: chromium)")
def test_a_browser_shows_hostile_text_as_text(sandbox, tmp_path):
    sandbox.answers = [HOSTILE, "y" * 1_000_000]
    say(sandbox, HOSTILE)
    say(sandbox, "z" * 1_000_000)
    say(sandbox, HOSTILE + "\ud800")  # half a character, which the service refuses
    told = html.escape("<script>document.title='owned'", quote=False)
    for number, least in ((1, 2), (2, 0), (3, 1)):
        where = (f"--user-data-dir={tmp_path}", f"{sandbox.inspector_url}#{number}")
        command = [CHROMIUM, *CHROMIUM_OPTIONS, *where]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr[-2_000:]
        page = done.stdout
        assert "<title>Sandbox inspector</title>" in page
        assert page.count("<script>") == 1
        assert "<img" not in page
        assert "\u202e" not in page
        assert page.count(told) >= least
        assert "⟨U+202E⟩" in page or not least
        assert ("z" * 100_000 in page) == ("900,000 more characters" in page) == (not least)
