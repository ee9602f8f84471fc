"""The device interface both backends implement: allocate, copy, launch, synchronise.

Addresses are plain integers valid inside the device, so an argument struct is the same bytes for both.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tilewright.compile.binary import Binary
from tilewright.declare.tensor_map import TensorMap
from tilewright.run.tensor_map import EncodedMap

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Grid:
    """Launch geometry: CTAs, threads and CTAs per cluster in each dimension, dynamic shared memory in bytes.

    `dependent` asks for programmatic dependent launch.
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

    def encode(self, tensor_map: TensorMap, address: int) -> EncodedMap:
        """The map of the matrices at `address` as this device's kernels take it. Raises InvalidProblem."""
        ...

    def launch(self, binary: Binary, grid: Grid, args: ctypes.Structure, *, stream: Any = None) -> None:
        """Start the kernel with its one argument struct. Raises LaunchFailed, at once or at `synchronize`."""
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
