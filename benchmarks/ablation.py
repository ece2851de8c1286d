"""Removes each branch of a room in turn, and prints those that nothing needs.

    python -m benchmarks.ablation _json                      # a room, or some of its files
    python -m benchmarks.ablation langchain_svc/_json/schema.py --corpus-only
    python -m benchmarks.ablation _toolcalls --tests 'tests/toolcalls -k "not cost"'

A branch is the body of an `if` or of its `else`, a side of a conditional expression, an operand of
`and` or `or`, a condition of a comprehension, or a handler of `try`. It is needed if without it a
text of the corpus is read otherwise, whole or in pieces of three characters, or a test fails. The
corpora are outside the repository: --corpus or CORPUS says where (`../shared/corpora` if neither).
Two branches that stand in for each other are both printed, so remove one and run it again.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import resource
import select
import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from multiprocessing import get_context
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Any, NamedTuple

import httpx  # noqa: F401 - what the variants share is imported once
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "langchain_svc"
TESTS = "tests/toolcalls tests/chat/test_reasoning.py tests/json"
CORPUS_SECONDS, TEST_SECONDS = 30, 900  # what loops is ended then, and counts as needed
MEMORY = 4 << 30
_STATEMENTS = (ast.If, ast.Try)


class Branch(NamedTuple):
    """One branch, as its place among those of its file."""

    file: Path
    at: int
    line: int
    lines: int
    text: str


def cuts(tree: ast.AST) -> Iterator[tuple[Any, str]]:
    """Each branch of a tree and its text; while one is out, the tree is without it."""
    for node in ast.walk(tree):
        for name, old in ast.iter_fields(node):
            parts = old if isinstance(old, list) else [old]
            for at, part in enumerate(parts):
                for gone, rest in _without(part, in_comprehension=name == "ifs"):
                    new = [*parts[:at], *rest, *parts[at + 1 :]]
                    setattr(node, name, new if isinstance(old, list) else new[0])
                    beside = "" if isinstance(part, _STATEMENTS) else f"   in   {ast.unparse(part)}"
                    yield gone, ast.unparse(gone) + beside
                    setattr(node, name, old)


def _without(part: Any, *, in_comprehension: bool) -> Iterator[tuple[ast.AST, list[Any]]]:
    if in_comprehension:
        yield part, []
    if isinstance(part, ast.If):
        asked = ast.Expr(part.test)  # it may assign
        yield _branch(part.test, part.body, part.lineno), [asked, *part.orelse]
        if part.orelse:
            test = ast.UnaryOp(ast.Not(), part.test)
            yield _branch(test, part.orelse, part.orelse[0].lineno), [asked, *part.body]
    elif isinstance(part, ast.IfExp):
        yield part.body, [part.orelse]
        yield part.orelse, [part.body]
    elif isinstance(part, ast.BoolOp):
        for at, gone in enumerate(part.values):
            rest = part.values[:at] + part.values[at + 1 :]
            yield gone, [ast.BoolOp(part.op, rest) if len(rest) > 1 else rest[0]]
    elif isinstance(part, ast.Try):
        for gone in part.handlers:
            rest = [one for one in part.handlers if one is not gone]
            kept = ast.Try(part.body, rest, part.orelse, part.finalbody)
            yield gone, [kept] if rest or part.finalbody else [*part.body, *part.orelse]


def _branch(test: ast.expr, body: list[ast.stmt], line: int) -> ast.If:
    return ast.If(test, body, [], lineno=line, end_lineno=body[-1].end_lineno)


def branches(file: Path) -> Iterator[Branch]:
    """The branches of a file."""
    for at, (gone, text) in enumerate(cuts(ast.parse(file.read_text("utf-8")))):
        yield Branch(file, at, gone.lineno, gone.end_lineno - gone.lineno + 1, text)


class _Variant(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the file of a branch without the branch."""

    def __init__(self, branch: Branch) -> None:
        self._file = branch.file
        self._name = ".".join(branch.file.relative_to(ROOT).with_suffix("").parts)
        self._name = self._name.removesuffix(".__init__")
        self._tree = ast.parse(branch.file.read_text("utf-8"))
        for at, _ in enumerate(cuts(self._tree)):
            if at == branch.at:
                self._code = compile(ast.fix_missing_locations(self._tree), self._file, "exec")
                break

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self._name:
            return None
        is_package = self._file.name == "__init__.py"
        return importlib.util.spec_from_loader(name, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)  # noqa: S102 - our own code, less a branch


