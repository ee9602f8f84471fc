"""A caller's array as the library sees it: where it lies, how its elements follow, what stands against using it there.

Owns the value and the arithmetic of strides. It holds no array and asks no framework.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.problem import ITEMSIZE_BYTES

HOST = -1


@dataclass(frozen=True, slots=True)
class View:
    """An array's address, shape, strides in bytes, element type and device (HOST or a GPU's number).

    `unusable` says in words why its elements can't be read or written where they lie; empty where they can.
    """

    name: str
    address: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    dtype: str
    device: int
    writable: bool = True
    unusable: str = ""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ITEMSIZE_BYTES[self.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements, away from 0 where they are no multiples of the element's size."""
        size = self.itemsize
        return tuple(-(-step // size) if step > 0 else step // size for step in self.strides_bytes)

    @property
    def overlaps_itself(self) -> bool:
        """Whether elements share bytes, or may: an axis doesn't fit between the steps of the next longer one."""
        if 0 in self.shape:
            return False
        extent = self.itemsize
        steps = zip(self.strides_bytes, self.shape, strict=True)
        for stride, size in sorted((abs(stride), size) for stride, size in steps if size > 1):
            if stride < extent:
                return True
            extent += stride * (size - 1)
        return False

    @property
    def reach_bytes(self) -> tuple[int, int]:
        """The first byte and the one past the last, from the address on."""
        if 0 in self.shape:
            return 0, 0
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides_bytes, strict=True)]
        low, high = (sum(step for step in steps if sign * step > 0) for sign in (-1, 1))
        return low, high + self.itemsize

    def touches(self, other: View) -> bool:
        """Whether the two lie in one stretch of memory, be it without sharing an element."""
        (low, high), (other_low, other_high) = self.reach_bytes, other.reach_bytes
        return self.address + low < other.address + other_high and other.address + other_low < self.address + high

    def is_same_memory(self, other: View) -> bool:
        """Whether the two are the very same elements in the same order."""
        return (self.address, self.shape, self.strides_bytes) == (other.address, other.shape, other.strides_bytes)


def times(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of strides in elements."""
    return tuple(stride * itemsize for stride in strides)


def packed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of an array without gaps, the last axis closest."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def alignment_of(*addresses: int) -> int:
    """The largest power of two up to 256 that divides every address or offset, in bytes."""
    bits = 256
    for address in addresses:
        bits |= address
    return bits & -bits
