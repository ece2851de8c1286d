"""llama.cpp's own server, from the wheel `xllamacpp`, in a process of its own on loopback.

One slot, so that an answer at temperature 0 does not depend on what runs beside it, and so that a
prompt which begins like the one before is read from there on only.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx

_START = 300.0  # seconds until the weights are read
_CONTEXT = 6144  # tokens
_BATCH = 512


class LocalServer:
    """The server with one model, from `with` to its end.

    Raises:
        RuntimeError: It did not start; the message names its log.
    """

    def __init__(self, weights: Path, name: str, *, threads: int, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._settings = {
            "weights": str(weights),
            "name": name,
            "threads": threads,
            "port": port,
        }
        self._log = log

    def __enter__(self) -> Self:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  # this file
                [sys.executable, __file__, json.dumps(self._settings)],
                stdin=subprocess.PIPE,  # it ends when we do
                stdout=log,
                stderr=log,
            )
        try:
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _wait(self) -> None:
        health = self.url.removesuffix("/v1") + "/health"
        until = time.monotonic() + _START
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            while time.monotonic() < until and self._process.poll() is None:
                try:
                    if client.get(health).status_code == httpx.codes.OK:
                        return
                except httpx.HTTPError:
                    pass
                time.sleep(0.2)
        raise RuntimeError(f"The server did not start: see {self._log}")


def _serve(weights: str, name: str, threads: int, port: int) -> None:
    import xllamacpp  # noqa: PLC0415  # only this process has it

    settings = xllamacpp.CommonParams()
    settings.model.path = weights
    settings.model_alias = {name}
    settings.port = port
    settings.use_jinja = True  # the model's own chat template, and its native tools
    settings.warmup = False
    settings.n_ctx = _CONTEXT
    settings.n_parallel = 1
    settings.n_batch = settings.n_ubatch = _BATCH
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.cache_ram_mib = 0
    settings.n_gpu_layers = 0
    server = xllamacpp.Server(settings)
    sys.stdin.read()  # until whoever started this process is gone
    del server


if __name__ == "__main__":
    _serve(**json.loads(sys.argv[1]))
