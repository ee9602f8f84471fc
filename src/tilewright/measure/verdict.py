"""Which of two arms is faster, in one word. A stand-in for the protocol's own, with the signature agreed.

Owns the word; intervals are `samples`', whether the two may be compared at all is the lab's confound guard.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.measure.samples import Samples
from tilewright.measure.stats import Interval

EQUIVALENCE = 0.005


@dataclass(frozen=True, slots=True)
class Outcome:
    """`word` is faster, slower, equivalent, inconclusive, throttled or invalid; `ratio` reference over arm."""

    word: str
    ratio: Interval | None
    reason: str


def judge(samples: Samples, arm: str, reference: str, *, equivalence: float = EQUIVALENCE) -> Outcome:
    """The word for `arm` against `reference` from rounds that both ran in."""
    if samples.rounds == 0:
        return Outcome("throttled" if samples.stop == "throttled" else "invalid", None, "no round counted")
    ratio = samples.ratio(arm, reference)
    if samples.stop == "throttled":
        return Outcome("throttled", ratio, f"{samples.rejected_rounds} rounds fell to a slowdown")
    if ratio.low >= 1 - equivalence and ratio.high <= 1 + equivalence:
        return Outcome("equivalent", ratio, f"the interval lies within ±{equivalence:.1%} of 1")
    if ratio.low > 1.0:
        return Outcome("faster", ratio, "the interval lies above 1")
    if ratio.high < 1.0:
        return Outcome("slower", ratio, "the interval lies below 1")
    return Outcome("inconclusive", ratio, "the interval holds 1 and is wider than what counts as equal")
