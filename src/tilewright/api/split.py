"""From an orientation to its launches: which batch axes are rows, which one a launch walks, which are several launches.

Batch axes that lie behind one another become one. Where B is the same for all of them they become rows of A, one
product in place of many. What is left: the longest axis that a launch can walk is its batch, the others repeat it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tilewright.api.orientation import Orientation
from tilewright.problem import MAX_SIZE, leading_dimensions

OPERANDS = ("a", "b", "c", "d")
MAX_BATCH = 65535
MAX_ROWS = 2**20
"""Rows of one launch, a multiple of every CTA tile: the grid has 65535 tiles along them."""


class Steps(NamedTuple):
    """One step along an axis in elements of each operand."""

    a: int
    b: int
    c: int
    d: int

    def times(self, count: int) -> Steps:
        """As many steps."""
        return Steps(*(count * step for step in self))

    def plus(self, other: Steps) -> Steps:
        """Both, one after the other."""
        return Steps(*(one + two for one, two in zip(self, other, strict=True)))


class Axis(NamedTuple):
    """An axis of the result's batch: its length and one step along it."""

    size: int
    steps: Steps


@dataclass(frozen=True, slots=True)
class Matrices:
    """The matrices of one launch: sizes, layout, one step along the rows and the columns of each operand."""

    m: int
    n: int
    k: int
    layout: str
    row: Steps
    column: Steps

    def ld(self, operand: str) -> int | None:
        """The operand's leading dimension; None where it isn't stored as the layout says, or C and D not by rows."""
        rows, columns = {"a": (self.m, self.k), "b": (self.k, self.n)}.get(operand, (self.m, self.n))
        stored = leading_dimensions(rows, columns, getattr(self.row, operand), getattr(self.column, operand))
        return stored.get(dict(zip("ab", self.layout, strict=True)).get(operand, "N"))

    @property
    def is_usable(self) -> bool:
        """Whether every operand is stored as the layout says."""
        return all(self.ld(operand) is not None for operand in OPERANDS)


@dataclass(frozen=True, slots=True)
class LaunchGroup:
    """Launches that differ in their addresses alone: matrices, their batch, and what is added to each address."""

    matrices: Matrices
    leading_dimensions: Mapping[str, int]
    batch: int
    batch_steps: Steps
    offsets: list[Steps] = field(default_factory=list)


def split_into_launches(orientation: Orientation) -> list[LaunchGroup]:
    """The launches of a product all of whose operands are stored as the orientation's layout says."""
    strides = [orientation.operands[name].strides for name in OPERANDS]
    row, column = Steps(*(each.row for each in strides)), Steps(*(each.column for each in strides))
    matrices = Matrices(orientation.m, orientation.n, orientation.k, orientation.layout, row, column)
    sizes_and_steps = zip(orientation.batch, zip(*(each.batch for each in strides), strict=True), strict=True)
    axes = _merged([Axis(size, Steps(*steps)) for size, steps in sizes_and_steps])
    while axes and (folded := _folded(matrices, axes[-1])) is not None:
        matrices = folded
        axes.pop()
    walked = max(
        (x for x in axes if _is_walkable(matrices, x)), key=lambda x: x.size, default=Axis(1, Steps(0, 0, 0, 0))
    )
    repeated = [axis for axis in axes if axis is not walked]
    found: dict[tuple[int, int], LaunchGroup] = {}
    for first_row, rows in _chunks(matrices.m, MAX_ROWS):
        part = replace(matrices, m=rows)
        for first, count in _chunks(walked.size, MAX_BATCH):
            leading = {name: part.ld(name) or 0 for name in OPERANDS}
            group = found.setdefault((rows, count), LaunchGroup(part, leading, count, walked.steps))
            start = _row_steps(matrices).times(first_row).plus(walked.steps.times(first))
            group.offsets.extend(start.plus(offset) for offset in _offsets(repeated))
    return list(found.values())


def _merged(axes: list[Axis]) -> list[Axis]:
    """Neighbouring axes as one wherever for every operand the outer step is the whole inner axis."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if merged and merged[-1].steps == axis.steps.times(axis.size):
            merged[-1] = Axis(merged[-1].size * axis.size, axis.steps)
        else:
            merged.append(axis)
    return merged


def _row_steps(matrices: Matrices) -> Steps:
    """One row on: B has none."""
    return matrices.row._replace(b=0)


def _folded(matrices: Matrices, axis: Axis) -> Matrices | None:
    """The same with the axis as further rows; None where it can't be."""
    rows = _row_steps(matrices)
    if axis.steps.b != 0 or (matrices.m > 1 and axis.steps != rows.times(matrices.m)):
        return None
    row = (rows if matrices.m > 1 else axis.steps)._replace(b=matrices.row.b)
    folded = replace(matrices, m=matrices.m * axis.size, row=row)
    return folded if folded.is_usable and folded.m <= MAX_SIZE else None


def _is_walkable(matrices: Matrices, axis: Axis) -> bool:
    """Whether a launch's batch can be this axis: no input goes backwards, and results lie behind one another."""
    extent = (matrices.m - 1) * (matrices.ld("d") or 0) + matrices.n
    return min(axis.steps) >= 0 and axis.steps.d >= extent


def _chunks(size: int, most: int) -> Iterator[tuple[int, int]]:
    """Start and length of each part of at most `most`."""
    return ((start, min(most, size - start)) for start in range(0, size, most))


def _offsets(axes: list[Axis]) -> Iterator[Steps]:
    """What to add for every index of the axes."""
    for indices in itertools.product(*(range(axis.size) for axis in axes)):
        total = Steps(0, 0, 0, 0)
        for index, axis in zip(indices, axes, strict=True):
            total = total.plus(axis.steps.times(index))
        yield total
