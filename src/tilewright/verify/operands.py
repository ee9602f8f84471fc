"""Host arrays for a problem: data, padding, guard bands and poison.

Every buffer is flat: a front guard, the operand laid out with the problem's leading dimension and batch
stride, a back guard. Guards and row padding hold a canary that nothing may change or use. Owns layout and
data generation; it does not run or judge anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from tilewright.errors import InvalidProblem, UnknownName
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.verify.accept import MODE_OF, Array, BoolArray, Mode, get_mode, largest_finite

GUARD = 64
CANARY = -1.0e10
NAN_POISON = float(np.uint32(0x7FC0DEAD).view(np.float32))
FINITE_POISON = -3.0e38
SCALE_LIMIT, SCALE_STEP = 16.0, 1 / 16

Shape = tuple[int, ...]
Fill = Callable[[Problem, Mode, str, Shape, np.random.Generator], Array]


def front_guard(problem: Problem) -> int:
    """Elements before the data. From an aligned base, the data's address has the problem's alignment and no more."""
    elements = problem.alignment_bytes // ITEMSIZE_BYTES[problem.dtype]
    return GUARD + (elements if elements < GUARD else 0)


def stored_view(problem: Problem, operand: str, flat: Array) -> Array:
    """Operand 'a', 'b', 'c' or 'd' in its flat buffer as (batch, rows, columns) as stored; shares memory."""
    strides = (getattr(problem, f"batch_stride_{operand}"), getattr(problem, f"ld{operand}"), 1)
    return as_strided(
        flat[front_guard(problem) :],
        shape=(problem.batch, *problem.stored_shape(operand)),
        strides=tuple(stride * flat.itemsize for stride in strides),
    )


def logical_view(problem: Problem, operand: str, flat: Array) -> Array:
    """op(A) as (batch, m, k), op(B) as (batch, k, n), C and D as (batch, m, n); shares memory."""
    view = stored_view(problem, operand, flat)
    transposed = operand in "ab" and problem.layout["ab".index(operand)] == "T"
    return view.swapaxes(1, 2) if transposed else view


def data_mask(problem: Problem, operand: str) -> BoolArray:
    """Which elements of the operand's flat buffer are data; the others are padding and guards."""
    mask = np.zeros(flat_size(problem, operand), dtype=np.bool_)
    stored_view(problem, operand, mask)[...] = True
    return mask


def flat_size(problem: Problem, operand: str) -> int:
    """Elements of the operand's buffer, guards and padding included."""
    return front_guard(problem) + problem.total_extent(operand) + GUARD


@dataclass(frozen=True, slots=True)
class Operands:
    """A problem's buffers before a launch. `c is d` where the launch is to be in place.

    `data` says in words what the matrices hold; `poison` is what D's data hold, in D's type.
    """

    problem: Problem
    data: str
    a: Array
    b: Array
    c: Array
    d: Array
    bias: Array | None
    poison: Array

    def logical(self, operand: str) -> Array:
        """The writable logical matrix of 'a', 'b', 'c' or 'd': op(A) (batch, m, k) and so on."""
        return logical_view(self.problem, operand, getattr(self, operand))

    @property
    def in_place(self) -> bool:
        """Whether D is C's own memory."""
        return self.c is self.d


@dataclass(frozen=True, slots=True)
class Result:
    """The same flat buffers after a launch, guards and padding included."""

    a: Array
    b: Array
    c: Array
    d: Array


Run = Callable[[Problem, Operands], Result]


def make_operands(
    problem: Problem,
    data: str,
    *,
    seed: int = 0,
    padding: float = CANARY,
    poison: float = NAN_POISON,
    mode: str | None = None,
    in_place: bool = False,
) -> Operands:
    """Operands holding `data`, one of the names in DATA, the same for the same seed.

    `padding` fills guards and row padding of the inputs, the canary always those of D. `in_place` makes D the buffer
    of C, which then isn't poisoned. `mode` is the problem's dtype's own where it isn't named. Raises UnknownName;
    InvalidProblem where integers cannot be exact.
    """
    if data not in DATA:
        raise UnknownName(f"data {data!r}: no such data; there are {', '.join(DATA)}")
    rng = np.random.default_rng(seed)
    fill, limits = DATA[data], get_mode(mode or MODE_OF[problem.dtype])
    flat: dict[str, Array] = {}
    for operand in "abc":
        dtype = problem.storage_dtype(operand)
        pad = CANARY if operand == "c" and in_place else padding
        flat[operand] = np.full(flat_size(problem, operand), _within(dtype, pad), dtype=dtype)
        view = logical_view(problem, operand, flat[operand])
        view[...] = fill(problem, limits, operand, view.shape, rng)
    d = np.full(flat_size(problem, "d"), _within(problem.out_dtype, CANARY), dtype=problem.out_dtype)
    poison_array = np.asarray(_within(problem.out_dtype, poison), dtype=d.dtype)
    logical_view(problem, "d", d)[...] = poison_array
    bias = None
    if problem.epilogue.needs_bias:
        bias = fill(problem, limits, "bias", (problem.n,), rng).astype(problem.storage_dtype("a"))
    name = data + (" in place" if in_place else "")
    return Operands(problem, name, flat["a"], flat["b"], flat["c"], flat["c"] if in_place else d, bias, poison_array)


def _within(dtype: str, value: float) -> float:
    """The value, or the largest finite one of its sign where the type holds no more. NaN stays."""
    limit = largest_finite(dtype)
    return min(max(value, -limit), limit) if not math.isnan(value) else value


