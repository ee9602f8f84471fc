"""What tuning found, looked up by problem and card. Reads the store and never makes one; it tunes nothing."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.arch import ArchSpec
from tilewright.compile.cache import ENVIRONMENT as CACHE_ENVIRONMENT
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidInput
from tilewright.problem import Problem
from tilewright.tune import Store
from tilewright.tune.context import problem_fields, source_digest
from tilewright.tune.store import store_path

_reading = threading.Lock()


class Tuned(NamedTuple):
    """A config that tuning chose: its time, and the highest that the library's time over it may be, if known."""

    config: Config
    time_us: float
    ratio_to_library: float | None


class _Entry(NamedTuple):
    """A choice in the store: the rung with a digest of its source, its settings, and what `Tuned` says of it."""

    time_us: float
    rung: str
    source: str
    settings: Mapping[str, int]
    ratio_to_library: float | None


class State(NamedTuple):
    """Where the store lies, and when its files last changed: the write-ahead log is one of them."""

    path: str
    changed_ns: tuple[int, int]


def store_state() -> State:
    """The store's state now, by two looks at the file system."""
    path = _path(os.environ.get(CACHE_ENVIRONMENT))
    return State(path, (_changed_ns(path), _changed_ns(f"{path}-wal")))


@lru_cache(maxsize=8)
def _path(cache_dir: str | None) -> str:
    """The store's path, which the environment's cache folder decides."""
    return str(store_path())


def _changed_ns(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0


def tuned(problem: Problem, arch: ArchSpec, sm_count: int, state: State) -> Tuned | None:
    """The fastest config that tuning found for this very problem on such a card, with today's kernel; or None."""
    with _reading:
        known = _known(state)
    found = known.get((_key(problem_fields(problem)), arch.compute_capability, sm_count), []) if known else []
    usable = (_usable(entry) for entry in sorted(found, key=lambda entry: entry.time_us))
    return next((each for each in usable if each is not None), None)


@lru_cache(maxsize=1)
def _known(state: State) -> dict[Any, list[_Entry]]:
    """What tuning chose, by problem, compute capability and SMs."""
    if not any(state.changed_ns):
        return {}
    with Store(Path(state.path)) as store:
        choices = store.choices()
    known: dict[Any, list[_Entry]] = {}
    for choice in choices:
        fields, time_us = choice.context.fields, choice.data.get("time_us")
        if time_us is not None:
            capability, sm_count = tuple(fields["device"]["compute_capability"] or ()), fields["device"]["sm_count"]
            ratio = (choice.data.get("ratio_to_baseline") or [None])[-1]
            entry = _Entry(time_us, choice.context.rung, fields["source"], choice.data["best"], ratio)
            known.setdefault((_key(fields["problem"]), capability, sm_count), []).append(entry)
    return known


def _key(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)


def _usable(entry: _Entry) -> Tuned | None:
    rung = all_rungs().get(entry.rung)
    if rung is None or source_digest(rung) != entry.source:
        return None
    try:
        return Tuned(rung_config(rung, entry.settings), entry.time_us, entry.ratio_to_library)
    except InvalidInput:
        return None
