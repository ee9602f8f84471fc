"""Rows as a person reads them in a terminal: one line of figures, one line saying what the rung teaches."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tilewright.lab.render import NAME, UNSUPPORTED, VERIFIED, Column
from tilewright.record import Row


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
        lines += _wrapped(row.verdict or row.failure, width, "yellow" if row.failure == UNSUPPORTED else "red")
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
