"""Where requests go and what they carry: base URLs, keys, headers and proxies, of every class."""

from __future__ import annotations

import base64
import traceback
from functools import partial

import pytest
from peers import RawServer, response
from pydantic import ValidationError
from share import pairs

import langchain_svc as svc
from langchain_svc._http.connections import proxy_for

URL = "https://svc.example/v1"
# Every class that has a base URL, with the word for it.
CLASSES = {
    "ChatSvc": (svc.ChatSvc, "base_url_v1"),
    "ChatSvc, general": (partial(svc.ChatSvc, interface="general"), "base_url"),
    "SvcTranslate": (svc.SvcTranslate, "base_url"),
    "SvcAnalyzeImage": (svc.SvcAnalyzeImage, "base_url"),
    "SvcGenerateImage, v1": (svc.SvcGenerateImage, "base_url_v1"),
    "SvcGenerateImage, general": (svc.SvcGenerateImage, "base_url"),
    "SvcMedicalConsult": (svc.SvcMedicalConsult, "medical_base_url"),
    "SvcDecisionSupport": (svc.SvcDecisionSupport, "medical_base_url"),
    "SvcCancerRisk": (svc.SvcCancerRisk, "medical_base_url"),
    "SvcMedicalStatus": (svc.SvcMedicalStatus, "medical_base_url"),
    "SvcToolkit, v1": (svc.SvcToolkit, "base_url_v1"),
    "SvcToolkit, general": (svc.SvcToolkit, "base_url"),
    "SvcMedicalToolkit": (svc.SvcMedicalToolkit, "medical_base_url"),
}
EVERY_CLASS = pytest.mark.parametrize("name", CLASSES)


def make(name="ChatSvc", url=URL, **words):
    kind, word = CLASSES[name]
    return kind(**{"api_key": "k", word: url, **words})


# -- base URLs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["svc.example/v1", "localhost:8000/v1", "127.0.0.1:8765/v2", "ftp://your-host/v1"]
)
def test_a_missing_scheme_is_named_with_the_setting(url):
    with pytest.raises(ValidationError, match="base_url_v1: the base URL must look like") as raised:
        svc.ChatSvc(base_url_v1=url)
    assert "with http:// on this machine and https:// to others" in str(raised.value)


@pytest.mark.parametrize(
    "key", ["sk-0123456789abcdef", "eyJhbGciOi.eyJzdWIi.SflKxwRJSM", "Ab1.Cd2", "AbC.dEf/gh"]
)
def test_a_key_in_the_place_of_a_url_is_not_repeated(key):
    with pytest.raises(ValidationError, match="must look like") as raised:
        svc.ChatSvc(base_url_v1=key)
    assert key not in str(raised.value)
    assert key[:6] not in str(raised.value)


REFUSED = [
    # no scheme, another one, or no host
    ("svc.example/v1", "must look like"),
    ("svc.example:443/v1", "must look like"),
    ("localhost:8000", "must look like"),
    ("//svc.example/v1", "must look like"),
    ("https:/svc.example/v1", "must look like"),
    ("https:svc.example", "must look like"),
    ("https://", "must look like"),
    ("http:///v1", "must look like"),
    ("https://:443/v1", "must look like"),
    ("ftp://svc.example", "must look like"),
    ("file:///etc/passwd", "must look like"),
    # user information, query and fragment
    ("https://user:pw1@svc.example/v1", "user name or password"),
    ("https://user@svc.example/v1", "user name or password"),
    ("https://@svc.example/v1", "user name or password"),
    ("https://svc.example/v1?key=pw1", "no query"),
    ("https://svc.example/v1#top", "no fragment"),
    # what stands in no URL
    ("https://svc.ex ample/v1", "white space"),
    (" https://svc.example/v1", "white space"),
    ("https://svc.example/v1\n", "white space"),
    ("https://svc.example/\x7f", "white space"),
    ("https://svc.example/v1\u200b", "white space"),
    ("https://svc.example\u00ad/v1", "white space"),
    ("https://<your-host>/v1", "no URL may hold"),
    ("https://{host}/v1", "no URL may hold"),
    ("https://svc.example\\v1", "no URL may hold"),
    ("https://svc.example\\@evil.example/v1", "no URL may hold"),
    ('https://svc.example/"v1"', "no URL may hold"),
    # hosts
    ("https://svc..example/v1", "valid host"),
    ("https://.example/v1", "valid host"),
    ("https://-svc.example/v1", "valid host"),
    ("https://*.example/v1", "valid host"),
    ("https://svc.example,other.example/v1", "valid host"),
    (f"https://{'a' * 64}.example/v1", "valid host"),
    (f"https://{'a.' * 130}example/v1", "valid host"),
    ("https://\u017fvc.example/v1", "valid host"),
    ("https://[::1/v1", "valid host"),
    ("https://[v1.a]/v1", "valid host"),
    ("https://[fe80::1%25eth0]/v1", "valid host"),
    ("https://2001:db8::1/v1", "valid host"),
    ("https://[1.2.3.4]/v1", "valid host"),
    # ports
    ("https://svc.example:65536/v1", "valid host and port"),
    ("https://svc.example:0/v1", "valid host and port"),
    ("https://svc.example:-1/v1", "valid host and port"),
    ("https://svc.example:80a/v1", "valid host and port"),
    ("https://svc.example:\u0663/v1", "valid host and port"),
    # plain http beyond this machine, also by what looks like this machine
    ("http://svc.example/v1", "plain http"),
    ("http://10.0.0.1/v1", "plain http"),
    ("http://localhost.evil.example/v1", "plain http"),
    ("http://app.localhost/v1", "plain http"),
    ("http://127.0.0.1.evil.example/v1", "plain http"),
    ("http://127.1/v1", "plain http"),
    ("http://2130706433/v1", "plain http"),
    ("http://0x7f.1/v1", "plain http"),
    ("http://0.0.0.0/v1", "plain http"),
    ("http://[2001:db8::1]/v1", "plain http"),
    ("http://evil.example/localhost", "plain http"),
    ("HTTP://SVC.EXAMPLE/v1", "plain http"),
]


