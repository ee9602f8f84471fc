"""Searching a rung's configs for the best on this machine: space, strategies, isolated workers, finalists, store.

Nothing here prints. Times that decide are `measure`'s; this package decides what is timed.
"""

from tilewright.tune.request import EFFORTS, Machine, Request
from tilewright.tune.result import TuneResult
from tilewright.tune.space import Space, space_of
from tilewright.tune.store import Store
from tilewright.tune.strategies import STRATEGIES
from tilewright.tune.trial import Trial
from tilewright.tune.tuning import tune

__all__ = ["EFFORTS", "STRATEGIES", "Machine", "Request", "Space", "Store", "Trial", "TuneResult", "space_of", "tune"]
