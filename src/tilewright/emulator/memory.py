"""Device memory as both sides of the emulator see it: pages shared with the child, at addresses known beforehand.

Every array has a slot of the address space to itself and nothing else of the slot is mapped, so an access outside
the array faults and its slot names it. Owns addresses and pages; it knows no kernel.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from typing import Literal

import numpy as np
import numpy.typing as npt

from tilewright.errors import InvalidInput, LaunchFailed

Placement = Literal["end", "start"]
BASE_ADDRESS = 0x200000000000
SLOT_BYTES = 2**36
MOST_ARRAYS = 512
POISON = 0xFF
"""Fills new arrays: a NaN in every floating-point type, so that an element nobody wrote shows."""


def shared_file(name: str) -> int:
    """The descriptor of a new file in memory, above 2: a child's own 0, 1 and 2 would hide it there."""
    descriptor = os.memfd_create(name)
    if descriptor > 2:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(descriptor)


def _round_up(nbytes: int, unit_bytes: int) -> int:
    return -(-nbytes // unit_bytes) * unit_bytes


class DeviceArray:
    """One allocation. `bytes` is the host's view of it; its pages live until the last reference is gone.

    With placement 'end' the data ends where its pages end, up to `alignment_bytes`; with 'start' it starts where
    they start. The pages' rest is poisoned, and `overwritten` tells if a kernel wrote there.
    """

    def __init__(
        self, slot: int, nbytes: int, label: str, alignment_bytes: int, read_only: bool, placement: Placement
    ) -> None:
        self.slot, self.nbytes, self.label, self.read_only = slot, nbytes, label, read_only
        self.mapped_bytes = _round_up(max(nbytes, 1), max(mmap.PAGESIZE, alignment_bytes))
        self.first_byte = self.mapped_bytes - _round_up(nbytes, alignment_bytes) if placement == "end" else 0
        self.map_address = BASE_ADDRESS + slot * SLOT_BYTES + SLOT_BYTES // 2
        self.descriptor = shared_file(f"tilewright-{slot}")
        weakref.finalize(self, os.close, self.descriptor)
        os.ftruncate(self.descriptor, self.mapped_bytes)
        self._pages = np.frombuffer(mmap.mmap(self.descriptor, self.mapped_bytes), np.uint8)
        self._pages[:] = POISON

    @property
    def address(self) -> int:
        """The first byte's address inside the device."""
        return self.map_address + self.first_byte

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The data (nbytes,), writable, shared with the device."""
        return self._pages[self.first_byte : self.first_byte + self.nbytes]

    def overwritten(self) -> int | None:
        """The byte offset of the first write beside the data, within its pages; None if there is none. Repairs it."""
        before, after = self._pages[: self.first_byte], self._pages[self.first_byte + self.nbytes :]
        for start, part in ((-self.first_byte, before), (self.nbytes, after)):
            if (wrong := np.flatnonzero(part != POISON)).size:
                part[:] = POISON
                return start + int(wrong[0])
        return None


class DeviceMemory:
    """The arrays of one emulated device. An array that nobody refers to any more is freed and its slot reused."""

    def __init__(self, placement: Placement) -> None:
        if placement not in ("end", "start"):
            raise InvalidInput(f"placement={placement!r}: must be 'end' or 'start', the side where overruns are seen")
        self._placement = placement
        self._arrays: weakref.WeakValueDictionary[int, DeviceArray] = weakref.WeakValueDictionary()

    def alloc(self, nbytes: int, *, label: str, alignment_bytes: int, read_only: bool) -> DeviceArray:
        """Reserve `nbytes` (0 to 32 GiB), poisoned. Raises InvalidInput, and LaunchFailed when slots run out."""
        if not 0 <= nbytes <= SLOT_BYTES // 2:
            raise InvalidInput(f"{label}: nbytes={nbytes}: an emulated array holds 0 to {SLOT_BYTES // 2} bytes")
        if alignment_bytes < 1 or alignment_bytes & (alignment_bytes - 1):
            raise InvalidInput(f"{label}: alignment_bytes={alignment_bytes}: must be a power of two")
        slot = next((i for i in range(MOST_ARRAYS) if i not in self._arrays), None)
        if slot is None:
            raise LaunchFailed(f"{label}: the emulator holds at most {MOST_ARRAYS} arrays at once; release some")
        array = DeviceArray(slot, nbytes, label, alignment_bytes, read_only, self._placement)
        self._arrays[slot] = array
        return array

    def arrays(self) -> list[DeviceArray]:
        """Every live array, by slot."""
        return [array for _, array in sorted(self._arrays.items())]

    def find(self, address: int) -> DeviceArray | None:
        """The array in whose slot `address` lies, inside it or not."""
        return self._arrays.get((address - BASE_ADDRESS) // SLOT_BYTES)

    def clear(self) -> None:
        """Forget every array; their pages go with the last reference."""
        self._arrays.clear()
