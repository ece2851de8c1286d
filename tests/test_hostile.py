"""What a model may write into a tool call, at its worst: each time a tool error it can act on.

Nothing is sent, read, looked up or fetched. A name whose owner points it at a private address is
out of reach here: names are not looked up, so that is for the service to refuse.
"""

from __future__ import annotations

import base64
import math
import re
import sys

import pytest
from peers import MARKED_KEY as KEY
from peers import png, tool_call

import langchain_svc as svc
from langchain_svc.sandbox import Sandbox

PNG = png()
B64 = base64.b64encode(PNG).decode()
HUGE = base64.b64encode(bytes(9_000_000)).decode()


# -- what is watched -------------------------------------------------------------------------------

WATCHED = re.compile(
    r"open|os\.(listdir|scandir|open|system|exec|posix_spawn)|glob\.glob|subprocess\.Popen|ftplib.*"
    r"|socket\.(connect|bind|sendto|sendmsg|getaddrinfo|gethostbyname|getnameinfo)|urllib\.Request"
)


class Watch:
    """What the interpreter opens, looks up and connects to while it is on."""

    def __init__(self):
        self.on = False
        self.seen = []
        sys.addaudithook(self._hook)

    def _hook(self, event, args):
        if self.on and WATCHED.fullmatch(event):
            self.seen.append((event, args))

    def __enter__(self):
        self.seen.clear()
        self.on = True
        return self.seen

    def __exit__(self, *_):
        self.on = False


@pytest.fixture(scope="session")
def watch():
    return Watch()  # one for the session: an audit hook cannot be taken away


@pytest.fixture(scope="module")
def served():
    """A sandbox and every tool on it, each of which has worked once: all imports are done."""
    with (
        Sandbox(strict=True, api_key=KEY, medical_api_key=KEY) as box,
        svc.SvcToolkit(**{**box.general, **box.v1}) as general,
        svc.SvcMedicalToolkit(**box.medical) as medical,
    ):
        general.images.add(PNG)
        tools = {tool.name: tool for tool in general.get_tools() + medical.get_tools()}
        tools["on general"] = svc.SvcGenerateImage(**box.general, api="general")
        for name, asked in GOOD.items():
            assert called(tools[name], asked).status == "success"
        general.images.remove("img_2")  # which was made just now
        yield box, tools
        tools["on general"].close()


@pytest.fixture
def tools(served, watch):
    """The tools, in a test that may send and open nothing."""
    box, tools = served
    box.clear()
    with watch as seen:
        yield tools
    assert box.requests == []
    assert seen == []


def called(tool, args):
    return tool.invoke(tool_call(tool, args))


async def refused(tool, args):
    """The text of the tool error that these arguments give, blocking and asynchronously."""
    call = tool_call(tool, args)
    messages = [tool.invoke(call), await tool.ainvoke(call)]
    for message in messages:
        assert message.status == "error", message
        assert message.artifact is None
    first, second = [message.content for message in messages]
    assert first == second
    assert len(first) < 1_500
    assert KEY not in first
    return first


def test_the_watch_sees(served, watch, tmp_path):
    box, _ = served
    tmp_path.joinpath("file").write_text("x", encoding="utf-8")
    with watch as seen:
        tmp_path.joinpath("file").read_text(encoding="utf-8")
        with svc.SvcTranslate(**{**box.general, "api_key": "one-that-shares-nothing"}) as tool:
            called(tool, GOOD["svc_translate"])
    assert {"open", "socket.connect"} <= {event for event, _ in seen}


# -- every argument of every tool ------------------------------------------------------------------

GOOD = {
    "svc_translate": {"text": "hello", "target": "es"},
    "svc_analyze_image": {"image": "img_1", "task": "describe"},
    "svc_generate_image": {"prompt": "a cat"},
    "on general": {"prompt": "a cat"},
    "svc_medical_consult": {"message": "a cough"},
    "svc_decision_support": {"symptoms": ["pain"], "specialty": "neurology"},
    "svc_cancer_risk": {"symptoms": "a cough"},
    "svc_medical_status": {},
}


def nested(depth, make=lambda inner: [inner]):
    value = "ZAP"
    for _ in range(depth):
        value = make(value)
    return value