def outcomes(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What is read in each text of the corpus."""
    from benchmarks import corpus_structured, corpus_tools  # noqa: PLC0415 - the variant's

    def outcome(read: Callable[..., Any], *given: Any) -> str:
        try:
            return repr(read(*given))
        except Exception as error:  # noqa: BLE001 - whatever a variant raises is its outcome
            return type(error).__name__

    for row in rows:
        text = row["text"]
        if "schema" in row:
            yield outcome(corpus_structured.parse, text, row["schema"])
            continue
        pieces = [text[at : at + 3] for at in range(0, len(text), 3)]
        yield outcome(corpus_tools.parse, text, row["tools"])
        yield outcome(corpus_tools.parse_chunks, pieces, row["tools"])


def succeeds(work: Callable[[], bool], branch: Branch | None, seconds: int) -> bool:
    """Whether some work succeeds in a new process, where the package lacks a branch."""
    child = os.fork()
    if child:
        if not select.select([os.pidfd_open(child)], [], [], seconds)[0]:
            os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1] == 0
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        if branch:
            sys.meta_path.insert(0, _Variant(branch))
        code = 0 if work() else 1
    except BaseException:  # noqa: BLE001 - a variant may raise anything
        code = 1
    os._exit(code)


class Judge(NamedTuple):
    """What a branch is measured by."""

    rows: list[dict[str, Any]]
    expected: list[str]
    tests: Sequence[str]

    def needs(self, branch: Branch | None) -> bool:
        """Whether a text is read otherwise, or a test fails, without the branch."""
        if not succeeds(self._reads_the_same, branch, CORPUS_SECONDS):
            return True
        return bool(self.tests) and not succeeds(self._passes, branch, TEST_SECONDS)

    def _reads_the_same(self) -> bool:
        return all(map(str.__eq__, self.expected, outcomes(self.rows)))

    def _passes(self) -> bool:
        options = ["-x", "-q", "--hypothesis-seed=0", "-o", "timeout=120"]
        return pytest.main([*options, *self.tests]) == 0


def main() -> int:
    """Measure; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ablation", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("what", nargs="+", help="a room (_json) or files of the package")
    parser.add_argument("--corpus", default=os.environ.get("CORPUS", "../shared/corpora"))
    parser.add_argument("--tests", default=TESTS, help="arguments of pytest")
    parser.add_argument("--corpus-only", action="store_true", help="run no tests")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp()
    os.chdir(ROOT)
    files = [file.resolve() for what in options.what for file in _files(what)]
    found = sorted(Path(options.corpus).glob("*.jsonl"))
    lines = [line for file in found for line in file.read_text("utf-8").splitlines()]
    rows = [row for row in map(json.loads, lines) if "text" in row]
    if not files or not rows:
        parser.error(f"{len(files)} files and {len(rows)} texts: see --help for what and --corpus")
    ours = Judge(rows, _expected(rows), [] if options.corpus_only else shlex.split(options.tests))
    if ours.needs(None):
        parser.error("with every branch in its place, the corpus changes or a test fails")
    todo = [branch for file in files for branch in sorted(branches(file), key=lambda one: one.line)]
    unneeded = size = 0
    with get_context("fork").Pool(options.jobs) as pool:
        for branch, needed in zip(todo, pool.imap(ours.needs, todo), strict=True):
            if not needed:
                unneeded, size = unneeded + 1, size + branch.lines
                where = f"{branch.file.relative_to(ROOT)}:{branch.line}"
                print(f"{where}  {branch.lines} lines\n{indent(branch.text, '    ')}", flush=True)
    print(f"{unneeded} of {len(todo)} branches, {size} lines, are needed by nothing")
    return 0


def _files(what: str) -> list[Path]:
    room = PACKAGE / what
    return (
        sorted(room.rglob("*.py"))
        if room.is_dir()
        else [file for file in [Path(what)] if file.exists()]
    )


def _expected(rows: list[dict[str, Any]]) -> list[str]:
    with tempfile.TemporaryFile("w+") as file:
        succeeds(lambda: json.dump(list(outcomes(rows)), file) or not file.flush(), None, 60)
        file.seek(0)
        expected: list[str] = json.load(file)
        return expected


if __name__ == "__main__":
    sys.exit(main())
