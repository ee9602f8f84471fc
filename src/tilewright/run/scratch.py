"""The workspace and flags of launches, for kernels whose CTAs leave partial results for each other. One owner a device.

Flags are zero when a launch begins, and a kernel leaves them zero, so they are cleared once, when they are allocated.
Launches that follow each other share a block; launches that may run side by side never do. Owns this memory; which
kernels need how much is declared, and what they keep in it is their own business.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.declare import Config
from tilewright.locks import renew_in_children
from tilewright.problem import Problem
from tilewright.run.driver import driver_library, require
from tilewright.run.protocol import Backend, Memory

ACCUMULATOR_BYTES, FLAG_BYTES, ALIGNMENT_BYTES = 4, 4, 256
LEGACY_DEFAULT_STREAM, LEGACY_DEFAULT_STREAM_BY_NAME, PER_THREAD_STREAM = 0, 1, 2
"""The driver's handles of streams that nobody makes. The last names another stream in each thread."""
NO_ID = -1
"""Stands for the legacy default stream's id, so that the driver need not be asked."""
MOST_STREAMS = 32
"""Of how many streams the blocks are kept. Half of them are given back when there would be more."""
RELAXED_CAPTURE, NON_BLOCKING_STREAM, NO_DESTRUCTOR_SYNC, MOVE_REFERENCE = 2, 1, 1, 1
"""The driver's numbers: a capture mode, a stream's flag, a user object's flag, and one for retaining it."""
SEMAPHORE_BYTES = 64
"""Room for the C library's sem_t."""


class Need(NamedTuple):
    """What one launch needs, in bytes."""

    flags_bytes: int
    workspace_bytes: int

    def holds(self, other: Need) -> bool:
        """Whether memory of this size is enough for the other."""
        return self.flags_bytes >= other.flags_bytes and self.workspace_bytes >= other.workspace_bytes


def need_of(
    config: Config, problem: Problem, *, sm_count: int, accumulator_bytes: int = ACCUMULATOR_BYTES
) -> Need | None:
    """What a launch of `config` for `problem` needs; None where that is nothing, as for one slice."""
    accumulators, flags = config.scratch(problem, sm_count=sm_count) or (0, 0)
    return Need(flags * FLAG_BYTES, accumulators * accumulator_bytes) if accumulators or flags else None


class EmulatorScratch:
    """The emulator's: one block, of exactly the bytes that the launch needs, so that an overrun is seen."""

    def __init__(self, device: Backend) -> None:
        self._device = device
        self.workspace: Memory | None = None
        self.flags: Memory | None = None

    def launch(self, args: Any, need: Need, call: Callable[[], None]) -> None:
        """Put the block's addresses into `args`, then `call`."""
        if self.workspace is None or self.workspace.nbytes != need.workspace_bytes:
            self.workspace = self._device.alloc(need.workspace_bytes, label="workspace")
        if self.flags is None or self.flags.nbytes != need.flags_bytes:
            self.flags = self._device.alloc(need.flags_bytes, label="flags")
            self._device.upload(self.flags, np.zeros(need.flags_bytes, np.uint8))
        args.workspace, args.flags = self.workspace.address, self.flags.address
        call()


class _Block(NamedTuple):
    """Device memory with flags at its start, all zero between launches, and a workspace behind them."""

    flags: int
    workspace: int
    size: Need


class _Held(NamedTuple):
    """A block that a graph uses, by which capture and stream, and the semaphore posted when the graph is gone."""

    block: _Block
    key: tuple[int, int, int]
    gone: Any


