"""How one matrix of an operand is stored: 'N' by rows, 'T' by columns, or so that only a copy can be multiplied.

The one place where strides become a layout letter and a leading dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.api.shapes import Shape
from tilewright.api.view import packed_strides

SINGLE_ROW_UNIT = 8
"""The leading dimension of a single row is free, and a multiple of this so that it spoils no alignment."""


@dataclass(frozen=True, slots=True)
class Strides:
    """An operand's strides in elements: one for each axis of the result's batch, then along its rows and columns."""

    batch: Shape
    row: int
    column: int

    @property
    def swapped(self) -> Strides:
        """Those of the transposed operand."""
        return replace(self, row=self.column, column=self.row)


def ways_stored(rows: int, columns: int, row: int, column: int) -> dict[str, int]:
    """The ways a matrix with these strides is stored: leading dimensions by letter, 'N' first.

    Two where one axis has length 1, of which the stride does not matter then. None where neither rows nor columns are
    contiguous and apart.
    """
    ways = {}
    if (columns <= 1 or column == 1) and (rows <= 1 or row >= max(columns, 1)):
        ways["N"] = row if rows > 1 else _single(columns)
    if (rows <= 1 or row == 1) and (columns <= 1 or column >= max(rows, 1)):
        ways["T"] = column if columns > 1 else _single(rows)
    return ways


def _single(width: int) -> int:
    return max(-(-width // SINGLE_ROW_UNIT), 1) * SINGLE_ROW_UNIT


def broadcast_strides(shape: Shape, strides: Shape, batch: Shape) -> Strides:
    """Strides of an operand of at least two axes over the result's batch: 0 where it is repeated."""
    missing = len(batch) - (len(shape) - 2)
    own = (0 if size == 1 else stride for size, stride in zip(shape[:-2], strides[:-2], strict=True))
    return Strides((0,) * missing + tuple(own), strides[-2], strides[-1])


def packed(like: Strides, batch: Shape, rows: int, columns: int, *, by_columns: bool) -> Strides:
    """Strides of a copy without gaps, in which what `like` repeats along the batch is there once."""
    kept = tuple(1 if stride == 0 else size for size, stride in zip(batch, like.batch, strict=True))
    steps = packed_strides((*kept, rows, columns))
    outer = tuple(0 if stride == 0 else step for stride, step in zip(like.batch, steps, strict=False))
    return Strides(outer, 1, max(rows, 1)) if by_columns else Strides(outer, max(columns, 1), 1)
