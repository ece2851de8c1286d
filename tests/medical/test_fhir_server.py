"""The recipe of docs/medical-records.md that reads a record from a FHIR server, as the page has it.

Two servers: `Stub`, written here from the FHIR R4 specification, which also misbehaves; and sekmet
(`sekmet-fhir`, a FHIR R4 server for tests, Python 3.11 or newer), which nobody of this project
wrote. It is used where its command is on the PATH; install it into an environment of its own, since
it brings another uvicorn: `python3 -m venv S && S/bin/pip install sekmet-fhir`, PATH=$PATH:S/bin.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time

import httpx
import pytest
from fences import ROOT, blocks_of
from fhir_records import FAILED, TODAY, condition, observation, quantity
from peers import RawServer, response

import langchain_svc as svc

pytest.importorskip("fhir.resources", reason="the extra fhir is not installed")

TOKEN = "tok-MARKED-93417-abcdef"
PAT = {"subject": {"reference": "Patient/pat-1"}}
PERSON = {"resourceType": "Patient", "id": "pat-1", "gender": "female", "birthDate": "1961-03-04"}
RECORD = [
    PERSON,
    *(
        {"id": f"c{n}", **condition(f"{n + 1}001", name), **PAT}
        for n, name in enumerate(["Asthma", "Hypertension", "Gout"])
    ),
    *(
        {"id": f"o{code}", **observation(code, quantity(value, unit)), **PAT}
        for code, value, unit in (
            ("8480-6", 150, "mm[Hg]"),
            ("8462-4", 95, "mm[Hg]"),
            ("2160-0", 1.25, "mg/dL"),
        )
    ),
]
(BLOCK,) = [
    block
    for block in blocks_of(ROOT / "docs" / "medical-records.md")
    if "def read_record" in block.code
]


@pytest.fixture
def read_record():
    names = {}
    exec(compile("\n" * BLOCK.line + BLOCK.code, str(BLOCK.page), "exec"), names)
    return names["read_record"]


class Stub(RawServer):
    """Patient/$everything, two entries a page, with a bearer token; `link` leads elsewhere."""

    def __init__(self, record=RECORD, link="/fhir/Patient/pat-1/$everything?_at={}"):
        super().__init__(self.answer)
        self.record, self.link, self.url = record, link, f"{self.url}/fhir"

    def answer(self, connection):
        request = self.requests[-1].decode()
        known = f"Bearer {TOKEN}\r\n" in request
        at = re.search(r"_at=(\d+)", request)
        answer = self.bundle(int(at[1]) if at else 0) if known else FAILED
        status = "200 OK" if known else "401 Unauthorized"
        connection.sendall(response(json.dumps(answer, default=float).encode(), status=status))

    def bundle(self, at):
        entries = [{"resource": resource} for resource in self.record[at : at + 2]]
        following = [{"relation": "next", "url": self.link.format(at + 2)}]
        links = [{"relation": "self", "url": self.url}, *following * (at + 2 < len(self.record))]
        return {"resourceType": "Bundle", "type": "searchset", "link": links, "entry": entries}


@pytest.fixture(scope="module")
def sekmet(tmp_path_factory):
    command = shutil.which("sekmet")
    if command is None:
        pytest.skip("the command sekmet is not on the PATH")
    home = tmp_path_factory.mktemp("sekmet")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/fhir"
    settings = {
        "base_url": url,
        "port": port,
        "host": "127.0.0.1",
        "data_dir": str(home),
        "simulator": {"enabled": False},
        "server_behaviour": {"absolute_references": True},
        "server_auth": {"types": ["bearer"], "tokens": [TOKEN]},
    }
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
                for resource in RECORD:
                    body = json.loads(json.dumps(resource, default=float))
                    client.put(
                        f"{url}/{resource['resourceType']}/{resource['id']}", json=body
                    ).raise_for_status()
            yield url
        finally:
            process.terminate()


def is_whole(patient):
    signs = (patient.vital_signs.systolic, patient.vital_signs.diastolic)
    assert set(patient.medical_history) == {"Asthma", "Hypertension", "Gout"}
    assert (patient.sex, *signs, patient.lab_results.creatinine) == ("female", 150, 95, 1.25)
    assert not patient.fhir_report.further_pages
    return True


def test_a_record_of_many_pages_is_whole(read_record):
    with Stub() as stub:
        assert is_whole(read_record(stub.url, "pat-1", TOKEN, today=TODAY))
        assert [f"Bearer {TOKEN}".encode() in request for request in stub.requests] == [True] * 4
    twice = [PERSON, RECORD[1], PERSON, *RECORD[1:]]
    with Stub(twice) as stub:
        assert is_whole(read_record(stub.url, "pat-1", TOKEN, today=TODAY))


def test_a_server_that_nobody_here_wrote(read_record, sekmet):
    assert is_whole(read_record(sekmet, "pat-1", TOKEN, today=TODAY))


@pytest.mark.parametrize(
    "link", ["http://127.0.0.1:1/fhir?p={}", "https://evil.example/{}", "//evil.example/{}"]
)
def test_the_token_goes_to_no_other_server(read_record, link):
    with Stub(link=link) as stub, pytest.raises(ValueError, match="on another server"):
        read_record(stub.url, "pat-1", TOKEN)
    assert len(stub.requests) == 1


def test_what_is_not_all_of_the_record_is_refused(read_record):
    with Stub([*RECORD, FAILED]) as stub, pytest.raises(svc.SvcRequestError, match="with an error"):
        read_record(stub.url, "pat-1", TOKEN, today=TODAY)
    with Stub(link="?_at=0&x={}") as stub, pytest.raises(svc.SvcRequestError, match="one page of"):
        read_record(stub.url, "pat-1", TOKEN, today=TODAY)
    assert len(stub.requests) == 100
    with Stub() as stub, pytest.raises(svc.SvcRequestError, match="nothing that is taken"):
        read_record(stub.url, "pat-2", TOKEN, today=TODAY)
    with Stub() as stub, pytest.raises(httpx.HTTPStatusError, match="401"):
        read_record(stub.url, "pat-1", "another token")


def test_a_linked_patient_that_comes_along_is_not_mixed_in(read_record):
    other = {**condition("7001", "Migraine"), "subject": {"reference": "Patient/pat-2"}}
    with Stub([*RECORD, {**PERSON, "id": "pat-2", "gender": "male"}, other]) as stub:
        assert is_whole(read_record(stub.url, "pat-1", TOKEN, today=TODAY))