@pytest.mark.parametrize(("url", "said"), REFUSED)
def test_base_urls_that_are_refused(url, said):
    with pytest.raises(ValidationError, match=said) as raised:
        make(url=url)
    assert "pw1" not in str(raised.value)


@EVERY_CLASS
def test_every_class_checks_its_base_url_and_headers(name):
    for url in (
        "https://user:pw1@svc.example",
        "http://svc.example",
        "svc.example",
        "https://svc.example:0",
    ):
        with pytest.raises(ValidationError, match=r"base URL|plain http") as raised:
            make(name, url)
        assert "pw1" not in str(raised.value)
    assert make(name, "http://svc.example", insecure_hosts=["svc.example"])
    with pytest.raises(ValidationError, match="api_key"):
        make(name, default_headers={"Authorization": "Bearer x1"})


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://svc.example/v1/", URL),
        ("https://svc.example:8443/a/v1//", "https://svc.example:8443/a/v1"),
        ("https://svc.example", "https://svc.example"),
        ("https://svc.example//", "https://svc.example"),
        ("https://svc.example//v1", "https://svc.example//v1"),
        ("https://svc.example/v1?", URL),
        ("https://svc.example/v1#", URL),
        ("https://svc.example:/v1", URL),
        ("HTTPS://SVC.Example/v1", URL),
        ("https://svc.example./v1", "https://svc.example./v1"),
        ("https://svc_1.example/v1", "https://svc_1.example/v1"),
        ("https://1.2.3.4/v1", "https://1.2.3.4/v1"),
        ("https://b\u00fccher.example/v1", "https://xn--bcher-kva.example/v1"),
        ("https://xn--bcher-kva.example/v1", "https://xn--bcher-kva.example/v1"),
        ("https://svc\u3002example/v1", URL),
        ("https://[2001:DB8::0:1]:8443/v1", "https://[2001:db8::1]:8443/v1"),
        ("http://[::1]:5/v1", "http://[::1]:5/v1"),
        ("http://localhost:1/v1", "http://localhost:1/v1"),
        ("http://LOCALHOST./v1", "http://localhost./v1"),
        ("http://127.0.0.9/v1", "http://127.0.0.9/v1"),
        ("https://app.localhost/v1", "https://app.localhost/v1"),
    ],
)
def test_base_urls_that_are_kept(url, kept):
    assert make(url=url).base_url_v1 == kept


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://gateway.lan/v1", "gateway.lan"),
        ("http://GATEWAY.lan:8080/v1", "Gateway.LAN"),
        ("http://10.0.0.1/v1", "10.0.0.1"),
        ("http://[2001:db8::1]/v1", "2001:db8::1"),
    ],
)
def test_plain_http_to_a_host_that_is_named(url, named):
    assert make(url=url, insecure_hosts=[named]).base_url_v1
    with pytest.raises(ValidationError, match="plain http"):
        make(url=url, insecure_hosts=["other.lan", "lan"])