class StreamScratch:
    """One GPU's: a block for each stream, and for each stream of each captured graph. Used in the GPU's context.

    Streams are known by the driver's id, which is never used again, unlike a handle, but may not be asked for in a
    capture; there the handle must do, as a captured stream lives as long as its capture. A stream's block is allocated
    in stream order. In a capture nothing is added to the graph but the launch: the block is allocated and cleared at
    once, on a stream of its own, and held for as long as the graph or an instance of it lives. So graphs may be
    replayed beside anything; two instances of one graph share its blocks and must not run at the same time.
    `driver` is the driver's functions by name, each returning its status.
    """

    def __init__(self, driver: Any = None) -> None:
        self._driver = driver
        self._streams: dict[int, _Block] = {}
        self._captures: dict[tuple[int, int, int], _Block] = {}
        self._held: list[_Held] = []
        self._unused: list[_Block] = []
        self._side = ctypes.c_void_p()
        self._capturing, self._capture, self._stream = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_uint64()
        self._capturing_pointer, self._stream_pointer = ctypes.byref(self._capturing), ctypes.byref(self._stream)
        self._info = (self._capturing_pointer, ctypes.byref(self._capture))
        self._lock = threading.Lock()
        renew_in_children(self)

    def renew_lock(self) -> None:
        """See `locks.renew_in_children`."""
        self._lock = threading.Lock()

    def launch(self, args: Any, need: Need, stream: int, call: Callable[[], int]) -> int:
        """The status of `call`, which launches on the stream of this raw handle; its scratch is put into `args`.

        Raises LaunchFailed where there is no memory.
        """
        with self._lock:
            block = self._streams.get(NO_ID) if stream == LEGACY_DEFAULT_STREAM else None
            if block is None or not block.size.holds(need):
                block = self._block_of(need, stream)
            args.workspace, args.flags = block.workspace, block.flags
            return call()

    def _block_of(self, need: Need, stream: int) -> _Block:
        """The block for a launch on a stream of any kind."""
        if self._driver is None:
            self._driver = driver_library()
        handle = ctypes.c_void_p(stream)
        if stream in (LEGACY_DEFAULT_STREAM, LEGACY_DEFAULT_STREAM_BY_NAME):  # is never captured and never ends
            return self._of_stream(need, handle, NO_ID)
        require(self._driver.cuStreamIsCapturing(handle, self._capturing_pointer))
        if self._capturing.value:
            return self._of_graph(need, handle)
        require(self._driver.cuStreamGetId(handle, self._stream_pointer))  # an error in a capture, and would end it
        return self._of_stream(need, handle, self._stream.value)

    def _of_stream(self, need: Need, handle: ctypes.c_void_p, key: int) -> _Block:
        """The stream's block, its newest use noted; a larger one in the place of one that is too small."""
        block = self._streams.pop(key, None)
        if block is not None and not block.size.holds(need):
            size = block.size
            need = Need(max(size.flags_bytes, need.flags_bytes), max(size.workspace_bytes, need.workspace_bytes))
            require(self._driver.cuMemFreeAsync(ctypes.c_uint64(block.flags), handle))
            block = None
        if block is None:
            self._give_back()
            address, padded = ctypes.c_uint64(), _padded(need)
            require(self._driver.cuMemAllocAsync(ctypes.byref(address), ctypes.c_size_t(sum(padded)), handle))
            self._clear(address, padded, handle)
            block = _Block(address.value, address.value + padded.flags_bytes, padded)
        self._streams[key] = block
        return block

    def _give_back(self) -> None:
        """Where as many blocks are kept as may be, free the half that is longest unused, and those of graphs gone.

        Their streams may have ended, so the device is waited for first. Where it can't be, as while another thread
        captures, they are kept until the next time.
        """
        if len(self._streams) < MOST_STREAMS or self._driver.cuCtxSynchronize():
            return
        for key in list(self._streams)[: MOST_STREAMS // 2]:
            self._driver.cuMemFree_v2(ctypes.c_uint64(self._streams.pop(key).flags))
        self._collect()
        while self._unused:
            self._driver.cuMemFree_v2(ctypes.c_uint64(self._unused.pop().flags))

    def _of_graph(self, need: Need, handle: ctypes.c_void_p) -> _Block:
        """The block of this stream in this capture, held by the graph that is being captured."""
        require(self._driver.cuStreamGetCaptureInfo_v2(handle, *self._info, None, None, None))
        thread = threading.get_ident() if handle.value == PER_THREAD_STREAM else 0
        key = self._capture.value, handle.value or 0, thread
        block = self._captures.get(key)
        if block is not None and block.size.holds(need):
            return block
        mode = ctypes.c_int(RELAXED_CAPTURE)  # in which allocating is allowed; the thread's own comes back in its place
        require(self._driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
        try:
            self._collect()
            block = self._new_block(need)
            self._held.append(_Held(block, key, self._hold(handle)))
        finally:
            require(self._driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)))
        self._captures[key] = block
        return block

    def _new_block(self, need: Need) -> _Block:
        """A cleared block for a graph: one whose graph is gone, or new memory."""
        fitting = [block for block in self._unused if block.size.holds(need)]
        if fitting:
            block = min(fitting, key=lambda each: sum(each.size))
            self._unused.remove(block)
            return block
        if not self._side.value:
            require(self._driver.cuStreamCreate(ctypes.byref(self._side), ctypes.c_uint(NON_BLOCKING_STREAM)))
        address, padded = ctypes.c_uint64(), _padded(need)
        require(self._driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(sum(padded))))
        self._clear(address, padded, self._side)
        require(self._driver.cuStreamSynchronize(self._side))
        return _Block(address.value, address.value + padded.flags_bytes, padded)

    def _clear(self, address: ctypes.c_uint64, size: Need, stream: ctypes.c_void_p) -> None:
        words = ctypes.c_size_t(size.flags_bytes // FLAG_BYTES)
        require(self._driver.cuMemsetD32Async(address, ctypes.c_uint(0), words, stream))

    def _hold(self, handle: ctypes.c_void_p) -> Any:
        """A semaphore that the driver posts when the graph captured on the stream and all its instances are gone.

        The C library's own function is the destructor: no Python runs on the driver's threads. The semaphore's memory
        is never freed before it is posted.
        """
        graph, user_object, library = ctypes.c_void_p(), ctypes.c_void_p(), _c_library()
        gone = ctypes.c_void_p(library.malloc(ctypes.c_size_t(SEMAPHORE_BYTES)))
        library.sem_init(gone, 0, 0)
        require(self._driver.cuStreamGetCaptureInfo_v2(handle, *self._info, ctypes.byref(graph), None, None))
        made = (ctypes.byref(user_object), gone, library.sem_post, ctypes.c_uint(1), ctypes.c_uint(NO_DESTRUCTOR_SYNC))
        require(self._driver.cuUserObjectCreate(*made))
        require(
            self._driver.cuGraphRetainUserObject(graph, user_object, ctypes.c_uint(1), ctypes.c_uint(MOVE_REFERENCE))
        )
        return gone

    def _collect(self) -> None:
        """Take back the blocks of graphs that are gone. Their flags are zero, as every launch left them."""
        library = _c_library()
        for held in list(self._held):
            if library.sem_trywait(held.gone) == 0:
                library.free(held.gone)
                self._held.remove(held)
                self._captures.pop(held.key, None)
                self._unused.append(held.block)


def _padded(need: Need) -> Need:
    """The need with flags that end where a workspace may begin."""
    return need._replace(flags_bytes=-(-need.flags_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES)


@cache
def _c_library() -> Any:
    """The C library, as ctypes has it."""
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    return library