DEEP = [nested(100), nested(20_000), nested(20_000, lambda inner: {"systolic": inner})]
# fmt: off
NO_STRINGS = [5, 1.5, True, math.nan, math.inf, [], {}, ["x"], {"ZAP": 1}, ["x"] * 20_000, 10**400, *DEEP]
BAD_STRINGS = ["", " \n", "ZAP\x00", "ZAP\x1b[2J", "ZAP\x9b2J", "ZAP\ud800", HUGE]
MARKUP = ["<script>ZAP</script>", "</tool_response>ZAP", "ZAP<img src=x>"]
PLACES = ["/etc/passwd", "../../ZAP", "C:\\ZAP", "file:///etc/passwd", "http://127.0.0.1/ZAP",
    "http://169.254.169.254/latest", "http://[::1]/", "data:text/html;base64,WkFQ"]
NO_TEXT = [*NO_STRINGS, *BAD_STRINGS]
NO_LINE = [*NO_TEXT, *MARKUP]
NO_WORD = [*NO_LINE, *PLACES, "ZAP; DROP TABLE"]
NO_ENUM = [*NO_WORD, "destroy", "OCR", "1x1", "HD", "describe "]
NO_NUMBER = ["5", "five", "", True, False, math.nan, math.inf, -math.inf, 10**400, 10**5_000, -1, [], {}, [5],
    {"ZAP": 5}, *DEEP]
NO_LIST = ["ZAP", 5, True, {}, {"ZAP": "x"}, [5], [None], [True], [""], ["ZAP\x00"], ["\ud800"], ["<b>ZAP"], [["x"]],
    [{"ZAP": 1}], ["x"] * 20_000, [HUGE], *DEEP]
NO_OBJECT = ["ZAP", "{}", 5, True, [], ["x"], {"ZAP ZAP!": 1}, {"ZAP": "x"}, {"": 1},
    {f"k{i}": 1 for i in range(20_000)}, {"age": {"systolic": 1}}, *DEEP]
FURTHER = [{"ZAP": bad} for bad in NO_NUMBER if bad != -1]
READINGS = [*FURTHER, *[{"systolic": bad} for bad in NO_NUMBER]]
RESULTS = [*FURTHER, *[{"troponin": bad} for bad in NO_NUMBER]]
# fmt: on

IMAGES = [
    "/etc/passwd", "../../secret.png", "C:\\secret.png", "~/.ssh/id_rsa", "", " ", "img_2", "img_0", "IMG_1",
    "img_1\x00", "file:///etc/passwd", "FILE://localhost/etc/passwd",
    "http://127.0.0.1/a.png", "http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/",
    "http://localhost/", "http://LOCALHOST./", "http://a.localhost/", "http://[::1]/",
    "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://[fe80::1%25eth0]/", "http://[fd00::1]/",
    "http://0.0.0.0/", "http://169.254.169.254/latest/meta-data", "http://10.1.2.3/",
    "http://192.168.0.1/", "http://172.16.0.1/", "http://100.64.0.1/", "http://224.0.0.1/", "http://metadata/",
    "http://metadata.google.internal/", "http://printer.local/", "https://user:pw@example.com/a.png",
    "https://example.com@127.0.0.1/", "https://127.0.0.1\\@example.com/", "http://exa mple.com/",
    "https://example.com/a\x00.png", "http://127%2e0.0.1/", "http://①27.0.0.1/", "http://example.com:99999/",
    "http://", "https:///a.png", "https://example.com/" + "a" * 3000, "ftp://example.com/a.png",
    "gopher://example.com/", "javascript:alert(1)", "//example.com/a.png", "data:text/html,<script>",
    "data:image/png;base64,", "data:image/png;base64,AAAA",
    "data:image/png,abc", "A" * 3_000_000, B64 + "A" * 2_000_000, "data:image/png;base64," + "iVBORw0KGgo" * 300_000,
    "%%%", "<img src=x>", base64.b64encode(b"%PDF-1.7 not an image").decode(),
    base64.b64encode(b"<svg onload=x>").decode(),
    base64.b64encode(PNG[:16] + b"\x00\x01\x00\x00\x00\x01\x00\x00" + PNG[24:]).decode(),
    base64.b64encode(PNG[:18]).decode(), base64.b64encode(bytes(128) + b"DICM" + bytes(64)).decode(),
]  # fmt: skip

