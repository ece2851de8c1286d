"""Draws the picture of the page of examples/13_citing_page.py: `docs/citing_page.py CHROMIUM`.

It needs `pip install playwright pillow` and a Chromium, whose path is given. Every text that the
page shows at any moment is looked at: none has a mark of the model or an answer to a question.
"""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "13_citing_page.py"
PICTURE = ROOT / "docs" / "images" / "citing-page.png"
GAP = 24  # pixels between the two states
NEVER_SHOWN = re.compile(r"cite\b|NONE|passage id")
RECORD = """
window.shown = [];
new MutationObserver(() => shown.push(document.querySelector("main")?.textContent ?? ""))
  .observe(document, {subtree: true, childList: true, characterData: true});
"""


def states(page: Page, address: str) -> list[Image.Image]:
    """An answer while it streams, and at its end."""
    page.add_init_script(RECORD)
    page.goto(address)
    page.click("button")
    page.locator("article li").nth(1).wait_for()
    streaming = _card(page)
    page.locator("article .status:empty").wait_for(state="attached")
    states = [streaming, _card(page)]
    shown = page.evaluate("shown")
    bad = [text for text in shown if NEVER_SHOWN.search(text)]
    if bad:
        raise SystemExit(f"The page has shown {bad[0]!r}")
    print(f"{len(shown)} texts were shown, the last one: {shown[-1]}")
    return states


def _card(page: Page) -> Image.Image:
    return Image.open(io.BytesIO(page.locator("article").screenshot()))


def draw(states: list[Image.Image]) -> None:
    """Both, one below the other."""
    height = sum(state.height for state in states) + GAP
    picture = Image.new("RGB", (states[0].width, height), "white")
    at = 0
    for state in states:
        picture.paste(state, (0, at))
        at += state.height + GAP
    picture.quantize(64).save(PICTURE, optimize=True)


def main(chromium: str) -> None:
    """Ask the page, in that browser."""
    command = [sys.executable, str(EXAMPLE)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,  # noqa: S603  # ours
        sync_playwright() as playwright,
    ):
        try:
            lines = server.stdout or ()
            address = next(line.strip() for line in lines if line.startswith("http:"))
            options = [
                "--no-sandbox",
                "--disable-gpu",
                "--single-process",
                "--no-zygote",
            ]
            browser = playwright.chromium.launch(executable_path=chromium, args=options)
            view = {"width": 720, "height": 700}
            draw(
                states(browser.new_page(viewport=view, device_scale_factor=2), address)
            )
            browser.close()
        finally:
            server.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main(sys.argv[1])
