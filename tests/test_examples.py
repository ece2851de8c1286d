import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from share import part

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9]*.py"))


def output_of(name, environment=None):
    """What an example prints, once it has ended well and left nothing open."""
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", str(FOLDER / name)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_example_is_tested():
    here = Path(__file__).read_text("utf-8")
    for path in EXAMPLES:
        assert f'"{path.name}"' in here, path.name


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_short_and_say_what_they_show(path):
    lines = path.read_text("utf-8").splitlines()
    assert lines[0].startswith('"""')
    assert len(lines) <= 70


# What stands in the output of each, as patterns.
SAID = {
    "01_chat.py": ["17 \\* 23 = 391", "391 / 17 = 23", "finish_reason: stop", "'input_tokens': [1-9]"],
    "02_streaming.py": ["HTTP caches", "'total_tokens': [1-9]", "6 \\* 7 = 42", "6 \\+ 7 = 13"],
    "03_chain.py": [r"Meeting\(topic='caching', city='Lisbon', people=12\)"],
    "04_rag.py": [
        ("forbids a cache to store any part.* \\[1\\]\n  \\[1\\] caching.md: .*> Is POST"
         ".*\n  \\[1\\] retrying.md: .*not idempotent"),
        r"1997 \[unsupported\]\.\n.*'unsupported': \['Caches obey it since 1997'\]"],
    "05_batch.py": [rf"(?m)^ ?{n - 1}  What is {n} \* {n}\?  .*= {n * n}$" for n in range(1,
        25)] + [r"\n\['1 \* 1 = 1', '2 \* 2 = 4', '3 \* 3 = 9'\]\n$"],
    "06_usage.py": ["svc-pro: 7 calls, [1-9]\\d* tokens", '"calls": 1', "Usage"],
    "08_agent.py": ["(Tool Message.*){3}Ai Message.*Thursday", "Not Found", "Service Unavailable"],
    "09_structured.py": [r"Meeting\(topic='caching', city='Lisbon', people=12\)", "Lisbon True",
        r"\n\{'topic': 'caching', 'city': 'Lisbon', 'people': 12\}\n$"],
}  # fmt: skip


@pytest.mark.parametrize("name", part(SAID))
def test_an_example_says_what_it_is_for(name):
    out = output_of(name)
    for pattern in SAID[name]:
        assert re.search(pattern, out, re.DOTALL if "(?m)" not in pattern else 0), pattern


@pytest.mark.slow
def test_errors():
    out = output_of("07_errors.py")
    assert "1 + 1 = 2 after 2 retries" in out
    assert "SvcRateLimitError: The service answered 429" in out
    assert "retry_after: 3600 s" in out
    streamed = re.search(r"^(.*)\|$", out, re.MULTILINE)[1].replace("|", "")
    assert "SvcStreamError: " in out
    assert f"partial: {streamed!r}" in out
    assert "SvcNotFoundError: The service answered 404" in out


@pytest.mark.slow
def test_with_the_environment_set_the_examples_use_the_service(sandbox):
    out = output_of("01_chat.py", sandbox.env)
    assert "On the sandbox" not in out
    assert len(sandbox.requests) == 2
    assert sandbox.requests[0].json["model"] == "svc-pro"


@pytest.mark.slow
def test_images(tmp_path):
    out = output_of("10_images.py", {"TMPDIR": str(tmp_path)})
    assert out.index("svc_generate_image (") < out.index("svc_analyze_image (")
    assert out.index("svc_analyze_image (") < out.index("svc_translate (")
    assert re.search(r"image: img_1[a-z]{8}\b", out)
    assert "[es] " in out
    assert re.search(r"^img_4[a-z]{8}: .*256x256 pixels", out, re.MULTILINE)
    saved = [path.read_bytes() for path in tmp_path.glob("img_*.png")]
    assert len(saved) == 4
    assert all(data.startswith(b"\x89PNG") for data in saved)


def test_medical():
    out = output_of("11_medical.py")
    assert "temperature: °F to °C [entry 4" in out
    names = "systolic pressure, diastolic pressure, temperature"
    assert f"Sent of the patient's record: vital signs ({names})" in out
    assert "chest pain: considered under cardiology" in out
    told = out[out.index("The model reads:") : out.index("The clinician reads:")]
    assert "Its risk: low 0" in out
    assert "does not replace" in out
    for value in ("152", "99.5", "37.5", "0.021", "hypertension", "Body"):
        assert value not in told


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("ag_ui_langgraph") is None,
    reason='needs AG-UI (pip install "langchain-svc[dropin]")',
)
def test_a_page_with_footnotes():
    command = [sys.executable, "-W", "error::ResourceWarning", str(FOLDER / "13_citing_page.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    asked = {"id": "1", "role": "user", "content": "How much paid leave do I have?"}
    run = {"threadId": "t", "runId": "r", "messages": [asked], "state": {}}
    with subprocess.Popen(command, **pipes) as server:
        try:
            address = next(line.strip() for line in server.stdout if line.startswith("http:"))
            page = httpx.get(address).text
            empty = {"tools": [], "context": [], "forwardedProps": {}}
            answer = httpx.post(f"{address}/agent", json={**run, **empty}, timeout=60).text
        finally:
            server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=60)
    assert (server.returncode, errors) == (0, "")
    assert "<title>Ask the handbook</title>" in page
    assert not re.search("https?:|src=|@import", page)  # nothing is fetched from elsewhere
    events = [json.loads(line.removeprefix("data: ")) for line in answer.splitlines() if line]
    text = "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
    assert re.match(r"You have 28 days .*\. What is left .*\. A hotel .*\. You may also sell", text)
    assert not re.search("<cite|NONE", answer)


@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None or shutil.which("redis-server") is None,
    reason='needs Ray (pip install "langchain-svc[ray,redis]") and the command redis-server',
)
@pytest.mark.slow
def test_ray():
    out = output_of("12_ray.py")
    assert "48 answers from 6 shards" in out
    assert "0 * 0 = 0" in out
