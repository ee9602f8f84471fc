"""A caller's array as the library sees it: where it lies, how its elements follow, what stands against using it there.

Owns the value and the arithmetic of strides. It holds no array and asks no framework.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.problem import ITEMSIZE_BYTES

HOST = -1


@dataclass(frozen=True, slots=True)
class View:
    """An array's address, shape, strides in elements, element type and device (HOST or a GPU's number).

    `unusable` says in words why its elements can't be read or written where they lie; empty where they can.
    """

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    writable: bool = True
    unusable: str = ""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ITEMSIZE_BYTES[self.dtype]

    @property
    def reach_bytes(self) -> tuple[int, int]:
        """The first byte and the one past the last, from the address on."""
        if 0 in self.shape:
            return 0, 0
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        low, high = (sum(step for step in steps if sign * step > 0) for sign in (-1, 1))
        return low * self.itemsize, (high + 1) * self.itemsize

    def touches(self, other: View) -> bool:
        """Whether the two lie in one stretch of memory, be it without sharing an element."""
        (low, high), (other_low, other_high) = self.reach_bytes, other.reach_bytes
        return self.address + low < other.address + other_high and other.address + other_low < self.address + high

    def is_same_memory(self, other: View) -> bool:
        """Whether the two are the very same elements in the same order."""
        return (self.address, self.shape, self.strides) == (other.address, other.shape, other.strides)


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
