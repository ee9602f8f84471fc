"""A product the ways it can be computed: which way round, in which layout, and what must be copied for it.

Every array that can't be used as it lies is copied, and the draft says why. Which draft is taken is `planning`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.api.asked import Asked
from tilewright.api.layout import Strides, broadcast_strides, packed, ways_stored
from tilewright.api.shapes import Shape
from tilewright.api.view import View
from tilewright.problem import LAYOUTS

NEITHER = "its strides {} leave neither rows nor columns contiguous"


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand the way round it is computed: the caller's view, its strides, and why it is copied, if it is."""

    view: View | None
    strides: Strides
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A product the way round it is computed. `batch` is the result's; operands are by the kernel's names."""

    asked: Asked
    m: int
    n: int
    k: int
    batch: Shape
    operands: Mapping[str, Operand]
    swapped: bool
    temporary: str
    layout: str = "NN"

    @property
    def copies(self) -> int:
        """How many arrays are copied."""
        return sum(bool(operand.reason) for operand in self.operands.values()) + bool(self.temporary)

    def shape_of(self, operand: str) -> tuple[int, int]:
        """Rows and columns of one matrix."""
        return {"a": (self.m, self.k), "b": (self.k, self.n)}.get(operand, (self.m, self.n))

    def letter(self, operand: str) -> str:
        """How the layout wants the operand stored; C and D are stored by rows."""
        return {"a": self.layout[0], "b": self.layout[1]}.get(operand, "N")

    def ways(self, operand: str) -> dict[str, int]:
        """How the operand is stored. See `ways_stored`."""
        strides = self.operands[operand].strides
        return ways_stored(*self.shape_of(operand), strides.row, strides.column)

    def packed(self, operand: str, reason: str) -> Draft:
        """The same with the operand without gaps, as the layout wants it."""
        old, by_columns = self.operands[operand], self.letter(operand) == "T"
        strides = packed(old.strides, self.batch, *self.shape_of(operand), by_columns=by_columns)
        return replace(self, operands={**self.operands, operand: Operand(old.view, strides, reason)})


def drafts_of(asked: Asked) -> list[Draft]:
    """The product every way it can be computed, that with the fewest copies first."""
    k = asked.sizes.k if asked.reads_operands else 0
    ways = [_draft(asked, k, swapped, temporary) for swapped, temporary in _ways_round(asked)]
    drafts = [_with_copies(replace(draft, layout=layout)) for draft in ways for layout in LAYOUTS]
    return sorted(drafts, key=lambda draft: draft.copies)


def _draft(asked: Asked, k: int, swapped: bool, temporary: str) -> Draft:
    """The product one way round, without copies of inputs yet."""
    sizes = asked.sizes
    plain = packed(Strides((1,) * len(sizes.batch), 1, 1), sizes.batch, sizes.m, sizes.n, by_columns=False)
    out = None if temporary else asked.out
    d = plain if out is None else _result_strides(asked, out)
    bias = 1 if asked.bias is None or sizes.n == 1 else asked.bias.strides[0]
    operands = {
        "a": Operand(asked.a, broadcast_strides(*_matrix(asked.a, row_first=True), sizes.batch)),
        "b": Operand(asked.b, broadcast_strides(*_matrix(asked.b, row_first=False), sizes.batch)),
        "c": Operand(asked.c, d if asked.c is None else _result_strides(asked, asked.c)),
        "d": Operand(out, d),
        "bias": Operand(asked.bias, Strides((), 0, bias)),
    }
    if not swapped:
        return Draft(asked, sizes.m, sizes.n, k, sizes.batch, operands, False, temporary)
    turned = {name: replace(operand, strides=operand.strides.swapped) for name, operand in operands.items()}
    turned["a"], turned["b"] = turned["b"], turned["a"]
    return Draft(asked, sizes.n, sizes.m, k, sizes.batch, turned, True, temporary)


def _matrix(view: View, *, row_first: bool) -> tuple[Shape, Shape]:
    """Shape and strides with a vector's missing axis: a row as A, a column as B."""
    if len(view.shape) > 1:
        return view.shape, view.strides
    return ((1, *view.shape), (0, *view.strides)) if row_first else ((*view.shape, 1), (*view.strides, 0))


def _result_strides(asked: Asked, view: View) -> Strides:
    full = asked.sizes.with_matrix_axes(view.strides)
    return Strides(full[:-2], full[-2], full[-1])


def _ways_round(asked: Asked) -> list[tuple[bool, str]]:
    """Whether the transposed product is computed, and why the result goes through a temporary, if it does."""
    if asked.out is None:
        return [(False, "")]
    if temporary := asked.out.unusable or asked.packed or overlap(asked):
        return [(False, temporary)]
    d = _result_strides(asked, asked.out)
    ways = ways_stored(asked.sizes.m, asked.sizes.n, d.row, d.column)
    if "N" in ways:
        return [(False, "")]
    if not ways:
        return [(False, NEITHER.format(asked.out.strides))]
    apart = (False, "it is stored by columns")
    return [apart] if asked.bias is not None else [(True, ""), apart]


def overlap(asked: Asked) -> str:
    """Which input shares a stretch of memory with out, in words; empty where none does, or C is out itself."""
    out = asked.out
    if out is None:
        return ""
    inputs = [asked.bias, *([asked.a, asked.b] if asked.reads_operands else [])]
    if asked.c is not None and not asked.c.is_same_memory(out):
        inputs.append(asked.c)
    return next((f"it overlaps {view.name}" for view in inputs if view is not None and view.touches(out)), "")


def _with_copies(draft: Draft) -> Draft:
    """The draft with every input copied that can't be used as it lies."""
    for name in "abc":
        if name != "c" and draft.k == 0:
            draft = draft.packed(name, "")
        elif reason := _unusable(draft, name):
            draft = draft.packed(name, reason)
    bias = draft.operands["bias"]
    if bias.view is None:
        return draft
    strided = f"its stride is {bias.strides.column}" if bias.strides.column != 1 else ""
    reason = bias.view.unusable or draft.asked.packed or strided
    return replace(draft, operands={**draft.operands, "bias": replace(bias, reason=reason)})


def _unusable(draft: Draft, name: str) -> str:
    """Why the input must be copied, in words; empty where it need not be, or isn't there."""
    view = draft.operands[name].view
    if view is None:
        return ""
    if reason := view.unusable or draft.asked.packed:
        return reason
    ways = draft.ways(name)
    if not ways:
        return NEITHER.format(view.strides)
    if draft.letter(name) in ways:
        return ""
    return (
        "the result is stored the other way round" if name == "c" else f"no rung takes it stored as {next(iter(ways))}"
    )
