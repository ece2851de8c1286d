"""HTTP/1.1 itself, over raw sockets: what a client library may do and a test rarely does."""

import json
import socket

import pytest
from sandbox_peer import until

from langchain_svc.sandbox import Sandbox


@pytest.fixture
def talk(sandbox):
    """talk(text) sends it on one connection and returns all that comes before the end."""

    def say(text, *more):
        port = int(sandbox.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(text.encode())
            answer = b""
            for each in more:
                answer += client.recv(65_536)
                client.sendall(each.encode())
            while piece := client.recv(65_536):
                answer += piece
        return answer.decode()

    return say


def request(method="GET", path="/v1/models", body="", **headers):
    headers = {"Host": "sandbox", "Authorization": "Bearer sandbox-key"} | headers
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines) + f"\r\n\r\n{body}"


CLOSE = {"Connection": "close"}
BODY = json.dumps({"message": "What is 2 + 2?"})
TYPED = {"Content-Type": "application/json", "Content-Length": str(len(BODY))}


def test_requests_sent_ahead_are_answered_in_order(talk):
    chat = request("POST", "/api/chat", BODY, **TYPED)
    answer = talk(chat + request("GET", "/api/models") + request(**CLOSE))
    assert answer.count("HTTP/1.1 200 OK") == 3
    order = [answer.index(word) for word in ("2 + 2 = 4", '"max_tokens"', '"context_window"')]
    assert order == sorted(order)


def test_a_client_that_asks_first_is_told_to_go_on(talk):
    head = request("POST", "/api/chat", **TYPED, **CLOSE, Expect="100-continue")
    answer = talk(head, BODY)
    assert answer.startswith("HTTP/1.1 100")
    assert "2 + 2 = 4" in answer


def test_what_is_no_http_is_refused_and_head_gets_no_body(talk):
    assert talk("no HTTP at all\r\n\r\n").startswith("HTTP/1.1 400 Bad Request")
    answer = talk(request("HEAD", "/v1/models", **CLOSE))
    assert answer.startswith("HTTP/1.1 405")
    assert answer.endswith("\r\n\r\n")


def test_a_client_that_leaves_before_its_end_is_noted():
    with Sandbox() as s:
        port = int(s.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(request("POST", "/api/chat", BODY[:5], **TYPED).encode())
            until(lambda: s.requests)
        until(lambda: s.requests[0].disconnected)
        assert s.requests[0].status is None
