"""Which config to try next: ask for configs, tell what became of them.

A strategy knows configs and times; it compiles, runs and stores nothing. None asks for a config twice, or for one that
it was told of.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from tilewright.declare import Config
from tilewright.errors import UnknownName
from tilewright.tune.features import features
from tilewright.tune.model import Matrix, expected_improvement, fitted, predict, scaled
from tilewright.tune.space import Space
from tilewright.tune.trial import config_key


class Strategy(Protocol):
    """The order of a search."""

    def ask(self, count: int) -> list[Config]:
        """At most `count` configs to try next; none once there are no more."""
        ...

    def tell(self, config: Config, time_us: float | None) -> None:
        """A config's time, None where it has none."""
        ...


class Listed:
    """Configs in a fixed order: the declaration's, or a shuffled one."""

    def __init__(self, configs: Sequence[Config]) -> None:
        self._left = {config_key(config.values): config for config in configs}

    def ask(self, count: int) -> list[Config]:
        """The next of the list."""
        return [self._left.pop(key) for key in list(self._left)[:count]]

    def tell(self, config: Config, time_us: float | None) -> None:
        """A config that was tried elsewhere leaves the list."""
        self._left.pop(config_key(config.values), None)


FIRST = 24
BATCH = 8
WORST_RATIO = 3.0
"""How much slower than the best a config still tells the model more by being slower; failures count as this slow."""
REFIT_GROWTH = 1.15
"""By how much the trials must have grown for the model's shape to be chosen anew."""
MOST_KNOWN, MOST_POINTS = 600, 4096
"""How many trials the model learns from, the fastest first, and among how many untried configs it chooses at a time."""
NEAR = 0.3
"""Distance, in the model's scaled features, within which two proposals of one batch would tell the same."""


class Guided:
    """Configs where a model of the times told so far expects the most improvement.

    The first FIRST are spread over the space at random, the rung's default before them. Proposals are made BATCH at a
    time, each keeping away from those before it in the batch.
    """

    def __init__(self, space: Space, *, seed: int, sm_count: int) -> None:
        self._configs = space.configs
        self._index = {config_key(config.values): i for i, config in enumerate(space.configs)}
        self._table: Matrix = scaled(features(space.configs, space.problem, space.arch, sm_count=sm_count))
        self._rng = random.Random(seed)
        self._times: dict[int, float | None] = {}
        self._open = set(range(len(space.configs)))
        self._queue = self._first(space)
        self._fitted_to = 0

    def ask(self, count: int) -> list[Config]:
        """What was proposed and not given out; new proposals when that is used up."""
        chosen: list[int] = []
        while len(chosen) < count and self._open:
            self._queue = [i for i in self._queue if i in self._open] or self._proposals()
            chosen.append(self._queue.pop(0))
            self._open.discard(chosen[-1])
        return [self._configs[i] for i in chosen]

    def tell(self, config: Config, time_us: float | None) -> None:
        """Learn from a trial, one of another run too."""
        index = self._index.get(config_key(config.values))
        if index is not None:
            self._times[index] = time_us
            self._open.discard(index)

    def _first(self, space: Space) -> list[int]:
        default = config_key({p.name: p.default for p in space.rung.params})
        spread = self._rng.sample(range(len(self._configs)), min(FIRST, len(self._configs)))
        return [*([self._index[default]] if default in self._index else []), *spread]

    def _proposals(self) -> list[int]:
        left = self._rng.sample(sorted(self._open), min(MOST_POINTS, len(self._open)))
        timed = {i: time for i, time in self._times.items() if time is not None}
        if len(timed) < 2:
            return left[:BATCH]
        best = min(timed.values())
        known = sorted(self._times, key=lambda i: timed.get(i, math.inf))[:MOST_KNOWN]
        values = np.array([math.log(min(timed.get(i, math.inf), WORST_RATIO * best)) for i in known])
        seen = self._table[known]
        if len(known) >= REFIT_GROWTH * self._fitted_to:
            self._shape, self._fitted_to = fitted(seen, values), len(known)
        gain = expected_improvement(predict(seen, values, self._table[left], self._shape), math.log(best))
        proposals = []
        for _ in range(min(BATCH, len(left))):
            at = int(np.argmax(gain))
            proposals.append(left[at])
            distance = np.linalg.norm(self._table[left] - self._table[left[at]], axis=1)
            gain = gain * (1.0 - np.exp(-((distance / NEAR) ** 2)))
        return proposals


def _shuffled(space: Space, seed: int, sm_count: int) -> Strategy:
    return Listed(random.Random(seed).sample(space.configs, len(space.configs)))


STRATEGIES: dict[str, Callable[[Space, int, int], Strategy]] = {
    "exhaustive": lambda space, seed, sm_count: Listed(space.configs),
    "random": _shuffled,
    "model": lambda space, seed, sm_count: Guided(space, seed=seed, sm_count=sm_count),
}


def strategy_named(name: str, space: Space, *, seed: int, sm_count: int) -> Strategy:
    """The strategy called `name`. Raises UnknownName with those there are."""
    if name not in STRATEGIES:
        raise UnknownName(f"strategy {name!r}: no such strategy; there are {', '.join(STRATEGIES)}")
    return STRATEGIES[name](space, seed, sm_count)
