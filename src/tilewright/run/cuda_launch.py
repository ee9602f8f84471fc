"""A launch on a GPU, bound once and repeated: addresses are patched, then one call to the driver.

Owns the driver's launch structures as ctypes has them, since a call through them costs the host a fraction of one
through objects. Whether the addresses fit the argument struct is the caller's to know. A launch may be repeated from
several threads.
"""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tilewright.declare.tensor_map import TensorMap
from tilewright.locks import renew_in_children
from tilewright.run.args import GemmArgs
from tilewright.run.driver import driver_library, require
from tilewright.run.protocol import Grid
from tilewright.run.scratch import Need, StreamScratch
from tilewright.run.tensor_map import encode_for_driver

CLUSTER_DIMENSION, PROGRAMMATIC_STREAM_SERIALIZATION = 4, 6
"""The driver's numbers of the two launch attributes."""
MAP_ALIGNMENT_BYTES = 64
_MATRICES = struct.Struct("=4Q")
"""The four addresses that follow one another in the argument struct."""


class LaunchAttribute(ctypes.Structure):
    """The driver's CUlaunchAttribute; both kinds used here hold unsigned integers."""

    _fields_ = (("id", ctypes.c_uint), ("_padding", ctypes.c_uint), ("value", ctypes.c_uint * 16))


class LaunchConfig(ctypes.Structure):
    """The driver's CUlaunchConfig."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")),
        ("dynamic_smem_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    )


def launch_config(grid: Grid) -> LaunchConfig:
    """The structure for a launch of this geometry, on stream 0."""
    attributes = []
    if math.prod(grid.cluster) > 1:
        attributes.append(LaunchAttribute(CLUSTER_DIMENSION, 0, (*grid.cluster,)))
    if grid.dependent:
        attributes.append(LaunchAttribute(PROGRAMMATIC_STREAM_SERIALIZATION, 0, (1,)))
    held = (LaunchAttribute * len(attributes))(*attributes)
    return LaunchConfig(*grid.grid, *grid.block, grid.dynamic_smem_bytes, None, held, len(attributes))


class CudaLaunch:
    """One kernel with its geometry and argument struct, in one device's primary context.

    `function` and `context` are raw handles. `maps` are the tensor maps of the struct by operand, encoded at the first
    launch. `driver` is the driver's functions by name, each returning its status. `scratch` is the device's, where the
    kernel has a `need` of it.
    """

    def __init__(
        self,
        function: int,
        context: int,
        grid: Grid,
        args: ctypes.Structure,
        *,
        maps: Mapping[str, TensorMap] | None = None,
        need: Need | None = None,
        scratch: StreamScratch | None = None,
        driver: Any = None,
    ) -> None:
        self._driver = driver_library() if driver is None else driver
        self._need, self._scratch = need, scratch
        self._memory, start = _aligned(args)
        self._args: Any = type(args).from_buffer(self._memory, start)
        self._matrices_at = start + GemmArgs.a.offset
        self._config = launch_config(grid)
        self._function = ctypes.c_void_p(function)
        self._pointers = (ctypes.c_void_p * 1)(ctypes.addressof(self._args))
        self._call = (ctypes.byref(self._config), self._function, ctypes.byref(self._pointers), None)
        self._bare_launch = partial(self._driver.cuLaunchKernelEx, *self._call)
        self._maps, self._mapped = dict(maps or {}), dict[str, int]()
        self._launch: Callable[[], int] = self._bare_launch
        if need is not None:
            self._launch = self._launch_with_scratch
        elif self._maps:
            self._launch = self._launch_with_maps
        self._get_current = self._driver.cuCtxGetCurrent
        self._context = context
        self._current = ctypes.c_void_p()
        self._current_pointer = ctypes.byref(self._current)
        self._lock = threading.Lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """See `locks.renew_in_children`."""
        self._lock = threading.Lock()

    def __call__(self, a: int, b: int, c: int, d: int, bias: int, stream: int) -> None:
        """Launch on `stream` (a raw handle) with these addresses. Does not synchronise. Raises LaunchFailed."""
        with self._lock:
            _MATRICES.pack_into(self._memory, self._matrices_at, a, b, c, d)
            if bias:
                self._args.bias = bias
            self._config.stream = stream
            status = self._get_current(self._current_pointer)
            if self._current.value == self._context and not status:
                status = self._launch()
            else:
                status = self._in_context(self._launch)
        if status:
            require(status)

    def start(self, stream: int) -> None:
        """Launch with the struct as it is. See `__call__`."""
        with self._lock:
            self._config.stream = stream
            status = self._in_context(self._launch)
        require(status)

    def _in_context(self, call: Callable[[], int]) -> int:
        """The status of `call`, made with the device's context current for the time of it."""
        status = int(self._driver.cuCtxPushCurrent_v2(ctypes.c_void_p(self._context)))
        if status:
            return status
        try:
            return int(call())
        finally:
            self._driver.cuCtxPopCurrent_v2(self._current_pointer)

    def _launch_with_maps(self) -> int:
        """Launch with every map at its operand's address."""
        for name, tensor_map in self._maps.items():
            address = getattr(self._args, name)
            if address == self._mapped.get(name):
                continue
            if name in self._mapped:
                encoded = ctypes.byref(getattr(self._args, f"map_{name}"))
                require(self._driver.cuTensorMapReplaceAddress(encoded, ctypes.c_void_p(address)))
            else:
                setattr(self._args, f"map_{name}", encode_for_driver(tensor_map, address))
            self._mapped[name] = address
        return int(self._bare_launch())

    def _launch_with_scratch(self) -> int:
        assert self._need is not None and self._scratch is not None
        call = self._launch_with_maps if self._maps else self._bare_launch
        return self._scratch.launch(self._args, self._need, self._config.stream or 0, call)


def _aligned(args: ctypes.Structure) -> tuple[bytearray, int]:
    """Memory with the bytes of `args` at an offset that is given, where tensor maps lie as the driver wants them."""
    memory = bytearray(ctypes.sizeof(args) + MAP_ALIGNMENT_BYTES)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % MAP_ALIGNMENT_BYTES
    memory[start : start + ctypes.sizeof(args)] = bytes(args)
    return memory, start
