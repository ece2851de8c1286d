"""What the map says of the house, held against the house."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / "architecture.md", ROOT / "CONTRIBUTING.md"]
PLACES = ("langchain_svc", ".", "docs")


def test_the_reference_of_commands_is_what_the_parser_says():
    subprocess.run([sys.executable, ROOT / "docs" / "commands.py", "--check"], check=True)


def test_the_layers_of_the_map_are_what_the_imports_say():
    subprocess.run([sys.executable, ROOT / "docs" / "layers.py", "--check"], check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_the_map_names_is_there(page):
    named = set(re.findall(r"`((?:[\w.]+/)*[\w.]+(?:/|\.py))`", page.read_text("utf-8")))
    assert len(named) > 5
    missing = [name for name in named if not any((ROOT / at / name).exists() for at in PLACES)]
    assert not missing


# -- ceilings: the next feature has to find its seam -----------------------------------------------

PACKAGE = ROOT / "langchain_svc"
WINGS = {"medical", "quota", "bulk", "privacy", "sandbox", "cli"}
MOST_OF_THE_PACKAGE, MOST_OF_THE_CORE, MOST_OF_THE_TESTS = 29_500, 16_100, 27_700
MOST_OF_A_ROOM, MOST_OF_A_FILE = 2_700, 650  # a room is a folder of the core


def lines(path):
    return len(path.read_text("utf-8").splitlines())


def test_the_house_grows_no_further():
    files = {path.relative_to(PACKAGE): lines(path) for path in PACKAGE.rglob("*.py")}
    rooms = Counter()
    for path, count in files.items():
        if path.parts[0] not in WINGS:
            rooms[path.parts[0] if len(path.parts) > 1 else ""] += count
    assert sum(files.values()) <= MOST_OF_THE_PACKAGE
    assert rooms.total() <= MOST_OF_THE_CORE
    assert max(count for room, count in rooms.items() if room) <= MOST_OF_A_ROOM
    assert max(files.values()) <= MOST_OF_A_FILE
    assert sum(map(lines, (ROOT / "tests").rglob("*.py"))) <= MOST_OF_THE_TESTS
