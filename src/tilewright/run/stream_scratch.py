"""The workspace and flags of launches on a caller's streams: a block for each stream, and one of its own in each graph.

Launches on one stream follow each other and share its block. A graph may be replayed beside anything, so in a capture
the memory is the graph's: allocated, zeroed and freed by nodes around the launch. All is in stream order; nothing waits
for the device. Owns this memory; which kernels need how much is declared.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.declare import Config
from tilewright.problem import Problem
from tilewright.run.args import GemmArgs
from tilewright.run.driver import driver_library, require
from tilewright.run.scratch import ACCUMULATOR_BYTES, FLAG_BYTES

PER_THREAD_STREAM = 2
"""The driver's handle that names another stream in each thread."""
WORKSPACE_ALIGNMENT_BYTES = 256


class Need(NamedTuple):
    """What one launch needs: bytes of flags, and of workspace behind them."""

    flags_bytes: int
    workspace_bytes: int


def need_of(config: Config, problem: Problem, *, sm_count: int) -> Need | None:
    """What a launch of `config` for `problem` needs; None where its rung declares no scratch."""
    declared = config.scratch(problem, sm_count=sm_count)
    if declared is None:
        return None
    sums, flags = declared
    flags_bytes = -(-flags * FLAG_BYTES // WORKSPACE_ALIGNMENT_BYTES) * WORKSPACE_ALIGNMENT_BYTES
    return Need(flags_bytes, sums * ACCUMULATOR_BYTES)


class _Block(NamedTuple):
    """Memory with flags at its start, all zero between launches, and a workspace behind them."""

    flags: int
    workspace: int
    size: Need


class StreamScratch:
    """The scratch of one device, from several threads, in its context. `driver` is the driver's functions by name."""

    def __init__(self, driver: Any = None) -> None:
        self._driver = driver
        self._held: dict[Any, _Block] = {}
        self._captured = ctypes.c_int()
        self._captured_pointer = ctypes.byref(self._captured)
        self._lock = threading.Lock()

    def launch(self, args: GemmArgs, need: Need, stream: int, call: Callable[[], int]) -> int:
        """The status of `call`, which launches on `stream` with `args`; scratch is put into these. Raises LaunchFailed.

        A stream's block stays until a larger one takes its place.
        """
        with self._lock:
            if not self._is_capturing(stream):
                block = self._of_stream(need, stream)
                args.workspace, args.flags = block.workspace, block.flags
                return call()
            block = self._allocated(need, stream)
            args.workspace, args.flags = block.workspace, block.flags
            status = call()
            self._free(block, stream)
            return status

    def _is_capturing(self, stream: int) -> bool:
        if self._driver is None:
            self._driver = driver_library()
        require(self._driver.cuStreamIsCapturing(ctypes.c_void_p(stream), self._captured_pointer))
        return self._captured.value != 0

    def _of_stream(self, need: Need, stream: int) -> _Block:
        """The stream's block; where it is too small, another one, and it is freed after the launches that use it."""
        key = (stream, threading.get_ident()) if stream == PER_THREAD_STREAM else stream
        block = self._held.get(key)
        if block is not None:
            flags_bytes, workspace_bytes = block.size
            if flags_bytes >= need.flags_bytes and workspace_bytes >= need.workspace_bytes:
                return block
            del self._held[key]
            self._free(block, stream)
            need = Need(max(flags_bytes, need.flags_bytes), max(workspace_bytes, need.workspace_bytes))
        self._held[key] = block = self._allocated(need, stream)
        return block

    def _allocated(self, need: Need, stream: int) -> _Block:
        address, handle = ctypes.c_uint64(), ctypes.c_void_p(stream)
        words = ctypes.c_size_t(need.flags_bytes // FLAG_BYTES)
        require(self._driver.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(sum(need)), handle))
        require(self._driver.cuMemsetD32Async(address, 0, words, handle))
        return _Block(address.value, address.value + need.flags_bytes, need)

    def _free(self, block: _Block, stream: int) -> None:
        require(self._driver.cuMemFreeAsync(ctypes.c_uint64(block.flags), ctypes.c_void_p(stream)))
