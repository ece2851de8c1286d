"""LangChain's own suites for chat models, played from cassettes."""

from typing import ClassVar

import pytest
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_svc import ChatSvc

pytestmark = pytest.mark.vcr


class ChatSvcTraits:
    """What the suites are told about ChatSvc; they find out about tools by themselves."""

    chat_model_class = ChatSvc
    chat_model_params: ClassVar = {"model": "svc-turbo"}
    returns_usage_metadata = True
    supports_model_override = True
    model_override_value = "svc-pro"
    enable_vcr_tests = True
    supports_json_mode = True
    supports_anthropic_inputs = True
    # The chat endpoint takes and gives text, and counts tokens without saying of what kind.
    supports_image_inputs = False
    supports_image_urls = False
    supports_image_tool_message = False
    supports_pdf_inputs = False
    supports_pdf_tool_message = False
    supports_audio_inputs = False
    supports_video_inputs = False
    supported_usage_metadata_details: ClassVar = {"invoke": [], "stream": []}


class TestChatSvcUnit(ChatSvcTraits, ChatModelUnitTests):
    @property
    def init_from_env_params(self):
        key, url = "key-from-environment", "https://svc.invalid/v1"
        return (
            {"SVC_API_KEY": key, "SVC_BASE_URL_V1": url},
            {"model": "svc-turbo"},
            {"api_key": key, "base_url_v1": url, "model": "svc-turbo"},
        )


@pytest.mark.usefixtures("recorded_service")
class TestChatSvcIntegration(ChatSvcTraits, ChatModelIntegrationTests):
    pass
