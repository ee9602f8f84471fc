"""Rows as a person reads them in a terminal: one line of figures, one line saying what the rung teaches."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tilewright.record import Ratio, Record, Row, recorded_best


@dataclass(frozen=True)
class Column:
    """A heading of at most two lines, a width, and how to say it of a row. Empty text: not claimed."""

    heading: str
    width: int
    say: Callable[[Row], str]
    style: str = ""


def duration(time_us: float) -> str:
    """A time with three significant digits in µs or ms."""
    return f"{time_us / 1000:.3g} ms" if time_us >= 999.5 else f"{time_us:.3g} µs"


def percent(fraction: float) -> str:
    """A fraction as per cent, without the sign: one decimal, two below ten."""
    return f"{100 * fraction:.1f}" if fraction >= 0.0995 else f"{100 * fraction:.2f}"


def share(ratio: Ratio) -> str:
    """A ratio with its interval, in per cent."""
    return f"{percent(ratio.median)} [{percent(ratio.low)}, {percent(ratio.high)}]"


def _optional(value: float | None, form: str, scale: float = 1.0) -> str:
    return "" if value is None else form.format(value * scale)


def _verified(row: Row) -> str:
    return {None: "", True: "✓ exact", False: f"✗ {row.failure}"}[row.verified]


def _registers(row: Row) -> str:
    spilled = f" +{row.spill_bytes} B spilled" if row.spill_bytes else ""
    return "" if row.registers is None else f"{row.registers}{spilled}"


def _ratio(row: Row) -> str:
    return "" if row.ratio_to_baseline is None else share(row.ratio_to_baseline)


NAME = Column("rung", 20, lambda r: r.rung, "bold")
VERIFIED = Column("verified", 9, _verified)
RESOURCES = (
    Column("registers", 9, _registers),
    Column("occupancy", 9, lambda r: _optional(r.occupancy, "{:.1f}%", 100)),
)
COUNTS = (
    Column("global load\nbytes/FLOP", 11, lambda r: _optional(r.global_load_bytes_per_flop, "{:.3f}")),
    Column("shared loads\nper result", 12, lambda r: _optional(r.shared_loads_per_result, "{:g}")),
)
TRACED = (
    Column("sectors\na request", 9, lambda r: _optional(r.sectors_per_request, "{:.3g}")),
    Column("wavefronts\nan access", 10, lambda r: _optional(r.wavefronts_per_access, "{:.3g}")),
)
TIMES = (
    Column("time", 9, lambda r: "" if r.time_us is None else duration(r.time_us)),
    Column("TFLOP/s", 8, lambda r: _optional(r.tflops, "{:.2f}")),
)
OF_BASELINE = Column("% of cuBLAS\n[95% interval]", 19, _ratio)
OF_PEAK = (
    Column("% of FP32\npeak", 9, lambda r: "" if r.fraction_of_peak is None else percent(r.fraction_of_peak)),
    Column("× the rung\nbelow", 10, lambda r: _optional(r.gain_over_below, "{:.2f}")),
)


def recorded_column(records: Sequence[Record]) -> Column:
    """Recorded times, labelled as such and dimmed, since they are not this run's."""

    def say(row: Row) -> str:
        found = recorded_best(records, row.rung, row.config)
        if found is None or found.row.time_us is None:
            return ""
        p, ratio = found.row.problem, found.row.ratio_to_baseline
        of_baseline = f", {percent(ratio.median)}% of cuBLAS" if ratio is not None else ""
        size = f"{p['m']}³" if p["m"] == p["n"] == p["k"] else f"{p['m']}×{p['n']}×{p['k']}"
        return f"{duration(found.row.time_us)}{of_baseline} ({found.device.removeprefix('NVIDIA ')}, {size})"

    return Column("recorded elsewhere,\nnot this run", 38, say, "dim")


def emulator_columns(records: Sequence[Record]) -> tuple[Column, ...]:
    """What the emulator can say, and beside it what was recorded on a card."""
    return (NAME, VERIFIED, *COUNTS, *TRACED, *RESOURCES, recorded_column(records))


