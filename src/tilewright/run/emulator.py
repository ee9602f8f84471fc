"""The emulator as a device: `protocol.Backend` on a plain CPU.

Owns arrays and options; each launch is a child process, so a kernel that crashes takes nothing with it. Results
are what it is for: `last_kernel_ns` is the CPU's time and says nothing about a GPU's.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Mapping
from typing import Any, Self

from tilewright.compile.batch import usable_cores
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.host import compile_host, host_source
from tilewright.compile.traced import TRACED
from tilewright.declare.config import MAX_GRID
from tilewright.declare.tensor_map import TensorMap
from tilewright.emulator import process, report
from tilewright.emulator.memory import DeviceArray, DeviceMemory, Placement
from tilewright.errors import InvalidInput
from tilewright.run.protocol import Bytes, Grid, Launch, Memory
from tilewright.run.scratch import EmulatorScratch, Need
from tilewright.run.tensor_map import encode_for_emulator

MOST_THREADS = 1024
MOST_BLOCK = (1024, 1024, 64)


class EmulatorBackend:
    """A CPU that runs host-compiled kernels CTA by CTA.

    `placement` is the side on which an array borders on unmapped pages: 'end' or 'start'. `workers` OS threads stand
    for SMs, each with one CTA (default: the usable cores). `schedule` orders threads between barriers, and CTAs:
    'default' ascending, 'reverse', or 'random' by `seed`. `async_completion` says when cp.async and TMA copies land:
    'latest' (at the wait), 'earliest' (at issue) or 'random'. A launch that takes longer than `timeout_s` is ended.

    Raises InvalidInput for an option that is none of these.
    """

    name = "emulator"
    takes_traced = False
    """Whether its binaries come from `compile_traced` or from `compile_host`."""

    def __init__(
        self,
        *,
        placement: Placement = "end",
        workers: int | None = None,
        schedule: process.Schedule = "default",
        seed: int = 0,
        async_completion: process.Completion = "latest",
        timeout_s: float = 120.0,
    ) -> None:
        _check_choice("schedule", schedule, ("default", "reverse", "random"))
        _check_choice("async_completion", async_completion, ("latest", "earliest", "random"))
        if workers is not None and workers < 1:
            raise InvalidInput(f"workers={workers}: must be at least 1; leave it out for the usable cores")
        if not 0 <= seed < 2**64:
            raise InvalidInput(f"seed={seed}: must be between 0 and 2**64 - 1")
        if not timeout_s > 0:
            raise InvalidInput(f"timeout_s={timeout_s}: must be positive")
        self._memory = DeviceMemory(placement)
        self._workers = workers or usable_cores()
        self._schedule, self._seed, self._completion = schedule, seed, async_completion
        self._timeout_s = timeout_s
        self._last_kernel_ns = 0
        self.scratch = EmulatorScratch(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def last_kernel_ns(self) -> int:
        """Nanoseconds of CPU wall time the last launch's CTAs took; 0 before the first."""
        return self._last_kernel_ns

    @property
    def sm_count(self) -> int:
        """How many CTAs are resident at once: `workers`."""
        return self._workers

    def alloc(self, nbytes: int, *, label: str, alignment_bytes: int = 256, read_only: bool = False) -> DeviceArray:
        """Reserve `nbytes`, filled with 0xFF. Freed when nobody refers to it any more. Raises InvalidInput."""
        return self._memory.alloc(nbytes, label=label, alignment_bytes=alignment_bytes, read_only=read_only)

    def upload(self, memory: Memory, host: Bytes) -> None:
        """Copy `host` (contiguous uint8) to the allocation's start. Raises InvalidInput if it is larger."""
        array = self._own(memory)
        if host.nbytes > array.nbytes:
            raise InvalidInput(f"{array.label}: {host.nbytes} bytes do not fit into {array.nbytes}")
        array.bytes[: host.nbytes] = host

    def download(self, memory: Memory) -> Bytes:
        """A copy of the whole allocation, (nbytes,)."""
        return self._own(memory).bytes.copy()

    def compile(self, source: KernelSource) -> Binary:
        """The kernel compiled for this CPU, or taken from the cache. Raises CompileFailed, NoCompiler."""
        return compile_host(host_source(source))

    def prepare(
        self, binary: Binary, grid: Grid, args: Any, maps: Mapping[str, TensorMap], need: Need | None
    ) -> Launch:
        """A launch to be repeated. See `Backend.prepare`."""
        return _EmulatedLaunch(self, binary, grid, args, maps, need)

    def stream_handle(self, stream: Any = None) -> int:
        """0: launches are synchronous and in order."""
        return 0

    def launch(self, binary: Binary, grid: Grid, args: ctypes.Structure, *, stream: Any = None) -> None:
        """Run the kernel to its end. Raises a LaunchFailed that names thread, CTA, line and cause.

        `binary` comes from `compile_host`. Launches are synchronous and in order; `stream` is ignored.
        """
        _check_geometry(binary, grid)
        if binary.target.endswith(TRACED) != self.takes_traced:
            needed = "compile_traced" if self.takes_traced else "compile_host"
            raise InvalidInput(f"{binary.entry}: compiled for {binary.target}; compile it with {needed} instead")
        launch = process.Launch(
            kernel=binary,
            grid=grid.grid,
            block=grid.block,
            dynamic_smem_bytes=grid.dynamic_smem_bytes,
            workers=self._workers,
            schedule=self._schedule,
            seed=self._seed,
            async_completion=self._completion,
            arrays=self._memory.arrays(),
            args=bytes(args),
            timeout_s=self._timeout_s,
        )
        answer = self._run(launch)
        if not answer["ok"]:
            raise report.failure(answer, launch, self._memory)
        self._last_kernel_ns = int(answer["kernel_ns"])
        for array in launch.arrays:
            if (offset := array.overwritten()) is not None:
                raise report.overwritten(array, offset, launch)

    def _run(self, launch: process.Launch) -> dict[str, Any]:
        """The runner's report on one launch."""
        return process.run(launch)

    def synchronize(self) -> None:
        """Return: every launch has ended already."""

    def free_bytes(self) -> int:
        """Bytes the machine says are available."""
        return host_free_bytes()

    def close(self) -> None:
        """Forget every allocation."""
        self._memory.clear()

    def _own(self, memory: Memory) -> DeviceArray:
        if not isinstance(memory, DeviceArray) or self._memory.find(memory.address) is not memory:
            raise InvalidInput("this memory is no allocation of this emulator, or was closed; use one from its alloc")
        return memory


