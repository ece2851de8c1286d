"""Draws the pictures of terminals from real runs on the sandbox: `python docs/screens.py`.

The demo moves and needs `pip install -e ".[docs]"`: `python docs/screens.py demo` draws it alone.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from animated import Recording, svg
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from langchain_svc.sandbox import Sandbox

IMAGES = Path(__file__).parent / "images"
COLUMNS, LINES = 80, 60
# The terminal is made the process's own, so that Ctrl-C reaches it.
_OWN = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
COMMAND = [
    sys.executable,
    "-c",
    f"{_OWN}; from langchain_svc.cli import main; sys.exit(main())",
]


EXAMPLES = Path(__file__).parents[1] / "examples"


def screen(
    words: list[str],
    env: dict[str, str],
    lines: int = LINES,
    command: Sequence[str] = COMMAND,
) -> Recording:
    """What a terminal is sent by a command."""
    master, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, COLUMNS, 0, 0))
    environment = {
        **os.environ,
        "COLUMNS": str(COLUMNS),
        "TERM": "xterm-256color",
        **env,
    }
    process = subprocess.Popen(  # noqa: S603  # our own command
        [*command, *words],
        stdin=end,
        stdout=end,
        stderr=end,
        env=environment,
        start_new_session=True,
    )
    os.close(end)
    recording: Recording = []
    while True:
        if select.select([master], [], [], 0.05)[0]:
            try:
                data = os.read(master, 65_536)
            except OSError:
                break
            if not data:
                break
            recording.append((time.monotonic(), data.decode()))
    process.wait()
    os.close(master)
    return recording


def draw(name: str, title: str, recording: Recording, command: str) -> None:
    """One picture of it."""
    shown = "".join(text for _, text in recording)
    for noise in ("\r", "\x1b[?2004h", "\x1b[?2004l", "\x01", "\x02"):
        shown = shown.replace(noise, "")
    text = Text.from_ansi(f"$ {command}\n{shown.rstrip()}")
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123  # a device
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(text)
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id=name)
    # Its fonts are at an outside address; those of the reader do.
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
    (IMAGES / f"{name}.svg").write_text(svg, "utf-8")


def draw_demo() -> None:
    """The demo from its first line on, with pauses to read."""
    recording = screen(["demo"], {}, lines=300)
    started = recording[0][0] - 1  # after one second, however long the imports took
    moved = [(at - started, text) for at, text in recording]
    picture = svg([(0.0, "$ langchain-svc demo\r\n"), *moved], "langchain-svc demo")
    (IMAGES / "demo.svg").write_text(picture, "utf-8")


def main() -> None:
    """Draw them all."""
    draw_demo()
    if sys.argv[1:] == ["demo"]:
        return
    with Sandbox() as sandbox:
        env = sandbox.env | {"SVC_BASE_URL_V1": sandbox.url, "SSL_CERT_FILE": ""}
        draw(
            "doctor",
            "langchain-svc doctor",
            screen(["doctor"], env),
            "langchain-svc doctor",
        )
        example = screen([str(EXAMPLES / "04_rag.py")], {}, command=[sys.executable])
        draw("citations", "Checked citations", example, "python examples/04_rag.py")


if __name__ == "__main__":
    main()
