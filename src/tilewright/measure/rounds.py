"""The measuring protocol: warm up, then rounds in which every arm runs once, until enough is known.

Owns which rounds count, the A/A control and the end; keeps every raw sample. It times through a `Timer` and knows
no GPU, no kernel and no problem, and it gives no verdict.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence

from tilewright.errors import InvalidInput, UnknownName
from tilewright.measure.clocks import ClockReading
from tilewright.measure.modes import STEADY, launch_of
from tilewright.measure.samples import Samples, control_name
from tilewright.measure.schedule import Arm, ReadClocks, Schedule
from tilewright.measure.stopping import enough, is_look, is_throttled
from tilewright.measure.timer import Timer
from tilewright.measure.warm_up import warm_up


def measure(
    arms: Sequence[Arm],
    timer: Timer,
    *,
    rounds: int,
    seed: int,
    budget_s: float,
    slots: int,
    baseline: str | None = None,
    read_clocks: ReadClocks | None = None,
    mode: str = STEADY,
    launch: str | None = None,
    warm_window_s: float = 0.5,
) -> Samples:
    """Warm up, then sample in rounds until the intervals are narrow, or rounds or budget end.

    `budget_s` is host seconds for everything; the warm-up takes at most half. `slots` is how many buffer sets
    the arms have in common; each launch gets the next. `launch` is how they are queued; see `modes.launch_of`. Where a
    `baseline` is named it runs twice a round, the second time as the A/A control, and what is to be narrow are the
    ratios to it; otherwise the medians. Raises InvalidInput for arguments no measurement can follow and for times that
    aren't positive numbers, LaunchFailed where an arm cannot be captured into a graph that was asked for.
    """
    _check(arms, rounds, budget_s, slots, baseline)
    launch = launch_of(launch, mode)
    control = None if baseline is None else control_name(baseline)
    arms = [*arms, *(Arm(control, arm.launch) for arm in arms if control is not None and arm.name == baseline)]
    schedule = Schedule(arms, timer, slots, random.Random(seed), read_clocks or (lambda: None), mode, launch)
    end_s = timer.now_s() + budget_s
    warm = warm_up(schedule, min(warm_window_s, budget_s / 10.0), timer.now_s() + budget_s / 2.0)
    kept, rejected, stop = _Kept(arms), 0, ""
    while not stop:
        times_us = schedule.run()
        if schedule.reading is not None and schedule.reading.slowed:
            rejected += 1
        else:
            kept.add(times_us, schedule.reading)
            stop = enough(kept.times_us, baseline, control) if is_look(kept.rounds) else ""
        stop = stop or ("rounds" if kept.rounds >= rounds else "budget" if timer.now_s() >= end_s else "")
        if is_throttled(rejected, kept.rounds, over=bool(stop)):
            stop = "throttled"
    return Samples(
        times_us={name: tuple(times) for name, times in kept.times_us.items()},
        order=tuple(kept.order),
        clocks=tuple(kept.clocks),
        inner=dict(schedule.inner),
        slots=slots,
        seed=seed,
        stop=stop,
        warm=warm,
        rejected_rounds=rejected,
        mode=mode,
        launch=launch,
        baseline=baseline,
        host_us=schedule.median_host_us(),
        idle_s=statistics.median(schedule.idle_s) if schedule.idle_s else 0.0,
    )


class _Kept:
    """The rounds that count."""

    def __init__(self, arms: Sequence[Arm]) -> None:
        self.times_us: dict[str, list[float]] = {arm.name: [] for arm in arms}
        self.order: list[tuple[str, ...]] = []
        self.clocks: list[ClockReading | None] = []

    @property
    def rounds(self) -> int:
        return len(self.order)

    def add(self, times_us: dict[str, float], reading: ClockReading | None) -> None:
        for name, time_us in times_us.items():
            self.times_us[name].append(time_us)
        self.order.append(tuple(times_us))
        self.clocks.append(reading)


def _check(arms: Sequence[Arm], rounds: int, budget_s: float, slots: int, baseline: str | None) -> None:
    names = [arm.name for arm in arms]
    if not names or len(set(names)) != len(names):
        raise InvalidInput(f"arms {names}: must be at least one, each with a name of its own")
    if rounds < 1 or slots < 1:
        raise InvalidInput(f"rounds={rounds}, slots={slots}: must be at least 1")
    if not (math.isfinite(budget_s) and budget_s > 0.0):
        raise InvalidInput(f"budget_s={budget_s}: must be a positive number of seconds")
    if baseline is None:
        return
    if baseline not in names:
        raise UnknownName(f"baseline {baseline!r}: is not an arm; there are {', '.join(names)}")
    if len(names) == 1:
        raise InvalidInput(f"baseline {baseline!r}: is the only arm; add one to compare with it")
    if control_name(baseline) in names:
        raise InvalidInput(
            f"arm {control_name(baseline)!r}: is the name of the baseline's A/A control; call it otherwise"
        )
