"""Searching a rung's configs for the best on this machine: space, strategies, isolated workers, finalists, store.

Nothing here prints. Times that decide are `measure`'s; this package decides what is timed. Names are loaded when first
used: a choice reads the store, and nothing else of this.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.tune.request import EFFORTS, Machine, Request
    from tilewright.tune.result import TuneResult
    from tilewright.tune.space import Space, space_of
    from tilewright.tune.store import Store
    from tilewright.tune.strategies import STRATEGIES
    from tilewright.tune.trial import Trial
    from tilewright.tune.tuning import tune

_HOME_OF = {
    "EFFORTS": "request",
    "STRATEGIES": "strategies",
    "Machine": "request",
    "Request": "request",
    "Space": "space",
    "Store": "store",
    "Trial": "trial",
    "TuneResult": "result",
    "space_of": "space",
    "tune": "tuning",
}

__all__ = ["EFFORTS", "STRATEGIES", "Machine", "Request", "Space", "Store", "Trial", "TuneResult", "space_of", "tune"]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tilewright.tune' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tilewright.tune.{_HOME_OF[name]}"), name)
