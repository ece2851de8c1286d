# One command for each thing to do. `uvx --from rust-just just` works, too, in a fresh clone.

set positional-arguments

python := if path_exists(".venv/bin/python") == "true" { ".venv/bin/python" } else { "python3" }

# What there is
default:
    @just --list --unsorted

# Make the environment that the others use
setup:
    test -d .venv || python3 -m venv .venv
    .venv/bin/pip install --quiet --constraint constraints.txt --editable ".[dev,docs,fuzz]"

# The tests that a person runs: two minutes, and each promise by at least one test
test *arguments:
    {{ python }} -m pytest -n 3 "$@"

# The tests of one room, such as `just room chat`; of one file, all of its rows
room name *arguments:
    {{ python }} -m pytest -n 0 tests/"$@"

# All tests, with every generated row
whole *arguments:
    {{ python }} -m pytest -n 3 --whole "$@"

# Lint, format, types and layers
lint:
    {{ python }} -m ruff check .
    {{ python }} -m ruff format --check .
    {{ python }} -m mypy
    {{ python }} -m pyright
    .venv/bin/lint-imports --no-cache

# The pages as a site, built as strictly as CI does; `just docs serve` to read them
docs command="build --strict":
    NO_MKDOCS_2_WARNING=1 {{ python }} -m mkdocs {{ command }}

# What a call costs, in calls of functions
counts:
    {{ python }} -m benchmarks.counts --check

# Real language models before the package: see docs/lab.md
lab *arguments:
    {{ python }} -m benchmarks.models "$@"

# All that CI does: about 20 minutes
all:
    .ci/run
