"""Figures, names and tables of the pages, held against the code: where one changes, so must the other."""

import dataclasses
import inspect
import re
from itertools import chain

import httpx
import pytest
from fences import ROOT
from langchain_core.tools import BaseTool
from peers import Scripted, answering
from test_readme import rows

import langchain_svc as svc
from langchain_svc import errors
from langchain_svc._wire import chunks, failures, general, image_endpoints
from langchain_svc._wire.body import MOST_VALUES
from langchain_svc.medical import dicom, patient
from langchain_svc.medical import images as clinical
from langchain_svc.medical import tools as medical
from langchain_svc.medical.fhir import concepts
from langchain_svc.sandbox import Fault, Sandbox

MB = 1024 * 1024


def page(name):
    return (ROOT / name).read_text("utf-8")


def listed(values):
    *most, last = (str(value) for value in sorted(values))
    return f"{', '.join(most)} and {last}"


def setting(name, kind=svc.ChatSvc):
    return kind.model_fields[name].default


def assert_said(*sentences):
    """Each is a page and what it says; a failure names all that are missing."""
    missing = [
        f"{name} must say: {sentence}"
        for name, sentence in sentences
        if sentence not in " ".join(page(name).split())
    ]
    assert not missing, "the code has changed, and\n" + "\n".join(missing)


# -- sentences --------------------------------------------------------------------------------------

