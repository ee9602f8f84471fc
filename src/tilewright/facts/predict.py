"""How often a launch executes each kind of instruction, predicted from SASS and declaration alone.

What SASS leaves open is a range: a block that may be passed by and an instruction under a predicate count as never and
as always. Staging that a pipelined loop leaves out on its last trips is pinned down by the declared global loads.
Problems in whole tiles and without C only; otherwise nothing is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tilewright.declare.config import Config
from tilewright.facts.flow import Block, blocks, loops, unavoidable
from tilewright.facts.mainloop import MainLoop, fmas, fmas_per_step, main_loop
from tilewright.facts.sass import BRANCHES, Instruction
from tilewright.problem import ITEMSIZE_BYTES, Problem

LANES = 32
STAGING = ("LDG", "LDGSTS", "STS")
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
    in_loop: bool

    @property
    def open_staging(self) -> bool:
        """Whether it brings operands to shared memory, and may or may not run."""
        return self.low < self.high and self.instruction.opcode in STAGING and not self.instruction.never_executes

    @property
    def loaded_bytes(self) -> Fraction:
        """Global bytes that it loads at most."""
        loads = self.instruction.opcode in ("LDG", "LDGSTS")
        return self.high * self.instruction.width_bits / 8 if loads else Fraction(0)


def predicted(code: Sequence[Instruction], config: Config, problem: Problem, *, sm_count: int = 1) -> dict[str, Range]:
    """Counts of one launch by Nsight Compute's metric names; empty where nothing can be said."""
    loop = main_loop(code, config)
    config.require_problem(problem)
    guarded = config.problem_constants(problem)["GUARDED"]
    if loop is None or loop.steps_per_trip is None or guarded or problem.reads_c:
        return {}
    k_step = config.rung.accesses.k_step.evaluate(config.scope)
    owed = fmas_per_step(config) * Fraction(problem.k, k_step)
    open_times = _times(code, loop, owed, fmas_per_step(config))
    if open_times is None:
        return {}
    times = _pinned(open_times, _declared_bytes(config, problem))
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
        _bounded(instruction, weights.get(instruction.address, Fraction(1)), n in sure, n in inside)
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


def _bounded(instruction: Instruction, times: Fraction, runs: bool, in_loop: bool) -> _Times:
    switched = bool(instruction.predicate) and instruction.opcode not in BRANCHES
    return _Times(instruction, times if runs and not switched else Fraction(0), times, in_loop)


def _declared_bytes(config: Config, problem: Problem) -> Fraction:
    """Global bytes that one thread loads, by the declaration."""
    declared, scope = config.rung.accesses, config.scope
    steps = Fraction(problem.k, declared.k_step.evaluate(scope))
    return declared.global_loads.evaluate(scope) * steps * ITEMSIZE_BYTES[problem.dtype] / config.threads


def _pinned(times: list[_Times], declared_bytes: Fraction) -> list[_Times]:
    """Staging before the loop runs once; that within it as often as leaves the declared bytes, if that is possible."""
    sure = sum((t.loaded_bytes for t in times if not t.open_staging), Fraction(0))
    ahead = sum((t.loaded_bytes for t in times if t.open_staging and not t.in_loop), Fraction(0))
    most = sum((t.loaded_bytes for t in times if t.open_staging and t.in_loop), Fraction(0))
    share = (declared_bytes - sure - ahead) / most if most else Fraction(-1)
    if not 0 <= share <= 1:
        return times
    return [_settled(t, share if t.in_loop else Fraction(1)) if t.open_staging else t for t in times]


def _settled(times: _Times, share: Fraction) -> _Times:
    return replace(times, low=times.high * share, high=times.high * share)


def _code(code: Sequence[Instruction], block: Block) -> Sequence[Instruction]:
    return code[block.first : block.last + 1]
