"""From what is asked to a plan: the way with the fewest copies that some rung takes, its launches and their configs.

It touches no array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tilewright.api.asked import Asked
from tilewright.api.drafts import Draft, drafts_of
from tilewright.api.pieces import Piece, Steps, pieces
from tilewright.api.plan import Copy, Part, Plan
from tilewright.api.view import alignment_of
from tilewright.arch import ArchSpec
from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.select import choose


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

    @property
    def card(self) -> str | None:
        """Its name where that is listed."""
        ...


def make_plan(asked: Asked, target: Target) -> Plan:
    """The plan for `asked` on `target`. Raises InvalidProblem, with the rungs' reasons, where none takes it."""
    sizes = asked.sizes
    if sizes.is_empty:
        return Plan(sizes.result_shape, asked.out_dtype)
    refusals = []
    for draft in drafts_of(asked):
        try:
            parts = tuple(_part(draft, piece, target) for piece in _pieces(draft))
        except InvalidProblem as error:
            refusals.append(error)
            continue
        return Plan(sizes.result_shape, asked.out_dtype, parts, tuple(_copies(draft)), draft.swapped, draft.temporary)
    raise refusals[0]


def _pieces(draft: Draft) -> list[Piece]:
    strides = {name: draft.operands[name].strides for name in "abcd"}
    return pieces((draft.m, draft.n, draft.k), draft.layout, draft.batch, strides)


def _part(draft: Draft, piece: Piece, target: Target) -> Part:
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
    choice = choose(problem, target.arch, target.sm_count, kernels=asked.kernels, card=target.card)
    return Part(problem, choice, tuple(piece.offsets))


def _alignment(draft: Draft, offsets: list[Steps]) -> int:
    """What every address of the launches is a multiple of.

    By the alignment that all arrays of the call have, used or not: with that alone known, the plan is right again.
    Where one isn't even aligned to its elements, by the addresses that are used.
    """
    asked, addresses = draft.asked, [draft.asked.alignment_bytes]
    if not asked.is_aligned:
        used = [draft.operands[name] for name in (*("ab" if draft.k else ""), "c", "d", "bias")]
        addresses = [operand.view.address for operand in used if operand.view is not None and not operand.reason]
    sizes = Steps(*(ITEMSIZE_BYTES[asked.dtype],) * 2, *(ITEMSIZE_BYTES[asked.out_dtype],) * 2)
    moved = [abs(step) * size for offset in offsets for step, size in zip(offset, sizes, strict=True)]
    return alignment_of(*addresses, *moved)


def _copies(draft: Draft) -> Iterator[Copy]:
    sizes = draft.asked.sizes
    for name, operand in draft.operands.items():
        view = operand.view
        if view is None or not operand.reason:
            continue
        axes = len(sizes.batch) if name == "c" else max(len(view.shape) - 2, 0)
        by_columns = len(view.shape) == axes + 2 and (draft.letter(name) == "T") != draft.swapped
        repeated = tuple(i for i in range(axes) if view.shape[i] > 1 and view.strides[i] == 0)
        yield Copy(view.name, operand.reason, by_columns, repeated)