class _EmulatedLaunch:
    """A kernel with its geometry and argument struct. See `protocol.Launch`."""

    def __init__(
        self,
        device: EmulatorBackend,
        binary: Binary,
        grid: Grid,
        args: Any,
        maps: Mapping[str, TensorMap],
        need: Need | None,
    ) -> None:
        self._device, self._binary, self._grid = device, binary, grid
        self._args, self._maps, self._need = args, maps, need
        self._lock = threading.Lock()

    def __call__(self, a: int, b: int, c: int, d: int, bias: int, stream: int) -> None:
        args, addresses = self._args, {"a": a, "b": b, "d": d}
        with self._lock:
            args.a, args.b, args.c, args.d, args.bias = a, b, c, d, bias
            for name, tensor_map in self._maps.items():
                setattr(args, f"map_{name}", encode_for_emulator(tensor_map, addresses[name]))
            if self._need is None:
                self._start()
            else:
                self._device.scratch.launch(args, self._need, self._start)

    def _start(self) -> None:
        self._device.launch(self._binary, self._grid, self._args)


def host_free_bytes() -> int:
    """MemAvailable of the machine in bytes; 0 where it isn't told."""
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        for line in meminfo:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInput(f"{name}={value!r}: must be one of {', '.join(choices)}")


def _check_geometry(binary: Binary, grid: Grid) -> None:
    if binary.target.startswith("sm_"):
        raise InvalidInput(f"{binary.entry}: compiled for {binary.target}, a GPU; compile it with compile_host instead")
    for name, sizes, most in (("grid", grid.grid, MAX_GRID), ("block", grid.block, MOST_BLOCK)):
        if any(not 1 <= size <= limit for size, limit in zip(sizes, most, strict=True)):
            raise InvalidInput(f"{binary.entry}: {name}={sizes}: each size must be between 1 and {most}, as on a GPU")
    if math.prod(grid.block) > MOST_THREADS:
        raise InvalidInput(f"{binary.entry}: block={grid.block}: at most {MOST_THREADS} threads make a CTA")
