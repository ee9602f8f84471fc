"""What intervals and verdicts are worth: a thousand simulated measurements of each kind, the stopping rule running."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tilewright.measure import Arm, ClockReading, Samples, judge, measure

RUNS, ROUNDS, UNRECORDED = 1000, 80, 40
TIMES_US = {"base": 2020.0, "same": 2020.0, "one percent": 2000.0}
Floats = npt.NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, int]], Floats]


class Card:
    """A timer whose launches take what `noise` says: a row a round, a column an arm, the last for an arm run again."""

    def __init__(self, noise: Floats, slow: npt.NDArray[np.bool_], tick_us: float) -> None:
        self.noise, self.slow, self.tick_us = noise.tolist(), slow.tolist(), tick_us
        self.host_s, self.round, self.spent_us = 0.0, -1, 0.0
        self.again = dict.fromkeys(TIMES_US, -1)

    def now_s(self) -> float:
        return self.host_s

    def time_us(self, batches: Sequence[Callable[[Any], None]], during: Callable[[], None]) -> list[float]:
        self.round += 1
        measured = []
        for batch in batches:
            batch(self)
            measured.append(round(self.spent_us / self.tick_us) * self.tick_us)
        during()
        self.host_s += 0.01
        return measured

    def read(self) -> ClockReading:
        return ClockReading(1980, reasons=("hw_thermal_slowdown",) if self.slow[self.round] else ())

    def arm(self, name: str, column: int) -> Arm:
        def launch(slot: int, stream: Card) -> None:
            again, stream.again[name] = stream.again[name] == stream.round, stream.round
            noise = stream.noise[stream.round][-1 if again else column]
            stream.spent_us = TIMES_US[name] * noise * (1.3 if stream.slow[stream.round] else 1.0)

        return Arm(name, launch)


def lognormal(scale: float) -> Noise:
    return lambda rng, shape: np.exp(scale * rng.standard_normal(shape))


def heavy_tailed(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return np.exp(0.004 * rng.standard_t(3, shape))


def delayed_now_and_then(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return lognormal(0.004)(rng, shape) + (rng.random(shape) < 0.08) * rng.exponential(0.03, shape)


def drifting(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """A card that warms and whose clock wanders: far more than the noise, and shared by the arms of a round."""
    index = np.arange(shape[0])
    shared = 0.001 * index + 0.03 * np.sin(index / 9) + 0.005 * rng.standard_normal(shape[0])
    return lognormal(0.004)(rng, shape) * np.exp(shared)[:, np.newaxis]


def following_itself(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    log = 0.005 * rng.standard_normal(shape)
    for before, after in itertools.pairwise(log):
        after += 0.3 * before
    return np.exp(log)


KINDS: dict[str, Noise] = {
    "1.2% a sample": lognormal(0.012),
    "heavy tails": heavy_tailed,
    "delays": delayed_now_and_then,
    "drift": drifting,
    "neighbours alike": following_itself,
    "ticks and slowdowns": lognormal(0.003),
}


def measured(kind: str, seed: int) -> Samples:
    rng = np.random.default_rng((zlib.crc32(kind.encode()), seed))
    shape = (ROUNDS + UNRECORDED, len(TIMES_US) + 1)
    ticking = kind == "ticks and slowdowns"
    slow = rng.random(shape[0]) < (0.08 if ticking else 0.0)
    card = Card(KINDS[kind](rng, shape), slow, 2.0 if ticking else 1e-6)
    arms = [card.arm(name, column) for column, name in enumerate(TIMES_US)]
    settings: dict[str, Any] = {"slots": 2, "baseline": "base", "read_clocks": card.read, "warm_window_s": 0.001}
    return measure(arms, card, rounds=ROUNDS, seed=seed, budget_s=1e3, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_thousand_measurements_intervals_and_words_hold_as_often_as_they_say(kind: str) -> None:
    truth = TIMES_US["base"] / TIMES_US["one percent"]
    covered, equal, differs = 0, Counter[str](), Counter[str]()
    for seed in range(RUNS):
        samples = measured(kind, seed)
        interval = samples.ratio("one percent", "base")
        covered += interval.low <= truth <= interval.high
        equal[judge(samples, "same", "base").word] += 1
        differs[judge(samples, "one percent", "base").word] += 1
    assert 0.93 <= covered / RUNS <= 0.97
    assert equal["faster"] + equal["slower"] < 0.05 * RUNS
    assert differs["faster"] >= 0.9 * RUNS and differs["slower"] == 0
