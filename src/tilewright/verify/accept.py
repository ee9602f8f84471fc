"""When a result is accepted: error bounds by arithmetic mode, and two judges of one result.

Owns the constants and the comparison. It knows arrays and not problems, operands or kernels.

A result C is accepted against the float64 reference R where

    |C - R| <= u_out * |R| * 1.01 + eta_out + c * G,    G = |alpha| (|A| |B|) + |beta| |C0|

everywhere, NaN and infinities standing exactly where R has them. c depends on the mode and on k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tilewright.errors import UnknownName

Array = npt.NDArray[Any]
Float64Array = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
AXES = (("batch", "batches"), ("row", "rows"), ("column", "columns"))

U = 2.0**-24
U_OUT = {"float32": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8, "float8_e4m3fn": 2.0**-4, "float8_e5m2": 2.0**-3}
SMALLEST_SUBNORMAL = {
    "float32": 2.0**-149,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float8_e4m3fn": 2.0**-9,
    "float8_e5m2": 2.0**-16,
}
RANDOM_DATA = ("zero_mean", "positive", "wide_range")


def _tensor_core(k: int) -> float:
    return (k / 4 + 8) * U


@dataclass(frozen=True, slots=True)
class Mode:
    """How products are computed, as far as acceptance needs it.

    `c(k)` is the accepted error in units of G; up to `worst(k)` a result is accepted as suspect. Integer
    data are exact while operands stay within `largest_integer` and sums within `largest_sum`. `data` names
    the random data the bound holds for, wide ones within 2 to the power of ± `widest`; `exact_operands` says whether
    float32 operands enter unrounded.
    """

    c: Callable[[int], float]
    worst: Callable[[int], float]
    largest_integer: int
    largest_sum: int = 2**24
    data: tuple[str, ...] = RANDOM_DATA
    exact_operands: bool = True
    widest: float = 20.0


def _same(c: Callable[[int], float], largest_integer: int, **other: Any) -> Mode:
    return Mode(c, c, largest_integer, **other)


MODES = {
    "fp32": Mode(lambda k: min(k + 4, 8 * math.sqrt(k) + 4) * U, lambda k: (k + 4) * U, 2**12 - 1),
    "fp16": _same(_tensor_core, 2**11, exact_operands=False, widest=3.0),
    "bf16": _same(_tensor_core, 2**8, exact_operands=False),
    "tf32_rounded": _same(lambda k: 2 * 2.0**-11 + _tensor_core(k), 2**11, exact_operands=False),
    "tf32_truncated": _same(lambda k: 4 * 2.0**-11 + _tensor_core(k), 2**11, exact_operands=False),
    "fp8_promoted": _same(lambda k: 2.0**-9 + (k / 128 + 8) * U, 2**4, largest_sum=2**13),
    "fp8_fast": _same(lambda k: 2.0**-9, 2**4, largest_sum=2**13, data=("zero_mean",)),
}


MODE_OF = {"float32": "fp32", "tfloat32": "tf32_rounded", "float16": "fp16", "bfloat16": "bf16"}
"""The mode of a kernel that multiplies elements of this type, unrounded for TF32, and accumulates in float32."""


def largest_finite(dtype: str) -> float:
    """The largest finite value of a floating-point type, NumPy's own or of ml_dtypes."""
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


def get_mode(name: str) -> Mode:
    """The mode of that name. Raises UnknownName."""
    if name not in MODES:
        raise UnknownName(f"mode {name!r}: no such arithmetic mode; there are {', '.join(MODES)}")
    return MODES[name]


def bound(mode: str, k: int) -> float:
    """The accepted error, in units of G, of a sum of `k` products in `mode`. Raises UnknownName."""
    return get_mode(mode).c(k)


def u_out(dtype: str) -> float:
    """Relative error of the one rounding to the output type; 0 where it is the accumulator's. Raises UnknownName."""
    if dtype not in U_OUT:
        raise UnknownName(f"out_dtype {dtype!r}: no rounding error known; there are {', '.join(U_OUT)}")
    return U_OUT[dtype]


