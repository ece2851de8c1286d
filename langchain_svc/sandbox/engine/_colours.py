"""Colours by name: what `draw` paints with is what `analyze` recognises."""

from __future__ import annotations

COLOURS: dict[str, tuple[int, int, int]] = {
    "black": (20, 20, 20),
    "white": (245, 245, 245),
    "grey": (128, 128, 128),
    "red": (214, 40, 40),
    "orange": (247, 127, 0),
    "yellow": (252, 211, 77),
    "green": (46, 139, 87),
    "blue": (37, 99, 235),
    "purple": (126, 58, 168),
    "pink": (244, 143, 177),
    "brown": (121, 85, 61),
    "cyan": (56, 189, 208),
}
ALIASES = {"gray": "grey", "violet": "purple", "turquoise": "cyan", "golden": "yellow"}


def nearest(pixel: tuple[int, int, int]) -> str:
    """Return the name of the colour closest to `pixel`."""
    return min(
        COLOURS,
        key=lambda name: sum((a - b) ** 2 for a, b in zip(pixel, COLOURS[name], strict=True)),
    )