def is_exact_scale(value: float) -> bool:
    """Whether integer data stay exact under this alpha or beta: a small multiple of a small power of two."""
    return math.isfinite(value) and abs(value) <= SCALE_LIMIT and (value / SCALE_STEP).is_integer()


def integer_bounds(problem: Problem, mode: Mode | None = None) -> dict[str, int]:
    """Largest magnitude by operand so that every partial sum, in any order, is exact in the accumulator.

    Keeps k·|a|·|b| and, counted in the smallest unit alpha and beta bring in, |alpha|·k·|a|·|b| + |beta|·|c|
    + |bias| within the mode's largest exact sum, and what D holds within its type. Raises InvalidProblem where not
    even ±1 is.
    """
    mode = mode or get_mode(MODE_OF[problem.dtype])
    largest_sum = int(min(mode.largest_sum, largest_finite(problem.out_dtype)))
    alpha, beta = problem.alpha, problem.beta
    if not (is_exact_scale(alpha) and is_exact_scale(beta)):
        raise InvalidProblem(f"alpha={alpha}, beta={beta}: integer data need multiples of 1/16 up to 16; use 1 or 0.5")
    units = max(alpha.as_integer_ratio()[1], beta.as_integer_ratio()[1])
    others = (1 if problem.reads_c else 0) + (1 if problem.epilogue.needs_bias else 0)
    share = largest_sum // 8
    product = int((largest_sum - others * share) / max(abs(alpha) * units, 1.0)) // max(problem.k, 1)
    a = min(math.isqrt(product), mode.largest_integer)
    if a < 1:
        raise InvalidProblem(f"k={problem.k}: sums of ±1 exceed {largest_sum} and are not exact; use a smaller k")
    c = int(share / max(abs(beta) * units, 1.0))
    return {
        "a": a,
        "b": min(product // a, mode.largest_integer),
        "c": min(c, mode.largest_integer),
        "bias": min(share // units, mode.largest_integer),
    }


def _integer(problem: Problem, mode: Mode, operand: str, shape: Shape, rng: np.random.Generator) -> Array:
    """Never zero, so that every dropped or doubled term shows."""
    magnitude = rng.integers(1, integer_bounds(problem, mode)[operand], size=shape, endpoint=True)
    return np.where(rng.integers(0, 2, size=shape), magnitude, -magnitude)


def _zero_mean(problem: Problem, mode: Mode, operand: str, shape: Shape, rng: np.random.Generator) -> Array:
    return rng.standard_normal(size=shape)


def _positive(problem: Problem, mode: Mode, operand: str, shape: Shape, rng: np.random.Generator) -> Array:
    return rng.uniform(0.0, 1.0, size=shape)


def _wide_range(problem: Problem, mode: Mode, operand: str, shape: Shape, rng: np.random.Generator) -> Array:
    widest = min(mode.widest, get_mode(MODE_OF[problem.out_dtype]).widest)
    return rng.choice((-1.0, 1.0), size=shape) * np.exp2(rng.uniform(-widest, widest, size=shape))


def _terms(by_operand: Callable[[int], dict[str, npt.NDArray[np.float64]]]) -> Fill:
    """A fill whose op(A) and op(B) depend on k only; an operand that isn't named is 1, C and bias are 0."""

    def fill(problem: Problem, mode: Mode, operand: str, shape: Shape, rng: np.random.Generator) -> Array:
        if operand not in "ab":
            return np.zeros(shape)
        along_k = by_operand(problem.k).get(operand, np.ones(problem.k))
        return np.broadcast_to(along_k[None, None, :] if operand == "a" else along_k[None, :, None], shape)

    return fill


def _at(k: int, values: dict[int, float]) -> npt.NDArray[np.float64]:
    along_k = np.zeros(k)
    for index, value in values.items():
        along_k[index] += value
    return along_k


def _slices(k: int) -> dict[str, npt.NDArray[np.float64]]:
    """Quarters of k that sum to 2000.5, 3, -2000 and -3: 0.5 in all, lost when partials are 16-bit.

    2000.5 fits neither fp16 nor bf16 (1000.5 would fit fp16), and halves of k cancel no better than quarters.
    """
    quarter = k // 4
    return {"a": _at(k, {0: 2000.0, 1: 0.5, quarter: 3.0, 2 * quarter: -2000.0, 3 * quarter: -3.0})}


@dataclass(frozen=True, slots=True)
class Probe:
    """Data that betray a cheaper arithmetic; needs k of at least `least_k`."""

    least_k: int
    needs_exact_operands: bool


PROBES = {
    "1024.5 * 1": Probe(1, True),
    "1 * 1024.5": Probe(1, True),
    "2048 + 1": Probe(2, False),
    "slices": Probe(8, False),
}
DATA: dict[str, Fill] = {
    "integer": _integer,
    "zero_mean": _zero_mean,
    "positive": _positive,
    "wide_range": _wide_range,
    "1024.5 * 1": _terms(lambda k: {"a": _at(k, {0: 1024.5})}),
    "1 * 1024.5": _terms(lambda k: {"b": _at(k, {k - 1: 1024.5})}),
    "2048 + 1": _terms(lambda k: {"a": _at(k, {0: 2048.0, k - 1: 1.0})}),
    "slices": _terms(_slices),
}


def bits(array: Array) -> npt.NDArray[Any]:
    """The array's bit patterns as unsigned integers of its element's size; shares memory."""
    return array.view(f"u{array.itemsize}")
