"""When a measurement has seen enough.

Owns the looks and what is precise enough. It looks after 20, 40, 80 … rounds and at no other: stopping at whichever
round happens to be narrow would make intervals hold less often than they say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.measure.stats import median_interval, paired_ratio

PRECISION = 0.0025
FIRST_LOOK = 20
MAX_REJECTED = 20
MAX_REJECTED_SHARE = 0.25


def is_look(rounds: int) -> bool:
    """Whether the intervals are looked at after this many rounds: 20 and its doublings."""
    doublings, rest = divmod(rounds, FIRST_LOOK)
    return rest == 0 and doublings > 0 and doublings & (doublings - 1) == 0


def enough(times_us: Mapping[str, Sequence[float]], baseline: str | None, control: str | None) -> str:
    """'precision' or 'floor' where every interval is narrow enough, else ''.

    Narrow enough is 0.25% on either side, or what the baseline and its A/A control are apart, where that is certain
    and more: arms cannot be told apart better than two runs of the same arm.
    """
    if baseline is None or control is None:
        widths = [median_interval(times).half_width for times in times_us.values()]
        return "precision" if max(widths) <= PRECISION else ""
    ratios = {name: paired_ratio(times_us[baseline], times) for name, times in times_us.items() if name != baseline}
    widest = max(ratio.half_width for ratio in ratios.values())
    if widest <= PRECISION:
        return "precision"
    return "floor" if widest <= ratios[control].distance_from_one else ""


def is_throttled(rejected: int, kept: int, *, over: bool) -> bool:
    """Whether slowdowns have made an answer impossible: 20 rejected rounds, or at the end a quarter of all rounds."""
    return rejected >= MAX_REJECTED or (over and rejected > 0 and rejected >= MAX_REJECTED_SHARE * (rejected + kept))
