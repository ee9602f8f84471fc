"""`tilewright inspect RUNG --memory`: what each source line asks of shared and global memory, in the emulator.

A rung is traced on four CTAs unless sizes are given: counts per access do not depend on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.declare import Config, rungs
from tilewright.emulator.trace import MemoryLine, Trace
from tilewright.emulator.tracing import Watch
from tilewright.errors import InvalidConfig
from tilewright.facts.static import bare_row
from tilewright.lab.bank_map import bank_maps, draw_svg, draw_text
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.settings import configs_of, parse_settings, sized_problem
from tilewright.lab.tracing import small_problem, trace_config
from tilewright.problem import Problem
from tilewright.record import Record, Row, environment

SHARED_HEADING = (
    f"{'':6}{'':26}{'instructions':>12} {'width':>6} {'wavefronts':>11} {'conflict-':>10} {'banks':>6} {'ways':>5}"
)
SHARED_UNITS = f"{'':6}{'':26}{'':12} {'':6} {'an access':>11} {'free':>10}"
GLOBAL_HEADING = f"{'':6}{'':26}{'requests':>12} {'width':>6} {'sectors':>11} {'fewest':>10} {'bytes wanted':>13}"
GLOBAL_UNITS = f"{'':6}{'':26}{'':12} {'':6} {'a request':>11} {'':10} {'of moved':>13}"


@dataclass(frozen=True)
class MemoryRequest:
    """The command's arguments; `line` asks for the bank map of a source line, `svg` for a file of it."""

    rung: str
    settings: list[str]
    sizes: tuple[int | None, int | None, int | None]
    line: int | None
    svg: str | None


def inspect_memory(request: MemoryRequest, *, as_json: bool) -> int:
    """Trace one launch and print its accesses by source line. Returns the exit status."""
    if request.svg is not None and request.line is None:
        raise InvalidConfig("--svg draws the bank map of one line; add --line NUMBER")
    rung = rungs().find(request.rung)
    config = configs_of([rung], parse_settings(request.settings, [rung], rungs()))[0]
    problem = _problem(config, request.sizes)
    trace, failure = trace_config(config, problem, Watch(events=request.line is not None))
    if failure is not None:
        raise failure
    if as_json:
        print_json(Record(command="inspect", environment=environment(), rows=[_row(config, problem, trace)]).to_json())
    else:
        _print(standard_output(), config, problem, trace)
    if request.line is not None:
        _draw(request, trace, as_json=as_json)
    return 0


def _problem(config: Config, sizes: tuple[int | None, int | None, int | None]) -> Problem:
    default = small_problem(config)
    chosen = zip(sizes, (default.m, default.n, default.k), strict=True)
    return sized_problem(*(default_size if size is None else size for size, default_size in chosen))


def _row(config: Config, problem: Problem, trace: Trace) -> Row:
    row = bare_row(config, problem)
    row.backend = "emulator"
    row.memory = [line.to_json() for line in trace.lines]
    row.sectors_per_request, row.wavefronts_per_access = trace.per_access("global"), trace.per_access("shared")
    return row


def _print(console: Console, config: Config, problem: Problem, trace: Trace) -> None:
    console.print(Text(f"{config.rung.name}  {problem}, in the emulator", style="bold"), soft_wrap=True)
    for space, headings, say in (
        ("global", (GLOBAL_HEADING, GLOBAL_UNITS), _global_cells),
        ("shared", (SHARED_HEADING, SHARED_UNITS), _shared_cells),
    ):
        lines = trace.select(space=space)
        if not lines:
            continue
        console.print(Text(f"\n{space} memory, by warp instruction", style="cyan"))
        console.print(*(Text(heading, style="dim") for heading in headings), sep="\n", soft_wrap=True)
        shown = None
        for line in lines:
            if line.line != shown:
                console.print(Text(f"{line.line:>5} {_source_text(config, line)}", style="italic"), soft_wrap=True)
                shown = line.line
            console.print(Text(f"{'':6}{line.kind + ' ' + line.array:<26}{say(line)}"), soft_wrap=True)


def _source_text(config: Config, line: MemoryLine) -> str:
    """The line's text where it is the kernel's own, else where it stands."""
    text = config.rung.source.splitlines()
    own = line.file == f"{config.rung.entry}.cu" and line.line <= len(text)
    return text[line.line - 1].strip() if own else f"({line.file})"


def _shared_cells(line: MemoryLine) -> str:
    free = line.conflict_free_wavefronts / line.instructions
    return (
        f"{line.instructions:>12} {line.width_bytes:>4} B {line.wavefronts_per_access:>11.4g} {free:>10.4g} "
        f"{line.banks:>6} {line.ways:>5}"
    )


def _global_cells(line: MemoryLine) -> str:
    fewest = line.fewest_sectors / line.instructions
    return (
        f"{line.instructions:>12} {line.width_bytes:>4} B {line.sectors_per_request:>11.4g} {fewest:>10.4g} "
        f"{100 * line.efficiency:>11.1f} %"
    )


def _draw(request: MemoryRequest, trace: Trace, *, as_json: bool) -> None:
    maps = bank_maps(trace, request.line or 0)
    console = standard_error() if as_json else standard_output()
    for bank_map in maps:
        console.print(Text(f"\n{bank_map.title}; each cell is the first lane that its bank serves", style="cyan"))
        console.print(Text(draw_text(bank_map)), soft_wrap=True)
    if request.svg is not None:
        Path(request.svg).write_text(draw_svg(maps), encoding="utf-8")
        console.print(Text(f"written to {request.svg}", style="dim"))
