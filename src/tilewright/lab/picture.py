"""The tile hierarchy of a config as text, drawn from its constants alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = (
    ("CTA tile", "BM", "BN"),
    ("warp tile", "WM", "WN"),
    ("sub-tile", "WSUBM", "WSUBN"),
    ("thread tile", "TM", "TN"),
)
MOST_SQUARES = 8
FIRST, OTHER, MORE = "■", "□", "…"


@dataclass(frozen=True, slots=True)
class Level:
    """One level of tiles: its name and its rows and columns of results."""

    name: str
    rows: int
    cols: int

    @property
    def size(self) -> str:
        """Rows × columns."""
        return f"{self.rows}×{self.cols}"


def tile_levels(constants: Mapping[str, int]) -> list[Level]:
    """The levels that the constants name, outermost first; the innermost is the thread's, one result by default."""
    named = [Level(n, constants[m], constants[k]) for n, m, k in LEVELS[:-1] if m in constants and k in constants]
    return [*named, Level(LEVELS[-1][0], constants.get("TM", 1), constants.get("TN", 1))]


def draw_tiles(constants: Mapping[str, int]) -> str:
    """Each level as a field of the next one's tiles, the first of them filled, side by side."""
    levels = tile_levels(constants)
    blocks = [_block(outer, inner) for outer, inner in itertools.pairwise(levels)]
    height = max(len(block) for block in blocks)
    widths = [max(len(line) for line in block) for block in blocks]
    lines = []
    for index in range(height):
        cells = [block[index] if index < len(block) else "" for block in blocks]
        lines.append("   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _block(outer: Level, inner: Level) -> list[str]:
    down, across = outer.rows // inner.rows, outer.cols // inner.cols
    head = [f"{outer.name} {outer.size}", f"= {down}×{across} {inner.name}s of {inner.size}"]
    wide = min(across, MOST_SQUARES)
    more = [MORE] if across > wide else []
    rows = [" ".join([OTHER] * wide + more) for _ in range(min(down, MOST_SQUARES))]
    rows[0] = FIRST + rows[0][1:]
    return [*head, *rows, *([MORE] if down > MOST_SQUARES else [])]