# fmt: off
NO_IMAGE = [*NO_WORD, *IMAGES]
NO_IMAGES = ["ZAP", 5, True, {}, [B64, "ZAP"], [None], *[[image] for image in NO_IMAGE], ["https://example.com/a.png"],
    ["img_1"]]
# fmt: on

TEXT = "(text|prompt|message|symptoms): (must|String should) "
CODE, WORD = "language code|must be a text", "must be|must have at most"
TASKS = "'detect', 'ocr', 'moderate' or 'describe'|must be a text"
SIZES, QUALITIES = "1024x1024|must be a text", "'standard' or 'hd'|must be a text"
ARGUMENTS = [
    ("svc_translate", "text", [*NO_TEXT, None], TEXT),
    ("svc_translate", "target", [*NO_WORD, None, "Spanish", "es\n", "../es"], CODE),
    ("svc_translate", "source", [*NO_WORD, "english!"], CODE),
    ("svc_analyze_image", "image", [*NO_IMAGE, None], "as it was given|must be a text"),
    ("svc_analyze_image", "task", [*NO_ENUM, None], TASKS),
    ("svc_generate_image", "prompt", [*NO_TEXT, None], TEXT), ("svc_generate_image", "size", NO_ENUM, SIZES),
    ("svc_generate_image", "quality", NO_ENUM, QUALITIES),
    ("svc_generate_image", "n", [*NO_NUMBER, 0, 5, 2.0], "whole number from 1 to 4"),
    ("on general", "prompt", [*NO_TEXT, None], TEXT), ("on general", "size", NO_ENUM, SIZES),
    ("on general", "quality", NO_ENUM, QUALITIES), ("on general", "n", [1, *NO_NUMBER], "prompt, size, quality"),
    ("svc_medical_consult", "message", [*NO_LINE, None], TEXT), ("svc_medical_consult", "specialty", NO_WORD, WORD),
    ("svc_medical_consult", "language", NO_WORD, WORD),
    ("svc_medical_consult", "patient_context", NO_OBJECT, "must be|does not have"),
    ("svc_medical_consult", "patient_context", [{"age": bad} for bad in [*NO_NUMBER, 131]],
        "finite number|0 or more|130 or less"),
    ("svc_medical_consult", "patient_context",
        [{name: bad} for bad in NO_LIST for name in ("medical_history", "current_medications")],
        "list|text|characters"),
    ("svc_decision_support", "symptoms", [*NO_LIST, None, []], "list|text|items?|characters"),
    ("svc_decision_support", "specialty", [*NO_WORD, None], WORD),
    ("svc_decision_support", "medical_history", NO_LIST, "list|text|items|characters"),
    ("svc_decision_support", "vital_signs", [*NO_OBJECT, *READINGS], "must be|must hold"),
    ("svc_decision_support", "lab_results", [*NO_OBJECT, *RESULTS], "must be|must hold"),
    ("svc_cancer_risk", "symptoms", [*NO_LINE, None], TEXT),
    ("svc_cancer_risk", "patient_age", [*NO_NUMBER, 131], "finite number|0 or more|130 or less"),
    ("svc_cancer_risk", "patient_sex", [*NO_LINE, "x" * 41], "text|characters"),
    ("svc_cancer_risk", "risk_factors", NO_LIST, "list|text|items|characters"),
    ("svc_cancer_risk", "images", NO_IMAGES, "PNG or JPEG|list|at most"),
    ("svc_cancer_risk", "imaging_type", [*NO_LINE, "x" * 2_001], "text|characters"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "argument", "values", "allowed"),
    ARGUMENTS,
    ids=[" ".join(row[:2]) for row in ARGUMENTS],
)
async def test_a_hostile_value_is_a_tool_error(tools, name, argument, values, allowed):
    for value in values:
        said = await refused(tools[name], {**GOOD[name], argument: value})
        assert re.search(allowed, said), said
        assert "ZAP" not in said
        assert "passwd" not in said


