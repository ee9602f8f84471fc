"""Many configs on many architectures: registers, occupancy and shared bytes in one table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from rich.console import Console
from rich.text import Text

from tilewright.arch import ArchSpec, archs_with
from tilewright.compile.batch import in_parallel
from tilewright.declare import Config, all_rungs
from tilewright.lab.ladder import Plan, attempt, compiled_row
from tilewright.lab.render import UNSUPPORTED
from tilewright.problem import Problem
from tilewright.record import Row

NAME_WIDTH, SMEM_WIDTH, CELL_WIDTH = 22, 7, 9


def table_rows(configs: Sequence[Config], archs: Sequence[ArchSpec], problems: Sequence[Problem]) -> list[Row]:
    """A row for each config with its problem on each architecture, compiled on all cores.

    A refusal is a row with its failure.
    """

    def compiled(pair: tuple[tuple[Config, Problem], ArchSpec]) -> Row:
        (config, problem), arch = pair
        row = attempt(config, problem, lambda: compiled_row(Plan(problem, [config], arch), config))
        row.arch, row.smem_bytes = arch.name, config.smem_bytes
        return row

    return list(in_parallel(compiled, product(zip(configs, problems, strict=True), archs)))


def print_table(console: Console, rows: Sequence[Row], archs: Sequence[ArchSpec], sizes: str) -> None:
    """One line a rung, one column an architecture: registers, then occupancy in per cent. Notes say what is amiss."""
    console.print(Text(f"registers a thread and occupancy in % for {sizes}", style="bold"))
    head = "rung".ljust(NAME_WIDTH) + "smem".rjust(SMEM_WIDTH) + "".join(a.name.rjust(CELL_WIDTH + 1) for a in archs)
    console.print(Text(f"\n{head}", style="cyan"), soft_wrap=True)
    for rung in dict.fromkeys(row.rung for row in rows):
        own = [row for row in rows if row.rung == rung]
        line = Text(rung.ljust(NAME_WIDTH), style="bold")
        line.append(f"{own[0].smem_bytes:>{SMEM_WIDTH}}", style="not bold dim")
        for row in own:
            line.append(" ").append(_cell(row))
        console.print(line, soft_wrap=True)
    console.print(Text("\nsmem: bytes of shared memory a CTA", style="dim"), soft_wrap=True)
    notes = dict.fromkeys(filter(None, map(_note, rows)))
    for note in notes:
        console.print(Text(note, style="yellow"), soft_wrap=True)


def _cell(row: Row) -> Text:
    if row.registers is None or row.occupancy is None:
        return Text("–".rjust(CELL_WIDTH), style="yellow not bold")
    registers = f"{row.registers}{'*' if row.spill_bytes else ' '}"
    return Text(registers.rjust(CELL_WIDTH - 4), style="not bold").append(
        f"{100 * row.occupancy:4.3g}", style="not bold dim"
    )


def _note(row: Row) -> str:
    if row.failure == UNSUPPORTED:
        able = ", ".join(archs_with(all_rungs()[row.rung].requires.features))
        return f"– {row.rung}: for {able} alone"
    if row.failure is not None:
        return f"– {row.arch}: {row.verdict}"
    return f"* {row.rung} on {row.arch}: {row.spill_bytes} bytes spilled" if row.spill_bytes else ""
