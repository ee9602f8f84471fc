"""What each source line of a config asks of memory, in the whole launch and in one step along K, as the binary does it.

Traces in the emulator, disassembles the GPU's binary of the same text, and brings the two together. Needs a C++
compiler; without nvdisasm the lines are as traced. Printing is `memory_table.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.arch import ArchSpec
from tilewright.declare import Config
from tilewright.emulator.recount import widened
from tilewright.emulator.trace import MemoryLine, Trace, plus
from tilewright.emulator.tracing import Watch
from tilewright.errors import Missing
from tilewright.facts.costs import Costs, Served
from tilewright.facts.disassemble import disassemble
from tilewright.facts.mainloop import main_loop, step_words
from tilewright.facts.served import served
from tilewright.lab.tracing import trace_config
from tilewright.lab.verifying import cubin
from tilewright.problem import Problem

WARP = 32


@dataclass(frozen=True)
class MemoryLines:
    """The lines with what serves them; `unit` says one step along K in words.

    `missing` says why the binary's instructions are not known; empty where they are.
    """

    trace: Trace
    lines: list[Served]
    unit: str
    missing: str


def memory_lines(config: Config, problem: Problem, arch: ArchSpec, *, events: bool = False) -> MemoryLines:
    """Trace `config` on `problem` and find what serves each line on `arch`. `events` keeps them in the trace.

    Raises what compiling raises, and the LaunchFailed of a launch that fails.
    """
    launches = Launches(config, problem, events=events)
    traced = launches.costs()
    lines, missing = [Served(costs, costs.whole.width_bytes) for costs in traced], ""
    try:
        code = disassemble(cubin(config, problem, arch))
    except Missing as error:
        return MemoryLines(launches.trace, lines, launches.unit, str(error))
    loop = main_loop(code, config)
    if loop is None:
        missing = "no loop of this kernel holds an FMA, so no line can be held against a main loop"
    elif loop.steps_per_trip is None:
        missing = f"{loop.how}, so no line can be held against it"
    else:
        lines = served(traced, code, loop, launches.widen)
    return MemoryLines(launches.trace, lines, launches.unit, missing)


class Launches:
    """The problem traced, and two short launches, one step along K apart: their difference is what such a step costs.

    They have more steps than the kernel has stages, and end as the problem does where its k is no whole number of them.
    """

    def __init__(self, config: Config, problem: Problem, *, events: bool) -> None:
        self.config = config
        k_step = config.rung.accesses.k_step.evaluate(config.scope)
        k = (config.stages + 1) * k_step + problem.k % k_step
        longer = (
            replace(problem, k=k)
            if problem.k >= k
            else Problem(m=problem.m, n=problem.n, k=k, **problem.kind._asdict())
        )
        self.unit = step_words(k_step)
        self.more_steps = (problem.k - k) // k_step
        self.short = (longer, replace(longer, k=k - k_step))
        self.warps = math.prod(config.grid(problem)) * -(-config.threads // WARP)
        self.trace = self._traced(problem, events=events)

    def costs(self) -> list[Costs]:
        """Each line's, at the widths that were traced."""
        longer, shorter = (_by_place(self._traced(problem, events=False).lines) for problem in self.short)
        return [Costs(line, _step(line, longer, shorter), self.warps) for line in self.trace.lines]

    @cached_property
    def short_traces(self) -> list[Trace]:
        """The two short launches with every access."""
        return [self._traced(problem, events=True) for problem in self.short]

    def widen(self, costs: Costs, width_bytes: int) -> list[Costs]:
        """The line's with its accesses merged where they can be; empty where none can.

        The whole launch is one short launch and so many steps more, or nothing is merged.
        """
        whole, tile = costs.whole, costs.tile
        traced = [_by_place(trace.lines).get(whole.place) for trace in self.short_traces]
        if traced[0] is None or plus(traced[0], tile, self.more_steps) != whole:
            return []
        longer, shorter = (_by_place(widened(trace, whole, width_bytes)) for trace in self.short_traces)
        steps = [(line, _step(line, longer, shorter)) for line in longer.values()]
        return [Costs(plus(line, step, self.more_steps), step, self.warps) for line, step in steps]

    def _traced(self, problem: Problem, *, events: bool) -> Trace:
        trace, failure = trace_config(self.config, problem, Watch(events=events))
        if failure is not None:
            raise failure
        return trace


Places = dict[tuple[object, ...], MemoryLine]


def _by_place(lines: Iterable[MemoryLine]) -> Places:
    return {line.place: line for line in lines}


def _step(line: MemoryLine, longer: Places, shorter: Places) -> MemoryLine:
    """What one step adds to a line."""
    nothing = plus(line, line, -1)
    return plus(longer.get(line.place, nothing), shorter.get(line.place, nothing), -1)
