"""Prints the size of each room and the price of each promise; with `--check`, checks the shape.

Size is information: no figure of it refuses a change. What makes reading hard does: a function
that is too long to hold in mind, imports in a circle, and lines packed with more than one idea. A
failure names the place, the measure and what to do.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "langchain_svc"
TOP = PACKAGE.name
WINGS = {"citations", "medical", "quota", "bulk", "privacy", "sandbox", "cli"}
# What is promised beyond a LangChain model and tools on the service's endpoints: where its code
# is, its tests and its pages. Who adds a promise adds its row; who looks for what to give up
# looks here. A file counts for the first row that names it.
PROMISES = (
    ("forms of other families", "_calls/families.py", "toolcalls/*", ""),
    (
        "no call out of a text that was read",
        "_calls/replay.py",
        "toolcalls/*replay*",
        "",
    ),
    (
        "tool calls through a prompt",
        "_calls/* chat/tools.py chat/calls_reader.py chat/doubts.py",
        "toolcalls/* chat/*tool* chat/*call*",
        "tools.md",
    ),
    ("slips in a schema are named", "_json/malformed.py", "json/*malformed*", ""),
    (
        "objects that fit a schema",
        """
        _json/form.py _json/fit.py _json/schema.py _json/scalars.py
        chat/structured.py
    """,
        "json/*fit* json/*form* json/*schema* chat/*struct* chat/*schema*",
        "",
    ),
    ("broken JSON is read", "_json/*", "json/*", ""),
    (
        "checked citations",
        "citations/* chat/citing_model.py",
        "citations/*",
        "recipes/rag.md",
    ),
    ("cut answers go on", "_text/continuation.py", "chat/*cut* text/*continu*", ""),
    (
        "pseudonyms",
        """
        privacy/ps* privacy/engine.py privacy/identities.py privacy/whole_values.py
        privacy/vocabulary.py privacy/names.py privacy/numbers.py
        privacy/calendar_dates.py _text/reading.py
        _text/pseudonyms.py _settings/requests.py
    """,
        "privacy/*pseudonym* privacy/*names* privacy/*exit* text/*",
        "pseudonyms.md",
    ),
    ("private runs", "privacy/* _settings/runs.py", "privacy/*", "privacy.md"),
    (
        "images",
        "images/* _wire/image_endpoints.py chat/described_images.py",
        "images/*",
        "general.md",
    ),
    (
        "own connections",
        "_http/*",
        "service/*http* service/*socket* service/*connect*",
        "",
    ),
    ("stream formats", "_wire/stream* _wire/chunks.py", "wire/*stream*", ""),
    ("FHIR import", "medical/fhir/*", "medical/*fhir*", "medical-records.md"),
    (
        "DICOM",
        "medical/dicom.py medical/images.py",
        "medical/*dicom*",
        "medical-images.md",
    ),
    ("medical tools, receipts", "medical/*", "medical/*", "medical.md"),
    ("budgets", "quota/*budget* quota/estimates.py", "quota/*budget*", ""),
    ("quotas and budgets in Redis", "quota/redis*", "quota/*redis*", ""),
    ("quotas", "quota/*", "quota/*", "quota.md"),
    ("bulk runs", "bulk/*", "bulk/*", "bulk.md"),
    ("the command", "cli/*", "cli/*", "cli.md"),
    (
        "sandbox: inspector, upstream",
        "sandbox/inspector* sandbox/upstream.py",
        "sandbox/*inspector* sandbox/*upstream*",
        "",
    ),
    (
        "sandbox: rules instead of AI",
        "sandbox/answers.py sandbox/prompts.py",
        "sandbox/*answer*",
        "",
    ),
    (
        "sandbox: server and faults",
        "sandbox/*",
        "sandbox/* faults/*",
        "sandbox.md testing.md",
    ),
    ("usage and tracing", "observe/*", "*usage* *otel*", "usage.md"),
)

MOST_BRANCHES = 15
MOST_LAYERS = 7
MOST_TOKENS_A_LINE = 8.5
_NO_CODE = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
}
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module:
    """One file of the package."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        self.room = parts[0] if len(parts) > 1 else "(top)"
        self.name = ".".join([TOP, *parts]).removesuffix(".__init__")
        self.is_face = path.name == "__init__.py"
        self.counts = self._tokens_by_line()

    def _tokens_by_line(self) -> dict[int, int]:
        """How many tokens begin in each line of code; docstrings and comments are none."""
        docstrings = set[int]()
        for node in ast.walk(self.tree):
            is_text = isinstance(node, ast.Expr) and isinstance(
                node.value, ast.Constant
            )
            if is_text and isinstance(node.value.value, str):
                docstrings.update(
                    range(node.lineno, (node.end_lineno or node.lineno) + 1)
                )
        counts = dict[int, int]()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            line = token.start[0]
            if token.type not in _NO_CODE and line not in docstrings:
                counts[line] = counts.get(line, 0) + 1
        return counts

    def imports(self, known: set[str]) -> set[str]:
        """The modules of the package that this one imports, also for types and in functions."""
        package = self.name.split(".")
        if not self.is_face:
            package = package[:-1]
        modules = set[str]()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                home = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names:
                    inner = f"{home}.{alias.name}"
                    modules.add(inner if inner in known else home)
        return (modules & known) - {self.name}


def branches(function: ast.AST) -> int:
    """The complexity of a function."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, (*_BRANCHES, ast.comprehension)):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
    return count


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one circle of imports; empty where there is none."""
    done = set[str]()
    path = list[str]()

    def visit(name: str) -> list[str]:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        path.append(name)
        for other in sorted(graph.get(name, ())):
            if closed := visit(other):
                return closed
        path.pop()
        done.add(name)
        return []

    return next((closed for name in sorted(graph) if (closed := visit(name))), [])


