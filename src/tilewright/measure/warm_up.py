"""Warming up: unrecorded rounds until times, clock and power have settled.

Owns what settled means. It says so when they have not, and the measurement goes on.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.measure.clocks import ClockReading
from tilewright.measure.schedule import Schedule

WINDOWS = 3
DRIFT = 0.01


@dataclass(frozen=True, slots=True)
class Window:
    """What one window of rounds saw: the mean logarithm of the arms' median times, median clock and mean power."""

    log_level: float
    sm_mhz: float | None = None
    power_w: float | None = None


def warm_up(schedule: Schedule, window_s: float, until_s: float) -> bool:
    """Run windows until they have settled, or until `until_s`; after each, fit the schedule. True if settled."""
    schedule.run()
    windows: list[Window] = []
    while not has_settled(windows) and (not windows or schedule.timer.now_s() < until_s):
        windows.append(_run_window(schedule, window_s))
    return has_settled(windows)


def has_settled(windows: Sequence[Window]) -> bool:
    """Whether the last three windows' times and clocks lie within 1%, and power doesn't rise or fall by more.

    Power read once a round depends on the arm it falls on, so scatter to and fro is no drift.
    """
    last = windows[-WINDOWS:]
    if len(last) < WINDOWS:
        return False
    levels = [window.log_level for window in last]
    clocks = [window.sm_mhz for window in last if window.sm_mhz]
    power = [window.power_w for window in last if window.power_w]
    one_way = power in (sorted(power), sorted(power, reverse=True))
    return max(levels) - min(levels) < DRIFT and _spread(clocks) < DRIFT and (_spread(power) < DRIFT or not one_way)


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1.0 if values else 0.0


def _run_window(schedule: Schedule, window_s: float) -> Window:
    end_s = schedule.timer.now_s() + window_s
    seen: list[dict[str, float]] = []
    readings: list[ClockReading | None] = []
    while not seen or schedule.timer.now_s() < end_s:
        seen.append(schedule.run())
        readings.append(schedule.reading)
    medians_us = {arm.name: statistics.median(times[arm.name] for times in seen) for arm in schedule.arms}
    schedule.fit(medians_us)
    clocks = [reading.sm_mhz for reading in readings if reading is not None and reading.sm_mhz]
    power = [reading.power_w for reading in readings if reading is not None and reading.power_w]
    return Window(
        log_level=statistics.fmean(math.log(value) for value in medians_us.values()),
        sm_mhz=statistics.median(clocks) if clocks else None,
        power_w=statistics.fmean(power) if power else None,
    )
