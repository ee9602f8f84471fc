"""The device interface both backends implement: allocate, copy, compile, launch, synchronise.

Addresses are plain integers valid inside the device, so an argument struct is the same bytes for both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from tilewright.compile.binary import Binary, KernelSource
from tilewright.declare.tensor_map import TensorMap

if TYPE_CHECKING:
    from tilewright.run.scratch import Need

Bytes = npt.NDArray[np.uint8]
Launch = Callable[[int, int, int, int, int, int], None]
"""Launches at the addresses of A, B, C, D and the bias, on the stream of a raw handle. Raises LaunchFailed."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Launch geometry: CTAs, threads and CTAs per cluster in each dimension, dynamic shared memory in bytes.

    `dependent` asks for programmatic dependent launch, of a kernel that was built to wait for the one before it.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int = 0
    cluster: tuple[int, int, int] = (1, 1, 1)
    dependent: bool = False


class Memory(Protocol):
    """One device allocation."""

    @property
    def address(self) -> int: ...
    @property
    def nbytes(self) -> int: ...


class Backend(Protocol):
    """A device. `name` is 'cuda' or 'emulator'; a stream is the backend's own notion, None its default."""

    @property
    def name(self) -> str: ...
    @property
    def sm_count(self) -> int: ...

    def alloc(self, nbytes: int, *, label: str, alignment_bytes: int = 256, read_only: bool = False) -> Memory:
        """Reserve `nbytes`; `label` names the array in reports. Contents are arbitrary."""
        ...

    def upload(self, memory: Memory, host: Bytes) -> None:
        """Copy `host` (contiguous uint8, at most the allocation's size) to the allocation's start."""
        ...

    def download(self, memory: Memory) -> Bytes:
        """A host copy of the whole allocation."""
        ...

    def compile(self, source: KernelSource) -> Binary:
        """The kernel compiled for this device, or taken from the cache. Raises CompileFailed, Missing."""
        ...

    def prepare(
        self, binary: Binary, grid: Grid, args: Any, maps: Mapping[str, TensorMap], need: Need | None
    ) -> Launch:
        """A launch to be repeated, its kernel loaded. `args` has all but addresses; `maps` are by operand.

        `need` is what the launch needs of the device's scratch. Raises InvalidProblem, LaunchFailed.
        """
        ...

    def launch(self, binary: Binary, grid: Grid, args: ctypes.Structure, *, stream: Any = None) -> None:
        """Start a kernel once, with `args` as they are. Raises LaunchFailed, at once or at `synchronize`."""
        ...

    def stream_handle(self, stream: Any = None) -> int:
        """The raw handle of a stream, by default of the device's own; 0 where it has no streams."""
        ...

    def synchronize(self) -> None:
        """Return when all launched work is done."""
        ...

    def free_bytes(self) -> int:
        """Bytes that could be allocated now."""
        ...

    def close(self) -> None:
        """Release every allocation."""
        ...
