"""LangChain's own integration suite over real sockets, in each of the ways an answer can come."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
from langchain_tests.integration_tests import ChatModelIntegrationTests
from test_langchain_suite import ChatSvcTraits, GeneralTraits

from langchain_svc.sandbox import Sandbox


@pytest.fixture
def vcr():
    """No cassette: test_stream_time, which looks at one, measures a stream of the sandbox."""
    return SimpleNamespace(responses=["live"])


@pytest.fixture(scope="class")
def service(request):
    with Sandbox(**request.cls.service_settings) as s:
        yield s


@pytest.fixture(autouse=True)
def service_environment(service, clean_environment, monkeypatch):
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)


class TestEvents(ChatSvcTraits, ChatModelIntegrationTests):
    service_settings: ClassVar = {"stream_format": "sse"}


class TestLinesWithoutUsage(ChatSvcTraits, ChatModelIntegrationTests):
    service_settings: ClassVar = {"stream_format": "ndjson", "stream_usage": False}


class TestPlainText(ChatSvcTraits, ChatModelIntegrationTests):
    service_settings: ClassVar = {"stream_format": "text"}


class TestOneWholeAnswer(ChatSvcTraits, ChatModelIntegrationTests):
    service_settings: ClassVar = {"stream_format": "json"}


class TestInvokeStreams(ChatSvcTraits, ChatModelIntegrationTests):
    """With `streaming=True` and a chunk for every event, from a service that is strict."""

    service_settings: ClassVar = {"strict": True}
    chat_model_params: ClassVar = {
        **ChatSvcTraits.chat_model_params,
        "streaming": True,
        "merge_events": False,
    }


class TestGeneralInterface(GeneralTraits, ChatModelIntegrationTests):
    service_settings: ClassVar = {"strict": True}


class TestGeneralLines(GeneralTraits, ChatModelIntegrationTests):
    service_settings: ClassVar = {"stream_format": "ndjson", "stream_usage": False}


class TestGeneralInvokeStreams(GeneralTraits, ChatModelIntegrationTests):
    service_settings: ClassVar = {"stream_format": "text"}
    chat_model_params: ClassVar = {
        **GeneralTraits.chat_model_params,
        "streaming": True,
        "merge_events": False,
    }
