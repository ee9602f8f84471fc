"""Measuring: rounds over arms, clocks, statistics and the cuBLAS baseline.

The protocol is in `rounds`, the device's clock in `timer`. Nothing here decides what is faster: `Samples`
holds what was seen, and intervals say how well it is known.
"""

from tilewright.measure.baseline import Baseline, find_baseline, prove_ieee
from tilewright.measure.clocks import ClockReading, Clocks, open_clocks
from tilewright.measure.rounds import Arm, measure, ring_slots
from tilewright.measure.samples import Samples
from tilewright.measure.stats import Interval, median_interval, paired_ratio
from tilewright.measure.timer import CudaTimer, Timer

__all__ = [
    "Arm",
    "Baseline",
    "ClockReading",
    "Clocks",
    "CudaTimer",
    "Interval",
    "Samples",
    "Timer",
    "find_baseline",
    "measure",
    "median_interval",
    "open_clocks",
    "paired_ratio",
    "prove_ieee",
    "ring_slots",
]
