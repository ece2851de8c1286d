"""Token counts: offline, without warnings, and never a download."""

from __future__ import annotations

import base64
import hashlib
import warnings

import httpx
import pytest
import tiktoken
from langchain_core.messages import AIMessage, HumanMessage

import langchain_svc as svc
from langchain_svc import ListedModel
from langchain_svc._base import tokens as _tokens


@pytest.fixture
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("requests.get", lambda *_, **__: pytest.fail("tried to download"))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", 0, 0),
        ("word", 1, 1),
        ("The quick brown fox jumps over the lazy dog.", 9, 13),
        ("你好世界", 2, 5),
        ("x" * 4000, 1000, 1000),
    ],
)
def test_counts_by_the_rule_on_characters(offline, text, low, high):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert low <= svc.ChatSvc().get_num_tokens(text) <= high


def test_counts_of_messages(offline):
    model = svc.ChatSvc()
    turns = [HumanMessage("a" * 40), AIMessage("b" * 40)]
    assert model.get_num_tokens_from_messages(turns) == 2 * (10 + _tokens.TOKENS_A_TURN)

    def look_up(city: str) -> str:
        """Look up a city."""
        return city

    with_tools = model.get_num_tokens_from_messages(turns, [look_up])
    assert with_tools > model.get_num_tokens_from_messages(turns) + 10


def test_token_ids_say_what_they_need(offline):
    with pytest.raises(svc.SvcRequestError, match="TIKTOKEN_CACHE_DIR"):
        svc.ChatSvc().get_token_ids("hi")


def test_a_tokenizer_of_yours(offline):
    model = svc.ChatSvc(custom_get_token_ids=lambda text: [1] * len(text))
    assert (model.get_num_tokens("abc"), model.get_token_ids("ab")) == (3, [1, 1])


def test_an_encoding_in_the_cache_is_used(offline, monkeypatch):
    """The file stands in for the real one: each byte is a token."""
    ranks = b"\n".join(base64.b64encode(bytes([i])) + b" %d" % i for i in range(256))
    (offline / _tokens._ENCODING_FILE).write_bytes(ranks)
    monkeypatch.setattr("tiktoken.load.check_hash", lambda *_: True)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    _tokens._load.cache_clear()
    try:
        model = svc.ChatSvc()
        assert model.get_num_tokens("hello") == 5
        assert model.get_token_ids("ab") == [97, 98]
        assert model.get_num_tokens("<|endoftext|>") == 13
    finally:
        _tokens._load.cache_clear()
        tiktoken.registry.ENCODINGS.clear()


def test_a_damaged_file_falls_back(offline, monkeypatch):
    (offline / _tokens._ENCODING_FILE).write_bytes(b"damaged")
    monkeypatch.setattr(
        "requests.get", lambda *_, **__: (_ for _ in ()).throw(OSError("no network"))
    )
    _tokens._load.cache_clear()
    assert svc.ChatSvc().get_num_tokens("word") == 1
    _tokens._load.cache_clear()


def test_the_name_of_the_cached_file_is_tiktokens(monkeypatch, offline):
    seen = []
    monkeypatch.setattr("tiktoken.load.read_file", lambda path: seen.append(path) or b"")
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    with pytest.raises(Exception, match=r".*"):
        tiktoken.get_encoding("o200k_base")
    assert hashlib.sha1(seen[0].encode()).hexdigest() == _tokens._ENCODING_FILE


def asked_by(tokens_a_byte, *sizes):
    """A model with a quota, after prompts of these sizes, of which a service reported the tokens."""

    def serve(request):
        prompt = round(len(request.content) * tokens_a_byte)
        usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
        choice = {"message": {"content": "ok"}, "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [choice], "usage": usage})

    client = httpx.Client(transport=httpx.MockTransport(serve))
    quota = svc.SvcQuota(svc.Plan(tokens_per_minute=10**9))
    words = {"api_key": "k", "base_url_v1": "https://svc.example/v1", "http_client": client}
    model = svc.ChatSvc(**words, quota=quota)
    for size in sizes:
        model.invoke("x" * size)
    return model


@pytest.mark.parametrize("tokens_a_byte", [0.1, 0.5])
def test_counts_follow_what_the_service_reported(offline, tokens_a_byte):
    model = asked_by(tokens_a_byte, 5_000, 8_000)
    assert model.get_num_tokens("y" * 4_000) == pytest.approx(4_000 * tokens_a_byte, rel=0.01)
    assert model.get_num_tokens("") == 0
    assert model.get_num_tokens("\ud800") >= 1
    turns = [HumanMessage("y" * 4_000)]
    assert model.get_num_tokens_from_messages(turns) == pytest.approx(
        4_000 * tokens_a_byte + _tokens.TOKENS_A_TURN, rel=0.01
    )


def test_counts_follow_no_report_of_short_prompts_and_no_other_quota(offline):
    text = "y" * 4_000
    assert asked_by(0.1).get_num_tokens(text) == 1_000
    assert asked_by(0.1, 2, 2, 2).get_num_tokens(text) == 1_000
    assert svc.ChatSvc(quota=svc.SvcQuota("pro")).get_num_tokens(text) == 1_000


def test_a_tokenizer_of_yours_goes_before_what_was_reported(offline):
    model = asked_by(0.1, 5_000).model_copy(update={"custom_get_token_ids": lambda t: [1] * len(t)})
    assert model.get_num_tokens("abc") == 3


def test_a_profile_names_the_most_tokens_of_an_answer_that_the_service_lists():
    record = ListedModel(id="m", context_window=9_000, max_tokens=4_096)
    assert record.profile["max_output_tokens"] == 4_096
    assert "max_output_tokens" not in ListedModel(id="m").profile
    assert "max_output_tokens" not in svc.ChatSvc().profile  # v1 documents a default, no maximum
