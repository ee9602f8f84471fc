"""The driver's functions as ctypes has them, where a call through objects would cost the host too much.

Each returns its status. Owns how they are found, and what a failure is reported as, of the bindings' calls too.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from tilewright.errors import LaunchFailed


@cache
def driver_library() -> Any:
    """The driver. Raises OSError where there is none, so ask `run.cuda.probe` first."""
    return ctypes.CDLL("libcuda.so.1")


def require(status: int) -> None:
    """Raise LaunchFailed, with the driver's own name for what went wrong, for a status other than 0."""
    if status:
        from cuda.bindings import driver

        check((driver.CUresult(status),))


def check(result: tuple[Any, ...]) -> Any:
    """The values of a driver call, or LaunchFailed with the driver's own name for what went wrong."""
    from cuda.bindings import driver

    status, *values = result
    if status != driver.CUresult.CUDA_SUCCESS:
        _, text = driver.cuGetErrorString(status)
        described = text.decode() if isinstance(text, bytes) else str(text)
        raise LaunchFailed(f"{status.name}: {described}")
    return values[0] if len(values) == 1 else tuple(values)
