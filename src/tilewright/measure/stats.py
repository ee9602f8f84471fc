"""Medians with distribution-free intervals, from order statistics alone.

Assumes nothing about the distribution of the samples; they come in the order they were taken, so that neighbours which
resemble each other count for less. Owns no timing and no verdict: it turns numbers into an `Interval` and refuses
numbers that cannot be times.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tilewright.errors import InvalidInput

CONFIDENCE = 0.95
MAX_AUTOCORRELATION = 0.9


@dataclass(frozen=True, slots=True)
class Interval:
    """A median between two order statistics, in the unit of its samples.

    `coverage` is the probability that [low, high] holds the true median: what was asked for, or what the whole range
    of too few samples honestly gives (0.9375 for five, 0 for one).
    """

    low: float
    median: float
    high: float
    coverage: float

    @property
    def half_width(self) -> float:
        """The longer arm of the interval as a fraction of the median."""
        return max(self.high - self.median, self.median - self.low) / self.median

    @property
    def distance_from_one(self) -> float:
        """How far 1 lies outside of a ratio's interval, as a fraction; 0 inside."""
        return max(0.0, self.low - 1.0, 1.0 / self.high - 1.0)


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The median of positive `values` with the symmetric order-statistic interval around it.

    The k-th smallest and k-th largest of n independent samples enclose the true median with probability
    1 - 2·P(Binomial(n, 1/2) < k). Between the two k that bracket `confidence` it is interpolated (Hettmansperger and
    Sheather, 1986); n is `independent_samples`. Raises InvalidInput for no values, or for one that is not a finite
    positive number.
    """
    check_times(values)
    return _interval(values, confidence)


def paired_ratio(baseline_us: Sequence[float], arm_us: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Baseline time over arm time, paired by round: above 1 the arm is faster.

    The median of the paired log-ratios, turned back into a ratio, so that swapping the two gives the
    reciprocal. Raises InvalidInput for unequal lengths and as `median_interval` does.
    """
    if len(baseline_us) != len(arm_us):
        raise InvalidInput(
            f"{len(baseline_us)} baseline times and {len(arm_us)} arm times: must be one of each a round; "
            "pass samples of the same rounds"
        )
    check_times(baseline_us)
    check_times(arm_us)
    logs = _interval([math.log(base / arm) for base, arm in zip(baseline_us, arm_us, strict=True)], confidence)
    return Interval(math.exp(logs.low), math.exp(logs.median), math.exp(logs.high), logs.coverage)


def independent_samples(values: Sequence[float]) -> int:
    """How many independent samples `values`, in the order they were taken, are worth.

    n·(1 - r)/(1 + r) with r the correlation of neighbours, freed of its bias towards -1/n and taken as 0 where it is
    negative: alternation is never credited.
    """
    count = len(values)
    mean = statistics.fmean(values)
    apart = [value - mean for value in values]
    total = math.fsum(x * x for x in apart)
    if total == 0.0:
        return count
    raw = math.fsum(x * y for x, y in itertools.pairwise(apart)) / total
    r = min(MAX_AUTOCORRELATION, max(0.0, raw + (1.0 + 4.0 * max(raw, 0.0)) / count))
    return max(1, round(count * (1.0 - r) / (1.0 + r)))


def check_times(values: Sequence[float]) -> None:
    """Raises InvalidInput unless there is at least one value and all are finite and positive."""
    if not values:
        raise InvalidInput("no samples: a median needs at least one; measure one round or more")
    for index, value in enumerate(values):
        if not (math.isfinite(value) and value > 0.0):
            raise InvalidInput(
                f"sample {index} is {value}: a time must be finite and above 0, or the timer failed; measure again"
            )


def _interval(values: Sequence[float], confidence: float) -> Interval:
    if not 0.0 < confidence < 1.0:
        raise InvalidInput(f"confidence={confidence}: must lie between 0 and 1; use {CONFIDENCE}")
    ordered = sorted(values)
    worth = independent_samples(values)
    rank, coverage = _rank(worth, confidence)
    rank = 1.0 if coverage < confidence else rank * (len(ordered) + 1) / (worth + 1)
    low, high = _at(ordered, rank), _at(ordered, len(ordered) + 1 - rank)
    return Interval(low, statistics.median(ordered), high, coverage)


def _at(ordered: Sequence[float], rank: float) -> float:
    """The value at a rank from 1 on, between two neighbours where the rank lies between them."""
    inside = min(max(rank, 1.0), float(len(ordered)))
    below = int(inside)
    left, right = ordered[below - 1], ordered[min(below, len(ordered) - 1)]
    return left + (inside - below) * (right - left)


@cache
def _rank(count: int, confidence: float) -> tuple[float, float]:
    """The rank of the interval's lower end among `count` samples, and the coverage it has."""
    total, below, term = int(2**count), 1, count
    rank, wider = 1, 1.0 - 2 / total
    if wider <= confidence or count < 3:
        return 1.0, wider
    while (narrower := 1.0 - 2 * (below + term) / total) >= confidence:
        below, term = below + term, term * (count - rank) // (rank + 1)
        rank, wider = rank + 1, narrower
    part = (wider - confidence) / (wider - narrower)
    return rank + (count - rank) * part / (rank + (count - 2 * rank) * part), confidence
