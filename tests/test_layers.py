"""The floors of the house: imports point down only."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_imports_point_down(capsys):
    cli = pytest.importorskip("importlinter.cli", reason="import-linter is in the dev extra")
    assert cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0, (
        capsys.readouterr().out
    )
