"""Figures, names and tables of the pages, held against the code: where one changes, so must the other."""

import dataclasses
import inspect
import re
from itertools import chain

import pytest
from fences import ROOT
from test_readme import rows

import langchain_svc as svc
from langchain_svc import errors
from langchain_svc._base import threads as _threads
from langchain_svc._calls import scanner
from langchain_svc._images import endpoints as images
from langchain_svc._service import exchange, retry_budget
from langchain_svc._wire import chunks, failures, general
from langchain_svc.chat import described_images
from langchain_svc.medical import images as clinical
from langchain_svc.medical import patient
from langchain_svc.medical import tools as medical
from langchain_svc.medical.dicom import header as dicom_header
from langchain_svc.medical.dicom import image as dicom
from langchain_svc.medical.dicom import picture
from langchain_svc.medical.fhir import concepts
from langchain_svc.sandbox import Fault, Sandbox
from langchain_svc.tools import general as tools
from privacy import test_frames, test_leaks

MB = 1024 * 1024


def page(name):
    return (ROOT / name).read_text("utf-8")


def listed(values):
    *most, last = (str(value) for value in sorted(values))
    return f"{', '.join(most)} and {last}"


def setting(name, kind=svc.ChatSvc):
    return kind.model_fields[name].default


# -- sentences --------------------------------------------------------------------------------------

