"""What the README and the docs promise, held against the package."""

import contextlib
import re

import pytest
from fences import PAGES, README, ROOT, blocks_of
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

import langchain_svc
from langchain_svc import ChatSvc, SvcRequestError, SvcStreamError, config
from langchain_svc.medical.fhir import fields
from langchain_svc.sandbox import Fault, Sandbox

BLOCKS = [block for page in PAGES for block in blocks_of(page)]


SETTINGS = ROOT / "docs" / "settings.md"


def section(title, page=README):
    (found,) = re.findall(
        rf"^## {title}\n(.*?)(?=^## |\Z)", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return found


def rows(text):
    """The cells of a table's rows, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_extras_that_are_installed_exist():
    named = {
        name for block in BLOCKS for name in re.findall(r'(?:\.|svc)\[([\w,]+)\]"', block.code)
    }
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    known = re.findall(r"^(\w+) = \[$", project, re.MULTILINE)
    assert named
    assert {extra for names in named for extra in names.split(",")} <= set(known)


# -- tables -----------------------------------------------------------------------------------------


TABLE = "docs/settings.md, the table of 'Parameters of ChatSvc'"
OWN = [name for name in ChatSvc.model_fields if name not in BaseChatModel.model_fields]


def test_the_settings_table_is_the_constructor():
    told = {
        row[0].strip("` *"): row[1].strip("`")
        for row in rows(section("Parameters of ChatSvc", SETTINGS))
    }
    model = ChatSvc()
    wanted = {name: repr(getattr(model, name)) for name in OWN}
    problems = [
        f"needs a row | `{name}` | `{default}` |"
        for name, default in wanted.items()
        if told.get(name) != default
    ]
    problems += [f"has a row `{name}`, which is no setting" for name in told.keys() - wanted.keys()]
    assert not problems, f"{TABLE}:\n" + "\n".join(problems)


def test_the_marked_settings_are_those_that_one_call_takes(chat):
    marked = {
        row[0].strip("` *")
        for row in rows(section("Parameters of ChatSvc", SETTINGS))
        if row[0].endswith("*")
    }
    taken = set()
    for name in OWN:
        with contextlib.suppress(SvcRequestError):
            chat.invoke("Hello", **{name: getattr(chat, name)})
            taken.add(name)
    problems = [f"`{name}` needs its *: a call takes it" for name in taken - marked]
    problems += [f"`{name}` needs no *: no call takes it" for name in marked - taken]
    assert not problems, f"{TABLE}:\n" + "\n".join(problems)


def test_the_environment_table_names_what_is_read():
    source = "".join(path.read_text("utf-8") for path in (ROOT / "langchain_svc").rglob("*.py"))
    for row in rows(section("Environment", SETTINGS)):
        for name in re.findall(r"`(\w+)`", row[0]):
            assert name in source or name.endswith("_PROXY"), name
    own = {value for name, value in vars(config).items() if name.startswith("ENV_")}
    missing = own - set(re.findall(r"`(\w+)`", section("Environment", SETTINGS)))
    assert not missing, f"docs/settings.md does not name {sorted(missing)}"


def test_every_public_name_is_written_about():
    words = set(re.findall(r"\w+", "".join(page.read_text("utf-8") for page in PAGES)))
    missing = set(langchain_svc.__all__) - {"__version__"} - words
    assert not missing, f"neither the README nor a page in docs/ names {sorted(missing)}"


def test_every_public_name_has_its_entry_in_the_reference():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    entries = set(re.findall(r"(?m)^::: langchain_svc\.(\w+)$", text))
    missing = set(langchain_svc.__all__) - {"__version__"} - entries
    lines = [f"::: langchain_svc.{name}" for name in sorted(missing)]
    assert not missing, "a page of docs/reference/ needs:\n" + "\n".join(lines)


def test_every_module_of_the_assumptions_exists():
    text = (ROOT / "docs" / "assumptions.md").read_text("utf-8")
    named = {name for row in rows(text) for name in re.findall(r"`([\w/]+\.py)`", row[-1])}
    assert named
    assert all((ROOT / "langchain_svc" / name).is_file() for name in named)


def test_the_page_of_records_lists_every_reading_with_its_unit_and_window():
    told = {
        (name, unit): row[0]
        for row in rows((ROOT / "docs" / "medical-records.md").read_text("utf-8"))
        for name, unit in re.findall(r"`(\w+)`(?: \(I\))? ([^;| ]+)", row[1])
        if row[0].endswith((" hours", " days"))
    }
    table = fields.fields_by_code("common", {}, {}).values()
    days = {(one.name, one.unit): one.window.days for one in table}
    assert told == {name: f"{n} days" if n > 1 else "24 hours" for name, n in days.items()}


# -- why not ChatOpenAI(base_url=...)? ---------------------------------------------------------------


def city_weather(city: str) -> str:
    """The weather of a city."""
    return city


class Meeting(BaseModel):
    """A meeting that a text speaks of."""

    topic: str
    city: str
    people: int


def both(**settings):
    """The two clients, each with a server of its own: what one did cannot change the other's."""
    with Sandbox(**settings) as one, Sandbox(**settings) as other:
        url, key = one.v1["base_url_v1"], one.v1["api_key"]
        openai = ChatOpenAI(base_url=url, api_key=key, model="svc-pro", max_retries=0)
        yield openai
        yield ChatSvc(**other.v1, base_url=other.url, image_inputs="describe", model="svc-pro")


def tools(model):
    asked = "What is the weather in Rome?"
    calls = model.bind_tools([city_weather]).invoke(asked).tool_calls
    return "the calls" if calls else "`tool_calls == []`, no error"


def structured(model):
    text = "We expect 12 people in Lisbon for the meeting about 'caching'."
    found = model.with_structured_output(Meeting).invoke(text)
    assert found == Meeting(topic="caching", city="Lisbon", people=12)
    return "a validated object"


def cut_off(model):
    text = ""
    try:
        for chunk in model.stream("Tell me a short story about Ada."):
            text += chunk.text
    except SvcStreamError as error:
        assert error.partial == text != ""
        return "`SvcStreamError`, with the text so far"
    assert text == "This is the", "not the whole answer"
    return "half an answer, no error"


def image(model):
    picture = {"type": "image", "base64": RED_DOT, "mime_type": "image/png"}
    text = model.invoke([HumanMessage(["What is this?", picture])]).text
    assert "A PNG image" in text
    return "described by the platform's vision endpoint, if you allow it"


RED_DOT = "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAEElEQVR4nGP8z4AATAxEcQAz0QEHOoQ+uAAAAABJRU5ErkJggg=="


@pytest.mark.parametrize(
    ("run", "row", "settings"),
    [
        (tools, 0, {}),
        (structured, 1, {}),
        (cut_off, 2, {"faults": [Fault(end=True, after=3)]}),
        (image, 3, {}),
    ],
    ids=["tools", "structured", "cut_off", "image"],
)
def test_the_table_of_reasons_is_what_both_clients_do(run, row, settings):
    told = rows(section("Why not ChatOpenAI"))
    assert len(told) == 4
    done = []
    for model in both(**settings):
        try:
            done.append(run(model))
        except Exception as error:
            mine = type(error).__mro__
            done.append(next(f"`{c.__name__}`" for c in mine if f"`{c.__name__}`" in told[row]))
    assert done == told[row][1:]


# -- links ------------------------------------------------------------------------------------------


def anchors(page):
    """The anchors that a markdown viewer gives to the headings of a page."""
    heads = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        path, _, anchor = target.partition("#")
        goal = page.parent / path if path else page
        assert goal.exists(), target
        assert not anchor or anchor in anchors(goal), target


def test_every_test_that_a_page_names_is_there():
    named = {
        (page.name, path)
        for page in PAGES
        for path in re.findall(r"tests/[\w/]+\.py", page.read_text("utf-8"))
    }
    assert len(named) > 15
    assert [one for one in named if not (ROOT / one[1]).is_file()] == []
