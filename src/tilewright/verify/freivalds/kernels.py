"""The two kernels of the check at full size: their text by element type, their argument and their launches.

Owns the way from a call to a launch. What is filled and weighed, and what is concluded, is `check.py`'s.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tilewright.compile.binary import Binary, KernelSource
from tilewright.run.protocol import Backend, Grid

FOLDER = Path(__file__).resolve().parent
THREADS = 256
MOST_CTAS = 65536
MARKER = 0x9E3779B97F4A7C15
ELEMENTS = {"float32": "F32", "tfloat32": "F32", "bfloat16": "BF16", "float16": "F16"}
ARGS_TYPE = "FreivaldsArgs"


class FreivaldsArgs(ctypes.Structure):
    """The kernels' one argument; `args.cuh` is its device side."""

    _fields_ = (
        ("matrix", ctypes.c_uint64),
        ("weights", ctypes.c_uint64),
        ("sums", ctypes.c_uint64),
        ("rows", ctypes.c_int64),
        ("cols", ctypes.c_int64),
        ("row_step", ctypes.c_int64),
        ("col_step", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("low", ctypes.c_float),
        ("high", ctypes.c_float),
        ("whole", ctypes.c_uint32),
        ("kept", ctypes.c_uint32),
        ("edge", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A matrix in device memory, as it is multiplied: element type, address, sizes, and steps in elements."""

    dtype: str
    address: int
    rows: int
    cols: int
    row_step: int
    col_step: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What `fill` writes: numbers from low to high, or signed integers of such magnitude, or zeros but for a share.

    `kept` is the share that isn't 0, but for the first and last `edge` columns, which are kept wholly.
    """

    low: float
    high: float
    whole: bool = False
    kept: float = 1.0
    edge: int = 0


def source(kernel: str, dtype: str) -> KernelSource:
    """The complete text of 'fill' or 'weigh' for elements of `dtype`, as both compilers take it."""
    before = (FOLDER / "args.cuh").read_text(encoding="utf-8").replace("#pragma once\n", "")
    text = (FOLDER / f"{kernel}.cu").read_text(encoding="utf-8")
    constants = f"constexpr unsigned THREADS = {THREADS};\n[[maybe_unused]] constexpr auto MARKER = {MARKER}ull;\n"
    element = f'#include "tilewright/scalar.cuh"\nusing Element = tilewright::{ELEMENTS[dtype]};\n'
    file = f"{kernel}.cu"
    whole = f'{element}{constants}{before}#line 1 "{file}"\n{text}'
    return KernelSource(f"{kernel} {dtype}", kernel, whole, file, args_type=ARGS_TYPE)


class Kernels:
    """Both kernels on one backend, compiled as they are needed."""

    def __init__(self, backend: Backend, compiled: Callable[[KernelSource], Binary], sm_count: int) -> None:
        self._backend, self._compiled, self._sm_count = backend, compiled, sm_count

    def fill(self, matrix: Matrix, filling: Filling, seed: int) -> None:
        """Write every element of the matrix; the same for the same seed."""
        args = _args(matrix, seed=seed, low=filling.low, high=filling.high, whole=int(filling.whole))
        args.kept, args.edge = round(filling.kept * (2**32 - 1)), filling.edge
        ctas = min(8 * self._sm_count, -(-matrix.rows * matrix.cols // THREADS))
        self._launch("fill", matrix.dtype, ctas, args)

    def weigh(self, matrix: Matrix, sums: int, *, seed: int, weights: int = 0) -> None:
        """Put each row's weighed sum to `sums`; weights are those at an address, or of the seed."""
        self._launch(
            "weigh", matrix.dtype, min(MOST_CTAS, matrix.rows), _args(matrix, seed=seed, weights=weights, sums=sums)
        )

    def _launch(self, kernel: str, dtype: str, ctas: int, args: FreivaldsArgs) -> None:
        binary = self._compiled(source(kernel, dtype))
        self._backend.launch(binary, Grid((ctas, 1, 1), (THREADS, 1, 1)), args)


def _args(matrix: Matrix, **more: float) -> FreivaldsArgs:
    return FreivaldsArgs(
        matrix=matrix.address,
        rows=matrix.rows,
        cols=matrix.cols,
        row_step=matrix.row_step,
        col_step=matrix.col_step,
        **more,
    )