RETRIED = listed(failures.TRANSIENT)
RETRIED_5XX = ", ".join(str(status) for status in sorted(failures.TRANSIENT) if status >= 500)
DOCUMENTED = {429, 500, 503}  # v1 API, section 7
CELLS = 2 * len(test_leaks.DOORS) * len(test_leaks.ANSWERS)
SENTENCES = [
    ("README.md", f"the statuses {RETRIED} are retried"),
    ("docs/reliability.md", f"the statuses {RETRIED}."),
    ("docs/reliability.md", f"| `SvcServerError` | 5xx | {RETRIED_5XX} |"),
    ("docs/reliability.md", f"the statuses {listed(failures._LASTING)}"),
    ("docs/assumptions.md", f"{listed(failures.TRANSIENT - DOCUMENTED)} are retried like {listed(DOCUMENTED)}."),
    ("docs/general.md", f"a gateway said {' or '.join(map(str, sorted(exchange._OF_GATEWAYS)))}"),
    ("docs/reliability.md", f"| `timeout` | {setting('timeout'):g} s |"),
    ("docs/reliability.md", f"| `deadline` | {setting('deadline'):g} s |"),
    ("docs/reliability.md", f"`max_response_bytes` ({setting('max_response_bytes') // MB} MiB)"),
    ("docs/reliability.md", f"`max_retries={setting('max_retries')}`"),
    ("docs/reliability.md", f"`max_retry_wait` ({setting('max_retry_wait'):g} s)"),
    ("docs/reliability.md",
        f"between nothing and {exchange._FIRST_BACKOFF} s, 1 s, 2 s and so on up to {exchange._LONGEST_BACKOFF:g} s"),
    ("docs/reliability.md", f"more than {_threads.LONG // 1000} kB"),
    ("docs/reliability.md", f"a store of {retry_budget.STORE:g}"),
    ("docs/reliability.md", f"`max_connections` ({setting('max_connections'):,})"),
    ("docs/tools.md", f"At most {scanner._MOST_CALLS} calls"),
    ("docs/general.md",
        (f"up to {['', 'one', 'two', 'three', 'four'][described_images._AT_ONCE]} "
        "images are described at the same time")),
    ("docs/general.md",
        f"at most {images.LONGEST_PROMPT} characters on v1, all else of at most {tools._LONGEST_TEXT:,}"),
    ("docs/medical-images.md",
        (f"at most {clinical.MOST_IMAGES} of {clinical.MOST_IMAGE_BYTES // MB} MB "
        f"and {clinical.MOST_PIXELS // 10**6} million pixels")),
    ("docs/medical-images.md",
        f"above {picture.MOST_PIXELS // 10**6} million pixels a frame or {dicom.MOST_FILE_BYTES // MB} MB a file"),
    ("docs/medical-images.md", f"inflates to {dicom_header._MOST_INFLATED // MB} MB"),
    ("docs/medical-records.md", f"what somebody typed, to {concepts.LONGEST_TYPED} characters"),
    ("docs/medical.md", f"`max_result_chars` characters ({setting('max_result_chars', medical.SvcMedicalStatus):,})"),
    ("docs/medical.md", f"entries {patient.LONGEST_LINE:,} characters, lists {patient.MOST_ENTRIES} entries"),
    ("docs/privacy.md", f"{len(test_leaks.DOORS)} ways in"),
    ("docs/privacy.md", f"{len(test_leaks.ANSWERS)} answers"),
    ("docs/privacy.md", f"{CELLS:,} cells"),
    ("docs/privacy.md", f"in {len(test_frames.USES)} ways"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sentence"), SENTENCES, ids=[" ".join(one) for one in SENTENCES])
def test_a_page_says_what_the_code_does(name, sentence):
    said = sentence in " ".join(page(name).split())
    assert said, f"the code has changed, and {name} must say: {sentence}"


# -- names that are read ----------------------------------------------------------------------------

READ = [
    ("docs/assumptions.md", chunks._TEXT_KEYS),
    ("docs/assumptions.md", chunks._DONE_TYPES),
    ("docs/assumptions.md", failures._MESSAGE_KEYS),
    ("docs/general.md", general._SURE_KEYS),
    ("docs/general.md", general._LIKELY_KEYS),
    ("docs/general.md", general._SOURCE_KEYS),
    ("docs/general.md", images._BYTES_KEYS),
    ("docs/general.md", images._URL_KEYS),
    ("docs/general.md", images._IMAGE_KEYS),
    ("docs/general.md", images._OUTER_KEYS),
    ("docs/general.md", images._INNER_KEYS),
    ("docs/general.md", tuple(chain(*images._TEXT_KEYS.values()))),
]


@pytest.mark.parametrize(("name", "keys"), READ)
def test_a_page_names_every_key_that_is_read(name, keys):
    named = {word.replace("_", "").lower() for word in re.findall(r"\w+", page(name))}
    missing = [key for key in keys if key.replace("_", "").lower() not in named]
    assert not missing, f"{name} does not name {missing}"


# -- tables -----------------------------------------------------------------------------------------


def first_cells(name, heading):
    """The names in the first column of the tables under a heading."""
    (text,) = re.findall(rf"^#+ {heading}\n(.*?)(?=^#+ |\Z)", page(name), re.MULTILINE | re.DOTALL)
    cells = "".join(row[0] for row in rows(text))
    return set(re.findall(r"`(\w+)(?:[=(][^`]*)?`", cells))


def test_the_table_of_errors_is_the_tree():
    named = first_cells("docs/reliability.md", "Errors")
    assert named == {name for name in vars(errors) if name.startswith("Svc")} - {"SvcError"}


def test_the_table_of_errors_has_the_statuses():
    told = {row[0].strip("`"): row[1] for row in rows(page("docs/reliability.md"))}
    for status, kind in failures._BY_STATUS.items():
        assert str(status) in told[kind.__name__], f"docs/reliability.md: {kind.__name__}, {status}"


def test_the_sandbox_page_lists_every_argument():
    words = set(inspect.signature(Sandbox).parameters)
    assert first_cells("docs/sandbox.md", "Start it") >= words


def test_the_sandbox_page_lists_every_field_of_a_fault():
    assert first_cells("docs/sandbox.md", "Faults") == {f.name for f in dataclasses.fields(Fault)}


def test_the_page_of_programs_has_a_row_for_each_that_is_tried(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests" / "dropin")
    from registry import programs

    known = programs()
    told = {row[0]: row for row in rows(page("docs/dropin.md"))}
    assert list(told) == list(known)
    for name, row in told.items():
        program = known[name]
        assert row[1] == program.does
        usual = program.of in ("langchain-core", "langchain", "langgraph")
        assert usual or re.fullmatch(rf"{re.escape(program.of)} \d[\w.]*", row[2])
