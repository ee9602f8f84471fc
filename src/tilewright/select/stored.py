"""What tuning found, looked up by problem and card. Reads the store and never makes one; it tunes nothing.

A store that cannot be read, whatever is wrong with it, is as good as none: it is named once, and not asked again until
it changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tilewright.arch import ArchSpec
from tilewright.compile.cache import ENVIRONMENT as CACHE_ENVIRONMENT
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidInput
from tilewright.problem import Problem
from tilewright.tune.place import SKIP_ENVIRONMENT, is_skipped, store_path


class Tuned(NamedTuple):
    """A config that tuning chose: its time, and the highest that the library's time over it may be, if known."""

    config: Config
    time_us: float
    ratio_to_library: float | None


class State(NamedTuple):
    """Where the store lies, and when its files last changed: the write-ahead log is one of them."""

    path: str
    changed_ns: tuple[int, int]


_unreadable: dict[str, State] = {}


def store_state() -> State:
    """The store's state now, by two looks at the file system."""
    path = _path(os.environ.get(CACHE_ENVIRONMENT), os.environ.get(SKIP_ENVIRONMENT))
    return State(path, (_changed_ns(path), _changed_ns(f"{path}-wal")))


@lru_cache(maxsize=8)
def _path(*_: str | None) -> str:
    """The store's path, which these variables of the environment decide; empty where it is to be left alone."""
    return "" if is_skipped() else str(store_path())


def _changed_ns(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0


def tuned(problem: Problem, arch: ArchSpec, sm_count: int, state: State) -> Tuned | None:
    """The fastest config that tuning found for this very problem on such a card, with today's kernel; or None."""
    if not state.changed_ns[0] or _unreadable.get(state.path) == state:
        return None
    return min(_found(problem, arch, sm_count, state), key=lambda each: each.time_us, default=None)


def _found(problem: Problem, arch: ArchSpec, sm_count: int, state: State) -> Iterator[Tuned]:
    import sqlite3
    from pathlib import Path

    from tilewright.tune.context import lookup_of, problem_fields, source_digest
    from tilewright.tune.reading import choices_by
    from tilewright.tune.rows import say_once

    lookup = lookup_of(problem_fields(problem), arch.compute_capability, sm_count)
    try:
        choices = choices_by(Path(state.path), lookup)
    except (sqlite3.Error, OSError) as error:
        _unreadable[state.path] = state
        say_once(state.path, f"cannot be read ({error}); until it changes kernels are chosen without what tuning found")
        return
    for choice in choices:
        rung = all_rungs().get(choice.context.rung)
        if rung is None or source_digest(rung) != choice.context.fields["source"]:
            continue
        try:
            config = rung_config(rung, choice.data["best"])
        except InvalidInput as error:
            say_once(state.path, f"holds a choice that is none ({error}); such rows are left out")
            continue
        ratio = choice.data.get("ratio_to_baseline") or [None]
        yield Tuned(config, choice.data["time_us"], ratio[-1])
