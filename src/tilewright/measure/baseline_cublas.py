"""cuBLAS called directly, through CuPy's or nvmath's bindings.

Owns the row-major reading of column-major cuBLAS and a handle of its own, so no setting of the user's is
touched. cuBLAS accumulates in place: with beta other than 0 and C apart from D, C is first copied to D.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from tilewright.errors import Missing
from tilewright.measure.baseline import check_problem
from tilewright.problem import ITEMSIZE_BYTES, Problem

OP_N, OP_T = 0, 1
DEFAULT_MATH, TF32_MATH = 0, 3


@dataclass(frozen=True, slots=True)
class CublasApi:
    """The cuBLAS calls needed, with the arguments of the C interface, and how to put a handle on a stream."""

    library: str
    version: str
    handle: int
    on_stream: Callable[[Any], AbstractContextManager[Any]]
    sgemm: Callable[..., None]
    sgemm_strided_batched: Callable[..., None]
    sgeam: Callable[..., None]
    set_math_mode: Callable[[int, int], None]


class CublasBaseline:
    """cublasSgemm, or its strided batch, in IEEE float32 or in TF32. See `Baseline`.

    A row-major matrix is its transpose read column-major, so Dᵀ = op(B)ᵀ · op(A)ᵀ is asked for, with A and B
    exchanged and no transposition of their own.
    """

    def __init__(self, api: CublasApi) -> None:
        self._api = api
        self.name = f"cuBLAS ({api.library})"
        self.version = api.version

    def gemm(self, problem: Problem, a_addr: int, b_addr: int, c_addr: int, d_addr: int, stream: Any) -> None:
        """See `Baseline.gemm`."""
        check_problem(problem, ("float32", "tfloat32"))
        self._api.set_math_mode(self._api.handle, TF32_MATH if problem.dtype == "tfloat32" else DEFAULT_MATH)
        with self._api.on_stream(stream):
            if problem.reads_c and c_addr != d_addr:
                self._copy_c(problem, c_addr, d_addr)
            self._multiply(problem, a_addr, b_addr, d_addr)

    def _multiply(self, p: Problem, a_addr: int, b_addr: int, d_addr: int) -> None:
        alpha, beta = ctypes.c_float(p.alpha), ctypes.c_float(p.beta)
        op_a, op_b = (OP_T if layout == "T" else OP_N for layout in p.layout)
        head = (self._api.handle, op_b, op_a, p.n, p.m, p.k, ctypes.addressof(alpha))
        beta_addr = ctypes.addressof(beta)
        if p.batch == 1:
            self._api.sgemm(*head, b_addr, p.ldb, a_addr, p.lda, beta_addr, d_addr, p.ldd)
            return
        b, a = (b_addr, p.ldb, p.batch_stride_b), (a_addr, p.lda, p.batch_stride_a)
        self._api.sgemm_strided_batched(*head, *b, *a, beta_addr, d_addr, p.ldd, p.batch_stride_d, p.batch)

    def _copy_c(self, p: Problem, c_addr: int, d_addr: int) -> None:
        one, zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        itemsize = ITEMSIZE_BYTES[p.dtype]
        for index in range(p.batch):
            c = c_addr + index * p.batch_stride_c * itemsize
            d = d_addr + index * p.batch_stride_d * itemsize
            source, sink = (ctypes.addressof(one), c, p.ldc), (ctypes.addressof(zero), d, p.ldd)
            self._api.sgeam(self._api.handle, OP_N, OP_N, p.n, p.m, *source, *sink, d, p.ldd)


def open_cupy() -> CublasBaseline:
    """CuPy's cuBLAS. Raises Missing where CuPy, its cuBLAS or a GPU is absent."""
    try:
        cupy = importlib.import_module("cupy")
        cublas = cupy.cuda.cublas
        cupy.cuda.runtime.getDeviceCount()
        handle = cublas.create()
        version = f"cupy {cupy.__version__}, cuBLAS {cublas.getVersion(handle)}"
    except Exception as error:  # ImportError, or CuPy's own errors for a missing library or driver
        raise _missing("cupy", error) from error
    streams: dict[int, Any] = {}

    def on_stream(stream: Any) -> AbstractContextManager[Any]:
        key = int(stream.handle)
        if key not in streams:
            from_external = getattr(cupy.cuda.Stream, "from_external", None)
            streams[key] = from_external(stream) if from_external else cupy.cuda.ExternalStream(key)
        wrapped: AbstractContextManager[Any] = streams[key]
        return wrapped

    calls = (cublas.sgemm, cublas.sgemmStridedBatched, cublas.sgeam, cublas.setMathMode)
    return CublasBaseline(CublasApi("cupy", version, handle, on_stream, *calls))


def open_nvmath() -> CublasBaseline:
    """The cuBLAS that nvmath's bindings find. Raises Missing where nvmath, cuBLAS or a GPU is absent."""
    try:
        cublas = importlib.import_module("nvmath.bindings.cublas")
        nvmath = importlib.import_module("nvmath")
        handle = cublas.create()
        version = f"nvmath {nvmath.__version__}, cuBLAS {cublas.get_version(handle)}"
    except Exception as error:  # ImportError, or nvmath's own errors for a missing library or driver
        raise _missing("nvmath", error) from error

    def on_stream(stream: Any) -> AbstractContextManager[Any]:
        cublas.set_stream(handle, int(stream.handle))
        return nullcontext()

    calls = (cublas.sgemm, cublas.sgemm_strided_batched, cublas.sgeam, cublas.set_math_mode)
    return CublasBaseline(CublasApi("nvmath", version, handle, on_stream, *calls))


def _missing(library: str, error: Exception) -> Missing:
    line = str(error).strip().split("\n")[0] or type(error).__name__
    return Missing(f"{library}: {line}")
