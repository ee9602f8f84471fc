"""The kernels' one argument struct, mirrored for the host. `include/tilewright/args.cuh` is its device side.

The scales have the accumulator's type, so there is one struct for each. Tensor maps make it a longer one.
Both sides list the same fields in the same order; the emulator's runner checks the size at every launch.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeVar

from tilewright.problem import Problem
from tilewright.run.tensor_map import EncodedMap

FIELD61_BYTES = 8
_INT, _LONG, _POINTER = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
_Args = TypeVar("_Args", bound=ctypes.Structure)
_Gemm = TypeVar("_Gemm", bound="GemmArgs")


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


def _map_fields(*, before_bytes: int) -> list[tuple[str, type[Any]]]:
    padding = ctypes.c_uint8 * (-before_bytes % 64)
    return [("_padding", padding), ("map_a", EncodedMap), ("map_b", EncodedMap), ("map_d", EncodedMap)]


class GemmArgs(ctypes.Structure):
    """Sizes and leading dimensions in elements, addresses in the device's address space."""

    _fields_ = _fields(ctypes.c_float)


class TmaArgs(GemmArgs):
    """The same with tensor maps after it, from the next multiple of 64 bytes on; a map that isn't there is zeros."""

    _fields_ = _map_fields(before_bytes=ctypes.sizeof(GemmArgs))


class Field61Args(ctypes.Structure):
    """The same for `Field61`: every operand holds 8-byte elements, and alpha and beta are two of them."""

    _fields_ = _fields(ctypes.c_uint64)


class Field61TmaArgs(Field61Args):
    """The same with tensor maps after it, which are all zeros: TMA knows no such elements."""

    _fields_ = _map_fields(before_bytes=ctypes.sizeof(Field61Args))


def gemm_args(
    problem: Problem, *, a: int, b: int, c: int, d: int, bias: int = 0, workspace: int = 0, flags: int = 0
) -> GemmArgs:
    """The struct for one launch without tensor maps."""
    return _for_problem(GemmArgs(a=a, b=b, c=c, d=d, bias=bias, workspace=workspace, flags=flags), problem)


def unbound_args(problem: Problem, *, has_maps: bool) -> GemmArgs:
    """The struct without any address yet; with room for tensor maps where the rung has them."""
    return _for_problem(TmaArgs() if has_maps else GemmArgs(), problem)


def field61_args(problem: Problem, *, has_maps: bool, scales: tuple[int, int]) -> Field61Args:
    """The struct for launches over the field, without any address yet. Its scales, `alpha` and `beta`, are elements."""
    made = Field61TmaArgs() if has_maps else Field61Args()
    made.alpha, made.beta = scales
    return _with_sizes(made, problem)


def _for_problem(args: _Gemm, problem: Problem) -> _Gemm:
    """By the BLAS rule alpha = 0 leaves A and B unread, so k is passed as 0 then."""
    _with_sizes(args, problem)
    args.k = problem.k if problem.alpha != 0.0 else 0
    args.alpha, args.beta = problem.alpha, problem.beta
    return args


def _with_sizes(args: _Args, problem: Problem) -> _Args:
    names = {field[0] for field in GemmArgs._fields_}
    for name, value in problem.names().items():
        if name in names:
            setattr(args, name, value)
    return args
