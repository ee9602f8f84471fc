"""Locks that a forked child finds free, whoever held them in the parent when it forked.

A child of `os.fork` has the forking thread alone, so a lock that another thread held would never be released in it.
What such a lock guards must therefore be usable as it was left: replaced at once or rebuilt, never half changed.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol

_all: weakref.WeakSet[Renewed] = weakref.WeakSet()


class Renewed(Protocol):
    """What has a lock of its own."""

    def renew_lock(self) -> None:
        """Replace the lock: called in a forked child."""
        ...


def renew_in_children(owner: Renewed) -> None:
    """Have `owner.renew_lock()` called in every forked child, as long as the owner lives."""
    _all.add(owner)


class ForkSafeLock:
    """A mutual exclusion lock, used by `with`, that is free in every forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        renew_in_children(self)

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = None
        self._lock.release()

    def renew_lock(self) -> None:
        """Free, unless the forking thread itself holds it and will release it."""
        if self._owner != threading.get_ident():
            self._lock, self._owner = threading.Lock(), None


def _renew_all() -> None:
    for owner in _all:
        owner.renew_lock()


os.register_at_fork(after_in_child=_renew_all)
