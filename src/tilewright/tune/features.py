"""A config as numbers that a model of its time can learn from: all from the declaration, nothing compiled.

Owns which numbers. They are logarithms where a ratio is what matters; the model scales them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tilewright.arch import ArchSpec, occupancy
from tilewright.declare import Config
from tilewright.errors import InvalidConfig
from tilewright.facts.counts import counts
from tilewright.problem import Problem

ADDRESSING_REGISTERS = 40
"""Registers beyond accumulators and fragments, roughly: addresses, counters, operands on their way."""


def features(configs: Sequence[Config], problem: Problem, arch: ArchSpec, *, sm_count: int) -> npt.NDArray[np.float64]:
    """One row a config, one column a feature; columns in which all configs agree are left out."""
    table = np.array([_row(config, problem, arch, sm_count) for config in configs], dtype=np.float64)
    varies = np.ptp(table, axis=0) > 0
    return table[:, varies]


def _row(config: Config, problem: Problem, arch: ArchSpec, sm_count: int) -> list[float]:
    made = counts(config, problem)
    ctas = math.prod(config.grid(problem, sm_count=sm_count))
    held = _ctas_per_sm(config, arch)
    waves = ctas / (sm_count * held)
    rows, columns, step = config.tile
    work = [
        float(made.global_load_bytes_per_flop),
        float(made.shared_loads_per_result),
        config.results_per_thread,
        config.threads,
        1 + config.smem_bytes,
        rows * columns,
        rows / columns,
        config.results_per_thread * step,
        held * config.threads,
    ]
    return [
        *(math.log2(1 + value) for value in config.constants.values()),
        *(math.log2(max(value, 1e-9)) for value in work),
        math.log2(max(waves, 1.0)),
        math.ceil(waves) / waves if waves >= 1 else 1 / max(waves, 0.05),
    ]


def _ctas_per_sm(config: Config, arch: ArchSpec) -> int:
    """CTAs an SM would hold, with registers guessed from the results of a thread."""
    results = config.results_per_thread
    registers = min(arch.max_registers_per_thread, results + 2 * math.isqrt(results) + ADDRESSING_REGISTERS)
    try:
        return max(
            1,
            occupancy(
                arch, threads_per_cta=config.threads, registers=registers, smem_bytes=config.smem_bytes
            ).ctas_per_sm,
        )
    except InvalidConfig:
        return 1