def gpu_columns(*, with_baseline: bool) -> tuple[Column, ...]:
    """What a GPU run says; without a baseline it compares with none."""
    return (NAME, VERIFIED, *TIMES, *((OF_BASELINE,) if with_baseline else ()), *OF_PEAK, *RESOURCES)


def heading_lines(columns: Sequence[Column], width: int = 1000) -> list[Text]:
    """The two heading lines of the columns that fit the width."""
    lines = []
    columns = columns[: fitting(columns, width)]
    for index in (0, 1):
        cells = []
        for column in columns:
            parts = column.heading.split("\n")
            cells.append(_cell(column, parts[index - 2 + len(parts)] if index - 2 + len(parts) >= 0 else ""))
        lines.append(Text("  ".join(cells).rstrip(), style="cyan"))
    return lines


def _cell(column: Column, text: str) -> str:
    return text.ljust(column.width) if column in (NAME, VERIFIED) or column.style == "dim" else text.rjust(column.width)


def fitting(columns: Sequence[Column], width: int) -> int:
    """How many of the columns stand side by side in `width` characters."""
    used = 0
    for count, column in enumerate(columns):
        used += column.width + 2
        if used - 2 > width:
            return max(count, 2)
    return len(columns)


def row_lines(columns: Sequence[Column], row: Row, width: int = 1000) -> list[Text]:
    """A row's figures, then those that don't fit the width, then its lesson, or what went wrong with it."""
    line = Text()
    fit = fitting(columns, width)
    for column in columns[:fit]:
        style = column.style
        if column is VERIFIED and row.verified is not None:
            style = "green" if row.verified else "bold red"
        line.append(_cell(column, column.say(row)) + "  ", style)
    line.rstrip()
    lines = [line]
    more = [f"{' '.join(c.heading.split())}: {said}" for c in columns[fit:] if (said := c.say(row))]
    lines += _wrapped("; ".join(more), width, "dim")
    if row.failure is not None:
        lines += _wrapped(row.verdict or row.failure, width, "red")
    elif row.summary is not None:
        lines += _wrapped(row.summary, width, "dim italic")
    return lines


def _wrapped(words: str, width: int, style: str) -> list[Text]:
    """Words indented and broken between words."""
    lines = textwrap.wrap(words, max(width, 20), initial_indent="  ", subsequent_indent="  ")
    return [Text(line, style=style) for line in lines]


class RowPrinter:
    """Prints rows as they come; a row that comes again replaces its earlier self while the table is open.

    On a terminal the table is live. Elsewhere each row is printed once, in its final form, when the table closes, or
    at once where `final` says that rows don't come again.
    """

    def __init__(self, console: Console, columns: Sequence[Column], *, final: bool) -> None:
        self._console, self._columns, self._final = console, columns, final
        self._rows: dict[str, Row] = {}
        self._status = ""
        self._width = console.width if console.is_terminal else 1000
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal and not final else None

    def __enter__(self) -> RowPrinter:
        if self._live is not None:
            self._live.__enter__()
        else:
            self._console.print(*heading_lines(self._columns, self._width), sep="\n", soft_wrap=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self.status("")
            self._live.__exit__(None, None, None)
        elif not self._final:
            for row in self._rows.values():
                self._console.print(*row_lines(self._columns, row, self._width), sep="\n", soft_wrap=True)

    def row(self, row: Row) -> None:
        """Show `row`, in place of an earlier one of the same rung."""
        self._rows[row.rung] = row
        if self._final:
            self._console.print(*row_lines(self._columns, row, self._width), sep="\n", soft_wrap=True)
        self._refresh()

    def status(self, text: str) -> None:
        """One line below the table that says what is going on; shown on a terminal only."""
        self._status = text
        self._refresh()

    def _refresh(self) -> None:
        if self._live is not None:
            lines = heading_lines(self._columns, self._width)
            for row in self._rows.values():
                lines += row_lines(self._columns, row, self._width)
            if self._status:
                lines.append(Text(self._status, style="yellow"))
            self._live.update(Text("\n").join(lines), refresh=True)
