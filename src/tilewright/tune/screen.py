"""A quick time for one config: one launch, and a few more where that one could still win.

A screening time orders configs and no more: no baseline, no rotation of arms, few samples. What is near the best is
measured again by `measure`. Owns how often and how long; it times through a `Timer`.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

from tilewright.measure.schedule import Arm
from tilewright.measure.timer import Batch, Timer

SLOW_RATIO = 1.5
SAMPLES = 3
SAMPLE_US = 1000.0
MAX_LAUNCHES = 200
WARM_S = 1.0


@dataclass(frozen=True, slots=True)
class Screened:
    """Microseconds a launch. `slow`: given up after the first, too far behind the best to be it."""

    time_us: float
    samples_us: tuple[float, ...]
    slow: bool


def screen(arm: Arm, timer: Timer, *, slots: int, best_us: float | None) -> Screened:
    """Time `arm` over its `slots` buffer sets; `best_us` is the best of the search so far.

    The first launch, which the others follow unless it took SLOW_RATIO times the best, is not among the samples.
    """
    first_us = _times_us(arm, timer, slots, launches=1, samples=1)[0]
    if best_us is not None and first_us > SLOW_RATIO * best_us:
        return Screened(first_us, (first_us,), slow=True)
    launches = min(MAX_LAUNCHES, max(1, math.ceil(SAMPLE_US / first_us)))
    samples_us = _times_us(arm, timer, slots, launches=launches, samples=SAMPLES)
    return Screened(statistics.median(samples_us), tuple(samples_us), slow=False)


def warm_up(arm: Arm, timer: Timer, *, slots: int) -> None:
    """Run `arm` for WARM_S seconds, so that the first config is not the one that meets a cold device."""
    end_s = timer.now_s() + WARM_S
    launches = 1
    while timer.now_s() < end_s:
        time_us = _times_us(arm, timer, slots, launches=launches, samples=1)[0]
        launches = min(MAX_LAUNCHES, max(1, math.ceil(20 * SAMPLE_US / time_us)))


def _times_us(arm: Arm, timer: Timer, slots: int, *, launches: int, samples: int) -> list[float]:
    def batch(first: int) -> Batch:
        def queue(stream: Any) -> None:
            for index in range(first, first + launches):
                arm.launch(index % slots, stream)

        return queue

    totals_us = timer.time_us([batch(index * launches) for index in range(samples)], lambda: None)
    return [total / launches for total in totals_us]
