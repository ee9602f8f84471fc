"""A trace as a person reads it: accesses by source line, and the bank map of one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.emulator.trace import MemoryLine, Space, Trace
from tilewright.emulator.tracing import DYNAMIC_NAME
from tilewright.errors import InvalidInput
from tilewright.lab.bank_map import bank_maps, draw_svg, draw_text

INDENT, LABEL, LEAST_WIDTH = 4, 18, 100
HEADINGS: dict[Space, tuple[str, str]] = {
    "global": (
        f"{'requests':>9}{'bytes':>6}{'sectors':>8}{'fewest':>7}{'wanted':>8}",
        f"{'':>9}{'':>6}{'each':>8}{'':>7}{'of moved':>8}",
    ),
    "shared": (
        f"{'issued':>9}{'bytes':>6}{'wavefr.':>8}{'free':>5}{'banks':>6}{'ways':>5}",
        f"{'':>9}{'':>6}{'each':>8}",
    ),
}
WIDTH = max(len(heading) for headings in HEADINGS.values() for heading in headings)


@dataclass(frozen=True, slots=True)
class Picture:
    """A bank map asked for: of which source line, and the SVG file to write, if any. Raises InvalidInput."""

    line: int | None
    svg: str | None

    def __post_init__(self) -> None:
        if self.svg is not None and self.line is None:
            raise InvalidInput("--svg draws the bank map of one line; add --line NUMBER")

    @property
    def wanted(self) -> bool:
        """Whether there is anything to draw."""
        return self.line is not None


@dataclass(frozen=True, slots=True)
class TableRow:
    """A line's counts; `merged_from_bytes` where its width is not the source's, more columns, a note to go below."""

    line: MemoryLine
    merged_from_bytes: int | None = None
    beside: str = ""
    note: str = ""


def print_memory(
    console: Console,
    rows: Sequence[TableRow],
    file: str,
    source: str,
    beside: Mapping[Space, tuple[str, str]] | None = None,
) -> None:
    """Global, then shared memory, by source line; lines of `file` with their text from `source`.

    `beside` heads the rows' further columns, in two lines.
    """
    text = source.splitlines()
    for space, headings in HEADINGS.items():
        chosen = [row for row in rows if row.line.space == space]
        if chosen:
            _heading(console, space, headings, beside[space] if beside else ("", ""))
        shown = None
        for row in chosen:
            name, number = row.line.file, row.line.line
            if (name, number) != shown:
                own = name == file and number <= len(text)
                code = Text(f"{number:>5} {text[number - 1].strip() if own else f'({name})'}", style="italic")
                code.truncate(max(console.width, LEAST_WIDTH), overflow="ellipsis")
                console.print(code, soft_wrap=True)
                shown = (name, number)
            _print_row(console, row)


def _heading(console: Console, space: Space, own: tuple[str, str], beside: tuple[str, str]) -> None:
    for title, left, right in zip((f"{space} memory", ""), own, beside, strict=True):
        line = Text(f"{title:<{INDENT + LABEL}}", style="cyan").append(f"{left:<{WIDTH}}{right}".rstrip(), style="dim")
        console.print(*(["\n"] if title else []), line, sep="", soft_wrap=True)


def _print_row(console: Console, row: TableRow) -> None:
    array = "dynamic" if row.line.array == DYNAMIC_NAME else row.line.array
    label = f"{'':{INDENT}}{f'{row.line.kind} {array}':<{LABEL}}"
    console.print(Text(f"{label}{_cells(row):<{WIDTH}}{row.beside}".rstrip()), soft_wrap=True)
    if row.note:
        console.print(Text(f"{'':{INDENT}}{row.note}", style="yellow"), soft_wrap=True)


def _cells(row: TableRow) -> str:
    line = row.line
    width = f"{row.merged_from_bytes}→{line.width_bytes}" if row.merged_from_bytes else f"{line.width_bytes}"
    start = f"{line.instructions:>9}{width:>6}"
    if line.space == "global":
        fewest = line.fewest_sectors / line.instructions
        return f"{start}{line.sectors_per_request:>8.4g}{fewest:>7.4g}{100 * line.efficiency:>7.1f}%"
    free = line.conflict_free_wavefronts / line.instructions
    return f"{start}{line.wavefronts_per_access:>8.4g}{free:>5.4g}{line.banks:>6}{line.ways:>5}"


def show_picture(console: Console, picture: Picture, trace: Trace) -> None:
    """The bank map asked for, to the console and to its file."""
    if picture.line is None:
        return
    maps = bank_maps(trace, picture.line)
    for bank_map in maps:
        title = f"\n{bank_map.title}; each cell is the first lane that its bank serves"
        console.print(Text(title, style="cyan"), soft_wrap=True)
        console.print(Text(draw_text(bank_map)), soft_wrap=True)
    if picture.svg is not None:
        Path(picture.svg).write_text(draw_svg(maps), encoding="utf-8")
        console.print(Text(f"written to {picture.svg}", style="dim"))
