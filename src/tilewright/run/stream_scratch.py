"""The workspace and flags of launches on a caller's streams: a block for each stream, and one of its own in each graph.

Launches on one stream follow each other and share its block. A graph may be replayed beside anything, so in a capture
the memory is the graph's: allocated, zeroed and freed by nodes around the launch. All is in stream order; nothing waits
for the device. Owns this memory; which kernels need how much is declared.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from tilewright.declare import Config
from tilewright.problem import Problem
from tilewright.run.driver import driver_library, require
from tilewright.run.scratch import ACCUMULATOR_BYTES, FLAG_BYTES

PER_THREAD_STREAM = 2
"""The driver's handle that names another stream in each thread."""
WORKSPACE_ALIGNMENT_BYTES = 256


class Need(NamedTuple):
    """What one launch needs: bytes of flags, and of workspace behind them."""

    flags_bytes: int
    workspace_bytes: int


def need_of(config: Config, problem: Problem) -> Need | None:
    """What a launch of `config` for `problem` needs; None where its rung declares no scratch."""
    declared = config.scratch(problem)
    if declared is None:
        return None
    sums, flags = declared
    flags_bytes = -(-flags * FLAG_BYTES // WORKSPACE_ALIGNMENT_BYTES) * WORKSPACE_ALIGNMENT_BYTES
    return Need(flags_bytes, sums * ACCUMULATOR_BYTES)


class _Block(NamedTuple):
    """Memory with flags at its start, all zero between launches."""

    address: int
    size: Need

    @property
    def addresses(self) -> tuple[int, int]:
        """Of workspace and flags."""
        return self.address + self.size.flags_bytes, self.address

    def holds(self, need: Need) -> bool:
        """Whether it is large enough."""
        return self.size.flags_bytes >= need.flags_bytes and self.size.workspace_bytes >= need.workspace_bytes


class StreamScratch:
    """The scratch of one device, from several threads, in its context. `driver` is the driver's functions by name."""

    def __init__(self, driver: Any = None) -> None:
        self._driver = driver
        self._held: dict[Any, _Block] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def for_launch(self, need: Need, stream: int) -> Iterator[tuple[int, int]]:
        """Addresses of workspace and flags for the one launch on `stream` that is made inside. Raises LaunchFailed.

        A stream's block stays until a larger one takes its place.
        """
        capturing = ctypes.c_int()
        with self._lock:
            if self._driver is None:
                self._driver = driver_library()
            require(self._driver.cuStreamIsCapturing(ctypes.c_void_p(stream), ctypes.byref(capturing)))
            if not capturing.value:
                yield self._of_stream(need, stream).addresses
                return
            block = self._allocated(need, stream)
            yield block.addresses
            self._free(block, stream)

    def _of_stream(self, need: Need, stream: int) -> _Block:
        """The stream's block; where it is too small, another one, and it is freed after the launches that use it."""
        key = (stream, threading.get_ident()) if stream == PER_THREAD_STREAM else stream
        block = self._held.get(key)
        if block is not None and block.holds(need):
            return block
        if block is not None:
            del self._held[key]
            self._free(block, stream)
            need = Need(*map(max, need, block.size))
        self._held[key] = self._allocated(need, stream)
        return self._held[key]

    def _allocated(self, need: Need, stream: int) -> _Block:
        address, handle = ctypes.c_uint64(), ctypes.c_void_p(stream)
        words = ctypes.c_size_t(need.flags_bytes // FLAG_BYTES)
        require(self._driver.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(sum(need)), handle))
        require(self._driver.cuMemsetD32Async(address, 0, words, handle))
        return _Block(address.value, need)

    def _free(self, block: _Block, stream: int) -> None:
        require(self._driver.cuMemFreeAsync(ctypes.c_uint64(block.address), ctypes.c_void_p(stream)))
