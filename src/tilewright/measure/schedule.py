"""One round after another on a timer: every arm once, in random order, over rotating buffer sets.

Owns order, rotation, how many launches make a sample, CUDA graphs, idle gaps and the host's time per launch. It keeps
no samples, judges no round, and doesn't know when to stop.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.measure.clocks import ClockReading
from tilewright.measure.modes import BURST, GRAPH, STEADY, STREAM, SUSTAINED
from tilewright.measure.stats import check_times
from tilewright.measure.timer import Batch, Replays, Timer

SAMPLE_US = 1000.0
SUSTAINED_SAMPLE_US = 500_000.0
"""As long as an arm runs alone in the sustained mode."""
MAX_LAUNCHES_PER_ROUND = 768
"""Below the about 1000 launches a CUDA stream holds before queueing one more waits for the GPU."""
MAX_GRAPH_LAUNCHES = 256
"""A sample of more is of several graphs: a long one would not be queued before the device comes to it."""
ROUNDS_BEFORE_GRAPHS = 3
"""On the stream, for the times that graphs are sized by and the host's time for a launch."""
BURST_IDLE_S = 0.1

ReadClocks = Callable[[], ClockReading | None]


@dataclass(frozen=True, slots=True)
class Arm:
    """One thing to time. `launch(slot, stream)` queues it once on buffer set `slot` and doesn't wait."""

    name: str
    launch: Callable[[int, Any], None]


@dataclass(slots=True)
class Schedule:
    """Runs rounds of `arms` on `timer`, their launches queued as `launch` says; from graphs once `fit` has made them.

    `inner` is launches a sample, `host_us` the host's microseconds for each launch call outside of graphs, by arm and
    batch since `inner` was chosen.
    """

    arms: Sequence[Arm]
    timer: Timer
    slots: int
    rng: random.Random
    read_clocks: ReadClocks
    mode: str = STEADY
    launch: str = STREAM
    inner: dict[str, int] = field(default_factory=dict)
    host_us: dict[str, list[float]] = field(default_factory=dict)
    idle_s: list[float] = field(default_factory=list)
    reading: ClockReading | None = None
    _replays: dict[str, Batch] = field(default_factory=dict)
    _launched: int = 0
    _lasted_s: float = 0.0

    def __post_init__(self) -> None:
        self.inner = {arm.name: 1 for arm in self.arms}
        self.host_us = {arm.name: [] for arm in self.arms}

    def run(self) -> dict[str, float]:
        """One round: microseconds a launch by arm, in the order they ran. `reading` is the clock's during it."""
        shuffled = self.rng.sample(list(self.arms), len(self.arms))
        batches = [self._replays.get(arm.name) or self._plain(arm) for arm in shuffled]
        if self.mode == BURST:
            self._idle()
            batches.insert(0, batches[0])  # not recorded: an idle card may have lowered its clock
        start_s = self.timer.now_s()
        totals_us = self.timer.time_us(batches, self._read)[-len(shuffled) :]
        self._lasted_s = self.timer.now_s() - start_s
        check_times(totals_us)
        return {arm.name: total / self.inner[arm.name] for arm, total in zip(shuffled, totals_us, strict=True)}

    def fit(self, medians_us: Mapping[str, float]) -> None:
        """Choose launches a sample for arms of these times, and capture them where graphs are asked for, once.

        Raises LaunchFailed where an arm cannot be captured.
        """
        if self._replays:
            return
        most = max(1, MAX_LAUNCHES_PER_ROUND // len(self.arms))
        self.inner = {name: min(most, max(1, math.ceil(SAMPLE_US / us))) for name, us in medians_us.items()}
        self.host_us = {arm.name: [] for arm in self.arms}
        if self.launch == GRAPH:
            seen = [self.run() for _ in range(ROUNDS_BEFORE_GRAPHS)]
            self._capture({arm.name: statistics.median(times[arm.name] for times in seen) for arm in self.arms})

    def median_host_us(self) -> dict[str, float]:
        """The host's median time for one launch call of each arm, outside of graphs."""
        return {name: statistics.median(each) for name, each in self.host_us.items() if each}

    def _capture(self, times_us: Mapping[str, float]) -> None:
        """Capture equally many launches of every arm, whole passes over the ring.

        So the graphs of any two arms differ in what they launch alone, and any order of them rotates like launches.
        They last as long as a sample of the fastest arm, in the sustained mode of the slowest.
        """
        fastest_us, slowest_us = min(times_us.values()), max(times_us.values())
        lasts_us, sample_us = fastest_us, SAMPLE_US
        if self.mode == SUSTAINED:
            lasts_us, sample_us = slowest_us, SUSTAINED_SAMPLE_US
        wanted = math.ceil(sample_us / lasts_us / self.slots)
        launches = self.slots * max(1, min(wanted, MAX_GRAPH_LAUNCHES // self.slots))
        self._launched = 0
        replays: dict[str, Batch] = {}
        for arm in self.arms:
            graphs = [self.timer.capture(self._queueing(arm, count)) for count in _shares(launches)]
            repeats = math.ceil(sample_us / (launches * times_us[arm.name]))
            replays[arm.name] = Replays(graphs * repeats)
            self.inner[arm.name] = launches * repeats
        self._replays = replays
        self.run()

    def _queueing(self, arm: Arm, launches: int) -> Batch:
        def queue(stream: Any) -> None:
            for _ in range(launches):
                arm.launch(self._launched % self.slots, stream)
                self._launched += 1

        return queue

    def _plain(self, arm: Arm) -> Batch:
        queue = self._queueing(arm, self.inner[arm.name])

        def timed(stream: Any) -> None:
            start_s = self.timer.now_s()
            queue(stream)
            self.host_us[arm.name].append((self.timer.now_s() - start_s) * 1e6 / self.inner[arm.name])

        return timed

    def _idle(self) -> None:
        gap_s = max(BURST_IDLE_S, self._lasted_s)
        self.timer.idle(gap_s)
        self.idle_s.append(gap_s)

    def _read(self) -> None:
        self.reading = self.read_clocks()


def _shares(launches: int) -> Iterator[int]:
    """The launches of each graph: as few graphs as may be, as equal as can be."""
    graphs = math.ceil(launches / MAX_GRAPH_LAUNCHES)
    return (launches * (i + 1) // graphs - launches * i // graphs for i in range(graphs))
