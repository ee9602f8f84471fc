"""Medians with distribution-free intervals, from order statistics alone.

Assumes independent samples and nothing about their distribution. Owns no timing and no verdict: it turns
numbers into an `Interval` and refuses numbers that cannot be times.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import InvalidInput

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A median between two order statistics, in the unit of its samples.

    `coverage` is the probability that [low, high] holds the true median: at least what was asked for, or
    what the whole range of too few samples honestly gives (0.9375 for five, 0 for one).
    """

    low: float
    median: float
    high: float
    coverage: float

    @property
    def half_width(self) -> float:
        """The longer arm of the interval as a fraction of the median."""
        return max(self.high - self.median, self.median - self.low) / self.median


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The median of positive `values` and the narrowest symmetric order-statistic interval around it.

    The k-th smallest and k-th largest of n samples enclose the true median with probability
    1 - 2·P(Binomial(n, 1/2) < k); k is the largest that still reaches `confidence`, and 1 where none does.
    Raises InvalidInput for no values, or for one that is not a finite positive number.
    """
    if not 0.0 < confidence < 1.0:
        raise InvalidInput(f"confidence={confidence}: must lie between 0 and 1; use {CONFIDENCE}")
    check_times(values)
    ordered = sorted(values)
    rank, coverage = _rank_and_coverage(len(ordered), confidence)
    return Interval(ordered[rank - 1], statistics.median(ordered), ordered[-rank], coverage)


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
    logs = sorted(math.log(base / arm) for base, arm in zip(baseline_us, arm_us, strict=True))
    rank, coverage = _rank_and_coverage(len(logs), confidence)
    low, median, high = (math.exp(x) for x in (logs[rank - 1], statistics.median(logs), logs[-rank]))
    return Interval(low, median, high, coverage)


def check_times(values: Sequence[float]) -> None:
    """Raises InvalidInput unless there is at least one value and all are finite and positive."""
    if not values:
        raise InvalidInput("no samples: a median needs at least one; measure one round or more")
    for index, value in enumerate(values):
        if not (math.isfinite(value) and value > 0.0):
            raise InvalidInput(
                f"sample {index} is {value}: a time must be finite and above 0, or the timer failed; measure again"
            )


def _rank_and_coverage(count: int, confidence: float) -> tuple[int, float]:
    total = 2**count
    rank, below, term = 0, 0, 1
    while rank < (count + 1) // 2:
        widened = below + term
        if rank >= 1 and 1.0 - 2 * widened / total < confidence:
            break
        rank, below, term = rank + 1, widened, term * (count - rank) // (rank + 1)
    return rank, 1.0 - 2 * below / total
