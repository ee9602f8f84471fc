"""The measuring protocol: warm up, then rounds in which every arm runs once, in random order.

Owns order, rotation, warm-up and the stopping rule; keeps every raw sample. It times through a `Timer` and
knows no GPU, no kernel and no problem, and it gives no verdict.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import InvalidInput, UnknownName
from tilewright.measure.clocks import ClockReading
from tilewright.measure.samples import Samples
from tilewright.measure.stats import check_times, median_interval, paired_ratio
from tilewright.measure.timer import Batch, Timer

SAMPLE_US = 1000.0
MAX_LAUNCHES_PER_ROUND = 768
"""Below the about 1000 launches a CUDA stream holds before queueing one more waits for the GPU."""
MAX_SLOTS = 1024
PRECISION = 0.0025
MIN_ROUNDS = 20
MAX_REJECTED = 20
WARM_WINDOWS = 3
WARM_DRIFT = 0.01

ReadClocks = Callable[[], ClockReading | None]


@dataclass(frozen=True, slots=True)
class Arm:
    """One thing to time. `launch(slot, stream)` queues it once on buffer set `slot` and doesn't wait."""

    name: str
    launch: Callable[[int, Any], None]


def ring_slots(set_bytes: int, l2_bytes: int) -> int:
    """How many buffer sets of `set_bytes` let twice the L2 pass between two uses of one set: 2 to 1024.

    Sets too small for that many to outlast the L2 are measured from it. Raises InvalidInput for sizes below 1.
    """
    if set_bytes < 1 or l2_bytes < 1:
        raise InvalidInput(f"set_bytes={set_bytes}, l2_bytes={l2_bytes}: must be at least 1; pass the operands' bytes")
    return min(MAX_SLOTS, 1 + math.ceil(2 * l2_bytes / set_bytes))


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
    warm_window_s: float = 0.5,
) -> Samples:
    """Warm up, then sample in rounds until the intervals are narrow, or rounds or budget end.

    `budget_s` is host seconds for everything; the warm-up takes at most half. `slots` is how many buffer sets
    the arms have in common; each launch gets the next. Precise enough means that every arm's interval, of its
    ratio to `baseline` where one is named and of its median otherwise, has a half-width of at most 0.25%.
    Raises InvalidInput for arguments no measurement can follow and for times that aren't positive numbers.
    """
    _check(arms, rounds, budget_s, slots, baseline)
    run = _Run(arms, timer, slots, random.Random(seed), read_clocks or (lambda: None))
    end_s = timer.now_s() + budget_s
    warm = run.warm_up(min(warm_window_s, budget_s / 10.0), timer.now_s() + budget_s / 2.0)
    rejected, stop = 0, ""
    while not stop:
        if not run.sample():
            rejected += 1
        if rejected >= MAX_REJECTED:
            stop = "throttled"
        elif run.is_precise(baseline):
            stop = "precision"
        elif len(run.order) >= rounds:
            stop = "rounds"
        elif timer.now_s() >= end_s:
            stop = "budget"
    return Samples(
        times_us={name: tuple(times) for name, times in run.times_us.items()},
        order=tuple(run.order),
        clocks=tuple(run.clocks),
        inner=dict(run.inner),
        slots=slots,
        seed=seed,
        stop=stop,
        warm=warm,
        rejected_rounds=rejected,
    )


@dataclass(slots=True)
class _Run:
    """The moving parts of one `measure`."""

    arms: Sequence[Arm]
    timer: Timer
    slots: int
    rng: random.Random
    read_clocks: ReadClocks
    times_us: dict[str, list[float]] = field(default_factory=dict)
    order: list[tuple[str, ...]] = field(default_factory=list)
    clocks: list[ClockReading | None] = field(default_factory=list)
    inner: dict[str, int] = field(default_factory=dict)
    launched: int = 0
    reading: ClockReading | None = None

    def __post_init__(self) -> None:
        self.times_us = {arm.name: [] for arm in self.arms}
        self.inner = {arm.name: 1 for arm in self.arms}

    def sample(self) -> bool:
        """Run and keep one round, or drop it whole if heat or hardware slowed the GPU. True if it was kept."""
        times_us = self._round()
        if self.reading is not None and self.reading.slowed:
            return False
        for name in self.times_us:
            self.times_us[name].append(times_us[name])
        self.order.append(tuple(times_us))
        self.clocks.append(self.reading)
        return True

    def warm_up(self, window_s: float, until_s: float) -> bool:
        """Run until three windows in a row agree within 1%, or `until_s`. Then choose the inner launches."""
        self._round()
        levels: list[float] = []
        settled = False
        while not settled and (not levels or self.timer.now_s() < until_s):
            medians_us = self._window(window_s)
            levels.append(statistics.fmean(math.log(value) for value in medians_us.values()))
            last = levels[-WARM_WINDOWS:]
            settled = len(last) == WARM_WINDOWS and max(last) - min(last) < WARM_DRIFT
            self._choose_inner(medians_us)
        return settled

    def is_precise(self, baseline: str | None) -> bool:
        """Whether every interval is narrow, from enough rounds to trust it."""
        if len(self.order) < MIN_ROUNDS:
            return False
        if baseline is None:
            intervals = [median_interval(times) for times in self.times_us.values()]
        else:
            others = [times for name, times in self.times_us.items() if name != baseline]
            intervals = [paired_ratio(self.times_us[baseline], times) for times in others]
        return all(interval.half_width <= PRECISION for interval in intervals)

    def _round(self) -> dict[str, float]:
        """Every arm once, in a fresh random order: microseconds a launch, in that order."""
        shuffled = self.rng.sample(list(self.arms), len(self.arms))
        totals_us = self.timer.time_us([self._batch(arm) for arm in shuffled], self._read)
        check_times(totals_us)
        return {arm.name: total / self.inner[arm.name] for arm, total in zip(shuffled, totals_us, strict=True)}

    def _batch(self, arm: Arm) -> Batch:
        def queue(stream: Any) -> None:
            for _ in range(self.inner[arm.name]):
                arm.launch(self.launched % self.slots, stream)
                self.launched += 1

        return queue

    def _read(self) -> None:
        self.reading = self.read_clocks()

    def _window(self, window_s: float) -> dict[str, float]:
        end_s = self.timer.now_s() + window_s
        seen = [self._round()]
        while self.timer.now_s() < end_s:
            seen.append(self._round())
        return {arm.name: statistics.median(times[arm.name] for times in seen) for arm in self.arms}

    def _choose_inner(self, medians_us: Mapping[str, float]) -> None:
        most = max(1, MAX_LAUNCHES_PER_ROUND // len(self.arms))
        for name, median_us in medians_us.items():
            self.inner[name] = min(most, max(1, math.ceil(SAMPLE_US / median_us)))


def _check(arms: Sequence[Arm], rounds: int, budget_s: float, slots: int, baseline: str | None) -> None:
    names = [arm.name for arm in arms]
    if not names or len(set(names)) != len(names):
        raise InvalidInput(f"arms {names}: must be at least one, each with a name of its own")
    if rounds < 1 or slots < 1:
        raise InvalidInput(f"rounds={rounds}, slots={slots}: must be at least 1")
    if not (math.isfinite(budget_s) and budget_s > 0.0):
        raise InvalidInput(f"budget_s={budget_s}: must be a positive number of seconds")
    if baseline is not None and baseline not in names:
        raise UnknownName(f"baseline {baseline!r}: is not an arm; there are {', '.join(names)}")
    if baseline is not None and len(names) == 1:
        raise InvalidInput(f"baseline {baseline!r}: is the only arm; add one to compare with it")
