"""Chunks that are copied are those that LangChain's constructors make."""

from __future__ import annotations

import pickle

import pytest
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

from langchain_svc.chat.readers import construct_chunk, copy_chunk, is_middle, text_chunk


def test_they_are_copied_in_these_versions():
    assert text_chunk is copy_chunk


TEXTS = [("a",), (" two\nlines",), ("é\u0000🙂",)]
ARGUMENTS = [
    ("", [tool_call_chunk(args=args, index=1)])
    for args in ('": 1', " x", "]}", "null", "[1]", '"', "1}")
]


@pytest.mark.parametrize("given", TEXTS + ARGUMENTS)
def test_nobody_can_tell_one_from_the_other(given):
    one, other = copy_chunk(*given), construct_chunk(*given)
    assert all(map(is_middle, given[1] if len(given) > 1 else ()))
    assert one == other
    assert one.message == other.message
    assert repr(one) == repr(other)
    assert dumpd(one) == dumpd(other)
    assert pickle.loads(pickle.dumps(one)) == other
    assert one.model_fields_set == other.model_fields_set
    assert one.message.content_blocks == other.message.content_blocks
    assert one + other == other + other
    assert one.model_copy(deep=True) == other
    allowed = [ChatGenerationChunk, AIMessageChunk]
    assert load(dumpd(one.message), allowed_objects=allowed) == other.message


def test_what_a_caller_changes_in_one_is_not_in_the_next():
    one, other = copy_chunk("a").message, copy_chunk("b").message
    one.additional_kwargs["x"] = one.response_metadata["y"] = 1
    one.tool_calls.append("z")
    one.name = "Ada"
    assert other == construct_chunk("b").message
    assert copy_chunk("c").message == construct_chunk("c").message
