"""A tensor map as a value: the matrices and the box that the tensor memory accelerator copies.

The hardware's limits are rules here, in the small language, because CI has no driver to ask. Which map a rung takes is
`operand_map`'s and encoding for a device `run.tensor_map`'s; this module holds no address and calls nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.declare.rules import Rule, first_failure, problem_rule
from tilewright.errors import InvalidProblem

ELEMENT_BYTES = {"float32": 4, "tfloat32": 4, "float16": 2, "bfloat16": 2, "uint8": 1}
ALIGNMENT_BYTES = 16
"""What addresses and strides are multiples of."""

RULES: tuple[Rule, ...] = (
    problem_rule(
        "1 <= rows <= 4294967296 and 1 <= cols <= 4294967296 and 1 <= entries <= 4294967296",
        "a dimension has 1 to 2^32 elements; split the product",
    ),
    problem_rule("ld >= cols", "rows may not overlap; use a leading dimension of at least the width"),
    problem_rule("ld * element_bytes % 16 == 0", "the stride between rows is a multiple of 16 bytes; pad the rows"),
    problem_rule(
        "ld * element_bytes < 1099511627776", "the stride between rows is below 2^40 bytes; split the product"
    ),
    problem_rule(
        "entries == 1 or entry_stride * element_bytes % 16 == 0",
        "the stride between batch entries is a multiple of 16 bytes; pad the matrices",
    ),
    problem_rule(
        "entries == 1 or 0 < entry_stride * element_bytes < 1099511627776",
        "the stride between batch entries is above 0 and below 2^40 bytes; map a broadcast matrix as one entry",
    ),
    problem_rule(
        "1 <= box_rows <= 256 and 1 <= box_cols <= 256", "a box has 1 to 256 elements a dimension; use a smaller one"
    ),
    problem_rule("box_cols * element_bytes % 16 == 0", "a box's row is a multiple of 16 bytes; use a wider box"),
    problem_rule(
        "span_bytes == 0 or span_bytes == 32 or span_bytes == 64 or span_bytes == 128",
        "a swizzle spans 32, 64 or 128 bytes, and 0 stands for none; use one of these",
    ),
    problem_rule(
        "span_bytes == 0 or box_cols * element_bytes <= span_bytes",
        "a box's row fits the swizzle's span; use a narrower box",
    ),
    problem_rule(
        "box_rows * box_cols * element_bytes <= 232448", "a box fits a CTA's shared memory; use a smaller one"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """`entries` row-major matrices (rows, cols) with leading dimension `ld`, copied in boxes of one; sizes in elements.

    `entry_stride` lies between one matrix and the next, where there are several. `span_bytes` is the swizzle's span, 0
    where a box isn't swizzled. Elements of a box that lie outside the matrix arrive as zeros.

    Raises InvalidProblem naming value, rule and fix.
    """

    dtype: str
    rows: int
    cols: int
    ld: int
    box_rows: int
    box_cols: int
    entries: int = 1
    entry_stride: int = 0
    span_bytes: int = 0

    def __post_init__(self) -> None:
        if self.dtype not in ELEMENT_BYTES:
            raise InvalidProblem(f"tensor map: dtype={self.dtype!r}: must be one of {', '.join(ELEMENT_BYTES)}")
        failure = first_failure(RULES, self.names())
        if failure is not None:
            raise InvalidProblem(f"tensor map: {failure}")

    def names(self) -> dict[str, int]:
        """The integers that the rules name."""
        sizes = ("rows", "cols", "ld", "box_rows", "box_cols", "entries", "entry_stride", "span_bytes")
        return {**{name: int(getattr(self, name)) for name in sizes}, "element_bytes": self.element_bytes}

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return ELEMENT_BYTES[self.dtype]

    @property
    def row_stride_bytes(self) -> int:
        """Bytes from one row to the next."""
        return self.ld * self.element_bytes

    @property
    def entry_stride_bytes(self) -> int:
        """Bytes from one matrix to the next; the row's stride, which is within the limits, where there is only one."""
        return self.entry_stride * self.element_bytes if self.entries > 1 else self.row_stride_bytes

    @property
    def box_bytes(self) -> int:
        """Bytes one box takes in shared memory, and adds to a barrier's transaction count, out of bounds or not."""
        return self.box_rows * self.box_cols * self.element_bytes
