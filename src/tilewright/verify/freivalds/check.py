"""Is a product right in every element, at any size, in the time of reading it once? Freivalds' check on the device.

With x a vector of weights, D·x is compared with A·(B·x), row by row. Operands are integers, so small that every sum is
exact in float32 and in D's type, and the weighing is exact modulo 2^64; a row with a wrong element passes with a
probability below 2^-38. D is NaN before the launch, and so are GUARD elements on either side of it, which must stay so.
Owns the data and the conclusion. No library's product is taken for right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.run.protocol import Backend, Memory
from tilewright.verify.freivalds.kernels import MARKER, Filling, Kernels, Matrix

GUARD = 1024
"""Elements on either side of D, a multiple of every alignment."""
LARGEST_SUM = {"float32": 2**24, "bfloat16": 2**8, "float16": 2**11}
"""Up to which integers are all exact, by the result's type."""
MOST_MAGNITUDE, EDGE, DEVIATIONS = 4, 8, 8
SEED = 20260101

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a product's operands lie: addresses of A, B and D, with GUARD elements of nobody's before and after D."""

    a: int
    b: int
    d: int


def integers(problem: Problem) -> Filling:
    """Integers for A whose sums are exact; B has the same without zeros. Raises InvalidProblem where there are none.

    In float32 no sum of any order can be too large. A narrower result takes signs at random, of so many that their sum
    is 8 deviations from too large.
    """
    _require_plain(problem)
    largest = LARGEST_SUM[problem.out_dtype]
    magnitude = min(MOST_MAGNITUDE, math.isqrt(LARGEST_SUM["float32"] // max(problem.k, 1)))
    if magnitude < 1:
        raise InvalidProblem(
            f"{problem}: sums of ±1 exceed {LARGEST_SUM['float32']} and are not exact; use a smaller k"
        )
    if problem.out_dtype == "float32":
        return Filling(low=1, high=magnitude, whole=True)
    terms = (largest // DEVIATIONS) ** 2
    return Filling(low=1, high=1, whole=True, kept=min(1.0, (terms - 2 * EDGE) / max(problem.k, 1)), edge=EDGE)


class FreivaldsCheck:
    """Checks launches on one backend; its own memory is kept for the next ones."""

    def __init__(self, backend: Backend, kernels: Kernels) -> None:
        self._backend, self._kernels = backend, kernels
        self._vectors: dict[str, Memory] = {}

    def prepare(self, problem: Problem, placed: Placed) -> None:
        """Write the integers to A and B. Raises InvalidProblem as `integers` does."""
        filling = integers(problem)
        self._kernels.fill(_operand(problem, "a", placed.a), filling, SEED)
        self._kernels.fill(_operand(problem, "b", placed.b), replace(filling, kept=1.0), SEED + 1)

    def complaint(self, problem: Problem, placed: Placed, launch: Callable[[], None]) -> str:
        """What is wrong with what `launch` makes of prepared operands, in words; empty where nothing is."""
        d = Matrix(dtype=problem.out_dtype, address=placed.d, rows=problem.m, cols=problem.n, row_step=problem.ldd)
        self._kernels.fill(_with_guards(problem, placed.d), Filling(low=math.nan, high=math.nan), SEED)
        expected = self._expected(problem, placed)
        launch()
        self._backend.synchronize()
        got = self._weighed("d", d)
        if not np.array_equal(self._expected(problem, placed), expected):
            return "A or B was modified"
        if broken := self._broken_guards(problem, placed.d):
            return f"wrote outside D: {broken}"
        wrong = np.flatnonzero(got != expected)
        if len(wrong):
            return f"{len(wrong)} of {problem.m} rows are not those of A·B, the first is row {wrong[0]}"
        return ""

    def _expected(self, problem: Problem, placed: Placed) -> Words:
        b = _operand(problem, "b", placed.b)
        self._weighed("b", b)
        return self._weighed("a", _operand(problem, "a", placed.a), weights=self._vectors["b"].address)

    def _weighed(self, name: str, matrix: Matrix, weights: int = 0) -> Words:
        """Each row's weighed sum, which also stays in the device's vector of that name."""
        need_bytes = 8 * matrix.rows
        if name not in self._vectors or self._vectors[name].nbytes < need_bytes:
            self._vectors[name] = self._backend.alloc(need_bytes, label=f"sums of {name.upper()}")
        self._kernels.weigh(matrix, self._vectors[name].address, seed=SEED, weights=weights)
        return self._backend.download(self._vectors[name])[:need_bytes].view(np.uint64)

    def _broken_guards(self, problem: Problem, address: int) -> str:
        """On which sides of D a guard is no longer NaN, in words."""
        whole = _with_guards(problem, address)
        element_bytes = (address - whole.address) // GUARD
        with np.errstate(over="ignore"):
            intact = np.uint64(MARKER) * (hashes(GUARD, SEED) | np.uint64(1)).sum(dtype=np.uint64)
        starts = {"before": whole.address, "after": whole.address + element_bytes * (whole.cols - GUARD)}
        guards = {
            side: Matrix(dtype=whole.dtype, address=start, rows=1, cols=GUARD, row_step=GUARD)
            for side, start in starts.items()
        }
        return " and ".join(side for side, guard in guards.items() if self._weighed("guard", guard)[0] != intact)


def hashes(count: int, seed: int) -> Words:
    """The hash of the first `count` indices, as `hash_of` of args.cuh computes it."""
    with np.errstate(over="ignore"):
        x = (np.arange(count, dtype=np.uint64) + np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        return x ^ (x >> np.uint64(32))


def _require_plain(problem: Problem) -> None:
    plain = problem.alpha == 1.0 and not problem.reads_c and not problem.epilogue.ops and problem.batch == 1
    if not plain or problem.ldd != problem.n:
        raise InvalidProblem(f"{problem}: the check at full size takes A·B alone, without gaps between D's rows")


def _operand(problem: Problem, name: str, address: int) -> Matrix:
    """Operand 'a' or 'b' as it is multiplied."""
    rows, cols = {"a": (problem.m, problem.k), "b": (problem.k, problem.n)}[name]
    step, transposed = getattr(problem, f"ld{name}"), problem.layout["ab".index(name)] == "T"
    steps = (1, step) if transposed else (step, 1)
    return Matrix(dtype=problem.dtype, address=address, rows=rows, cols=cols, row_step=steps[0], col_step=steps[1])


def _with_guards(problem: Problem, address: int) -> Matrix:
    """D and what lies around it, as one row."""
    count = problem.m * problem.n + 2 * GUARD
    before = address - GUARD * ITEMSIZE_BYTES[problem.out_dtype]
    return Matrix(dtype=problem.out_dtype, address=before, rows=1, cols=count, row_step=count)
