"""How often a launch executes each kind of instruction, predicted from SASS and declaration alone.

What SASS leaves open is a range: a block that may be passed by and an instruction under a predicate count as never and
as always. Problems in whole tiles and without C only; otherwise nothing is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.declare.config import Config
from tilewright.facts.flow import Block, blocks, loops, unavoidable
from tilewright.facts.mainloop import MainLoop, fmas, fmas_per_step, main_loop
from tilewright.facts.sass import BRANCHES, Instruction
from tilewright.problem import Problem

LANES = 32
FMA_METRIC = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
METRICS: dict[str, Callable[[Instruction], bool]] = {
    "smsp__inst_executed_op_shared_ld.sum": lambda i: i.opcode == "LDS",
    "smsp__inst_executed_op_shared_st.sum": lambda i: i.opcode == "STS",
    "smsp__inst_executed_op_global_ld.sum": lambda i: i.opcode == "LDG",
    "smsp__inst_executed_op_global_st.sum": lambda i: i.opcode == "STG",
    "smsp__inst_executed_op_ldgsts.sum": lambda i: i.opcode == "LDGSTS",
    "smsp__inst_executed.sum": lambda _: True,
}
"""Nsight Compute's names of counts of warp-wide instructions, and what they count."""


@dataclass(frozen=True, slots=True)
class Range:
    """A count between `low` and `high`; exact where they are equal."""

    low: int
    high: int

    def __contains__(self, count: int) -> bool:
        return self.low <= count <= self.high


@dataclass(frozen=True, slots=True)
class _Times:
    """How often a warp executes an instruction, at least and at most."""

    instruction: Instruction
    low: Fraction
    high: Fraction


def predicted(code: Sequence[Instruction], config: Config, problem: Problem, *, sm_count: int = 1) -> dict[str, Range]:
    """Counts of one launch by Nsight Compute's metric names; empty where nothing can be said."""
    loop = main_loop(code, config)
    config.require_problem(problem)
    guarded = config.problem_constants(problem)["GUARDED"]
    if loop is None or loop.steps_per_trip is None or guarded or problem.reads_c:
        return {}
    k_step = config.rung.accesses.k_step.evaluate(config.scope)
    owed = fmas_per_step(config) * Fraction(problem.k, k_step)
    times = _times(code, loop, owed, fmas_per_step(config))
    if times is None:
        return {}
    warps = config.threads // LANES * math.prod(config.grid(problem, sm_count=sm_count))
    fma_count = int(owed * LANES * warps)
    return {
        FMA_METRIC: Range(fma_count, fma_count),
        **{name: _summed(times, counts, warps) for name, counts in METRICS.items()},
    }


def _summed(times: Sequence[_Times], counts: Callable[[Instruction], bool], warps: int) -> Range:
    counted = [each for each in times if counts(each.instruction)]
    low, high = sum(each.low for each in counted), sum(each.high for each in counted)
    return Range(math.floor(low * warps), math.ceil(high * warps))


def _times(code: Sequence[Instruction], loop: MainLoop, owed: Fraction, per_step: Fraction) -> list[_Times] | None:
    """Every reachable instruction's executions.

    None where the FMAs owed are no whole number of trips, or a loop without FMAs is taken nobody knows how often.
    """
    if any(not fmas(code[each.first : each.last + 1]) for each in loops(code)):
        return None
    graph = blocks(code)
    inside = {n for n, b in enumerate(graph) if loop.loop.first <= b.first and b.last <= loop.loop.last}
    head = next(n for n in inside if graph[n].first == loop.loop.first)
    latch = {n for n in inside if graph[n].last == loop.loop.last}
    everywhere = set(range(len(graph)))
    ends = {n for n, block in enumerate(graph) if block.exits}
    before = unavoidable(graph, 0, {head}, everywhere - inside | {head})
    after = unavoidable(graph, head, ends, everywhere)
    sure = (before | after) - inside | unavoidable(graph, head, latch, inside)

    steps = (owed - sum(fmas(_code(code, graph[n])) for n in sure - inside)) / per_step
    if steps < 0 or loop.steps_per_trip is None or (steps / loop.steps_per_trip).denominator != 1:
        return None
    weights = {each.instruction.address: each.times * steps for each in loop.executed}
    return [
        _bounded(instruction, weights.get(instruction.address, Fraction(1)), n in sure)
        for n in _may_run(code, graph, inside, sure)
        for instruction in _code(code, graph[n])
    ]


def _may_run(code: Sequence[Instruction], graph: Sequence[Block], inside: set[int], sure: set[int]) -> Iterator[int]:
    """Blocks that run or may run. One with FMAs that may be passed by serves left-over steps, and there are none."""
    seen, waiting = {0}, [0]
    while waiting:
        number = waiting.pop()
        if number in inside | sure or not fmas(_code(code, graph[number])):
            yield number
        fresh = [n for n in graph[number].following if n not in seen]
        seen.update(fresh)
        waiting += fresh


def _bounded(instruction: Instruction, times: Fraction, runs: bool) -> _Times:
    switched = bool(instruction.predicate) and instruction.opcode not in BRANCHES
    return _Times(instruction, times if runs and not switched else Fraction(0), times)


def _code(code: Sequence[Instruction], block: Block) -> Sequence[Instruction]:
    return code[block.first : block.last + 1]