# -- keys -------------------------------------------------------------------------------------------


@EVERY_CLASS
@pytest.mark.parametrize(
    "key", ["a\nb", "a\r\nX: y", "a b", "a\tb", "ключ", "a\x00", "a\x7f", "a\u00a0b"]
)
def test_keys_that_no_header_can_carry(name, key):
    with pytest.raises(ValidationError, match="API key") as raised:
        make(name, api_key=key)
    assert key not in str(raised.value)


@pytest.mark.parametrize(
    ("near", "wanted"), [("SVC_APIKEY", "SVC_API_KEY"), ("SVC_BASE_URL", "SVC_BASE_URL_V1")]
)
def test_a_variable_of_nearly_the_name_is_pointed_out(monkeypatch, near, wanted):
    for name in ("SVC_API_KEY", "SVC_BASE_URL_V1", "SVC_BASE_URL", near):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(near, "https://s3cret.example")
    given = {"base_url_v1": URL} if "KEY" in wanted else {"api_key": "k"}
    with pytest.raises(svc.SvcRequestError) as raised:
        svc.ChatSvc(**given).invoke("Hello")
    assert f" {near} is set, but this interface reads {wanted}. " in str(raised.value)
    assert "s3cret" not in str(raised.value)


@EVERY_CLASS
def test_white_space_around_a_key_is_dropped(name):
    made = make(name, api_key=" k1\n")
    assert getattr(made, "service", made).api_key.get_secret_value() == "k1"


# -- headers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({name: "x1"}, "api_key")
        for name in (
            "Authorization",
            "AUTHORIZATION",
            "X-API-Key",
            "x_api_key",
            "Cookie",
            "Proxy-Authorization",
        )
    ]
    + [
        ({name: "x1"}, "for each request")
        for name in (
            "Host",
            "Content-Length",
            "content_length",
            "Content-Type",
            "Content-Encoding",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "Upgrade",
            "Expect",
            "TE",
            "Trailer",
            "Range",
            "Accept-Encoding",
        )
    ]
    + [
        ({name: "x1"}, "not a header name")
        for name in ("Bad Name", "", "X:", "X\r\nY", "É", "-x", "Content-Length ")
    ]
    + [({"X": value}, "cannot stand") for value in ("x1\r\nY: z", "x1\n", "x1é", "x1\0")]
    + [
        ({"X-A": "x1", "x-a": "x1"}, "twice"),
        ({"X-A": "x1", "X_A": "x1"}, "twice"),
        ({"X": 5}, "valid string"),
        ({5: "x1"}, "valid string"),
    ],
)
def test_headers_that_are_refused(headers, said):
    with pytest.raises(ValidationError, match=said) as raised:
        make(default_headers=headers)
    assert "x1" not in str(raised.value)


def test_headers_of_yours_are_sent_once_in_the_place_of_ours_and_stay_private():
    headers = {"X-Team": " t-77 ", "User-Agent": "ours/1", "accept": "application/json", "X.Y": ""}
    with RawServer(lambda c: c.sendall(response(b"{}", status="400 Bad"))) as server:
        error = through("ChatSvc", server.url, default_headers=headers)
        assert type(error) is svc.SvcBadRequestError
        head = server.requests[0].partition(b"\r\n\r\n")[0].lower()
    assert {b"x-team: t-77", b"user-agent: ours/1", b"x.y: "} <= set(head.split(b"\r\n"))
    assert head.count(b"\r\nuser-agent:") == head.count(b"\r\naccept:") == 1
    assert "t-77" not in repr(make(default_headers=headers))


