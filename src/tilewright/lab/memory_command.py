"""`tilewright inspect RUNG --memory`: what each source line asks of shared and global memory, in the emulator.

A rung is traced on four CTAs unless sizes are given: counts per access do not depend on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.declare import Config, all_rungs
from tilewright.emulator.trace import Trace
from tilewright.emulator.tracing import Watch
from tilewright.facts.static import bare_row
from tilewright.lab.memory_table import Picture, print_memory, show_picture
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.settings import Sizes, configs_of, parse_settings, sized_problem
from tilewright.lab.tracing import small_problem, trace_config
from tilewright.problem import Problem
from tilewright.record import Record, Row, environment


@dataclass(frozen=True)
class MemoryRequest:
    """The command's arguments."""

    rung: str
    settings: list[str]
    sizes: Sizes
    picture: Picture


def inspect_memory(request: MemoryRequest, *, as_json: bool) -> int:
    """Trace one launch and print its accesses by source line. Returns the exit status."""
    rung = all_rungs().find(request.rung)
    config = configs_of([rung], parse_settings(request.settings, [rung], all_rungs()))[0]
    problem = _problem(config, request.sizes)
    trace, failure = trace_config(config, problem, Watch(events=request.picture.wanted))
    if failure is not None:
        raise failure
    if as_json:
        print_json(Record(command="inspect", environment=environment(), rows=[_row(config, problem, trace)]).to_json())
    else:
        title = f"{rung.name}  {problem}, in the emulator"
        print_memory(standard_output(), title, trace, f"{rung.entry}.cu", rung.source)
    show_picture(standard_error() if as_json else standard_output(), request.picture, trace)
    return 0


def _problem(config: Config, sizes: Sizes) -> Problem:
    default = small_problem(config)
    return sized_problem(sizes, (default.m, default.n, default.k))


def _row(config: Config, problem: Problem, trace: Trace) -> Row:
    row = bare_row(config, problem)
    row.backend = "emulator"
    row.memory = [line.to_json() for line in trace.lines]
    row.sectors_per_request, row.wavefronts_per_access = trace.per_access("global"), trace.per_access("shared")
    return row
