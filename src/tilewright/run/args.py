"""The kernels' one argument struct, mirrored for the host. `include/tilewright/args.cuh` is its device side.

The scales have the accumulator's type, so there is one struct for each.
Both sides list the same fields in the same order; the emulator's runner checks the size at every launch.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar

from tilewright.problem import Problem

_INT, _LONG, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
_Args = TypeVar("_Args", bound=ctypes.Structure)


def _fields(scale: type[Any]) -> list[tuple[str, type[Any]]]:
    return [
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
        ("alpha", scale),
        ("beta", scale),
        ("bias", _POINTER),
        ("workspace", _POINTER),
        ("flags", _POINTER),
    ]


class GemmArgs(ctypes.Structure):
    """Sizes and leading dimensions in elements, addresses in the device's address space."""

    _fields_ = _fields(ctypes.c_float)


class Field61Args(ctypes.Structure):
    """The same for `Field61`: every operand holds 8-byte elements, and alpha and beta are two of them."""

    _fields_ = _fields(ctypes.c_uint64)


def gemm_args(
    problem: Problem, *, a: int, b: int, c: int, d: int, bias: int = 0, workspace: int = 0, flags: int = 0
) -> GemmArgs:
    """The struct for one launch. By the BLAS rule alpha = 0 leaves A and B unread, so k is passed as 0 then."""
    args = _with_sizes(GemmArgs(a=a, b=b, c=c, d=d, bias=bias, workspace=workspace, flags=flags), problem)
    args.k = problem.k if problem.alpha != 0.0 else 0
    args.alpha, args.beta = problem.alpha, problem.beta
    return args


def field61_args(problem: Problem, *, alpha: int, beta: int, a: int, b: int, c: int, d: int) -> Field61Args:
    """The struct for one launch over the field, whose scales are not the problem's."""
    return _with_sizes(Field61Args(a=a, b=b, c=c, d=d, alpha=alpha, beta=beta), problem)


def _with_sizes(args: _Args, problem: Problem) -> _Args:
    names = {field[0] for field in GemmArgs._fields_}
    for name, value in problem.names().items():
        if name in names:
            setattr(args, name, value)
    return args
