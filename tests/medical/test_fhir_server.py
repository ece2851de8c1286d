"""A patient's record from a FHIR server.

Two servers: `Stub`, written here from the FHIR R4 specification, which also misbehaves; and sekmet
(`sekmet-fhir`, a FHIR R4 server for tests, Python 3.11 or newer), which nobody of this project
wrote. It is used where its command is on the PATH; install it into an environment of its own, since
it brings another uvicorn: `python3 -m venv S && S/bin/pip install sekmet-fhir`, PATH=$PATH:S/bin.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import logging
import pickle
import shutil
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

import langchain_svc as svc
from langchain_svc._fhir.pages import read_page, read_refusal, record_pages

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

TOKEN = "tok-MARKED-93417-abcdef"
PERSON = {"resourceType": "Patient", "id": "pat-1", "name": [{"family": "Quuxberg"}], "gender": "female", "birthDate": "1961-03-04"}  # fmt: skip
US_UNITS = {"system": "http://unitsofmeasure.org"}


def owned(kind, number, **elements):
    return {"resourceType": kind, "id": f"{kind.lower()}-{number}", "subject": {"reference": "Patient/pat-1"}, **elements}  # fmt: skip


def reading(number, loinc, value, unit):
    return owned(
        "Observation",
        number,
        status="final",
        code={"coding": [{"system": "http://loinc.org", "code": loinc, "display": "x"}]},
        effectiveDateTime="2026-01-02T10:00:00Z",
        valueQuantity={"value": value, "unit": unit, "code": unit, **US_UNITS},
    )


def condition(number, name):
    active = "http://terminology.hl7.org/CodeSystem/condition-clinical"
    return owned(
        "Condition",
        number,
        clinicalStatus={"coding": [{"system": active, "code": "active"}]},
        code={
            "coding": [
                {"system": "http://snomed.info/sct", "code": f"{number + 1}001", "display": name}
            ]
        },
    )


RECORD = [
    PERSON,
    *(condition(n, name) for n, name in enumerate(["Asthma", "Hypertension", "Gout"])),
    reading(1, "8480-6", 150, "mm[Hg]"),
    reading(2, "8462-4", 95, "mm[Hg]"),
    reading(3, "2160-0", 1.25, "mg/dL"),
]
EXPECTED = {
    "sex": "female",
    "medical_history": {"Asthma", "Hypertension", "Gout"},
    "systolic": 150,
    "diastolic": 95,
    "creatinine": 1.25,
}
TODAY = dt.date(2026, 1, 3)
SEARCHES = ["Condition?_count=2", "Observation?_count=1"]


def read(patient):
    return {
        "sex": patient.sex,
        "medical_history": set(patient.medical_history),
        "systolic": patient.vital_signs.systolic,
        "diastolic": patient.vital_signs.diastolic,
        "creatinine": patient.lab_results.creatinine,
    }


# -- a stub from the specification -----------------------------------------------------------------


class Stub:
    """Patient/$everything and searches by patient, two entries a page, with a bearer token.

    `answers` maps a path to what is said there instead: (status, headers, body or JSON), or a
    function of the request's query that gives it.
    """

    def __init__(self, record=RECORD, page=2):
        self.record, self.page, self.answers, self.requests = record, page, {}, []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                parts = urlsplit(self.path)
                stub.requests.append((self.path, dict(self.headers)))
                status, headers, body = stub.answer(
                    parts.path, dict(parse_qsl(parts.query)), self.headers
                )
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {
                    "Content-Type": "application/fhir+json",
                    "Content-Length": str(len(data)),
                    **headers,
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self._server.server_port}"
        self.url = f"{self.root}/fhir"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path, query, headers):
        said = self.answers.get(path.removeprefix("/fhir/"))
        if said is not None:
            return said(query) if callable(said) else said
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {}, outcome("login", "token of Quuxberg is bad")
        match path.removeprefix("/fhir").strip("/").split("/"):
            case ["Patient", "pat-1", "$everything"]:
                return 200, {}, self.pages(self.record, "$everything", int(query.get("_at", 0)))
            case ["Patient", "pat-1"]:
                return 200, {}, PERSON
            case [""] if "_getpages" in query:  # pages of a search, at the server's base
                kind, at = query["_getpages"].split("-")
                return 200, {}, self.pages(self.found(kind), kind, int(at))
            case [kind] if query.get("patient") == "pat-1":
                return 200, {}, self.pages(self.found(kind), kind, 0)
        return 404, {}, outcome("not-found", "Resource Patient/Quuxberg is not known")

    def found(self, kind):
        return [one for one in self.record if one["resourceType"] == kind]

    def pages(self, resources, what, at):
        entries = [
            {"fullUrl": f"{self.url}/{one['resourceType']}/{one['id']}", "resource": one}
            for one in resources[at : at + self.page]
        ]
        bundle = {"resourceType": "Bundle", "type": "searchset", "entry": entries, "link": [{"relation": "self", "url": self.url}]}  # fmt: skip
        if at + self.page < len(resources):
            at += self.page
            link = (  # relative in one kind of search, absolute in the other: both are allowed
                f"/fhir/Patient/pat-1/$everything?_at={at}"
                if what == "$everything"
                else f"{self.url}?{urlencode({'_getpages': f'{what}-{at}'})}"
            )
            bundle["link"].append({"relation": "next", "url": link})
        return bundle


def outcome(code, text):
    return {
        "resourceType": "OperationOutcome",
        "issue": [
            {
                "severity": "error",
                "code": code,
                "details": {"text": text},
                "diagnostics": f"{text} born 1961-03-04",
            }
        ],
    }


@pytest.fixture
def stub():
    with Stub() as server:
        yield server


# -- one that nobody here wrote --------------------------------------------------------------------


@pytest.fixture(scope="module")
def sekmet(tmp_path_factory):
    command = shutil.which("sekmet")
    if command is None:
        pytest.skip("the command sekmet is not on the PATH")
    home = tmp_path_factory.mktemp("sekmet")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/fhir"
    settings = {"base_url": url, "port": port, "host": "127.0.0.1", "data_dir": str(home), "simulator": {"enabled": False}, "server_behaviour": {"absolute_references": True}, "server_auth": {"types": ["bearer"], "tokens": [TOKEN]}}  # fmt: skip
    (home / "settings.yaml").write_text(json.dumps(settings))
    with (
        (home / "log").open("w") as log,
        subprocess.Popen([command, "serve"], cwd=home, stdout=log, stderr=log) as process,
    ):
        try:
            with httpx.Client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
                for _ in range(200):
                    with contextlib.suppress(httpx.HTTPError):
                        if client.get(f"{url}/metadata").is_success:
                            break
                    assert process.poll() is None, (home / "log").read_text()
                    time.sleep(0.1)
                for one in RECORD:
                    put = client.put(f"{url}/{one['resourceType']}/{one['id']}", json=one)
                    put.raise_for_status()
            yield url
        finally:
            process.terminate()


# -- whole records ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stub", "sekmet"])
@pytest.mark.parametrize("searches", [[], SEARCHES], ids=["everything", "searches"])
async def test_a_record_of_many_pages_is_the_record(name, searches, request):
    server = request.getfixturevalue(name)
    words = {"token": SecretStr(TOKEN), "searches": searches, "today": TODAY}
    url = getattr(server, "url", server)
    patient = svc.PatientContext.from_server(url, "pat-1", **words)
    assert read(patient) == EXPECTED
    assert patient.age == 64
    assert not patient.fhir_report.further_pages
    assert await svc.PatientContext.afrom_server(url + "/", "pat-1", **words) == patient
    if name == "stub":
        assert len(server.requests) > 6
        for _, headers in server.requests:
            assert headers["Authorization"] == f"Bearer {TOKEN}"
            assert headers["Accept"] == "application/fhir+json"


def test_keywords_of_from_fhir_and_settings_go_where_they_belong(stub):
    stub.answers["Observation"] = (503, {"Retry-After": "0"}, b"")
    words = {"token": TOKEN, "searches": ["Observation"], "today": TODAY}
    with pytest.raises(svc.SvcServerError):
        svc.PatientContext.from_server(stub.url, "pat-1", max_retries=1, **words)
    assert len(stub.requests) == 3, "the Patient once, the search and one retry"
    del stub.answers["Observation"]
    patient = svc.PatientContext.from_server(
        stub.url, "pat-1", units={"creatinine": "umol/L"}, default_headers={"X-Site": "7"}, **words
    )
    assert patient.lab_results.creatinine == pytest.approx(110.5, rel=1e-3)
    assert stub.requests[-1][1]["X-Site"] == "7"
    with pytest.raises(TypeError, match="tomorrow"):
        svc.PatientContext.from_server(stub.url, "pat-1", tomorrow=1, **words)


def test_a_client_of_ones_own_is_used_and_left_open(stub):
    with httpx.Client(headers={"X-Own": "1"}, follow_redirects=True) as client:
        words = {"token": TOKEN, "today": TODAY, "http_client": client}
        assert read(svc.PatientContext.from_server(stub.url, "pat-1", **words)) == EXPECTED
        assert stub.requests[0][1]["X-Own"] == "1"
        stub.answers["Patient/pat-1/$everything"] = (302, {"Location": f"{stub.root}/other"}, b"")
        with pytest.raises(svc.SvcAPIError, match=r"302.*redirects are not followed"):
            svc.PatientContext.from_server(stub.url, "pat-1", **words)
        assert not client.is_closed
    assert not any(path.startswith("/other") for path, _ in stub.requests)


def test_a_resource_that_comes_on_two_pages_counts_once():
    twice = [PERSON, RECORD[1], PERSON, RECORD[4], PERSON]
    with Stub(twice) as stub:
        patient = svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, today=TODAY)
    assert patient.medical_history == ("Asthma",)
    assert patient.vital_signs.systolic == 150


def test_a_linked_patient_that_comes_along_is_not_mixed_in():
    other = {**condition(7, "Migraine"), "subject": {"reference": "Patient/pat-2"}}
    with Stub([*RECORD, {**PERSON, "id": "pat-2", "gender": "male"}, other]) as stub:
        patient = svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, today=TODAY)
    assert read(patient) == EXPECTED


def test_the_services_own_key_is_never_sent_to_a_hospital(stub, monkeypatch):
    for name in ("SVC_API_KEY", "SVC_MEDICAL_API_KEY"):
        monkeypatch.setenv(name, "the-services-own-key")
    with pytest.raises(svc.SvcAuthenticationError, match="check the token"):
        svc.PatientContext.from_server(stub.url, "pat-1", today=TODAY)
    assert "Authorization" not in stub.requests[0][1]
    assert "the-services-own-key" not in str(stub.requests)


# -- links that lead elsewhere ---------------------------------------------------------------------


def linked(url):
    return (
        200,
        {},
        {
            "resourceType": "Bundle",
            "type": "searchset",
            "link": [{"relation": "next", "url": url}],
            "entry": [{"resource": PERSON}],
        },
    )


@pytest.mark.parametrize(
    "link",
    [
        "http://127.0.0.2:{port}/fhir?p=2", "http://localhost:{port}/fhir?p=2", "http://127.0.0.1:1/fhir?p=2", "https://127.0.0.1:{port}/fhir?p=2", "//evil.example/fhir",
        "http://127.0.0.1:{port}@evil.example/", "file:///etc/passwd", "http://[::1", "http://127.0.0.1:99999/", 7, None, ["x"],
    ],
)  # fmt: skip
def test_the_token_goes_to_no_other_origin(link, stub):
    port = stub.root.rpartition(":")[2]
    with Stub() as other:
        at = link.format(port=port) if isinstance(link, str) else link
        stub.answers["Patient/pat-1/$everything"] = linked(at)
        with pytest.raises(svc.SvcResponseError, match=r"another scheme, host or port") as raised:
            svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN)
        stub.answers["Patient/pat-1/$everything"] = linked(f"{other.url}/Patient/pat-1")
        with pytest.raises(svc.SvcResponseError, match="not followed"):
            svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN)
        assert other.requests == []
    assert len(stub.requests) == 2
    assert TOKEN not in str(raised.value)


def test_where_a_link_is_read_in_two_ways_the_token_stays_at_home(stub):
    port = stub.root.rpartition(":")[2]
    stub.answers["Patient/pat-1/$everything"] = linked(f"http://evil.example\\@127.0.0.1:{port}/x")
    with pytest.raises(svc.SvcNotFoundError):  # the guard of the network finds no other host
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN)
    assert [path for path, _ in stub.requests][1:] == ["/x"]


def test_a_redirect_is_not_followed(stub):
    with Stub() as other:
        stub.answers["Patient/pat-1/$everything"] = (307, {"Location": other.url}, b"")
        with pytest.raises(svc.SvcAPIError, match="redirects are not followed"):
            svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN)
        assert other.requests == []


def test_pages_are_bounded(stub):
    at = "Patient/pat-1/$everything"
    stub.answers[at] = linked(f"/fhir/{at}")
    with pytest.raises(svc.SvcResponseError, match="in a circle"):
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN)
    assert len(stub.requests) == 1
    stub.answers[at] = lambda query: linked(f"/fhir/{at}?p={int(query.get('p', 0)) + 1}")
    with pytest.raises(svc.SvcResponseError, match=r"more than 5 pages.*max_pages"):
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, max_pages=5)
    assert len(stub.requests) == 6
    with pytest.raises(svc.SvcResponseError, match=r"more than 1,000 bytes.*max_response_bytes"):
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, max_response_bytes=1000)
    assert len(stub.requests) < 15
    with pytest.raises(svc.SvcResponseError, match="larger than 100 bytes"):
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, max_response_bytes=100)


def test_one_deadline_for_all_pages(stub):
    def slow(query):
        time.sleep(0.2)
        return linked(f"/fhir/Patient/pat-1/$everything?p={int(query.get('p', 0)) + 1}")

    stub.answers["Patient/pat-1/$everything"] = slow
    with pytest.raises(svc.SvcTimeoutError, match=r"deadline of 0.7 s"):
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, deadline=0.7)
    assert len(stub.requests) < 6


# -- what a server may say -------------------------------------------------------------------------

WITHOUT = r"without Patient/\$everything is read by searches"


@pytest.mark.parametrize(
    ("status", "code", "kind", "said"),
    [
        (400, "not-supported", svc.SvcBadRequestError, WITHOUT), (404, "not-found", svc.SvcNotFoundError, WITHOUT), (405, "not-supported", svc.SvcAPIError, WITHOUT), (501, "not-supported", svc.SvcServerError, WITHOUT),
        (401, "login", svc.SvcAuthenticationError, "check the token"), (403, "forbidden", svc.SvcPermissionDeniedError, "scopes"), (410, "deleted", svc.SvcAPIError, "was deleted"), (429, "throttled", svc.SvcRateLimitError, "come back in 7 s"),
        (500, "exception", svc.SvcServerError, "exception"),
    ],
)  # fmt: skip
def test_errors_have_the_status_and_the_code_and_no_patient(status, code, kind, said, stub, caplog):
    caplog.set_level(logging.DEBUG)
    body = outcome(code, f"Quuxberg 1961-03-04 pat-1 {TOKEN}")
    body["issue"].append({"severity": "error", "code": "Quuxberg-Zebulonia"})
    headers = {"Retry-After": "7"} if status == 429 else {}
    stub.answers["Patient/pat-1/$everything"] = (status, {**headers, "X-Request-Id": "pat-1"}, body)
    with pytest.raises(kind, match=said) as raised:
        svc.PatientContext.from_server(
            stub.url, "pat-1", token=TOKEN, max_retries=0, max_retry_wait=0
        )
    error = raised.value
    assert (error.status_code, error.code) == (status, code)
    assert f"The FHIR server answered {status} (OperationOutcome: {code})" in str(error)
    assert error.is_retryable == (status == 500)
    shown = f"{error} {vars(error)} {caplog.text} {pickle.dumps(str(error))}"
    for secret in ("Quuxberg", "1961", "pat-1", "Zebulonia", TOKEN):
        assert secret not in shown


NOT_FHIR = [
    (b"<html>Quuxberg</html>", "it is not JSON"), (b"", "it is not JSON"), (b"[" * 100_000, "it is not JSON"), (b"[]", "no FHIR Bundle"), ({"resourceType": "Observation"}, "no FHIR Bundle"),
    (outcome("exception", "Quuxberg"), "an OperationOutcome.*exception"), ({"resourceType": "Bundle", "entry": {}}, "does not hold the Patient"), ({"resourceType": "Bundle", "entry": "Quuxberg"}, "entry is not a list"),
    ({"resourceType": "Bundle", "entry": ["Quuxberg", {"resource": 5}]}, "does not hold the Patient"), ({"resourceType": "Bundle", "entry": [{"resource": {**PERSON, "id": "pat-2"}}]}, "does not hold the Patient"),
    ({"resourceType": "Bundle", "entry": [{"resource": PERSON}, {"resource": outcome("incomplete", "Quuxberg")}]}, r"only a part of the record.*incomplete"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "said"), NOT_FHIR)
def test_what_is_no_record_of_that_patient_is_refused(body, said, stub):
    stub.answers["Patient/pat-1/$everything"] = (200, {}, body)
    with pytest.raises(svc.SvcResponseError, match=said) as raised:
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN)
    assert "Quuxberg" not in str(raised.value)


NAMES = st.sampled_from(["resourceType", "entry", "resource", "link", "relation", "url", "issue", "severity", "code", "id", "fullUrl", "search"])  # fmt: skip
TEXTS = st.sampled_from(["Bundle", "Patient", "OperationOutcome", "next", "error", "pat-1", "http://h/x?y", "http://[", "//e", ""])  # fmt: skip
ANY = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=20,
)


@given(st.dictionaries(NAMES, ANY).map(lambda held: {"resourceType": "Bundle", **held}), ANY)
def test_whatever_a_server_sends_the_errors_are_ours(held, failed):
    with contextlib.suppress(svc.SvcError, ValueError):
        steps = record_pages("http://h", "pat-1", (), max_pages=3, max_bytes=10_000)
        next(steps)
        with contextlib.suppress(StopIteration):
            while True:
                steps.send(read_page(json.dumps(held).encode()))
    error = read_refusal(400, {}, json.dumps(failed).encode(), now=0.0)
    assert isinstance(error, svc.SvcBadRequestError)


def test_a_search_that_is_refused_loses_the_record(stub):
    stub.answers["Condition"] = (403, {}, outcome("forbidden", "Quuxberg"))
    with pytest.raises(svc.SvcPermissionDeniedError, match="forbidden") as raised:
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, searches=["Condition"])
    assert "searches" not in str(raised.value)


def test_what_is_not_sent_at_all(stub):
    for id_ in ("", "a/b", "../x", "pat 1", "x" * 65, "Quuxberg^Z", 5):
        with pytest.raises(svc.SvcRequestError, match="patient_id must be") as raised:
            svc.PatientContext.from_server(stub.url, id_, token=TOKEN)
        assert "Quuxberg" not in str(raised.value)
    for searches in ("Condition", ["condition"], ["Condition?a b"], ["../Patient"], ["A?x\n"]):
        with pytest.raises(svc.SvcRequestError, match="searches"):
            svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN, searches=searches)
    for url in ("http://hospital.example/fhir", "ftp://x", f"{stub.url}?a=1", "https://u:p@x/"):
        with pytest.raises(ValueError, match=r"base URL|plain http"):
            svc.PatientContext.from_server(url, "pat-1", token=TOKEN)
    with pytest.raises(ValueError, match="a character that no HTTP header can carry") as raised:
        svc.PatientContext.from_server(stub.url, "pat-1", token=TOKEN + "\r\nX: y")
    assert TOKEN not in str(raised.value)
    assert stub.requests == []


def test_a_server_that_is_not_there():
    with socket.create_server(("127.0.0.1", 0)) as held:
        url = f"http://127.0.0.1:{held.getsockname()[1]}/fhir"
    with pytest.raises(svc.SvcConnectionError, match="could not be reached") as raised:
        svc.PatientContext.from_server(url, "pat-1", token=TOKEN, max_retries=0)
    assert "pat-1" not in str(raised.value)