def eta_out(dtype: str) -> float:
    """Absolute error of that rounding near zero: half the output type's smallest subnormal. Raises UnknownName."""
    u_out(dtype)
    return SMALLEST_SUBNORMAL[dtype] / 2


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether one result is right.

    `worst_ratio` is the largest error in units of the accepted one (0 for an exact comparison that holds,
    infinity where NaN or infinities are misplaced). `first_bad` is (index, got, expected) of the first
    wrong element. A suspect result is within the worst-case bound and beyond the usual one.
    """

    ok: bool
    suspect: bool
    worst_ratio: float
    first_bad: tuple[tuple[int, ...], float, float] | None
    message: str


def judge(result: Array, reference: Float64Array, magnitude: Float64Array, *, mode: str, k: int) -> Judgement:
    """Judge `result` (batch, m, n), in its output type, against R and G of that shape by the bound of `mode` at `k`.

    Raises UnknownName for a mode or type without a bound.
    """
    got = result.astype(np.float64)
    out_dtype = result.dtype.name
    with np.errstate(all="ignore"):
        rounding = u_out(out_dtype) * np.abs(reference) * 1.01 + eta_out(out_dtype)
        finite = np.isfinite(reference.astype(result.dtype))
        same_special = (np.isnan(got) & np.isnan(reference)) | (np.isinf(got) & (np.sign(got) == np.sign(reference)))
        error = np.abs(got - reference)
        allowed = rounding + get_mode(mode).c(k) * magnitude
        at_worst = rounding + get_mode(mode).worst(k) * magnitude
        ratio = np.where(finite, error / allowed, np.where(same_special, 0.0, np.inf))
        accepted = np.where(finite, error <= at_worst, same_special)
        usual = np.where(finite, error <= allowed, same_special)
    worst_ratio = float(np.max(np.where(np.isnan(ratio), np.inf, ratio), initial=0.0))
    if not accepted.all():
        return _rejected(~accepted, got, reference, worst_ratio, f"error up to {worst_ratio:.3g} × the accepted; ")
    suspect = not usual.all()
    message = f"worst error {worst_ratio:.3g} × the accepted" + (", within the worst case only" if suspect else "")
    return Judgement(True, suspect, worst_ratio, None, message)


def judge_exact(result: Array, reference: Float64Array) -> Judgement:
    """Judge `result` (batch, m, n) as equal to the reference rounded to its type, NaN for NaN.

    Equal means bit-equal but for NaN payloads and the sign of zero, which the order of summation decides.
    """
    with np.errstate(all="ignore"):
        expected = reference.astype(result.dtype).astype(np.float64)
    got = result.astype(np.float64)
    bad = ~((got == expected) | (np.isnan(got) & np.isnan(expected)))
    if bad.any():
        return _rejected(bad, got, expected, math.inf, "")
    return Judgement(True, False, 0.0, None, "exact")


def _rejected(bad: BoolArray, got: Float64Array, expected: Float64Array, ratio: float, prefix: str) -> Judgement:
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    first = (index, float(got[index]), float(expected[index]))
    message = f"{prefix}{place(index)}: got {first[1]:.9g}, expected {first[2]:.9g}; {describe(bad)} differ"
    return Judgement(False, False, ratio, first, message)


def place(index: tuple[int, ...]) -> str:
    """(batch, row, column) in words; the batch only where it is not 0."""
    batch, row, column = index
    return (f"batch {batch}, " if batch else "") + f"row {row}, column {column}"


def describe(bad: BoolArray) -> str:
    """How much of a (batch, m, n) mask is set and where, in words: '12% of elements, all in rows 0..31'."""
    share = bad.mean()
    amount = (
        "all elements"
        if share == 1
        else f"{share:.0%} of elements"
        if share >= 0.01
        else f"{bad.sum()} element{'s' if bad.sum() > 1 else ''}"
    )
    axes = [
        _span(name, np.flatnonzero(bad.any(axis=others)), bad.shape[axis])
        for axis, (name, others) in enumerate(zip(AXES, ((1, 2), (0, 2), (0, 1)), strict=True))
    ]
    spans = ", ".join(span for span in axes if span)
    return amount + (f", all in {spans}," if spans else "")


def _span(name: tuple[str, str], hit: npt.NDArray[np.intp], size: int) -> str:
    if len(hit) == 0 or (hit[0] == 0 and hit[-1] == size - 1):
        return ""
    return f"{name[0]} {hit[0]}" if hit[0] == hit[-1] else f"{name[1]} {hit[0]}..{hit[-1]}"