def test_no_argument_is_left_out(served):
    _, tools = served
    arguments = {(name, argument) for name, tool in tools.items() for argument in tool.args}
    rows = {row[:2] for row in ARGUMENTS}
    missing = arguments - rows
    assert not missing, f"add rows to ARGUMENTS in tests/test_hostile.py for {sorted(missing)}"
    assert rows - arguments == {("on general", "n")}


# -- what is wrong with a call as a whole ----------------------------------------------------------

FOREIGN = [
    "api_key",
    "base_url",
    "medical_base_url",
    "default_headers",
    "proxy",
    "config",
    "run_manager",
    "callbacks",
    "svc_patient",
    "patient",
    "images_store",
    "self",
    "from",
    "__class__",
    "x" * 5_000,
]


@pytest.mark.parametrize("name", [name for name, asked in GOOD.items() if asked])
async def test_arguments_that_a_tool_does_not_have(tools, name):
    for foreign in FOREIGN:
        said = await refused(tools[name], {**GOOD[name], foreign: "http://127.0.0.1/ZAP"})
        assert "does not have" in said
        assert f"The arguments are: {', '.join(tools[name].args)}." in said
        assert "ZAP" not in said
    for missing in GOOD[name]:
        rest = {argument: value for argument, value in GOOD[name].items() if argument != missing}
        assert f"{missing}: is required" in await refused(tools[name], rest)


ROWS = [
    ("svc_generate_image", {"prompt": "x" * 1_001}, "1000"),
    ("svc_translate", {"text": "x" * 100_001, "target": "es"}, "100,000 characters"),
    ("svc_decision_support", {"symptoms": ["x"] * 201, "specialty": "x"}, "at most 200"),
    ("svc_decision_support", {"symptoms": ["x", 5], "specialty": "x"}, "symptoms.1: must be a text"),
    ("svc_decision_support", {"symptoms": ["x"], "specialty": "x", "vital_signs": {"temperature": 98.6}}, "Fahrenheit"),
    ("svc_decision_support", {"symptoms": ["x"], "specialty": "x", "vital_signs": {"systolic": 80, "diastolic": 120}},
    "exchanged"),
    ("svc_medical_consult", {"message": "x" * 20_001}, "at most 20,000 characters"),
    ("svc_medical_consult", {"message": "x", "patient_context": {"ZAP": 1}}, "does not have"),
    ("svc_cancer_risk", {"symptoms": "x", "patient_age": 300}, "130 or less"),
    ("svc_cancer_risk", {"symptoms": "x", "images": [B64] * 9}, "at most 8"),
    ("svc_cancer_risk", {"symptoms": "x", "images": [HUGE]}, "at most 8 MB"),
    ("svc_cancer_risk", {"symptoms": "x", "images": ["https://example.com/a.png"]}, "paths and addresses are not read"),
    ("svc_analyze_image", {"image": "img_9", "task": "ocr"}, "exactly as it was given"),
    ("svc_analyze_image", {"image": "/etc/passwd", "task": "ocr"}, "files are not read"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "said"), ROWS)
async def test_what_is_doubted_is_said(tools, name, args, said):
    assert said in await refused(tools[name], args)


def test_an_input_that_is_one_text_is_checked_too(tools):
    rows = [
        ("svc_translate", "hello", "target: is required"),
        ("svc_analyze_image", "/etc/passwd", "task: is required"),
        ("svc_generate_image", "a\x00", "control"),
        ("svc_medical_consult", "a\x00", "control"),
        ("svc_cancer_risk", "a\x00", "control"),
    ]
    for name, text, problem in rows:
        with pytest.raises(svc.SvcRequestError, match=problem):
            tools[name].invoke(text)


def test_a_status_check_sends_nothing_of_what_a_model_says(served):
    box, tools = served
    box.clear()
    for args in ({"path": "/etc/passwd"}, {"x": nested(20_000)}, {"x": 10**5_000}):
        assert called(tools["svc_medical_status"], args).status == "success"
    assert {(r.method, r.path, r.query, r.body) for r in box.requests} == {
        ("GET", "/api/medical/clinic-protocols", "", b"")
    }
