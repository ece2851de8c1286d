"""The sandbox stands alone: no client code, and a clear word when its extra is missing."""

import ast
from pathlib import Path

import pytest

import langchain_svc.sandbox

FOLDER = Path(langchain_svc.sandbox.__file__).parent


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_no_client_code(path):
    ours = [name for name in imported(path) if name.split(".")[0] == "langchain_svc"]
    assert [name for name in ours if not name.startswith("langchain_svc.sandbox")] == []


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(langchain_svc.sandbox, "find_spec", lambda _name: None)
    with pytest.raises(ImportError, match=r'pip install "langchain-svc\[sandbox\]"') as caught:
        langchain_svc.sandbox.require_extras()
    assert "h11 and pillow" in str(caught.value)


def test_public_names():
    assert langchain_svc.sandbox.__all__ == [
        "Fault",
        "Received",
        "Sandbox",
        "ToolCall",
        "Upstream",
        "serve",
    ]
