"""Measuring: rounds over arms, clocks, statistics and the cuBLAS baseline.

The protocol is in `rounds` and `schedule`, the device's clock in `timer`, the words for what came out in `verdict`.
`Samples` holds what was seen, and intervals say how well it is known.
"""

from tilewright.measure.baseline import Baseline, find_baseline, prove_ieee
from tilewright.measure.clocks import ClockReading, Clocks, open_clocks
from tilewright.measure.modes import CACHES, LAUNCHES, MODES
from tilewright.measure.rounds import measure
from tilewright.measure.samples import Samples, control_name
from tilewright.measure.schedule import Arm
from tilewright.measure.stats import Interval, median_interval, paired_ratio
from tilewright.measure.timer import CudaTimer, Timer
from tilewright.measure.verdict import Outcome, judge

__all__ = [
    "CACHES",
    "LAUNCHES",
    "MODES",
    "Arm",
    "Baseline",
    "ClockReading",
    "Clocks",
    "CudaTimer",
    "Interval",
    "Outcome",
    "Samples",
    "Timer",
    "control_name",
    "find_baseline",
    "judge",
    "measure",
    "median_interval",
    "open_clocks",
    "paired_ratio",
    "prove_ieee",
]
