"""The tensor maps that a rung's kernel takes: of which operand, in which boxes, and when.

Owns the way from a declaration and a problem to `TensorMap` values. It holds no address.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from tilewright.declare.expr import Expr, Names
from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem

if TYPE_CHECKING:
    from tilewright.declare.tensor_map import TensorMap

OPERANDS = ("a", "b", "d")


class OperandMap(NamedTuple):
    """The map of operand 'a', 'b' or 'd' as it is stored; a batch is its third dimension.

    Boxes are in elements, `span_bytes` is the swizzle's span or 0. Expressions may name the problem's sizes and every
    constant. Where `when` is 0 the kernel gets 128 zero bytes and may not use the map.
    """

    operand: str
    box_rows: Expr
    box_cols: Expr
    span_bytes: Expr
    when: Expr

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Every expression of the declaration."""
        return self.box_rows, self.box_cols, self.span_bytes, self.when

    def applied(self, problem: Problem, names: Names) -> TensorMap:
        """The map of a launch for `problem`; one element where the operand is empty, as nothing is loaded then.

        Raises InvalidProblem.
        """
        from tilewright.declare.tensor_map import ALIGNMENT_BYTES, TensorMap

        rows, cols = problem.stored_shape(self.operand)
        dtype = problem.out_dtype if self.operand == "d" else problem.dtype
        if problem.alignment_bytes % ALIGNMENT_BYTES:
            raise InvalidProblem(
                f"tensor map: alignment_bytes={problem.alignment_bytes}: an address must be a multiple of "
                f"{ALIGNMENT_BYTES} bytes; align the operands"
            )
        is_empty = rows * cols == 0
        entry_stride = int(getattr(problem, f"batch_stride_{self.operand}"))
        return TensorMap(
            dtype=dtype,
            rows=1 if is_empty else rows,
            cols=1 if is_empty else cols,
            ld=ALIGNMENT_BYTES // ITEMSIZE_BYTES[dtype] if is_empty else int(getattr(problem, f"ld{self.operand}")),
            entries=1 if is_empty or entry_stride == 0 else problem.batch,
            entry_stride=entry_stride,
            box_rows=self.box_rows.evaluate(names),
            box_cols=self.box_cols.evaluate(names),
            span_bytes=self.span_bytes.evaluate(names),
        )


def operand_map(operand: str, *, box_rows: str, box_cols: str, span_bytes: str = "0", when: str = "1") -> OperandMap:
    """`OperandMap` from text."""
    return OperandMap(operand, Expr(box_rows), Expr(box_cols), Expr(span_bytes), Expr(when))


def tensor_maps(maps: Iterable[OperandMap], problem: Problem, names: Names) -> dict[str, TensorMap]:
    """The maps of a launch for `problem` by operand, those that it has.

    Raises InvalidProblem, naming the operand, for what the hardware cannot map.
    """
    made = {}
    for item in maps:
        if not item.when.evaluate(names):
            continue
        try:
            made[item.operand] = item.applied(problem, names)
        except InvalidProblem as error:
            raise InvalidProblem(f"operand {item.operand.upper()}: {error}") from None
    return made
