"""What tuning found, looked up by problem and card. Reads the store and never makes one; it tunes nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright.arch import ArchSpec
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidInput
from tilewright.problem import Problem
from tilewright.tune import Store
from tilewright.tune.context import problem_fields, source_digest
from tilewright.tune.store import store_path

_reading = threading.Lock()


def tuned_config(problem: Problem, arch: ArchSpec, sm_count: int) -> Config | None:
    """The fastest config that tuning found for this very problem on such a card, with today's kernel; or None."""
    path = store_path()
    with _reading:
        known = _known(path, _changed_ns(path))
    found = known.get((_key(problem_fields(problem)), arch.compute_capability, sm_count))
    return None if found is None else _config(*found)


def _changed_ns(path: Path) -> tuple[int, ...]:
    """When the store's files last changed: the write-ahead log is one of them."""
    files = (path, path.with_name(path.name + "-wal"))
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


@lru_cache(maxsize=1)
def _known(path: Path, changed_ns: tuple[int, ...]) -> dict[Any, tuple[str, str, dict[str, int]]]:
    """By problem, compute capability and SMs: rung, digest of its source, and the settings with the least time."""
    if not any(changed_ns):
        return {}
    with Store(path) as store:
        choices = store.choices()
    fastest: dict[Any, tuple[float, tuple[str, str, dict[str, int]]]] = {}
    for choice in choices:
        fields, time_us = choice.context.fields, choice.data.get("time_us")
        if time_us is None:
            continue
        device = fields["device"]
        key = (_key(fields["problem"]), tuple(device["compute_capability"] or ()), device["sm_count"])
        if key not in fastest or time_us < fastest[key][0]:
            fastest[key] = (time_us, (choice.context.rung, fields["source"], choice.data["best"]))
    return {key: found for key, (_, found) in fastest.items()}


def _key(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True)


def _config(rung_name: str, source: str, settings: Mapping[str, int]) -> Config | None:
    rung = all_rungs().get(rung_name)
    if rung is None or source_digest(rung) != source:
        return None
    try:
        return rung_config(rung, settings)
    except InvalidInput:
        return None
