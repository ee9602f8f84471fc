"""From what is asked to a plan: which way round, what is copied, which launches, by which configs.

Every array that cannot be used as it lies is copied, and the plan says why. It touches no array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from tilewright.api.asked import Asked
from tilewright.api.layout import Strides, broadcast_strides, packed, ways_stored
from tilewright.api.pieces import Piece, Steps, pieces
from tilewright.api.plan import Copy, Part, Plan
from tilewright.api.shapes import Shape
from tilewright.api.view import View, alignment_of
from tilewright.arch import ArchSpec
from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, LAYOUTS, Problem
from tilewright.select import choose

NEITHER = "its strides {} leave neither rows nor columns contiguous"


class Target(Protocol):
    """What the plan must know of the device."""

    @property
    def arch(self) -> ArchSpec:
        """Its architecture."""
        ...

    @property
    def sm_count(self) -> int:
        """Its streaming multiprocessors."""
        ...


@dataclass(frozen=True, slots=True)
class _Operand:
    """An operand the way round it is computed: the caller's view, its strides, and why it is copied, if it is."""

    view: View | None
    strides: Strides
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Draft:
    """A product the way round it is computed. `batch` is the result's; operands are by the kernel's names."""

    asked: Asked
    m: int
    n: int
    k: int
    batch: Shape
    operands: Mapping[str, _Operand]
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

    def packed(self, operand: str, reason: str) -> _Draft:
        """The same with the operand without gaps, as the layout wants it."""
        old, by_columns = self.operands[operand], self.letter(operand) == "T"
        strides = packed(old.strides, self.batch, *self.shape_of(operand), by_columns=by_columns)
        return replace(self, operands={**self.operands, operand: _Operand(old.view, strides, reason)})


def make_plan(asked: Asked, target: Target) -> Plan:
    """The plan for `asked` on `target`. Raises InvalidProblem, with the rungs' reasons, where none takes it."""
    sizes = asked.sizes
    if sizes.is_empty:
        return Plan(sizes.result_shape, asked.out_dtype)
    refusals = []
    for draft in _drafts(asked):
        try:
            parts = tuple(_part(draft, piece, target) for piece in _pieces(draft))
        except InvalidProblem as error:
            refusals.append(error)
            continue
        return Plan(sizes.result_shape, asked.out_dtype, parts, tuple(_copies(draft)), draft.swapped, draft.temporary)
    raise refusals[0]


def _drafts(asked: Asked) -> list[_Draft]:
    """The product every way it can be computed, that with the fewest copies first."""
    k = asked.sizes.k if asked.reads_operands else 0
    ways = [_draft(asked, k, swapped, temporary) for swapped, temporary in _ways_round(asked)]
    drafts = [_with_copies(replace(draft, layout=layout)) for draft in ways for layout in LAYOUTS]
    return sorted(drafts, key=lambda draft: draft.copies)


def _draft(asked: Asked, k: int, swapped: bool, temporary: str) -> _Draft:
    """The product one way round, without copies of inputs yet."""
    sizes = asked.sizes
    plain = packed(Strides((1,) * len(sizes.batch), 1, 1), sizes.batch, sizes.m, sizes.n, by_columns=False)
    out = None if temporary else asked.out
    d = plain if out is None else _result_strides(asked, out)
    bias = 1 if asked.bias is None or sizes.n == 1 else asked.bias.strides[0]
    operands = {
        "a": _Operand(asked.a, broadcast_strides(*_matrix(asked.a, row_first=True), sizes.batch)),
        "b": _Operand(asked.b, broadcast_strides(*_matrix(asked.b, row_first=False), sizes.batch)),
        "c": _Operand(asked.c, d if asked.c is None else _result_strides(asked, asked.c)),
        "d": _Operand(out, d),
        "bias": _Operand(asked.bias, Strides((), 0, bias)),
    }
    if not swapped:
        return _Draft(asked, sizes.m, sizes.n, k, sizes.batch, operands, False, temporary)
    turned = {name: replace(operand, strides=operand.strides.swapped) for name, operand in operands.items()}
    turned["a"], turned["b"] = turned["b"], turned["a"]
    return _Draft(asked, sizes.n, sizes.m, k, sizes.batch, turned, True, temporary)


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


def _with_copies(draft: _Draft) -> _Draft:
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


def _unusable(draft: _Draft, name: str) -> str:
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


def _pieces(draft: _Draft) -> list[Piece]:
    strides = {name: draft.operands[name].strides for name in "abcd"}
    return pieces((draft.m, draft.n, draft.k), draft.layout, draft.batch, strides)


def _part(draft: _Draft, piece: Piece, target: Target) -> Part:
    asked, matrices, batched = draft.asked, piece.matrices, piece.batch > 1
    problem = Problem(
        m=matrices.m,
        n=matrices.n,
        k=matrices.k,
        batch=piece.batch,
        dtype=asked.dtype,
        out_dtype=asked.out_dtype,
        layout=matrices.layout,
        **{f"ld{name}": matrices.ld(name) or 0 for name in "abcd"},
        **({f"batch_stride_{name}": getattr(piece.batch_steps, name) for name in "abcd"} if batched else {}),
        alpha=asked.alpha,
        beta=asked.beta,
        epilogue=asked.epilogue,
        alignment_bytes=_alignment(draft, piece.offsets),
    )
    return Part(problem, choose(problem, target.arch, target.sm_count), tuple(piece.offsets))


def _alignment(draft: _Draft, offsets: list[Steps]) -> int:
    """What every address of the launches is a multiple of, those of copies and new results being aligned."""
    used = [] if draft.k == 0 else ["a", "b"]
    in_place = [draft.operands[name] for name in (*used, "c", "d", "bias")]
    addresses = [operand.view.address for operand in in_place if operand.view is not None and not operand.reason]
    sizes = Steps(*(ITEMSIZE_BYTES[draft.asked.dtype],) * 2, *(ITEMSIZE_BYTES[draft.asked.out_dtype],) * 2)
    moved = [abs(step) * size for offset in offsets for step, size in zip(offset, sizes, strict=True)]
    return alignment_of(*addresses, *moved)


def _copies(draft: _Draft) -> Iterator[Copy]:
    sizes = draft.asked.sizes
    for name, operand in draft.operands.items():
        view = operand.view
        if view is None or not operand.reason:
            continue
        axes = len(sizes.batch) if name == "c" else max(len(view.shape) - 2, 0)
        by_columns = len(view.shape) == axes + 2 and (draft.letter(name) == "T") != draft.swapped
        repeated = tuple(i for i in range(axes) if view.shape[i] > 1 and view.strides[i] == 0)
        yield Copy(view.name, operand.reason, by_columns, repeated)
