"""The GPU backend: cuda.core for devices, streams and memory, the driver for the launch itself.

Owns the kernels that are loaded, and the one scratch of each GPU. Launches are `cuda_launch`'s.
Works in the primary context, which torch and CuPy share, and leaves the caller's current context as it was.
Without a driver the first question is `Device(0)`, asked once: kernel handles must not be touched before.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.arch import ArchSpec, arch_for_capability
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.declare.tensor_map import TensorMap
from tilewright.errors import InvalidProblem, NoDevice
from tilewright.locks import ForkSafeLock
from tilewright.run.cuda_launch import CudaLaunch
from tilewright.run.driver import check
from tilewright.run.protocol import Bytes, Grid, Memory
from tilewright.run.scratch import Need, StreamScratch

DEFAULT_SMEM_BYTES = 48 * 1024
OLDEST_DRIVER = 13000


class _Function(NamedTuple):
    """A kernel's function on one device, its context, as raw handles, and the dynamic shared memory it may take."""

    function: int
    context: int
    smem_bytes: int


_kernels: dict[str, Any] = {}
"""Loaded libraries' kernels by the binary's key. None is ever unloaded."""
_functions: dict[tuple[str, int], _Function] = {}
_loading = ForkSafeLock()
os.register_at_fork(after_in_child=_functions.clear)  # a child has no context of its parent's


@cache
def scratch_of(device_id: int) -> StreamScratch:
    """The scratch of a GPU by number, of which there is one in a process."""
    return StreamScratch()


@cache
def probe() -> tuple[str, ...]:
    """Names of the usable GPUs. Raises NoDevice saying what is missing and how to get it.

    The answer is kept for the process, success and failure alike.
    """
    error = _probe_error()
    if error is not None:
        raise NoDevice(error)
    from cuda.core import Device

    return tuple(str(device.name) for device in Device.get_all_devices())


@cache
def _probe_error() -> str | None:
    try:
        from cuda.bindings import driver
        from cuda.core import Device

        with current_context_kept():
            Device(0)
        version = check(driver.cuDriverGetVersion())
    except Exception as error:
        # pathfinder, the bindings and cuda.core each have their own; each means there is nothing to run on.
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        return f"no usable GPU: {reason}. With an NVIDIA card, install its driver (R580 or newer)"
    if version < OLDEST_DRIVER:
        return (
            f"the driver supports CUDA {version // 1000}.{version % 1000 // 10}, but cubins made by NVRTC 13 need "
            f"CUDA 13: update the driver to R580 or newer"
        )
    return None


@contextlib.contextmanager
def current_context_kept() -> Iterator[None]:
    """Restore the calling thread's current CUDA context on exit."""
    from cuda.bindings import driver

    status, previous = driver.cuCtxGetCurrent()
    try:
        yield
    finally:
        if status == driver.CUresult.CUDA_SUCCESS:
            driver.cuCtxSetCurrent(previous)


class CudaMemory:
    """One device allocation, freed by its backend's `close`."""

    def __init__(self, buffer: Any, nbytes: int) -> None:
        self.buffer = buffer
        self.address = int(buffer.handle)
        self.nbytes = nbytes