def layers(modules: list[Module], graph: dict[str, set[str]]) -> int:
    """The longest chain of rooms of the core of which each imports the next."""

    def room(name: str) -> str:
        return name.split(".")[1]

    below = defaultdict[str, set[str]](set)
    for module in modules:
        if (
            module.room not in WINGS
            and module.name != TOP
            and "__main__" not in module.name
        ):
            home = room(module.name)
            below[home] |= {room(other) for other in graph[module.name] if other != TOP}
            below[home] -= {home, *WINGS}
    depths = dict[str, int]()

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max(map(depth, below.get(name, ())), default=0)
        return depths[name]

    return max(map(depth, list(below)))


def problems(modules: list[Module]) -> Iterator[str]:
    """What of the shape does not hold, and what to do."""
    for module in modules:
        yield from _too_long(module)
    yield from _misplaced(modules)
    for name, tokens, _, _ in prices(modules):
        if not tokens:
            yield f"The promise {name!r} names no file of the package. Name those that keep it now."
    for name, (tokens, lines) in sizes(modules).items():
        if tokens / lines > MOST_TOKENS_A_LINE:
            yield (
                f"{name}: {tokens / lines:.2f} tokens a line, at most {MOST_TOKENS_A_LINE}. Write "
                "one idea a line: give terms names, and each assignment a line."
            )


def _too_long(module: Module) -> Iterator[str]:
    """The functions of a file that are too long to hold in mind."""
    place = module.path.relative_to(ROOT)
    for node in ast.walk(module.tree):
        if isinstance(node, _FUNCTIONS) and branches(node) > MOST_BRANCHES:
            yield (
                f"{place}:{node.lineno} {node.name}: complexity {branches(node)}, at most "
                f"{MOST_BRANCHES}. Give a part of it a name of its own."
            )


def _misplaced(modules: list[Module]) -> Iterator[str]:
    """Imports in a circle, too many layers, and imports of a wing by the core."""
    known = {module.name for module in modules}
    graph = {module.name: module.imports(known) for module in modules}
    # A package's own face only passes names on.
    inner = {
        name: {
            other
            for other in others
            if other != TOP and not name.startswith(f"{other}.")
        }
        for name, others in graph.items()
        if name != TOP
    }
    if closed := circle(inner):
        yield f"Imports in a circle: {' -> '.join(closed)}. Move what they share below them."
        return
    count = layers(modules, graph)
    if count > MOST_LAYERS:
        yield (
            f"The rooms of the core stand in {count} layers, at most {MOST_LAYERS}. `python "
            "docs/layers.py` shows which room uses which."
        )
    for name, others in graph.items():
        in_core = name != TOP and name.split(".")[1] not in WINGS | {"__main__"}
        for other in sorted(others - {TOP}) if in_core else ():
            if other.split(".")[1] in WINGS:
                yield (
                    f"{name} imports the wing {other}. Name what the core needs of it as a "
                    "protocol, and let the caller give it."
                )


def sizes(modules: list[Module]) -> dict[str, tuple[int, int]]:
    """The tokens and the lines of code of each room."""
    rooms = dict[str, tuple[int, int]]()
    for module in modules:
        tokens, lines = rooms.get(module.room, (0, 0))
        rooms[module.room] = (
            tokens + sum(module.counts.values()),
            lines + len(module.counts),
        )
    return dict(sorted(rooms.items()))


def prices(modules: list[Module]) -> Iterator[tuple[str, int, int, int]]:
    """Each promise with its tokens, the lines of its tests, and the words of its pages.

    A row that names no file of the package has gone out of date.
    """
    left = {module.path.relative_to(PACKAGE).as_posix(): module for module in modules}
    tests = {
        path.relative_to(ROOT / "tests").as_posix(): path
        for path in sorted((ROOT / "tests").rglob("*.py"))
    }
    for name, code, checked_by, pages in PROMISES:
        tokens = sum(sum(left.pop(path).counts.values()) for path in _named(left, code))
        lines = sum(
            len(tests.pop(path).read_text("utf-8").splitlines())
            for path in _named(tests, checked_by)
        )
        words = sum(
            len((ROOT / "docs" / page).read_text("utf-8").split())
            for page in pages.split()
        )
        yield name, tokens, lines, words
    rest = sum(sum(module.counts.values()) for module in left.values())
    yield "the LangChain integration", rest, 0, 0


def _named(paths: Iterable[str], patterns: str) -> list[str]:
    return [
        path
        for path in paths
        if any(fnmatch(path, pattern) for pattern in patterns.split())
    ]


def main() -> int:
    """Print the sizes and prices, or with `--check` what is wrong."""
    modules = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]
    if "--check" in sys.argv:
        wrong = list(problems(modules))
        print("\n".join(wrong) or "The shape holds.")
        return bool(wrong)
    print(f"{'room':<14}{'tokens':>9}{'lines':>8}{'a line':>8}")
    rows = sizes(modules)
    total = tuple(map(sum, zip(*rows.values(), strict=True)))
    for name, (tokens, lines) in [*rows.items(), ("all", (total[0], total[1]))]:
        print(f"{name:<14}{tokens:>9,}{lines:>8,}{tokens / lines:>8.2f}")
    print(f"\n{'promise':<38}{'tokens':>9}{'tests':>8}{'words':>8}")
    for name, tokens, lines, words in prices(modules):
        print(f"{name:<38}{tokens:>9,}{lines:>8,}{words:>8,}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
