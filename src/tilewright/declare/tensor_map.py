"""A tensor map as a value: the matrix and the box that the tensor memory accelerator copies.

The hardware's limits are rules here, in the small language, because CI has no driver to ask. Encoding for a device is
`run.tensor_map`'s; this module holds no address and calls nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.declare.rules import Rule, config_rule, first_failure
from tilewright.errors import InvalidConfig

Swizzle = Literal["none", "32B", "64B", "128B"]
SPAN_BYTES = {"none": 256 * 8, "32B": 32, "64B": 64, "128B": 128}
ELEMENT_BYTES = {"float32": 4, "tfloat32": 4, "float16": 2, "bfloat16": 2, "uint8": 1}

RULES: tuple[Rule, ...] = (
    config_rule("1 <= rows <= 4294967296 and 1 <= cols <= 4294967296", "a dimension has 1 to 2^32 elements"),
    config_rule("ld >= cols", "rows may not overlap"),
    config_rule("ld * element_bytes % 16 == 0", "the stride between rows is a multiple of 16 bytes"),
    config_rule("ld * element_bytes < 1099511627776", "the stride between rows is below 2^40 bytes"),
    config_rule("1 <= box_rows <= 256 and 1 <= box_cols <= 256", "a box has 1 to 256 elements a dimension"),
    config_rule("box_cols * element_bytes % 16 == 0", "a box's row is a multiple of 16 bytes"),
    config_rule("box_cols * element_bytes <= span_bytes", "a box's row fits the swizzle's span"),
    config_rule("box_rows * box_cols * element_bytes <= 232448", "a box fits a CTA's shared memory"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMap:
    """A row-major matrix (rows, cols) with leading dimension `ld`, copied in boxes; sizes in elements.

    Elements of a box that lie outside the matrix arrive as zeros. Raises InvalidConfig naming value, rule and reason.
    """

    dtype: str
    rows: int
    cols: int
    ld: int
    box_rows: int
    box_cols: int
    swizzle: Swizzle = "none"

    def __post_init__(self) -> None:
        if self.dtype not in ELEMENT_BYTES:
            raise InvalidConfig(f"tensor map: dtype={self.dtype!r}: must be one of {', '.join(ELEMENT_BYTES)}")
        if self.swizzle not in SPAN_BYTES:
            raise InvalidConfig(f"tensor map: swizzle={self.swizzle!r}: must be one of {', '.join(SPAN_BYTES)}")
        failure = first_failure(RULES, self.names())
        if failure is not None:
            raise InvalidConfig(f"tensor map: {failure}")

    def names(self) -> dict[str, int]:
        """The integers that the rules name."""
        sizes = {name: int(getattr(self, name)) for name in ("rows", "cols", "ld", "box_rows", "box_cols")}
        return {**sizes, "element_bytes": ELEMENT_BYTES[self.dtype], "span_bytes": SPAN_BYTES[self.swizzle]}

    @property
    def box_bytes(self) -> int:
        """Bytes one box takes in shared memory, and adds to a barrier's transaction count, out of bounds or not."""
        return self.box_rows * self.box_cols * ELEMENT_BYTES[self.dtype]
