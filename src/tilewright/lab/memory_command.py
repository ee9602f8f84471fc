"""`tilewright inspect RUNG --memory`: what each source line asks of shared and global memory, in the emulator.

A rung is traced on four CTAs unless sizes are given: counts per access do not depend on how many there are. Beside
them stand a warp's costs in one step along K, and the binary's own instructions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Console
from rich.text import Text

from tilewright.arch import ArchSpec, get_arch
from tilewright.declare import Config, all_rungs
from tilewright.emulator.trace import Space
from tilewright.facts.costs import PER_TILE, Served
from tilewright.facts.static import bare_row
from tilewright.lab.memory_lines import MemoryLines, memory_lines
from tilewright.lab.memory_table import Picture, TableRow, print_memory, show_picture
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.sections import print_words
from tilewright.lab.settings import Sizes, configs_of, parse_settings, sized_problem
from tilewright.lab.tracing import small_problem
from tilewright.problem import Problem
from tilewright.record import Record, Row, environment

TILE_WIDTHS = (10, 8, 10)
TILE_HEADINGS: dict[Space, tuple[str, ...]] = {
    "global": ("requests", "sectors", "fewest"),
    "shared": ("issued", "wavefr.", "conflicts"),
}


@dataclass(frozen=True)
class MemoryRequest:
    """The command's arguments. `arch` is whose binary is looked at."""

    rung: str
    settings: list[str]
    sizes: Sizes
    arch: str
    picture: Picture


def inspect_memory(request: MemoryRequest, *, as_json: bool) -> int:
    """Trace and print the accesses by source line. Returns the exit status."""
    rung = all_rungs().find(request.rung)
    config = configs_of([rung], parse_settings(request.settings, [rung], all_rungs()))[0]
    problem, arch = _problem(config, request.sizes), get_arch(request.arch)
    config.require_arch(arch)
    found = memory_lines(config, problem, arch, events=request.picture.wanted)
    if as_json:
        row = _row(config, problem, arch, found)
        print_json(Record(command="inspect", environment=environment(), rows=[row]).to_json())
    else:
        console = standard_output()
        console.print(Text(f"{rung.name}  {problem}, in the emulator", style="bold"), soft_wrap=True)
        _print(console, config, arch, found)
    show_picture(standard_error() if as_json else standard_output(), request.picture, found.trace)
    return 0


def _problem(config: Config, sizes: Sizes) -> Problem:
    default = small_problem(config)
    return sized_problem(sizes, (default.m, default.n, default.k), default.kind)


def _print(console: Console, config: Config, arch: ArchSpec, found: MemoryLines) -> None:
    title = f"{f'  a warp, each {found.unit}':<{sum(TILE_WIDTHS)}}"
    machine = "" if found.missing else f" {arch.name} SASS"
    beside = {space: (title, _aligned(words) + machine) for space, words in TILE_HEADINGS.items()}
    rows = [
        TableRow(each.costs.whole, each.traced_bytes if each.is_merged else None, _beside(each), each.unexplained)
        for each in found.lines
    ]
    print_memory(console, rows, f"{config.rung.entry}.cu", config.rung.source, beside)
    console.print()
    print_words(console, found.missing or f"SASS ×n: of a thread, in each {found.unit}; +n: outside the main loop.")
    merged = {(each.traced_bytes, each.costs.whole.width_bytes) for each in found.lines if each.is_merged}
    for narrow, wide in sorted(merged):
        print_words(
            console, f"{narrow}→{wide}: the compiler merged the source's accesses; the counts are of the wide ones."
        )


def _aligned(cells: Iterable[str]) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, TILE_WIDTHS, strict=True))


def _beside(each: Served) -> str:
    counts = [each.costs.per_warp(name) for name in PER_TILE[each.costs.whole.space]]
    cells = _aligned(_count(count) if any(counts) else "" for count in counts)
    return f"{cells} {', '.join(_instructions(each, kind) for kind in {**each.main_loop, **each.elsewhere})}"


def _instructions(each: Served, kind: str) -> str:
    inside = f" ×{_count(each.main_loop[kind])}" if kind in each.main_loop else ""
    outside = f" +{_count(each.elsewhere[kind])}" if kind in each.elsewhere else ""
    return f"{kind}{inside}{outside}"


def _count(count: Fraction) -> str:
    return str(count) if count.denominator == 1 else f"{float(count):.3g}"


def _row(config: Config, problem: Problem, arch: ArchSpec, found: MemoryLines) -> Row:
    row = bare_row(config, problem)
    row.backend, row.arch = "emulator", arch.name
    row.memory = [each.to_json() for each in found.lines]
    row.sass_unit, row.sass_missing = found.unit, found.missing or None
    row.sectors_per_request = found.trace.per_access("global")
    row.wavefronts_per_access = found.trace.per_access("shared")
    return row
