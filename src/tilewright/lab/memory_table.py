"""A trace as a person reads it: accesses by source line, and the bank map of one line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.emulator.trace import MemoryLine, Trace
from tilewright.errors import InvalidInput
from tilewright.lab.bank_map import bank_maps, draw_svg, draw_text

LEFT = f"{'':32}"
SHARED_HEADING = (
    f"{LEFT}{'instructions':>12} {'width':>6} {'wavefronts':>11} {'conflict-':>10} {'banks':>6} {'ways':>5}",
    f"{LEFT}{'':12} {'':6} {'an access':>11} {'free':>10}",
)
GLOBAL_HEADING = (
    f"{LEFT}{'requests':>12} {'width':>6} {'sectors':>11} {'fewest':>10} {'bytes wanted':>13}",
    f"{LEFT}{'':12} {'':6} {'a request':>11} {'':10} {'of moved':>13}",
)


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


def print_memory(console: Console, title: str, trace: Trace, file: str, source: str) -> None:
    """Global, then shared memory, by source line; lines of `file` with their text from `source`."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    text = source.splitlines()
    for space, headings, say in (
        ("global", GLOBAL_HEADING, _global_cells),
        ("shared", SHARED_HEADING, _shared_cells),
    ):
        lines = trace.select(space=space)
        if not lines:
            continue
        console.print(Text(f"\n{space} memory, by warp instruction", style="cyan"))
        console.print(*(Text(heading, style="dim") for heading in headings), sep="\n", soft_wrap=True)
        shown = None
        for line in lines:
            if (line.file, line.line) != shown:
                own = line.file == file and line.line <= len(text)
                console.print(
                    Text(f"{line.line:>5} {text[line.line - 1].strip() if own else f'({line.file})'}", style="italic"),
                    soft_wrap=True,
                )
                shown = (line.file, line.line)
            console.print(Text(f"{'':6}{line.kind + ' ' + line.array:<26}{say(line)}"), soft_wrap=True)


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