class CudaBackend:
    """One GPU with one stream. Raises NoDevice when there is none.

    `stream` is a raw handle, a cuda.core Stream or an object with `__cuda_stream__`; None makes a stream of its own.
    """

    name = "cuda"

    def __init__(self, device_id: int = 0, *, stream: Any = None) -> None:
        names = probe()
        if not 0 <= device_id < len(names):
            raise NoDevice(f"device {device_id}: this machine has {len(names)}, numbered from 0")
        from cuda.core import Device

        self.device = Device(device_id)
        self._memory: list[CudaMemory] = []
        with self.current():
            self.stream = self.device.create_stream() if stream is None else as_stream(stream)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make this device's primary context current for the block."""
        with current_context_kept():
            self.device.set_current()
            yield

    @property
    def arch(self) -> ArchSpec:
        """The device's architecture."""
        capability = self.device.compute_capability
        return arch_for_capability(capability.major, capability.minor)

    @property
    def sm_count(self) -> int:
        """Streaming multiprocessors of the device."""
        return int(self.device.properties.multiprocessor_count)

    @property
    def driver_version(self) -> str:
        """The newest CUDA the driver supports, as 'major.minor'."""
        from cuda.bindings import driver

        version = int(check(driver.cuDriverGetVersion()))
        return f"{version // 1000}.{version % 1000 // 10}"

    def alloc(self, nbytes: int, *, label: str, alignment_bytes: int = 256, read_only: bool = False) -> CudaMemory:
        """Reserve device memory, 256-byte aligned. Raises InvalidProblem when the device has no room."""
        if nbytes > self.free_bytes():
            raise InvalidProblem(
                f"{label}: {nbytes / 2**30:.1f} GiB: the device has {self.free_bytes() / 2**30:.1f} GiB free; "
                f"use smaller sizes"
            )
        with self.current():
            memory = CudaMemory(self.device.allocate(max(nbytes, 1), stream=self.stream), nbytes)
        self._memory.append(memory)
        return memory

    def free(self, memory: Iterable[Memory]) -> None:
        """Give allocations back, after the stream's work."""
        given = {id(each) for each in memory}
        with self.current():
            for each in self._memory:
                if id(each) in given:
                    each.buffer.close()
        self._memory = [each for each in self._memory if id(each) not in given]

    def upload(self, memory: Memory, host: Bytes) -> None:
        """Copy host bytes to the allocation's start, in stream order."""
        from cuda.bindings import driver

        if host.nbytes > memory.nbytes:
            raise InvalidProblem(f"{host.nbytes} bytes do not fit an allocation of {memory.nbytes}")
        with self.current():
            check(driver.cuMemcpyHtoDAsync(memory.address, host.ctypes.data, host.nbytes, self._handle))
            self.synchronize()

    def download(self, memory: Memory) -> Bytes:
        """A host copy of the allocation after all work on the stream."""
        from cuda.bindings import driver

        host = np.empty(memory.nbytes, np.uint8)
        with self.current():
            check(driver.cuMemcpyDtoHAsync(host.ctypes.data, memory.address, host.nbytes, self._handle))
            self.synchronize()
        return host

    @property
    def _handle(self) -> int:
        return int(self.stream.handle)

    def stream_handle(self, stream: Any = None) -> int:
        """The raw handle of a stream (see the class), by default of the backend's own."""
        return self._handle if stream is None else stream if isinstance(stream, int) else int(as_stream(stream).handle)

    def compile(self, source: KernelSource) -> Binary:
        """The kernel compiled for this GPU's architecture, or taken from the cache. Raises CompileFailed, Missing."""
        return compile_cubin(source, self.arch)

    def is_loaded(self, binary: Binary) -> bool:
        """Whether the binary's code is on this device already."""
        return (binary.key, self.device.device_id) in _functions

    def loaded(self, binary: Binary, dynamic_smem_bytes: int) -> tuple[int, int]:
        """The kernel's function on this device and the context it belongs to, as raw handles, its code loaded.

        Loads at once what the driver would load at the first launch, which could then not be captured in a graph. What
        is loaded stays so until the process ends, since a launch under way or a captured graph may use it.
        """
        key = binary.key, self.device.device_id
        with _loading:
            found = _functions.get(key)
            if found is None or found.smem_bytes < dynamic_smem_bytes:
                found = _functions[key] = self._load(binary, dynamic_smem_bytes)
        return found.function, found.context

    def _load(self, binary: Binary, dynamic_smem_bytes: int) -> _Function:
        from cuda.bindings import driver
        from cuda.core import ObjectCode

        with self.current():
            if binary.key not in _kernels:
                _kernels[binary.key] = ObjectCode.from_cubin(binary.payload).get_kernel(binary.entry)
            handle = int(_kernels[binary.key].handle)
            function = check(driver.cuKernelGetFunction(driver.CUkernel(handle)))
            check(driver.cuFuncLoad(function))
            if dynamic_smem_bytes > DEFAULT_SMEM_BYTES:
                attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                check(driver.cuFuncSetAttribute(function, attribute, dynamic_smem_bytes))
            context = int(check(driver.cuCtxGetCurrent()))
        return _Function(int(function), context, max(dynamic_smem_bytes, DEFAULT_SMEM_BYTES))

    def is_capturing(self, stream: int) -> bool:
        """Whether work on the stream of this raw handle is being captured in a graph."""
        from cuda.bindings import driver

        with self.current():
            status = check(driver.cuStreamIsCapturing(stream))
        return bool(status != driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)

    def prepare(
        self, binary: Binary, grid: Grid, args: Any, maps: Mapping[str, TensorMap], need: Need | None
    ) -> CudaLaunch:
        """A launch to be repeated, its code loaded. See `Backend.prepare`."""
        function, context = self.loaded(binary, grid.dynamic_smem_bytes)
        return CudaLaunch(
            function, context, grid, args, maps=maps, need=need, scratch=scratch_of(self.device.device_id)
        )

    def launch(self, binary: Binary, grid: Grid, args: ctypes.Structure, *, stream: Any = None) -> None:
        """Launch on `stream` (the backend's own by default) with `args` by value. Does not synchronise."""
        self.prepare(binary, grid, args, {}, None).start(self.stream_handle(stream))

    def synchronize(self) -> None:
        """Wait for the backend's stream. Raises LaunchFailed for what went wrong on it."""
        from cuda.bindings import driver

        with self.current():
            check(driver.cuStreamSynchronize(self._handle))

    def free_bytes(self) -> int:
        """Free device memory in bytes."""
        from cuda.bindings import driver

        with self.current():
            free, _ = check(driver.cuMemGetInfo())
        return int(free)

    def close(self) -> None:
        """Free every allocation, after the stream's work."""
        with self.current():
            while self._memory:
                self._memory.pop().buffer.close()

    def __enter__(self) -> CudaBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def as_stream(stream: Any) -> Any:
    """A cuda.core Stream for a raw handle, a Stream, or an object with `__cuda_stream__`."""
    from cuda.core import Stream

    if isinstance(stream, Stream):
        return stream
    handle = stream if isinstance(stream, int) else int(stream.__cuda_stream__()[1])
    return Stream.from_handle(handle)
