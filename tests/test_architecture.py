"""What the map says of the house, held against the house."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"]
PLACES = ("langchain_svc", ".", "docs")


def test_the_reference_of_commands_is_what_the_parser_says():
    subprocess.run([sys.executable, ROOT / "docs" / "commands.py", "--check"], check=True)


def test_the_layers_of_the_map_are_what_the_imports_say():
    subprocess.run([sys.executable, ROOT / "docs" / "layers.py", "--check"], check=True)


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
