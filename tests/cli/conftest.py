import codecs
import io
import os
import pty
import select
import struct
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

_MAIN = "import sys; from langchain_svc.cli import main; sys.exit(main())"
PLAIN = [sys.executable, "-c", _MAIN]
# Below nohup the tests ignore SIGHUP, and so would what they start.
HEARS_HANGUPS = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)"
# The terminal is made the process's own, so that Ctrl-C reaches it.
_OWN = "import fcntl, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"


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


@contextmanager
def started(*words, stdin=subprocess.DEVNULL, first=HEARS_HANGUPS, **options):
    """The command, as a program of its own; `first` is code that runs before."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", f"{first}\n{_MAIN}", *words]
    with subprocess.Popen(
        command, stdin=stdin, stdout=pipe, stderr=pipe, text=True, **options
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def done(command, *, timeout=120, check=True, **options):
    """What became of a program."""
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, **options}
    return subprocess.run(command, timeout=timeout, check=check, **options)


class Terminal:
    """A program on a terminal of its own, as a person sees it."""

    def __init__(self, process, screen):
        self.process = process
        self._screen = screen
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self.text = ""

    def _read(self, within):
        """Whether something more came."""
        data = b""
        if select.select([self._screen], [], [], max(within, 0))[0]:
            with suppress(OSError):  # Linux says so at the end
                data = os.read(self._screen, 65_536)
        self.text += self._decode(data)
        return bool(data)

    def expect(self, text, within=20):
        """Wait until the terminal shows the text, and forget what stood before its end."""
        until = time.monotonic() + within
        while text not in self.text:
            more = self._read(until - time.monotonic())
            assert more, f"{text!r} did not come; there is {self.text!r}"
        seen, _, self.text = self.text.partition(text)
        return seen

    def rest(self, within=20):
        """All that the terminal shows until the program ends."""
        while self._read(within):
            pass
        return self.text

    def type(self, text):
        os.write(self._screen, text.encode())

    def close(self):
        """As a window is closed, or a connection lost."""
        os.close(self._screen)
        self._screen = None


@contextmanager
def terminal(*words, columns=60, first="", **environment):
    """The command on a terminal so wide; `first` is code that runs before."""
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    screen, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", f"{_OWN}; {HEARS_HANGUPS}; {first}\n{_MAIN}", *words],
        stdin=end,
        stdout=end,
        stderr=end,
        env={k: v for k, v in os.environ.items() if k not in {"COLUMNS", "NO_COLOR"}}
        | {"TERM": "xterm", **environment},
        start_new_session=True,
    )
    os.close(end)
    shown = Terminal(process, screen)
    try:
        yield shown
    finally:
        process.kill()
        process.wait()
        if shown._screen is not None:
            shown.close()