# -- proxies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://svc.example/v1", {"HTTPS_PROXY": "http://proxy:1"}, "http://proxy:1"),
        ("https://svc.example/v1", {"https_proxy": "proxy:1"}, "http://proxy:1"),
        ("https://svc.example/v1", {"HTTP_PROXY": "http://proxy:1"}, None),
        ("http://svc.example/v1", {"http_proxy": "http://proxy:1"}, "http://proxy:1"),
        ("https://svc.example/v1", {"ALL_PROXY": "http://proxy:2"}, "http://proxy:2"),
        (
            "https://svc.example/v1",
            {"ALL_PROXY": "http://proxy:2", "HTTPS_PROXY": "http://proxy:1"},
            "http://proxy:1",
        ),
        ("https://svc.example/v1", {"HTTPS_PROXY": "http://u:p@proxy:1"}, "http://u:p@proxy:1"),
        ("https://svc.example/v1", {"HTTPS_PROXY": ""}, None),
        (
            "https://svc.example/v1",
            {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "svc.example"},
            None,
        ),
        (
            "https://svc.example/v1",
            {"HTTPS_PROXY": "http://proxy:1", "no_proxy": "other, .example"},
            None,
        ),
        ("https://svc.example/v1", {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "*"}, None),
        (
            "https://svc.example/v1",
            {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "other"},
            "http://proxy:1",
        ),
        (
            "https://svc.example:8443/v1",
            {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "svc.example:8443"},
            None,
        ),
        (
            "https://svc.example:8443/v1",
            {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "svc.example:1"},
            "http://proxy:1",
        ),
        (
            "http://127.0.0.1:9/v1",
            {"HTTP_PROXY": "http://proxy:1", "ALL_PROXY": "http://proxy:1"},
            None,
        ),
        ("http://localhost/v1", {"HTTP_PROXY": "http://proxy:1"}, None),
        ("http://[::1]:9/v1", {"HTTP_PROXY": "http://proxy:1"}, None),
        ("https://localhost/v1", {"HTTPS_PROXY": "http://proxy:1"}, None),
    ],
)
def test_proxies_of_the_environment(monkeypatch, url, environment, proxy):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == proxy


def through(name, url, **words):
    """Makes one call of a class; gives its error."""
    made = make(name, url, insecure_hosts=["service.example"], max_retries=0, **words)
    tools = {"SvcTranslate": {"text": "hi", "target": "de"}, "SvcMedicalStatus": {}}
    with pytest.raises(svc.SvcError) as raised:
        made.invoke(tools.get(name, "hi"))
    made.close()
    return raised.value


THROUGH = ["ChatSvc", "ChatSvc, general", "SvcTranslate", "SvcMedicalStatus"]
ASKED = pytest.mark.parametrize("name", THROUGH)


@ASKED
@pytest.mark.parametrize("upper", [True, False])
def test_loopback_is_never_asked_for_through_a_proxy(monkeypatch, name, upper):
    with (
        RawServer(lambda c: c.sendall(response(b"{}", status="502 Proxy"))) as proxy,
        RawServer(lambda c: c.sendall(response(b"{}", status="400 Bad"))) as server,
    ):
        for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(variable if upper else variable.lower(), proxy.url)
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            assert type(through(name, url)) is svc.SvcBadRequestError
        assert (len(server.requests), proxy.accepted) == (2, 0)


VARIABLES = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", None]


@pytest.mark.parametrize(("name", "variable"), pairs(THROUGH, VARIABLES))
def test_other_hosts_are_asked_for_through_the_proxy(monkeypatch, name, variable):
    with RawServer(lambda c: c.sendall(response(b"{}", status="418 Proxy"))) as proxy:
        url = proxy.url.replace("//", "//user:s3cret-word@")
        words = {}
        if variable is None:
            words = {"proxy": url}
        else:
            monkeypatch.setenv(variable, url)
        error = through(name, "http://service.example", **words)
        (request,) = proxy.requests
    assert error.status_code == 418
    assert b" http://service.example/" in request.partition(b"\r\n")[0]
    assert base64.b64encode(b"user:s3cret-word") in request
    assert "s3cret" not in "".join(traceback.format_exception(error))


BAD_PROXIES = [
    "proxy:x",
    "http://",
    "http://user:s3cret-word@",
    "foo://user:s3cret-word@proxy:1",
    "http://user:s3cret#word@proxy:1",
    "http://proxy:99999",
    "http://<proxy>",
]


@pytest.mark.parametrize("url", BAD_PROXIES)
def test_a_proxy_that_cannot_be_one_is_told_of(monkeypatch, url):
    with pytest.raises(ValidationError, match="proxy must look like") as raised:
        make(proxy=url)
    assert "s3cret" not in str(raised.value)
    monkeypatch.setenv("ALL_PROXY", url)
    error = through("ChatSvc", "https://service.example/v1")
    assert type(error) is svc.SvcRequestError
    assert "ALL_PROXY" in str(error)
    assert "s3cret" not in str(error)


def test_a_proxy_that_speaks_socks_needs_its_package(monkeypatch):
    monkeypatch.setattr("langchain_svc.config.find_spec", lambda _: None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    error = through("ChatSvc", "https://service.example/v1")
    assert type(error) is svc.SvcRequestError
    assert 'pip install "httpx[socks]"' in str(error)


def test_a_proxy_stays_private():
    model = make(proxy="http://user:s3cret-word@proxy.example:1")
    assert "s3cret" not in repr(model) + str(model) + str(model.model_dump())
