"""Every block of Python in the README and the pages runs, with the sandbox as the service.

The blocks of a page run in order in one namespace, those of the README each alone. A block that
cannot run here has a line before it: `<!-- not run: why -->`.
"""

import inspect
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from fences import DOCS, PAGES, README, ROOT, blocks_of, run
from share import part

import langchain_svc
from langchain_svc import bulk, sandbox

# Files of the reader's own that pages read.
FILES = {
    "talk.json": json.dumps([["user", "What is 2 + 3?"], ["assistant", "5"]]),
    "bundle.json": json.dumps({"resourceType": "Patient", "id": "nobody", "gender": "male"}),
}

PYTHON = [block for page in PAGES for block in blocks_of(page) if block.language == "python"]
NOT_RUN = {block.place: block.reason for block in PYTHON if block.reason}
RUNS = {block.place: [block] for block in PYTHON if block.page == README and not block.reason}
# The pages whose blocks are files: pytest runs these.
RECIPE_OF_TESTS = ROOT / "docs" / "recipes" / "testing.md"
RECIPE_OF_CASSETTES = ROOT / "docs" / "recipes" / "cassettes.md"
for page in DOCS:
    if page in {RECIPE_OF_TESTS, RECIPE_OF_CASSETTES}:
        continue
    if blocks := [block for block in PYTHON if block.page == page and not block.reason]:
        RUNS[blocks[0].place] = blocks
# The classes that ask the service: models, tools and toolkits.
SERVICES = [
    name
    for name in langchain_svc.__all__
    if "max_retries" in getattr(getattr(langchain_svc, name), "model_fields", ())
]


@pytest.mark.parametrize("blocks", RUNS.values(), ids=RUNS)
def test_the_blocks_run(blocks, sandbox, monkeypatch, tmp_path, capsys):
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    run(blocks)


@pytest.mark.parametrize("kind", part(SERVICES))
def test_a_docstring_has_the_sections_of_langchain_and_its_blocks_run(kind, sandbox, monkeypatch):
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    docstring = inspect.getdoc(getattr(langchain_svc, kind))
    sections = dict(re.findall(r"(?m)^(\w[^:\n]*):\n((?: {4}.*\n|\n)+)", docstring))
    assert {"Setup", "Instantiate"} <= sections.keys()
    parameters = [text for name, text in sections.items() if name.startswith("Key init args")]
    names = re.findall(r"(?m)^ {4}(?! )(.*)", "".join(parameters))
    assert names
    for line in names:  # a list: lines alone would flow together in editors and in the reference
        name = re.match(r"- `(\w+)`: ", line)
        assert name, line
        assert name[1] in getattr(langchain_svc, kind).model_fields
    text = re.sub(r"(?m)^ {4}", "", docstring)
    blocks = [block for block in blocks_of(README, text) if block.language == "python"]
    assert len(blocks) > 1
    run(blocks)


def write_files(page, folder, wanted=r"\w+\.py"):
    """Each block, unchanged, goes to the end of the file that its first line names."""
    for block in PYTHON:
        name = re.match(rf"# ({wanted})", block.code)
        if block.page == page and name:
            with (folder / name[1]).open("a", encoding="utf-8") as file:
                file.write(block.code)


def run_pytest(folder, words=(), settings=None):
    # As the command `pytest` does: the folder is not on the path by itself.
    environment = os.environ | {"PYTEST_ADDOPTS": "", "PYTHONSAFEPATH": "1"} | (settings or {})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_the_recipe_of_tests_passes_in_an_empty_folder(tmp_path):
    write_files(RECIPE_OF_TESTS, tmp_path)
    output = run_pytest(tmp_path)
    assert "5 passed" in output, output


@pytest.mark.slow
def test_the_recipe_of_cassettes_records_in_an_empty_folder_and_replays_without_a_service(tmp_path):
    write_files(RECIPE_OF_TESTS, tmp_path, wanted=r"shop\.py")
    write_files(RECIPE_OF_CASSETTES, tmp_path)
    shells = [block.code for block in blocks_of(RECIPE_OF_CASSETTES) if block.language == "sh"]
    record, replay = (shlex.split(code)[1:] for code in shells)
    key = "a-key-of-somebody"
    with sandbox.Sandbox(api_key=key) as service:
        output = run_pytest(tmp_path, record, service.env)
        count = len(service.requests)
    assert "2 passed" in output, output
    assert count == 3  # two of an agent with one call, and a stream
    cassettes = {path: path.read_text("utf-8") for path in (tmp_path / "cassettes").rglob("*.yaml")}
    assert len(cassettes) == 2
    assert not [path for path, text in cassettes.items() if key in text]
    output = run_pytest(tmp_path, replay)
    assert "2 passed" in output, output

    app = tmp_path / "shop.py"
    app.write_text(app.read_text("utf-8").replace("by its number", "by its name"), "utf-8")
    output = run_pytest(tmp_path, replay)
    assert "1 failed, 1 passed" in output, "a prompt that has changed gets no old answer"


def test_few_blocks_do_not_run_and_say_why():
    for place, reason in NOT_RUN.items():
        print(place, reason)  # pytest shows it where this fails
        assert len(reason.split()) > 3, place
    assert len(NOT_RUN) < len(PYTHON) / 6


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_block_of_python_is_missed(page):
    found = re.findall(
        r"^[ \t>]*(?:```|~~~) *(?:python|py)\b", page.read_text("utf-8"), re.MULTILINE
    )
    assert len(found) == sum(block.page == page for block in PYTHON), (
        "start it as ```python, not indented"
    )


@pytest.mark.parametrize(
    "module", [langchain_svc, bulk, sandbox], ids=lambda module: module.__name__
)
def test_every_public_name_is_in_the_reference(module):
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    missing = {f"::: {module.__name__}.{name}" for name in module.__all__} - set(pages.splitlines())
    assert missing <= {"::: langchain_svc.__version__"}, "add the line to a page of docs/reference"
