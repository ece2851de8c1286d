"""Locks that a forked child finds free, whichever thread of the parent held them."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

_LOCKS: WeakSet[Any] = WeakSet()


def new_lock() -> threading.Lock:
    """A lock as of `threading.Lock`, free again in a forked child."""
    lock = threading.Lock()
    _LOCKS.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_LOCKS):
        lock._at_fork_reinit()  # noqa: SLF001  # what the standard library's own locks do


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_free_all)
