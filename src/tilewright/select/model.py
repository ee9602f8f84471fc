"""How long a config takes for a problem, by arithmetic: waves of CTAs, steps along K, what surrounds them.

A CTA's step takes as long as its slowest pipe; CTAs on one SM share the pipes. A step that is not bound by a pipe waits
for memory: its latency, spread over the stages that are under way. Around the steps stand the launch, filling the
pipeline, writing the results, and adding slices up. Nothing is faster than the operands' bytes through DRAM.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.select.rates import Rates
from tilewright.select.traits import GROUP, Pieces, Traits

LAUNCH_US = 1.5
OVERLAP = 4.0
"""The norm in which time in the SMs and time of the DRAM add up: they overlap, but not wholly."""
PARTIAL_BYTES = 4
REDUCE_US = 1.0


class Constants(NamedTuple):
    """What a rung's kernels are like beside their traits; the numbers that are calibrated.

    `efficiency` is the share of the slowest pipe's rate that its main loop reaches. `latency_us` is what a step waits
    for memory with nothing else under way, `fill_us` what a CTA takes before its first product, `epilogue` how many
    times the results' bytes take their time through the L2. `alone` is how many times its share of the SM's time a CTA
    takes for a step where others would fit beside it and none is there: its warps are too few to keep the pipes busy.
    `copy_ns` is what one thread's asynchronous copy, of whatever width, adds to that: issue slots and addresses.
    """

    efficiency: float = 0.8
    latency_us: float = 0.7
    fill_us: float = 1.5
    epilogue: float = 1.0
    alone: float = 1.2
    copy_ns: float = 0.06


class Terms(NamedTuple):
    """An expected time and its parts, all in µs.

    `mainloop_us` is bound by `bound`, one of compute, shared, L2 and latency. `memory_us` is the operands' bytes
    through DRAM, under all the rest. `waves` are rounds of CTAs.
    """

    total_us: float
    launch_us: float
    fill_us: float
    mainloop_us: float
    bound: str
    epilogue_us: float
    reduction_us: float
    memory_us: float
    waves: int


def memory_us(problem: Problem, rates: Rates) -> float:
    """The least time that every operand takes through DRAM once."""
    in_bytes, out_bytes = ITEMSIZE_BYTES[problem.dtype], ITEMSIZE_BYTES[problem.out_dtype]
    results = problem.m * problem.n * problem.batch * out_bytes
    a = problem.m * problem.k * (problem.batch if problem.batch_stride_a else 1)
    b = problem.k * problem.n * (problem.batch if problem.batch_stride_b else 1)
    read = (a + b) * in_bytes + (results if problem.beta != 0.0 else 0)
    return read / rates.dram_read_per_us + results / rates.dram_write_per_us


def compute_us(problem: Problem, rates: Rates) -> float:
    """The least time that the FLOPs take at the card's rate for such elements."""
    return problem.flops / rates.flops_per_us[problem.dtype]


def _parts(traits: Traits, pieces: Pieces, sms: int) -> float:
    """How many CTAs have a part of a tile, where some tile is in parts."""
    if not traits.deals:
        return pieces.split
    over = pieces.ctas % sms
    dealt = over + sms if pieces.ctas > sms and 2 * over < sms else over
    return 1 + sms / dealt if over else 1


def predict(
    traits: Traits,
    pieces: Pieces,
    constants: Constants,
    problem: Problem,
    rates: Rates,
    through_dram_us: float | None = None,
) -> Terms:
    """What to expect of a config with these traits for a problem in these pieces; its `memory_us`, where known."""
    if through_dram_us is None:
        through_dram_us = memory_us(problem, rates)
    sms, element_bytes = rates.sm_count, ITEMSIZE_BYTES[problem.dtype]
    compute_us = traits.flop / rates.flops_per_us[problem.dtype]
    shared_us = traits.shared_elements * element_bytes / rates.shared_per_us
    l2_us = traits.global_elements * element_bytes / rates.l2_per_us
    pipe_us = max(compute_us, shared_us, l2_us)
    bound = "compute" if pipe_us == compute_us else "shared" if pipe_us == shared_us else "L2"
    work_us = (pipe_us * sms + pieces.copies * constants.copy_ns * 1e-3) / constants.efficiency
    split = pieces.split
    slice_k = -(-problem.k // split)
    steps = -(-slice_k // traits.k_step)
    on_busiest = -(-pieces.ctas // sms)
    held = min(on_busiest, traits.ctas_per_sm)
    full, rest = divmod(on_busiest, held)
    alone_us = work_us * (constants.alone if traits.ctas_per_sm > 1 else 1.0)
    waiting_us = max(alone_us, (work_us + constants.latency_us) / traits.stages)
    if traits.deals:
        step_us = pieces.ctas / sms * max(work_us, waiting_us)
    else:
        step_us = full * max(held * work_us, waiting_us) + (max(rest * work_us, waiting_us) if rest else 0.0)
    if held * work_us < waiting_us:
        bound = "latency" if waiting_us > alone_us else f"{bound}, too few warps"
    waves = full + (rest > 0)
    out_bytes = traits.results * (PARTIAL_BYTES if split > 1 else ITEMSIZE_BYTES[problem.out_dtype])
    epilogue_us = on_busiest * out_bytes * sms * constants.epilogue / rates.l2_per_us
    fill_us = constants.fill_us * (1 if traits.persistent else waves)
    in_sms_us = fill_us + steps * step_us + epilogue_us
    both_us = (in_sms_us**OVERLAP + through_dram_us**OVERLAP) ** (1.0 / OVERLAP)
    parts = _parts(traits, pieces, sms)
    reduction_us = 0.0
    if parts > 1:  # one CTA writes its part, and one reads them all, or its group's and then each group's
        group = traits.constants.get(GROUP, parts)
        parts = parts if parts <= group else 1 + group + parts / group
        part_us = traits.results * PARTIAL_BYTES * sms / rates.l2_per_us
        reduction_us = REDUCE_US + (1 + parts) * part_us * -(-pieces.ctas // (sms * split))
    return Terms(
        total_us=LAUNCH_US + both_us + reduction_us,
        launch_us=LAUNCH_US,
        fill_us=fill_us,
        mainloop_us=steps * step_us,
        bound=bound,
        epilogue_us=epilogue_us,
        reduction_us=reduction_us,
        memory_us=through_dram_us,
        waves=waves,
    )
