"""The general tools and their toolkit: requests, results, hostile arguments, an agent."""

from __future__ import annotations

import base64
import copy
import json
from io import BytesIO

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from peers import MARKED_KEY as KEY
from peers import answering, png, thawed, tool_call
from PIL import Image
from pydantic import ValidationError
from share import pairs

import langchain_svc as svc
from langchain_svc._wire import TRANSIENT
from langchain_svc.sandbox import Fault

PNG = png()
B64 = base64.b64encode(PNG).decode()
URI = "data:image/png;base64," + B64


@pytest.fixture
def kit(box):
    with svc.SvcToolkit(**{**box.general, **box.v1}) as toolkit:
        yield toolkit


def call(tool, **args):
    return tool.invoke(tool_call(tool, args))


def giving(cls, body, content_type="application/json", **settings):
    """A tool whose service gives this body."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": content_type}
    words = answering(lambda _: httpx.Response(200, content=content, headers=headers))
    if cls is svc.SvcGenerateImage:
        words["base_url_v1"] = "https://svc.example/v1"
    return cls(api_key="k", base_url="https://svc.example", **words, **settings)


# -- what is sent ----------------------------------------------------------------------------------


def test_the_general_interface_makes_one_image_at_a_time(box):
    with svc.SvcGenerateImage(**box.general, api="general") as tool:
        (handle,) = call(tool, prompt="a cat", size="1024x1792").artifact["images"]
        assert (tool.images.get(handle).width, tool.images.get(handle).height) == (1024, 1792)
        assert call(tool, prompt="a cat", n=2).status == "error"
    assert [request.path for request in box.requests] == ["/api/generate-image"]


def test_a_handle_sends_the_bytes_and_an_address_the_address(box, kit):
    kit.images.add(PNG)
    kit.images.add("https://example.com/a.png")
    tool = kit.get_tools()[1]
    for handle in ("img_1", " img_2 "):
        assert call(tool, image=handle, task="describe").status == "success"
    assert [r.json["image"] for r in box.requests] == [B64, "https://example.com/a.png"]


def test_an_image_in_the_arguments_is_sent_without_what_is_beside_the_picture(box, kit):
    exif, file = Image.Exif(), BytesIO()
    exif[0x010E] = "Zebulon in Xanadu"
    Image.new("RGB", (8, 8), "red").save(file, "JPEG", exif=exif)
    data = file.getvalue() + b"PK\x03\x04 a second file"
    written = base64.b64encode(data).decode()
    for image in (written, f"data:image/jpeg;base64,{written}"):
        assert call(kit.get_tools()[1], image=image, task="describe").status == "success"
        sent = base64.b64decode(box.requests[-1].json["image"])
        assert b"Zebulon" in data and b"Zebulon" not in sent and b"second file" not in sent
        kept = kit.images.get(kit.images.add(data)).data
        assert sent == kept  # as by a handle
        with Image.open(BytesIO(sent)) as picture:
            assert picture.size == (8, 8)


@pytest.mark.usefixtures("random_handles")
def test_no_error_lists_the_images_of_others(kit):
    handle = kit.images.add(PNG)
    for image in ("img_1", "img_99", "/etc/passwd", "xyz", B64[:-8]):
        made = call(kit.get_tools()[1], image=image, task="describe")
        assert made.status == "error" and handle not in made.content
    assert call(kit.get_tools()[1], image=handle, task="describe").status == "success"


# -- what comes back -------------------------------------------------------------------------------


def test_content_and_artifact(kit):
    translate, analyze, generate, *_ = kit.get_tools()
    made = call(generate, prompt="a red circle", n=2)
    assert made.content == "Made:\nimg_1: PNG, 1024x1024 pixels\nimg_2: PNG, 1024x1024 pixels"
    assert made.artifact["endpoint"] == "POST /v1/images/generate"
    assert made.artifact["request_id"].startswith("req_")
    assert len(made.artifact["raw"]["data"]) == 2
    assert (made.artifact["images"], made.artifact["unread"]) == (["img_1", "img_2"], [])
    assert [image.generated for image in kit.images] == [True, True]
    seen = call(analyze, image="img_1", task="describe")
    assert "a red circle" in seen.content == seen.artifact["text"]
    assert (seen.artifact["image"], seen.artifact["result"]["width"]) == ("img_1", 1024)
    for task, text in (
        ("ocr", "a red circle"),
        ("detect", "the whole picture"),
        ("moderate", '"flagged":false'),
    ):
        assert text in call(analyze, image="img_1", task=task).content
    told = call(translate, text="good day", target="es")
    assert told.content.startswith("[es] ")
    assert (told.artifact["source"], told.artifact["target"]) == ("en", "es")
    assert told.artifact["time"].endswith("+00:00")


NEEDED = {
    svc.SvcTranslate: {"text": "hello", "target": "es"},
    svc.SvcAnalyzeImage: {"image": B64, "task": "describe"},
    svc.SvcGenerateImage: {"prompt": "a cat"},
}
PAGE = "https://example.com/a.png"
PICTURES = [
    {"data": [{"b64_json": B64, "revised_prompt": "x"}]}, {"data": [{"url": PAGE}]}, {"image": URI}, {"image": B64},
    {"images": [B64]}, {"images": [{"url": PAGE}]},
    {"url": PAGE}, {"base64": B64}, {"success": True, "data": {"image": {"base64": B64}}},
    {"result": {"output": [URI]}}, {"output": PAGE}, [{"url": URI}],
    {"image_url": {"url": URI}}, B64, {"artifacts": [{"base64": B64, "seed": 1}]},
    {"data": [{"b64_json": B64, "url": PAGE}]}, PNG,
]  # fmt: skip


@pytest.mark.parametrize("body", PICTURES)
def test_one_image_in_many_shapes(body):
    kind = "image/png" if body == PNG else "application/json"
    tool = giving(svc.SvcGenerateImage, body, kind)
    message = call(tool, prompt="a cat")
    assert message.artifact["images"] == ["img_1"], message.content
    assert body == PNG or message.artifact["raw"] == body
    stored = tool.images.get("img_1")
    assert stored.data == PNG or stored.url == PAGE


def test_what_cannot_be_kept_is_told():
    came = [{"b64_json": B64}, {"b64_json": "iVBORw0KGgo"}, {"url": "http://10.0.0.1/a.png"}]
    message = call(giving(svc.SvcGenerateImage, {"data": came}), prompt="a cat")
    assert message.status == "success"
    assert message.artifact["images"] == ["img_1"]
    assert len(message.artifact["unread"]) == 2
    assert "2 of 3 came unusable" in message.content


UNREADABLE = [b"<html>", {"success": False, "message": "no plan"}, {"error": {"message": "no plan"}}, 7]  # fmt: skip


@pytest.mark.parametrize("body", UNREADABLE, ids=str)
@pytest.mark.parametrize("cls", NEEDED)
def test_a_body_without_a_result_is_a_tool_error(cls, body):
    message = call(giving(cls, body), **NEEDED[cls])
    assert message.status == "error"
    assert message.content
    assert message.artifact is None


TRANSLATIONS = [
    {"translation": "hola"}, {"translatedText": "hola"}, {"translated_text": "hola"}, {"text": "hola"},
    {"result": "hola"}, {"data": "hola"},
    {"text": "hello", "result": {"translation": "hola"}},
    {"success": True, "data": {"translations": [{"translatedText": "hola"}]}}, "hola",
    {"translations": [{"detected_source_language": "EN", "text": "hola"}]},
    [{"translations": [{"text": "hola", "to": "es"}]}], {"output": {"text": "hola"}},
    {"original": "hello", "translated": "hola"}, {"result": {"text": "hola"}}, {"translation": {"text": "hola"}},
    {"translation": {"es": "hola", "text": "hola"}},
]  # fmt: skip
ANALYSES = [
    ("describe", {"description": "a cat"}, "a cat"), ("describe", {"result": "a cat"}, "a cat"),
    ("describe", {"data": {"caption": "a cat"}}, "a cat"),
    ("describe", "a cat", "a cat"), ("describe", {"success": True, "response": {"text": "a cat"}}, "a cat"),
    ("ocr", {"text": "EXIT"}, "EXIT"),
    ("ocr", {"result": {"lines": ["EX", "IT"]}}, "EX\nIT"), ("ocr", {"text": ""}, "No text was found in the image."),
    ("detect", {"objects": [{"label": "cat", "score": 0.9}]}, '{"objects":[{"label":"cat","score":0.9}]}'),
    ("detect", {"result": {"objects": [], "faces": []}}, '{"objects":[],"faces":[]}'),
    ("detect", [{"name": "cat", "confidence": 1}], '[{"name":"cat","confidence":1}]'),
    ("detect", {"results": [{"label": "cat"}]}, '[{"label":"cat"}]'),
    ("detect", {"data": []}, "Nothing was found in the image."),
    ("moderate", {"flagged": True, "categories": {"violence": True}},
        '{"flagged":true,"categories":{"violence":true}}'), ("moderate", {"data": {"safe": True}}, '{"safe":true}'),
]  # fmt: skip
TEXTS = [(svc.SvcTranslate, {}, body, "hola") for body in TRANSLATIONS]
TEXTS += [(svc.SvcAnalyzeImage, {"task": task}, body, text) for task, body, text in ANALYSES]


@pytest.mark.parametrize(("cls", "words", "body", "text"), TEXTS)
def test_one_text_in_many_shapes(cls, words, body, text):
    message = call(giving(cls, body), **{**NEEDED[cls], **words})
    assert message.content == message.artifact["text"] == text
    assert message.artifact["raw"] == body


def test_bodies_are_read_to_a_depth():
    found = {"url": "https://example.com"}
    for _ in range(8):
        found = {"data": found}
    message = call(giving(svc.SvcGenerateImage, found), prompt="x")
    assert message.status == "error"
    assert message.artifact is None
    shallow = giving(svc.SvcGenerateImage, found["data"]["data"])
    assert call(shallow, prompt="x").status == "success"


# -- failures --------------------------------------------------------------------------------------


LOST_ANSWERS = [Fault(reset="before"), Fault(hang=True), Fault(cut=True)]
LOST_ANSWERS += [Fault(status=status, headers={"Retry-After": "0"}) for status in (502, 504)]
REFUSALS = [Fault(status=status, headers={"Retry-After": "0"}) for status in (408, 429, 500, 503)]


def test_each_status_that_is_retried_is_one_of_a_lost_answer_or_of_a_refusal():
    known = {fault.status for fault in LOST_ANSWERS + REFUSALS if fault.status}
    assert known == TRANSIENT, "LOST_ANSWERS: the service may be at work on it; REFUSALS: it is not"


@pytest.mark.parametrize(
    ("fault", "words"), pairs(LOST_ANSWERS + REFUSALS, [{}, {"retry_lost": True}])
)
def test_a_generation_that_may_have_been_made_is_not_made_again_unasked(box, fault, words):
    box.faults = [fault]
    with svc.SvcGenerateImage(**box.v1, timeout=0.5, max_retries=1, **words) as tool:
        assert call(tool, prompt="x").status == "error"
    assert len(box.requests) == (2 if words or fault in REFUSALS else 1)


def test_errors_are_raised_where_that_is_wanted(box):
    box.faults = [Fault(status=401)]
    tool = svc.SvcTranslate(**box.general, handle_tool_error=False, handle_validation_error=False)
    with pytest.raises(svc.SvcAuthenticationError):
        call(tool, text="x", target="es")
    with pytest.raises(ValidationError):
        tool.invoke({"text": "x"})
    tool.close()


# -- settings, copies, secrets ---------------------------------------------------------------------


REFUSED = [
    (svc.SvcTranslate, {"base_ur": "x"}, "did you mean 'base_url'"),
    (svc.SvcGenerateImage, {"api": "v2"}, "'v1' or 'general'"),
    (svc.SvcGenerateImage, {"base_url_v1": "http://svc.example/v1"}, "plain http"),
    (svc.SvcAnalyzeImage, {"images": []}, "ImageStore"),
    (svc.SvcToolkit, {"selected": ["svc_translat"]}, "did you mean 'svc_translate'"),
    (svc.SvcToolkit, {"selected": []}, "list of names"),
    (svc.SvcToolkit, {"selected": 7}, "list of names"), (svc.SvcToolkit, {"timeout": -1}, "above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "words", "said"), REFUSED)
def test_settings_are_checked(cls, words, said):
    with pytest.raises(ValidationError, match=said):
        cls(**words)


def test_the_schema_is_plain_json_schema(kit):
    for tool in kit.get_tools():
        schema = tool.tool_call_schema.model_json_schema()
        assert all(part["description"] for part in schema["properties"].values())
        assert {"ge", "le"}.isdisjoint(json.dumps(schema).split('"'))


def test_copies_and_pickles_of_a_toolkit_work(kit):
    kit.images.add(PNG)
    for other in (copy.deepcopy(kit), thawed(kit)):
        with other:
            assert other.images.get("img_1").data == PNG
            assert call(other.get_tools()[1], image="img_1", task="describe").status == "success"
    tool = thawed(kit.get_tools()[0])
    assert call(tool, text="x", target="es").status == "success"
    tool.close()


# -- the toolkit -----------------------------------------------------------------------------------


THREE = ["svc_translate", "svc_analyze_image", "svc_generate_image"]


def test_selection(kit):
    assert [t.name for t in kit.get_tools()][:3] == THREE
    chosen = svc.SvcToolkit(selected=[THREE[2], THREE[0]], image_api="general").get_tools()
    assert [t.name for t in chosen] == [THREE[0], THREE[2]]
    assert chosen[1].api == "general"
    (alone,) = svc.SvcToolkit(selected="svc_translate").get_tools()
    assert alone.name == "svc_translate"


async def test_tools_share_settings_and_connections_and_close_with_the_toolkit(box):
    words = {"timeout": 7, "max_retries": 0, "default_headers": {"X-Team": "a"}}
    kit = svc.SvcToolkit(**{**box.general, **box.v1}, **words)
    assert {(t.timeout, t.max_retries) for t in kit.get_tools()} == {(7, 0)}
    translate, analyze, generate, *_ = kit.get_tools()

    def ports():
        found = {r.client_port for r in box.requests}
        box.clear()
        return len(found)

    call(generate, prompt="x")
    call(analyze, image="img_1", task="ocr")
    translate.close()  # which is the toolkit's business
    with translate.model_copy() as other:
        call(other, text="x", target="es")
    assert {r.headers["x-team"] for r in box.requests} == {"a"}
    assert ports() == 1
    kit.close()
    async with kit:
        call(translate, text="x", target="es")
        assert "img_2" in await generate.ainvoke({"prompt": "a cat"})
        await translate.ainvoke({"text": "x", "target": "es"})
        assert ports() == 2  # one for each way
    await translate.ainvoke({"text": "x", "target": "es"})
    await kit.aclose()


def test_from_env(box, monkeypatch):
    with pytest.raises(svc.SvcRequestError, match="SVC_API_KEY"):
        svc.SvcToolkit.from_env()
    monkeypatch.setenv("SVC_API_KEY", KEY)
    with pytest.raises(svc.SvcRequestError, match="SVC_BASE_URL"):
        svc.SvcToolkit.from_env()
    monkeypatch.setenv("SVC_BASE_URL", box.url)
    with pytest.raises(svc.SvcRequestError, match="SVC_BASE_URL_V1"):
        svc.SvcToolkit.from_env()
    assert len(svc.SvcToolkit.from_env(image_api="general", selected=THREE).get_tools()) == 3
    assert len(svc.SvcToolkit.from_env(selected=["svc_translate"]).get_tools()) == 1
    monkeypatch.setenv("SVC_BASE_URL_V1", box.url + "/v1")
    with svc.SvcToolkit.from_env() as kit:
        assert call(kit.get_tools()[2], prompt="x").status == "success"


# -- an agent ---------------------------------------------------------------------------------------


QUESTION = "Generate an image of a red circle, then describe the image, then translate the description into 'es'."


@pytest.mark.usefixtures("random_handles")
@pytest.mark.parametrize("image_api", ["v1", "general"])
def test_an_agent_passes_only_handles(box, image_api):
    words = {**box.general, **box.v1}
    with svc.SvcToolkit(**words, image_api=image_api) as kit, svc.ChatSvc(**box.v1) as model:
        agent = create_agent(model, kit.get_tools())
        messages = agent.invoke({"messages": [("user", QUESTION)]})["messages"]
        results = [m for m in messages if isinstance(m, ToolMessage)]
        assert sorted(m.name for m in results) == sorted(THREE)
        assert {m.status for m in results} == {"success"}
        made, seen, told = results
        (handle,) = made.artifact["images"]
        assert (seen.artifact["image"], seen.artifact["task"]) == (handle, "describe")
        assert "a red circle" in seen.content
        assert told.content.startswith("[es] ")
        image = kit.images.get(handle).base64
        chats = [r for r in box.requests if r.path == "/v1/chat/completions"]
        assert chats
        assert all(image[:200].encode() not in r.body for r in chats)


def test_a_result_for_the_model_is_bounded_and_the_artifact_is_whole():
    text = "\n".join(f"line {n}" for n in range(30_000))
    for words, most in (({}, 100_100), ({"max_result_chars": 1000}, 1100)):
        message = call(
            giving(svc.SvcTranslate, {"translation": text}, **words), text="x", target="de"
        )
        assert len(message.content) < most
        assert "more characters of this result are left out" in message.content[-80:]
        assert message.artifact["text"] == text


def test_adapters_to_other_libraries_run_a_tool_by_its_arguments_alone():
    text, _ = giving(svc.SvcTranslate, {"translation": "Hallo"})._run(text="Hello", target="de")
    assert "Hallo" in text
