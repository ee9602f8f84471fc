"""What a measurement leaves: every raw time, with the order, clocks and settings it was taken under.

Owns the result and the statistics asked of it; it times nothing and gives no verdict.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tilewright.errors import UnknownName
from tilewright.measure.clocks import ClockReading
from tilewright.measure.modes import STEADY, STREAM
from tilewright.measure.stats import Interval, median_interval, paired_ratio


def control_name(baseline: str) -> str:
    """The name of the arm that is the baseline a second time."""
    return f"{baseline} (A/A control)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The raw result: one time a round for every arm, and how it was taken.

    `times_us[arm][round]` is the mean of `inner[arm]` back-to-back launches, queued as `launch` says: one by one on a
    stream, or from CUDA graphs. `order` and `clocks` have one entry a round. `stop` is 'precision', 'floor', 'rounds',
    'budget' or 'throttled'; `warm` whether the warm-up settled before its bound; `rejected_rounds` how many rounds fell
    to thermal or hardware slowdown, whole. `host_us` is the host's median time for one launch call outside of graphs,
    `idle_s` the median gap before a round.
    """

    times_us: Mapping[str, tuple[float, ...]]
    order: tuple[tuple[str, ...], ...]
    clocks: tuple[ClockReading | None, ...]
    inner: Mapping[str, int]
    slots: int
    seed: int
    stop: str
    warm: bool
    rejected_rounds: int
    mode: str = STEADY
    launch: str = STREAM
    baseline: str | None = None
    host_us: Mapping[str, float] = field(default_factory=dict)
    idle_s: float = 0.0

    @property
    def rounds(self) -> int:
        """How many rounds counted."""
        return len(self.order)

    @property
    def sm_mhz(self) -> tuple[int | None, ...]:
        """The SM clock of each round, in MHz."""
        return tuple(reading.sm_mhz if reading else None for reading in self.clocks)

    @property
    def median_sm_mhz(self) -> float | None:
        """The median SM clock of the rounds that have one."""
        return _median_known(self.sm_mhz)

    @property
    def median_memory_mhz(self) -> float | None:
        """The median memory clock of the rounds that have one."""
        return _median_known(reading.memory_mhz if reading else None for reading in self.clocks)

    @property
    def aa(self) -> Interval | None:
        """The baseline's time over its A/A control's, where there are both: what equal arms look like."""
        if self.baseline is None or not self.rounds:
            return None
        return self.ratio(control_name(self.baseline), self.baseline)

    @property
    def aa_floor(self) -> float | None:
        """The A/A floor as a fraction: how far `aa` reaches from 1. A smaller difference means nothing."""
        return None if self.aa is None else max(self.aa.high - 1.0, 1.0 - self.aa.low)

    def interval_us(self, arm: str) -> Interval:
        """The arm's median time in microseconds with its interval.

        Raises UnknownName for an arm that wasn't measured, InvalidInput where no round counted.
        """
        return median_interval(self._times(arm))

    def median_us(self, arm: str) -> float:
        """The arm's median time in microseconds. Raises as `interval_us` does."""
        return self.interval_us(arm).median

    def ratio(self, arm: str, baseline: str) -> Interval:
        """Baseline time over arm time, paired by round: above 1 the arm is faster. Raises as `interval_us` does."""
        return paired_ratio(self._times(baseline), self._times(arm))

    def _times(self, arm: str) -> tuple[float, ...]:
        if arm not in self.times_us:
            raise UnknownName(f"arm {arm!r}: was not measured; there are {', '.join(self.times_us)}")
        return self.times_us[arm]


def _median_known(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
