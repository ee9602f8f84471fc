"""The epilogue as a value: an ordered list of operations on the finished accumulator.

Each operation maps one scaled accumulator `x = alpha * (A·B) + beta * C` at (row, col) to a new value,
in the accumulator's type, before the one final rounding to D. The list renders to one device functor,
so a kernel calls `Epilogue::apply` and knows nothing of what is in it. Pointers an operation reads are
fields of the kernel's argument struct. This module owns names, rendering and the NumPy meaning; it does
not own α, β or the store, which are the kernel's (`epilogue.cuh`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tilewright.errors import InvalidProblem

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Float64Array = npt.NDArray[np.float64]


class EpilogueOp(NamedTuple):
    """One operation: its name, its device statement over `x`, its meaning in float64, whether it reads a bias.

    `meaning` takes `x` (…, m, n) and the bias (n,), which is None where none is needed. `growth` is how many times the
    accepted error of `x` its own result's is, 1 where nothing is rounded beyond what a sum rounds.
    """

    name: str
    device: str
    meaning: Callable[[Float64Array, Float64Array | None], Float64Array]
    needs_bias: bool = False
    growth: float = 1.0


def _plus_bias(x: Float64Array, bias: Float64Array | None) -> Float64Array:
    assert bias is not None
    return x + bias


def _relu(x: Float64Array, _: Float64Array | None) -> Float64Array:
    import numpy as np

    return np.where(np.isnan(x), x, np.maximum(x, 0.0))


def _gelu(x: Float64Array, _: Float64Array | None) -> Float64Array:
    import numpy as np

    inner: Float64Array = np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1.0 + inner)


def _silu(x: Float64Array, _: Float64Array | None) -> Float64Array:
    import numpy as np

    return 0.5 * x * (1.0 + np.tanh(x / 2.0))


ROUNDED = 4.0
"""The growth of an activation with a slope of at most 1.13 and some six roundings; a sum is granted four already."""
OPERATIONS = {
    op.name: op
    for op in (
        EpilogueOp("bias", "x = Scalar::add(x, Scalar::load(args.bias + col));", _plus_bias, needs_bias=True),
        EpilogueOp("relu", "x = Scalar::relu(x);", _relu),
        EpilogueOp("gelu", "x = Scalar::gelu(x);", _gelu, growth=ROUNDED),
        EpilogueOp("silu", "x = Scalar::silu(x);", _silu, growth=ROUNDED),
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

    @property
    def growth(self) -> float:
        """How many times a product's accepted error the finished result's is; 1 where integers stay exact."""
        return math.prod(OPERATIONS[name].growth for name in self.ops)

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
            x = OPERATIONS[name].meaning(x, bias)
        return x
