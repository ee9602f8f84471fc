"""Exact arithmetic modulo the prime 2^61 - 1 on NumPy arrays, as `Field61` in the kernels does it.

Elements are uint64 below PRIME. Products go through limbs of 21 bits, whose products and their sums float64 and
uint64 hold exactly, so that a matrix product runs at the speed of BLAS. Owns arithmetic only.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tilewright.verify.accept import Array

BITS = 61
PRIME = 2**BITS - 1
LIMB_BITS, LIMBS = 21, 3
SLICE = 2 ** (53 - 2 * LIMB_BITS)
"""The most products of two limbs whose sum float64 holds exactly."""

Field = npt.NDArray[np.uint64]


def random_elements(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Field:
    """Uniform elements."""
    return rng.integers(0, PRIME, size=shape, dtype=np.uint64)


def add(x: Field, y: Field) -> Field:
    """X + y, elementwise."""
    return _reduced(x + y)


def multiply(x: Field, y: Field) -> Field:
    """X · y, elementwise with broadcasting."""
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape), np.uint64)
    for (i, left), (j, right) in itertools.product(enumerate(_limbs(x)), enumerate(_limbs(y))):
        total = add(total, _shifted(left * right, LIMB_BITS * (i + j)))
    return total


def matrix_product(a: Field, b: Field) -> Field:
    """A (batch, m, k) times B (batch, k, n)."""
    total = np.zeros((a.shape[0], a.shape[1], b.shape[2]), np.uint64)
    for start in range(0, a.shape[2], SLICE):
        columns = [limb.astype(np.float64) for limb in _limbs(a[:, :, start : start + SLICE])]
        rows = [limb.astype(np.float64) for limb in _limbs(b[:, start : start + SLICE, :])]
        for (i, left), (j, right) in itertools.product(enumerate(columns), enumerate(rows)):
            total = add(total, _shifted(np.matmul(left, right).astype(np.uint64), LIMB_BITS * (i + j)))
    return total


def _limbs(x: Array) -> Iterator[Field]:
    mask = np.uint64(2**LIMB_BITS - 1)
    return ((x >> np.uint64(LIMB_BITS * i)) & mask for i in range(LIMBS))


def _shifted(x: Field, bits: int) -> Field:
    """X · 2^bits for x below PRIME: as 2^61 is 1, its bits go round."""
    turn = bits % BITS
    return ((x << np.uint64(turn)) & np.uint64(PRIME)) | (x >> np.uint64(BITS - turn))


def _reduced(x: Field) -> Field:
    """The element that x, below 2^62, stands for."""
    return np.where(x >= np.uint64(PRIME), x - np.uint64(PRIME), x)
