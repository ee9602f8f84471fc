"""What the model reads of a config: a CTA's work in one step along K, how many fit an SM, how the steps overlap.

Counted once for each config from its declaration; nothing is compiled.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arch import ArchSpec, occupancy
from tilewright.declare import Config
from tilewright.errors import InvalidConfig
from tilewright.problem import Problem

SPLIT = "SPLIT_K"
"""The constant that says in how many slices along K a kernel computes, each added up with the others at the end."""
OTHER_REGISTERS = 64
"""What a thread is taken to need beside its accumulators, where nothing was compiled."""


@dataclass(frozen=True, slots=True)
class Traits:
    """One CTA's work in a step along K: FLOP, elements loaded from global and from shared memory; and its place.

    `split` is None where the problem chooses it.
    """

    rows: int
    cols: int
    k_step: int
    stages: int
    flop: int
    global_elements: int
    shared_elements: int
    ctas_per_sm: int
    persistent: bool
    split: int | None


def traits_of(config: Config, arch: ArchSpec, ctas_per_sm: int | None = None) -> Traits:
    """The traits of `config` on an architecture that takes it; CTAs an SM are guessed where they aren't known."""
    rows, cols, k_step = config.tile
    declared, scope = config.rung.accesses, config.scope
    chosen_by_problem = any(item.name == SPLIT for item in config.rung.from_problem)
    return Traits(
        rows=rows,
        cols=cols,
        k_step=k_step,
        stages=config.stages,
        flop=2 * rows * cols * k_step,
        global_elements=declared.global_loads.evaluate(scope),
        shared_elements=declared.shared_loads.evaluate(scope),
        ctas_per_sm=ctas_per_sm or _guessed_ctas(config, arch),
        persistent=config.rung.launch.persistent,
        split=None if chosen_by_problem else config.constants.get(SPLIT, 1),
    )


def split_of(config: Config, traits: Traits, problem: Problem) -> int:
    """Slices along K for `problem`."""
    return config.problem_scope(problem)[SPLIT] if traits.split is None else traits.split


def _guessed_ctas(config: Config, arch: ArchSpec) -> int:
    registers = min(config.results_per_thread + OTHER_REGISTERS, arch.max_registers_per_thread)
    try:
        held = occupancy(arch, threads_per_cta=config.threads, registers=registers, smem_bytes=config.smem_bytes)
    except InvalidConfig:  # the guess is too high; the declaration says that one fits
        return 1
    return max(held.ctas_per_sm, 1)
