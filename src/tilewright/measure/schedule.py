"""One round after another on a timer: every arm once, in random order, over rotating buffer sets.

Owns order, rotation, how many launches make a sample, CUDA graphs, idle gaps and the host's time per launch. It keeps
no samples, judges no round, and doesn't know when to stop.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.errors import LaunchFailed
from tilewright.measure.clocks import ClockReading
from tilewright.measure.modes import BURST, STEADY, SUSTAINED
from tilewright.measure.stats import check_times
from tilewright.measure.timer import Batch, Timer

SAMPLE_US = 1000.0
SUSTAINED_SAMPLE_US = 500_000.0
"""As long as an arm runs alone in the sustained mode, from one graph: a stream does not hold that many launches."""
MAX_LAUNCHES_PER_ROUND = 768
"""Below the about 1000 launches a CUDA stream holds before queueing one more waits for the GPU."""
SHORT_US = 20.0
"""A launch shorter than this is replayed in a graph: the host needs about as long to queue it."""
MAX_REPLAY_US = 50_000.0
BURST_IDLE_S = 0.1

ReadClocks = Callable[[], ClockReading | None]


@dataclass(frozen=True, slots=True)
class Arm:
    """One thing to time. `launch(slot, stream)` queues it once on buffer set `slot` and doesn't wait."""

    name: str
    launch: Callable[[int, Any], None]


@dataclass(slots=True)
class Schedule:
    """Runs rounds of `arms` on `timer`. Once some arm is short, all arms of all rounds are replayed in graphs, or none.

    `inner` is launches a sample, `host_us` the host's microseconds for each launch call, by arm and batch; `no_graph`
    says why graphs that were wanted are not used.
    """

    arms: Sequence[Arm]
    timer: Timer
    slots: int
    rng: random.Random
    read_clocks: ReadClocks
    mode: str = STEADY
    inner: dict[str, int] = field(default_factory=dict)
    host_us: dict[str, list[float]] = field(default_factory=dict)
    idle_s: list[float] = field(default_factory=list)
    no_graph: str = ""
    reading: ClockReading | None = None
    _replays: dict[str, Batch] = field(default_factory=dict)
    _launched: int = 0
    _lasted_s: float = 0.0

    def __post_init__(self) -> None:
        self.inner = {arm.name: 1 for arm in self.arms}
        self.host_us = {arm.name: [] for arm in self.arms}

    @property
    def in_graphs(self) -> bool:
        """Whether a sample is the replay of a graph."""
        return bool(self._replays)

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
        """Choose launches a sample, and graphs or none, for arms of these times. Graphs once chosen stay."""
        if self.in_graphs:
            return
        most = max(1, MAX_LAUNCHES_PER_ROUND // len(self.arms))
        self.inner = {name: min(most, max(1, math.ceil(SAMPLE_US / us))) for name, us in medians_us.items()}
        if self.mode == SUSTAINED:
            self._capture(medians_us, SUSTAINED_SAMPLE_US, 2.0 * SUSTAINED_SAMPLE_US)
            if not self.in_graphs:
                raise LaunchFailed(
                    f"mode {SUSTAINED}: needs graphs of {SUSTAINED_SAMPLE_US / 1e6:g} s: {self.no_graph}"
                )
        elif min(medians_us.values()) < SHORT_US and not self.no_graph:
            self._capture(medians_us, SAMPLE_US, MAX_REPLAY_US)

    def median_host_us(self) -> dict[str, float]:
        """The host's median time for one launch call of each arm, outside of graphs."""
        return {name: statistics.median(each) for name, each in self.host_us.items() if each}

    def _capture(self, medians_us: Mapping[str, float], sample_us: float, most_us: float) -> None:
        """Capture each arm once, over whole passes of the ring, so that any order of replays rotates like launches."""
        passes = {name: self.slots * math.ceil(sample_us / us / self.slots) for name, us in medians_us.items()}
        slowest = max(passes, key=lambda name: passes[name] * medians_us[name])
        longest_us = passes[slowest] * medians_us[slowest]
        if longest_us > most_us:
            self.no_graph = f"{slowest} over {self.slots} buffer sets would take {longest_us / 1000.0:.0f} ms a replay"
            return
        plain, self.inner = self.inner, passes
        self._launched = 0
        try:
            self._replays = {arm.name: self.timer.capture(self._queueing(arm)) for arm in self.arms}
            self.run()
        except LaunchFailed as error:
            self._replays, self.inner, self.no_graph = {}, plain, str(error)

    def _queueing(self, arm: Arm) -> Batch:
        def queue(stream: Any) -> None:
            for _ in range(self.inner[arm.name]):
                arm.launch(self._launched % self.slots, stream)
                self._launched += 1

        return queue

    def _plain(self, arm: Arm) -> Batch:
        queue = self._queueing(arm)

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
