"""The epilogue as a value: an ordered list of operations on the finished accumulator.

Each operation maps one scaled accumulator `x = alpha * (A·B) + beta * C` at (row, col) to a new value,
in the accumulator's type, before the one final rounding to D. The list renders to one device functor,
so a kernel calls `Epilogue::apply` and knows nothing of what is in it. Pointers an operation reads are
fields of the kernel's argument struct. This module owns names, rendering and the NumPy meaning; it does
not own α, β or the store, which are the kernel's (`epilogue.cuh`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tilewright.errors import InvalidProblem

Float64Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EpilogueOp:
    """One operation: its name, its device statement over `x`, and whether it reads a bias of n elements."""

    name: str
    device: str
    needs_bias: bool = False

    def reference(self, x: Float64Array, bias: Float64Array | None) -> Float64Array:
        """Apply the operation in float64 to `x` (m, n); `bias` is (n,) where the operation needs one."""
        if self.name == "bias":
            assert bias is not None
            return x + bias
        return np.where(np.isnan(x), x, np.maximum(x, 0.0))


OPERATIONS = {
    op.name: op
    for op in (
        EpilogueOp("bias", "x = Scalar::add(x, Scalar::load(args.bias + col));", needs_bias=True),
        EpilogueOp("relu", "x = Scalar::relu(x);"),
    )
}


@dataclass(frozen=True, slots=True)
class Epilogue:
    """An ordered list of operation names, for instance `Epilogue(("bias", "relu"))`. Empty: none.

    Raises InvalidProblem for a name that is not an operation, or one given twice.
    """

    ops: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.ops:
            if name not in OPERATIONS:
                known = ", ".join(OPERATIONS)
                raise InvalidProblem(f"epilogue {name!r}: no such operation; there are {known}")
        if len(set(self.ops)) != len(self.ops):
            raise InvalidProblem(f"epilogue {self.ops}: an operation may stand once; drop the repeat")

    @property
    def needs_bias(self) -> bool:
        """Whether the launch must pass a bias pointer (n elements of the storage type)."""
        return any(OPERATIONS[name].needs_bias for name in self.ops)

    def render(self) -> str:
        """The device functor as CUDA C++ text. Expects `Scalar` and `GemmArgs` to be declared."""
        body = "\n".join(f"    {OPERATIONS[name].device}" for name in self.ops)
        return (
            "struct Epilogue {\n"
            "  static __device__ Scalar::accumulate apply(Scalar::accumulate x,\n"
            "      [[maybe_unused]] long long col, [[maybe_unused]] const GemmArgs& args) {\n"
            + (body + "\n" if body else "")
            + "    return x;\n  }\n};\n"
        )

    def reference(self, x: Float64Array, bias: Float64Array | None = None) -> Float64Array:
        """The same operations in float64 on `x` (…, m, n)."""
        for name in self.ops:
            x = OPERATIONS[name].reference(x, bias)
        return x
