"""The kernels' one argument struct, mirrored for the host. `include/tilewright/args.cuh` is its device side.

Both sides list the same fields in the same order; the emulator's runner checks the size at every launch.
"""

from __future__ import annotations

import ctypes

from tilewright.problem import Problem

_INT, _LONG, _POINTER, _FLOAT = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_float


class GemmArgs(ctypes.Structure):
    """Sizes and leading dimensions in elements, addresses in the device's address space."""

    _fields_ = [
        ("m", _INT),
        ("n", _INT),
        ("k", _INT),
        ("batch", _INT),
        ("a", _POINTER),
        ("b", _POINTER),
        ("c", _POINTER),
        ("d", _POINTER),
        ("lda", _LONG),
        ("ldb", _LONG),
        ("ldc", _LONG),
        ("ldd", _LONG),
        ("batch_stride_a", _LONG),
        ("batch_stride_b", _LONG),
        ("batch_stride_c", _LONG),
        ("batch_stride_d", _LONG),
        ("alpha", _FLOAT),
        ("beta", _FLOAT),
        ("bias", _POINTER),
        ("workspace", _POINTER),
        ("flags", _POINTER),
    ]


def gemm_args(
    problem: Problem, *, a: int, b: int, c: int, d: int, bias: int = 0, workspace: int = 0, flags: int = 0
) -> GemmArgs:
    """The struct for one launch. By the BLAS rule alpha = 0 leaves A and B unread, so k is passed as 0 then."""
    args = GemmArgs(a=a, b=b, c=c, d=d, bias=bias, workspace=workspace, flags=flags)
    for name, value in problem.names().items():
        if name in {field[0] for field in GemmArgs._fields_}:
            setattr(args, name, value)
    args.k = problem.k if problem.alpha != 0.0 else 0
    args.alpha, args.beta = problem.alpha, problem.beta
    return args
