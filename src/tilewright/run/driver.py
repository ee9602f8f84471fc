"""The driver's functions as ctypes has them, where a call through objects would cost the host too much.

Each returns its status. Owns how they are found and what a failure is told as.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


@cache
def driver_library() -> Any:
    """The driver. Raises OSError where there is none, so ask `run.cuda.probe` first."""
    return ctypes.CDLL("libcuda.so.1")


def require(status: int) -> None:
    """Raise LaunchFailed, with the driver's own name for what went wrong, for a status other than 0."""
    if status:
        from cuda.bindings import driver

        from tilewright.run.cuda import check

        check((driver.CUresult(status),))
