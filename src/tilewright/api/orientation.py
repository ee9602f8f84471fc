"""The ways a product can be computed: candidate orientations and layouts, and what must be copied for each.

Every array that can't be used as it is stored is copied, and the orientation says why. Which one is taken is `plan`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.api.operands import Operand, Product, Shape
from tilewright.problem import LAYOUTS, leading_dimensions

NEITHER = "its strides {} leave neither rows nor columns contiguous"


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


@dataclass(frozen=True, slots=True)
class Placement:
    """An operand in an orientation: the caller's array, its strides, and why it is copied, if it is."""

    operand: Operand | None
    strides: Strides
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Orientation:
    """A product as it can be computed: sizes, the result's batch, and the operands by the kernel's names.

    `swapped`: the transposed product Bᵀ·Aᵀ is computed. `temporary` says why the result is computed apart, if it is.
    """

    product: Product
    m: int
    n: int
    k: int
    batch: Shape
    operands: Mapping[str, Placement]
    swapped: bool
    temporary: str | None
    layout: str = "NN"

    @property
    def copies(self) -> int:
        """How many arrays are copied."""
        copied = sum(placement.reason is not None for placement in self.operands.values())
        return copied + (self.temporary is not None)

    def shape_of(self, name: str) -> tuple[int, int]:
        """Rows and columns of one matrix."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(name, (self.m, self.n))

    def letter(self, name: str) -> str:
        """How the layout wants the operand stored; C and D are stored by rows."""
        return {"a": self.layout[0], "b": self.layout[1]}.get(name, "N")

    def stored(self, name: str) -> dict[str, int]:
        """How the operand is stored. See `leading_dimensions`."""
        strides = self.operands[name].strides
        return leading_dimensions(*self.shape_of(name), strides.row, strides.column)

    def packed(self, name: str, reason: str | None) -> Orientation:
        """The same with the operand without gaps, as the layout wants it."""
        old, by_columns = self.operands[name], self.letter(name) == "T"
        strides = _packed(old.strides, self.batch, *self.shape_of(name), by_columns=by_columns)
        return replace(self, operands={**self.operands, name: Placement(old.operand, strides, reason)})


def candidate_orientations(product: Product) -> list[Orientation]:
    """Every way to compute the product, that with the fewest copies first."""
    ways = [_oriented(product, swapped, temporary) for swapped, temporary in _ways_round(product)]
    candidates = [_with_copies(replace(way, layout=layout)) for way in ways for layout in LAYOUTS]
    return sorted(candidates, key=lambda candidate: candidate.copies)


def _oriented(product: Product, swapped: bool, temporary: str | None) -> Orientation:
    """The product one way round, without copies of inputs yet."""
    sizes = product.sizes
    k = sizes.k if product.reads_operands else 0
    ones = Strides((1,) * len(sizes.batch), 1, 1)
    out = None if temporary is not None else product.out
    d = _packed(ones, sizes.batch, sizes.m, sizes.n, by_columns=False) if out is None else _of_result(product, out)
    bias = 1 if product.bias is None or sizes.n == 1 else product.bias.strides[0]
    operands = {
        "a": Placement(product.a, _of_input(product.a, sizes.batch, row_first=True)),
        "b": Placement(product.b, _of_input(product.b, sizes.batch, row_first=False)),
        "c": Placement(product.c, d if product.c is None else _of_result(product, product.c)),
        "d": Placement(out, d),
        "bias": Placement(product.bias, Strides((), 0, bias)),
    }
    if not swapped:
        return Orientation(product, sizes.m, sizes.n, k, sizes.batch, operands, False, temporary)
    turned = {name: replace(placement, strides=placement.strides.swapped) for name, placement in operands.items()}
    turned["a"], turned["b"] = turned["b"], turned["a"]
    return Orientation(product, sizes.n, sizes.m, k, sizes.batch, turned, True, temporary)


def _of_input(operand: Operand, batch: Shape, *, row_first: bool) -> Strides:
    """Strides over the result's batch, 0 where the input is repeated; a vector is a row as A, a column as B."""
    shape, strides = operand.shape, operand.strides
    if len(shape) == 1:
        shape, strides = ((1, *shape), (0, *strides)) if row_first else ((*shape, 1), (*strides, 0))
    missing = len(batch) - (len(shape) - 2)
    own = (0 if size == 1 else stride for size, stride in zip(shape[:-2], strides[:-2], strict=True))
    return Strides((0,) * missing + tuple(own), strides[-2], strides[-1])


def _of_result(product: Product, operand: Operand) -> Strides:
    """Strides of C or out, with those of the axes that vectors drop put back as 0."""
    sizes, strides = product.sizes, operand.strides
    outer, inner = strides[: len(sizes.batch)], strides[len(sizes.batch) :]
    row = 0 if sizes.drops_row else inner[0]
    return Strides(outer, row, 0 if sizes.drops_column else inner[-1])


def _packed(like: Strides, batch: Shape, rows: int, columns: int, *, by_columns: bool) -> Strides:
    """Strides of a copy without gaps, in which what `like` repeats along the batch is there once."""
    steps, step = [], max(rows, 1) * max(columns, 1)
    for size, stride in zip(reversed(batch), reversed(like.batch), strict=True):
        steps.append(0 if stride == 0 else step)
        step *= 1 if stride == 0 else max(size, 1)
    outer = tuple(reversed(steps))
    return Strides(outer, 1, max(rows, 1)) if by_columns else Strides(outer, max(columns, 1), 1)


def _ways_round(product: Product) -> list[tuple[bool, str | None]]:
    """Whether the transposed product is computed, and why the result goes through a temporary, if it does."""
    if product.out is None:
        return [(False, None)]
    if temporary := product.out.unusable or product.packed or product.overlap:
        return [(False, temporary)]
    d = _of_result(product, product.out)
    stored = leading_dimensions(product.sizes.m, product.sizes.n, d.row, d.column)
    if "N" in stored:
        return [(False, None)]
    if not stored:
        return [(False, NEITHER.format(product.out.strides))]
    apart = (False, "it is stored by columns")
    return [apart] if product.bias is not None else [(True, None), apart]


def _with_copies(candidate: Orientation) -> Orientation:
    """The orientation with every input copied that can't be used as it is stored."""
    for name in "abc":
        if name != "c" and candidate.k == 0:
            candidate = candidate.packed(name, None)
        elif reason := _why_copied(candidate, name):
            candidate = candidate.packed(name, reason)
    bias = candidate.operands["bias"]
    if bias.operand is None:
        return candidate
    strided = f"its stride is {bias.strides.column}" if bias.strides.column != 1 else None
    reason = bias.operand.unusable or candidate.product.packed or strided
    return replace(candidate, operands={**candidate.operands, "bias": replace(bias, reason=reason)})


def _why_copied(candidate: Orientation, name: str) -> str | None:
    """Why the input must be copied; None where it need not be, or isn't there."""
    operand = candidate.operands[name].operand
    if operand is None:
        return None
    if reason := operand.unusable or candidate.product.packed:
        return reason
    stored = candidate.stored(name)
    if not stored:
        return NEITHER.format(operand.strides)
    if candidate.letter(name) in stored:
        return None
    if name == "c":
        return "the result is stored the other way round"
    return f"no rung supports it stored as {next(iter(stored))}"
