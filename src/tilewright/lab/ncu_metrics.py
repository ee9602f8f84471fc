"""Which of Nsight Compute's metrics say how a GEMM spends its time, and how to say them.

Names are those of ncu 2025 for sm_80 to sm_120; a card has not all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.lab.render import duration


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by its name, what it is in words, and how its number is written."""

    name: str
    words: str
    form: Callable[[float], str]


def percent(value: float) -> str:
    """Per cent, as ncu gives it."""
    return f"{value:.1f}%"


def count(value: float) -> str:
    """A count with three digits and its magnitude."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def size(value: float) -> str:
    """Bytes, decimal."""
    return f"{count(value)}B" if abs(value) >= 1e3 else f"{value:.3g} B"


def number(value: float) -> str:
    """A ratio."""
    return f"{value:.2f}"


METRICS = (
    Metric("gpu__time_duration.sum", "time, caches flushed before", lambda ns: duration(ns / 1000)),
    Metric("smsp__issue_active.avg.pct_of_peak_sustained_active", "issue slots used", percent),
    Metric("smsp__warps_eligible.avg.per_cycle_active", "warps ready to issue", number),
    Metric("smsp__inst_executed.sum", "instructions of warps", count),
    Metric("sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "FMA pipe used", percent),
    Metric("sm__warps_active.avg.pct_of_peak_sustained_active", "occupancy achieved", percent),
    Metric("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "shared wavefronts", count),
    Metric("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "shared bank conflicts", count),
    Metric("lts__t_sector_hit_rate.pct", "L2 hit rate", percent),
    Metric("dram__bytes_read.sum", "DRAM read", size),
    Metric("dram__bytes_write.sum", "DRAM written", size),
)
STALL_REASONS = {
    "barrier": "at a barrier",
    "branch_resolving": "a branch being resolved",
    "dispatch_stall": "the dispatcher, held",
    "drain": "stores before exit",
    "gmma": "wgmma",
    "imc_miss": "a constant, not cached",
    "lg_throttle": "the queue of global accesses, full",
    "long_scoreboard": "global memory",
    "math_pipe_throttle": "an arithmetic pipe, busy",
    "membar": "a memory fence",
    "mio_throttle": "the queue to shared memory, full",
    "misc": "other",
    "no_instruction": "instructions, not fetched",
    "not_selected": "ready, another warp issued",
    "short_scoreboard": "shared memory",
    "sleeping": "asleep",
    "tex_throttle": "the texture queue, full",
    "wait": "a fixed latency",
    "warpgroup_arrive": "its warpgroup",
}
STALLS = tuple(
    Metric(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio", f"{words} ({reason})", number)
    for reason, words in STALL_REASONS.items()
)
NAMES = tuple(metric.name for metric in (*METRICS, *STALLS))
