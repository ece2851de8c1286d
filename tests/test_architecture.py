"""What the map says of the house, held against the house."""

import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import langchain_svc

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"]
PLACES = ("langchain_svc", ".", "docs")


def test_the_reference_of_commands_is_what_the_parser_says():
    subprocess.run([sys.executable, ROOT / "docs" / "commands.py", "--check"], check=True)


def test_the_layers_of_the_map_are_what_the_imports_say():
    subprocess.run([sys.executable, ROOT / "docs" / "layers.py", "--check"], check=True)


def test_the_sandbox_may_take_nothing_of_the_rest_but_the_names_of_elements():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (rule,) = [
        one
        for one in contracts["contracts"]
        if one.get("source_modules") == ["langchain_svc.sandbox"]
    ]
    modules = {f"langchain_svc.{one.name}" for one in pkgutil.iter_modules(langchain_svc.__path__)}
    free = {
        f"langchain_svc.{name}"
        for name in ("sandbox", "prompt_tags", "_wire", "_version", "__main__")
    }
    assert {*rule["forbidden_modules"]} == modules - free, "pyproject.toml: forbidden_modules"


@pytest.mark.slow
def test_the_paths_of_the_map_are_what_a_trace_says():
    subprocess.run([sys.executable, ROOT / "docs" / "paths.py", "--check"], check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_the_map_names_is_there(page):
    named = set(re.findall(r"`((?:[\w.]+/)*[\w.]+(?:/|\.py))`", page.read_text("utf-8")))
    assert len(named) > 5
    missing = [name for name in named if not any((ROOT / at / name).exists() for at in PLACES)]
    assert not missing


# -- shape -----------------------------------------------------------------------------------------
# Growth refuses nothing: CI prints the size of each room (`python docs/shape.py`). A shape that makes
# reading hard does.


@pytest.mark.slow
def test_the_shape_of_the_house_holds():
    command = [sys.executable, ROOT / "docs" / "shape.py", "--check"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