SENTENCES = [
    ("docs/reliability.md", f"| `timeout` | {setting('timeout'):g} s |"),
    ("docs/reliability.md", f"| `deadline` | {setting('deadline'):g} s |"),
    ("docs/reliability.md", f"`max_response_bytes` ({setting('max_response_bytes') // MB} MiB)"),
    ("docs/reliability.md", f"more than {MOST_VALUES:,} values"),
    ("docs/reliability.md", f"`max_retries={setting('max_retries')}`"),
    ("docs/reliability.md", f"`max_retry_wait` ({setting('max_retry_wait'):g} s)"),
    ("docs/reliability.md", f"`max_connections` ({setting('max_connections'):,})"),
    ("docs/medical-images.md",
        (f"at most {clinical.MOST_IMAGES} of {clinical.MOST_IMAGE_BYTES // MB} MB "
        f"and {clinical.MOST_PIXELS // 10**6} million pixels")),
    ("docs/medical-images.md",
        f"above {dicom.MOST_PIXELS // 10**6} million pixels a frame or {clinical.MOST_FILE_BYTES // MB} MB a file"),
    ("docs/medical-records.md", f"what somebody typed, to {concepts.LONGEST_TYPED} characters"),
    ("docs/medical.md", f"`max_result_chars` characters ({setting('max_result_chars', medical.SvcMedicalStatus):,})"),
    ("docs/medical.md", f"entries {patient.LONGEST_LINE:,} characters, lists {patient.MOST_ENTRIES} entries"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sentence"), SENTENCES, ids=[" ".join(one) for one in SENTENCES])
def test_a_page_says_what_the_code_does(name, sentence):
    assert_said((name, sentence))


def test_the_pages_name_the_longest_texts_of_tools():
    made = svc.SvcGenerateImage(api_key="k", base_url_v1="https://svc.example/v1")
    prompt = made.args_schema.model_json_schema()["properties"]["prompt"]["maxLength"]
    tool = svc.SvcTranslate(api_key="k", base_url="https://svc.example", handle_tool_error=False)
    with pytest.raises(svc.SvcRequestError) as refused:
        tool.invoke({"text": "x" * 10**6, "target": "de"})
    (most,) = re.findall("at most ([0-9,]+) characters", str(refused.value))
    sentence = f"at most {prompt} characters on v1, all else of at most {most}"
    assert_said(("docs/general.md", sentence))


def test_the_pages_name_the_most_calls_of_an_answer():
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\n'
    tool = {"name": "f", "description": "Does it.", "parameters": {"type": "object"}}
    answer = Scripted(call * 300).model().bind_tools([tool]).invoke("Hi")
    sentence = f"At most {len(answer.tool_calls)} calls"
    assert_said(("docs/tools.md", sentence))


# -- statuses ---------------------------------------------------------------------------------------

DOCUMENTED = {429, 500, 503}  # v1 API, section 7


def tried(status, make, **words):
    """How often a service is asked that answers with a status, and the error."""
    asked = []

    def answer(request):
        asked.append(request)
        return httpx.Response(status, headers={"retry-after": "0"})

    one = make(api_key="k", max_retries=1, **answering(answer), **words)
    with pytest.raises(svc.SvcError) as caught:
        one.invoke("Hi")
    return len(asked), caught.value


@pytest.fixture(scope="module")
def refusals():
    return {
        status: tried(status, svc.ChatSvc, base_url_v1="https://svc.example/v1")
        for status in range(400, 600)
    }


def test_the_pages_name_the_statuses_that_are_retried(refusals):
    retried = {status for status, (times, _) in refusals.items() if times > 1}
    of_gateways = {
        status
        for status in retried
        if tried(status, svc.SvcGenerateImage, base_url_v1="https://svc.example/v1")[0] == 1
    }
    lasting = {n for n, (_, error) in refusals.items() if n >= 500 and not error.is_retryable}
    of_servers = ", ".join(str(status) for status in sorted(retried) if status >= 500)
    assert_said(
        ("README.md", f"the statuses {listed(retried)} are retried"),
        ("docs/reliability.md", f"the statuses {listed(retried)}."),
        ("docs/reliability.md", f"| `SvcServerError` | 5xx | {of_servers} |"),
        ("docs/reliability.md", f"the statuses {listed(lasting)}"),
        ("docs/assumptions.md", f"{listed(retried - DOCUMENTED)} are retried like {listed(DOCUMENTED)}."),
        ("docs/general.md", f"a gateway said {' or '.join(map(str, sorted(of_gateways)))})"),
    )  # fmt: skip


def test_the_table_of_errors_has_the_statuses(refusals):
    told = {row[0].strip("`"): row[1] for row in rows(page("docs/reliability.md"))}
    missing = set()
    for status, (_, error) in refusals.items():
        name = type(error).__name__
        shown = "5xx" if name == "SvcServerError" else str(status)
        if name != "SvcAPIError" and shown not in told.get(name, ""):
            missing.add(f"docs/reliability.md: the row of `{name}` must name {shown}")
    assert not missing, "\n".join(sorted(missing))


# -- names that are read ----------------------------------------------------------------------------

READ = [
    ("docs/assumptions.md", chunks._TEXT_KEYS),
    ("docs/assumptions.md", chunks._DONE_TYPES),
    ("docs/assumptions.md", failures._MESSAGE_KEYS),
    ("docs/general.md", general._SURE_KEYS),
    ("docs/general.md", general._LIKELY_KEYS),
    ("docs/general.md", general._SOURCE_KEYS),
    ("docs/general.md", image_endpoints._BYTES_KEYS),
    ("docs/general.md", image_endpoints._URL_KEYS),
    ("docs/general.md", image_endpoints._IMAGE_KEYS),
    ("docs/general.md", image_endpoints._OUTER_KEYS),
    ("docs/general.md", image_endpoints._INNER_KEYS),
    ("docs/general.md", tuple(chain(*image_endpoints._TEXT_KEYS.values()))),
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


def test_the_reference_of_the_medical_tools_lists_every_parameter():
    assert first_cells("docs/reference/medical.md", "Medical") == set(
        svc.PatientContext.model_fields
    )
    for kind in (svc.SvcMedicalToolkit, svc.SvcMedicalConsult):
        own = set(kind.model_fields) - set(BaseTool.model_fields)
        assert own <= documented(kind), kind
    guide = set(re.findall(r"\w+", page("docs/medical-images.md")))
    assert set(inspect.signature(svc.DicomImage).parameters) <= documented(svc.DicomImage) | guide


def documented(kind):
    """The names that a class's docstring, and so the generated reference, explains."""
    return set(re.findall(r"(?m)^    (\w+): ", inspect.getdoc(kind)))


def test_the_reference_of_the_sandbox_lists_every_argument():
    assert set(inspect.signature(Sandbox).parameters) <= documented(Sandbox)


def test_the_sandbox_page_lists_every_field_of_a_fault():
    assert first_cells("docs/sandbox.md", "Faults") == {f.name for f in dataclasses.fields(Fault)}


def test_the_page_of_programs_has_a_row_for_each_that_is_tried(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests" / "dropin")
    from registry import programs

    known = programs()
    text = page("docs/dropin.md")
    told = {row[0]: (row[1], row[2]) for row in rows(text)}
    for name, version in re.findall(r"(?m)^- (.+?)(?: \((\S+ \d[\w.]*)\))?$", text):
        told[name] = ("", version)
    assert sorted(told) == sorted(known)
    for name, (note, version) in told.items():
        program = known[name]
        assert note == program.note
        usual = program.of in ("langchain-core", "langchain", "langgraph")
        assert usual or re.fullmatch(rf"{re.escape(program.of)} \d[\w.]*", version)


@pytest.mark.parametrize(
    ("word", "name"),
    [("GDPR", "medical"), ("GDPR", "pseudonyms"), ("retention", "medical"), ("rotated", "medical")],
)
def test_a_search_finds_the_words_of_an_auditor(word, name):
    """The site's search knows a word only as what stands between two separators."""
    separator = re.search(r"(?m)^ +separator: '(.+)'", page("mkdocs.yml"))[1]
    assert word in re.split(separator, page(f"docs/{name}.md"))
