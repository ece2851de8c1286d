"""The pages of docs/service state facts: where the code has them too, both must say the same."""

import re

import pytest
from test_endpoints import ROWS as ENDPOINTS
from test_readme import ROOT, rows

from langchain_svc import ChatSvc
from langchain_svc._wire import failures, v1
from langchain_svc.quota.quota import DOCUMENTED
from langchain_svc.sandbox.endpoints import ROUTES

PAGES = ("v1", "general", "medical")


def section(name, number):
    text = (ROOT / "docs/service" / f"{name}.md").read_text("utf-8")
    found = re.search(rf"^## {number}\. .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[0]


@pytest.mark.parametrize("name", ["v1", "general"])
def test_the_plans_are_those_of_a_quota(name):
    told = {row[0].lower(): row[1:] for row in rows(section(name, 8))}
    plans = {
        one.partition(":")[2]: plan for one, plan in DOCUMENTED.items() if one.startswith(name)
    }
    assert told.keys() == plans.keys()
    for plan, limits in plans.items():
        amounts = [f"{limit.amount:,}" for limit in limits.limits()]
        assert amounts == [cell for cell in told[plan] if cell[0].isdigit()]


def test_the_statuses_raise_what_is_said():
    for status, _, kind in rows(section("v1", 7)):
        if kind:
            assert failures._kind(int(status), None).__name__ == kind.strip("`")


@pytest.mark.parametrize("path", [path for path, methods in ROUTES.items() if "POST" in methods])
def test_the_fields_of_a_request_are_the_sandboxs(path):
    body = ROUTES[path]["POST"].body
    name = next(name for name in ("v1", "medical", "general") if name in f"{path} general")
    tables = section(name, 2).split("\n\n")
    named = [{row[0].strip("`") for row in rows(table)} for table in tables]
    fields = {field.alias or key for key, field in body.model_fields.items()}
    nearest = min(named, key=lambda names: len(names ^ fields))
    assert nearest == fields, (
        f"docs/service/{name}.md, section 2, needs a table with {sorted(fields)}, the fields of "
        f"{body.__name__} in langchain_svc/sandbox/endpoints.py; the nearest differs in "
        f"{sorted(nearest ^ fields)}"
    )


def test_the_fields_of_a_chat_are_written_once_and_known_everywhere():
    (chat,) = (
        methods[method].body
        for path, methods in ROUTES.items()
        for method in methods
        if path.endswith(v1.CHAT.path)
    )
    places = {
        "CompletionBody in langchain_svc/sandbox/endpoints.py": chat.model_fields.keys(),
        "the table of requests in section 2 of docs/service/v1.md": next(
            names
            for table in section("v1", 2).split("\n\n")
            if "messages" in (names := {row[0].strip("`") for row in rows(table)})
        ),
        "the fields of ChatSvc, or stream and messages": {
            name for name in v1.CHAT_FIELDS if name in {*ChatSvc.model_fields, "messages", "stream"}
        },
    }
    problems = [
        f"{sorted(v1.CHAT_FIELDS ^ set(fields))} differs between CHAT_SETTINGS in "
        f"langchain_svc/_wire/v1.py and {place}"
        for place, fields in places.items()
        if set(fields) != v1.CHAT_FIELDS
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    "endpoint", sorted({row.endpoint for row in ENDPOINTS.values() if row.fields})
)
def test_the_client_sends_the_fields_that_the_sandbox_takes(endpoint):
    method, path = endpoint.split()
    sent = {
        name.partition(".")[0]
        for row in ENDPOINTS.values()
        if row.endpoint == endpoint
        for name in row.fields.split()
    }
    body = ROUTES[path][method].body
    assert sent == {field.alias or key for key, field in body.model_fields.items()}, (
        f"ROWS in tests/test_endpoints.py and {body.__name__} in langchain_svc/sandbox/endpoints.py"
    )


def test_the_windows_of_the_models_are_those_of_their_profiles():
    told = {row[0].strip("`"): row[2] for row in rows(section("v1", 1))}
    assert told == {model: f"{tokens // 1000}K" for model, tokens in v1.WINDOWS.items()}


def test_the_endpoints_are_those_that_are_called():
    called = {row.endpoint for row in ENDPOINTS.values()}
    said = set()
    for name in PAGES:
        prefix = "/v1" if name == "v1" else ""
        found = re.findall(r"`(GET|POST) (/[\w/-]+)`", section(name, 4))
        said |= {f"{method} {prefix}{path}" for method, path in found}
    assert said == called, (
        f"section 4 of docs/service/*.md and ROWS in tests/test_endpoints.py differ in "
        f"{sorted(said ^ called)}"
    )
