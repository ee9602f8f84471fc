"""The problem: what is to be multiplied, apart from how.

D (m×n) = epilogue(alpha · op(A) · op(B) + beta · C), row-major, batch-strided. Owns sizes, leading
dimensions and their rules. It holds no data and knows no kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem

ITEMSIZE_BYTES = {"float32": 4, "tfloat32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of an element. 'tfloat32' is float32 in memory of which a product takes the 11 leading bits alone."""
MAX_SIZE = 2**31 - 1
FLOAT32_MAX = 3.4028234663852886e38
LAYOUTS = ("NN", "NT", "TN", "TT")


class ProblemKind(NamedTuple):
    """What a product is of, apart from its size: layout, element types of the operands and of the result."""

    layout: str = "NN"
    dtype: str = "float32"
    out_dtype: str = "float32"

    def __str__(self) -> str:
        """In words: 'NT bfloat16→float32', the result's type only where the operands' doesn't say it."""
        return f"{self.layout} {self.dtype}" + (
            f"→{self.out_dtype}" if self.out_dtype != storage_dtype(self.dtype) else ""
        )


def storage_dtype(dtype: str) -> str:
    """NumPy's name of what elements are in memory."""
    return "float32" if dtype == "tfloat32" else dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One (batched) product, with every stride resolved.

    Sizes are elements. `layout` names op(A) and op(B): N as stored, T transposed, so A is stored (m, k)
    under N and (k, m) under T, B is (k, n) or (n, k). `lda … ldd` are leading dimensions in elements,
    at least the stored row's width (the default). `batch_stride_*` are elements between matrices of the
    batch; 0 broadcasts an input. `alignment_bytes` is what every operand's base address is a multiple of; an element
    that is larger is aligned to its own size. k = 0 is legal and leaves beta · C; m, n and batch are at least 1, since
    an empty result has no launch.

    Raises InvalidProblem, naming the value, the rule and the fix.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    dtype: str = "float32"
    out_dtype: str = "float32"
    layout: str = "NN"
    lda: int = 0
    ldb: int = 0
    ldc: int = 0
    ldd: int = 0
    batch_stride_a: int = -1
    batch_stride_b: int = -1
    batch_stride_c: int = -1
    batch_stride_d: int = -1
    alpha: float = 1.0
    beta: float = 0.0
    epilogue: Epilogue = field(default_factory=Epilogue)
    alignment_bytes: int = 256

    def __post_init__(self) -> None:
        self._check_kinds()
        for name in "abcd":
            cols = self.stored_shape(name)[1]
            self._resolve(f"ld{name}", unset=0, default=max(cols, 1), least=max(cols, 1), why="the row's width")
            extent = self.extent(name)
            least = extent if name == "d" and self.batch > 1 else 0
            why = "the matrix's extent, or results would overlap" if least else "0, which broadcasts"
            self._resolve(f"batch_stride_{name}", unset=-1, default=extent, least=least, why=why)

    def _check_kinds(self) -> None:
        for name, least in (("m", 1), ("n", 1), ("k", 0), ("batch", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidProblem(f"{name}={value!r}: must be an int; got {type(value).__name__}")
            if not least <= value <= MAX_SIZE:
                raise InvalidProblem(
                    f"{name}={value}: must be between {least} and {MAX_SIZE}, the sizes a launch takes"
                )
        self._check_dtypes()
        if self.layout not in LAYOUTS:
            raise InvalidProblem(f"layout={self.layout!r}: must be one of {', '.join(LAYOUTS)} (op(A), op(B))")
        align = self.alignment_bytes
        if align < ITEMSIZE_BYTES[self.dtype] or align & (align - 1):
            raise InvalidProblem(f"alignment_bytes={align}: must be a power of two, at least the element's size")
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if math.isfinite(value) and abs(value) > FLOAT32_MAX:
                raise InvalidProblem(f"{name}={value}: overflows float32, in which it is applied; scale the operands")

    def _check_dtypes(self) -> None:
        for name in ("dtype", "out_dtype"):
            if getattr(self, name) not in ITEMSIZE_BYTES:
                raise InvalidProblem(
                    f"{name}={getattr(self, name)!r}: not supported; use one of {', '.join(ITEMSIZE_BYTES)}"
                )
        if "tfloat32" in (self.dtype, self.out_dtype) and self.out_dtype != "float32":
            raise InvalidProblem(
                f"dtype={self.dtype}, out_dtype={self.out_dtype}: tfloat32 is how operands are multiplied, and the "
                "result is float32; use out_dtype float32"
            )

    def _resolve(self, name: str, *, unset: int, default: int, least: int, why: str) -> None:
        value = getattr(self, name)
        if value == unset:
            object.__setattr__(self, name, default)
        elif value < least:
            raise InvalidProblem(f"{name}={value}: must be at least {least}, {why}; use {default}")

    @property
    def kind(self) -> ProblemKind:
        """Its layout and element types."""
        return ProblemKind(self.layout, self.dtype, self.out_dtype)

    def storage_dtype(self, operand: str) -> str:
        """NumPy's name of the type that operand 'a', 'b', 'c' or 'd' has in memory."""
        return storage_dtype(self.dtype if operand in "ab" else self.out_dtype)

    def stored_shape(self, operand: str) -> tuple[int, int]:
        """(rows, columns) of one matrix of operand 'a', 'b', 'c' or 'd' as it lies in memory."""
        logical = {"a": (self.m, self.k), "b": (self.k, self.n)}.get(operand, (self.m, self.n))
        transposed = operand in "ab" and self.layout["ab".index(operand)] == "T"
        return (logical[1], logical[0]) if transposed else logical

    def extent(self, operand: str) -> int:
        """Elements from the first to the last of one matrix of the operand: (rows - 1) · ld + columns."""
        rows, cols = self.stored_shape(operand)
        return (rows - 1) * int(getattr(self, f"ld{operand}")) + cols if rows and cols else 0

    def total_extent(self, operand: str) -> int:
        """Elements from the first to the last of the whole batch of the operand."""
        stride = int(getattr(self, f"batch_stride_{operand}"))
        return (self.batch - 1) * stride + self.extent(operand)

    @property
    def flops(self) -> int:
        """2·m·n·k·batch: one multiply and one add for each term."""
        return 2 * self.m * self.n * self.k * self.batch

    @property
    def reads_c(self) -> bool:
        """Whether C takes part. By the BLAS rule it is never read when beta is zero."""
        return self.beta != 0.0

    @property
    def operand_bytes(self) -> int:
        """Bytes of A, B, D and, where it takes part, C."""
        inputs = sum(self.total_extent(x) for x in "ab") * ITEMSIZE_BYTES[self.dtype]
        outputs = sum(self.total_extent(x) for x in ("cd" if self.reads_c else "d"))
        return inputs + outputs * ITEMSIZE_BYTES[self.out_dtype]

    def names(self) -> dict[str, int]:
        """The integers that problem rules and launch geometry may name."""
        sizes = {name: int(getattr(self, name)) for name in ("m", "n", "k", "batch", "lda", "ldb", "ldc", "ldd")}
        strides = {f"batch_stride_{x}": int(getattr(self, f"batch_stride_{x}")) for x in "abcd"}
        kinds = {
            "element_bytes": ITEMSIZE_BYTES[self.dtype],
            "out_bytes": ITEMSIZE_BYTES[self.out_dtype],
            "transposed_a": int(self.layout[0] == "T"),
            "transposed_b": int(self.layout[1] == "T"),
            "reads_c": int(self.reads_c),
        }
        return {**sizes, **strides, **kinds, "alignment_bytes": self.alignment_bytes}

    def __str__(self) -> str:
        batch = f" batch {self.batch}" if self.batch > 1 else ""
        return f"{self.m}×{self.n}×{self.k} {self.kind}{batch}"


SINGLE_ROW_UNIT = 8
"""The leading dimension of a single row is free, and a multiple of this so that it spoils no alignment."""


def leading_dimensions(rows: int, columns: int, row: int, column: int) -> dict[str, int]:
    """How a matrix with these strides, in elements, is stored: leading dimensions by letter, 'N' first.

    The one place where strides become a layout letter. Two letters where one axis has length 1, of which the stride
    does not matter then. None where neither rows nor columns are contiguous and apart.
    """
    stored = {}
    if (columns <= 1 or column == 1) and (rows <= 1 or row >= max(columns, 1)):
        stored["N"] = row if rows > 1 else _single(columns)
    if (rows <= 1 or row == 1) and (columns <= 1 or column >= max(rows, 1)):
        stored["T"] = column if columns > 1 else _single(rows)
    return stored


def _single(width: int) -> int:
    return max(-(-width // SINGLE_ROW_UNIT), 1) * SINGLE_ROW_UNIT
