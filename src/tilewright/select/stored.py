"""What tuning found, looked up by problem and card. Reads the store and never makes one; it tunes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.arch import ArchSpec
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidInput
from tilewright.problem import Problem
from tilewright.tune import Store
from tilewright.tune.context import problem_fields, source_digest
from tilewright.tune.store import store_path

_reading = threading.Lock()


class _Tuned(NamedTuple):
    """A choice in the store: its time, the rung with a digest of its source, and the settings."""

    time_us: float
    rung: str
    source: str
    settings: Mapping[str, int]


def tuned_config(problem: Problem, arch: ArchSpec, sm_count: int) -> Config | None:
    """The fastest config that tuning found for this very problem on such a card, with today's kernel; or None."""
    path = store_path()
    with _reading:
        known = _known(path, _changed_ns(path))
    found = known.get((_key(problem_fields(problem)), arch.compute_capability, sm_count), [])
    configs = (_config(choice) for choice in sorted(found, key=lambda choice: choice.time_us))
    return next((config for config in configs if config is not None), None)


def _changed_ns(path: Path) -> tuple[int, ...]:
    """When the store's files last changed: the write-ahead log is one of them."""
    files = (path, path.with_name(path.name + "-wal"))
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


@lru_cache(maxsize=1)
def _known(path: Path, changed_ns: tuple[int, ...]) -> dict[Any, list[_Tuned]]:
    """What tuning chose, by problem, compute capability and SMs."""
    if not any(changed_ns):
        return {}
    with Store(path) as store:
        choices = store.choices()
    known: dict[Any, list[_Tuned]] = {}
    for choice in choices:
        fields, time_us = choice.context.fields, choice.data.get("time_us")
        if time_us is not None:
            capability, sm_count = tuple(fields["device"]["compute_capability"] or ()), fields["device"]["sm_count"]
            tuned = _Tuned(time_us, choice.context.rung, fields["source"], choice.data["best"])
            known.setdefault((_key(fields["problem"]), capability, sm_count), []).append(tuned)
    return known


def _key(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)


def _config(tuned: _Tuned) -> Config | None:
    rung = all_rungs().get(tuned.rung)
    if rung is None or source_digest(rung) != tuned.source:
        return None
    try:
        return rung_config(rung, tuned.settings)
    except InvalidInput:
        return None
