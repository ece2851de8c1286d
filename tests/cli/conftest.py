import io
import os
import pty
import select
import struct
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from langchain_svc.sandbox import Fault

# The terminal is made the process's own, so that Ctrl-C reaches it.
_OWN = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
PLAIN = [sys.executable, "-c", "import sys; from langchain_svc.cli import main; sys.exit(main())"]
COMMAND = [sys.executable, "-c", f"{_OWN}; from langchain_svc.cli import main; sys.exit(main())"]


@pytest.fixture
def service(sandbox, monkeypatch):
    """The sandbox, as the environment's service; nothing is piped in."""
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return sandbox


@pytest.fixture
def typed(monkeypatch):
    def type_(text):
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    return type_


def says(text):
    return Fault(body={"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


class Terminal:
    """A program on a terminal of its own, as a person sees it."""

    def __init__(self, process, screen):
        self.process = process
        self._screen = screen
        self.text = ""

    def expect(self, text, within=20):
        """Wait until the terminal shows the text, and forget what stood before its end."""
        until = time.monotonic() + within
        while text not in self.text:
            left = until - time.monotonic()
            assert left > 0, f"{text!r} did not come; there is {self.text!r}"
            if select.select([self._screen], [], [], left)[0]:
                try:
                    data = os.read(self._screen, 65_536)
                except OSError:  # Linux says so at the end
                    data = b""
                assert data, f"{text!r} did not come before the end; there is {self.text!r}"
                self.text += data.decode()
        seen, _, self.text = self.text.partition(text)
        return seen

    def rest(self, within=20):
        """All that the terminal shows until the program ends."""
        while select.select([self._screen], [], [], within)[0]:
            try:
                data = os.read(self._screen, 65_536)
            except OSError:  # Linux says so at the end
                break
            self.text += data.decode()
        return self.text

    def type(self, text):
        os.write(self._screen, text.encode())


@contextmanager
def terminal(*words, columns=60, **environment):
    """The command on a terminal so wide."""
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    screen, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *words],
        stdin=end,
        stdout=end,
        stderr=end,
        env={k: v for k, v in os.environ.items() if k != "COLUMNS"}
        | {"TERM": "xterm", **environment},
        start_new_session=True,
    )
    os.close(end)
    try:
        yield Terminal(process, screen)
    finally:
        process.kill()
        process.wait()
        os.close(screen)
