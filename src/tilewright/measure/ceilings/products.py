"""What the tensor-core ceilings must give: the operands of `products.cuh`, and which of their sums a thread holds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tilewright.measure.ceilings.kernels import Product
from tilewright.measure.ceilings.words import SEED, Words, words_at
from tilewright.measure.ceilings.work import Work

Integers = npt.NDArray[np.int64]
MIXER = np.uint32(2246822519)


def operands(product: Product) -> tuple[Integers, Integers]:
    """A, (m, depth), and B, (depth, columns of all chains)."""
    columns, k = product.n * product.chains, np.arange(product.depth)
    odd = k // product.k % 2 == 1
    word = _mixed(product.m, k - odd * product.k, product.depth, SEED)
    x = (word >> np.uint32(24)).astype(np.int64) - 128
    bit = (word >> np.uint32(23) & np.uint32(1)).astype(np.int64)
    b = (_mixed(columns, k - odd * product.k, product.depth, ~SEED & 0xFFFFFFFF) >> np.uint32(24)).astype(
        np.int64
    ) - 128
    return np.where(odd, bit - x, x), b.T


def _mixed(rows: int, k: npt.NDArray[np.int64], depth: int, seed: int) -> Words:
    word = words_at(np.arange(rows)[:, None] * depth + k, seed)
    return (word ^ word >> np.uint32(15)) * MIXER


def product_sums(work: Work) -> Words:
    """What each thread's weighed sums come to, (threads,)."""
    product = work.ceiling.product
    assert product is not None
    a, b = operands(product)
    rows, columns = _wmma_places(product) if work.ceiling.kernel == "wmma" else _mma_places(product)
    held = (a @ b * work.repeats)[rows, columns]
    together = (held @ np.arange(1, held.shape[1] + 1)).astype(np.uint32)
    return np.tile(together, work.threads // product.threads)


def _mma_places(product: Product) -> tuple[Integers, Integers]:
    """Row and column of each sum, (threads of one instruction, sums of one), as mma.sync and wgmma hold them."""
    thread, place = np.arange(product.threads)[:, None], np.arange(product.n * product.chains // 2)
    lane = thread % 32
    return 16 * (thread // 32) + lane // 4 + place // 2 % 2 * 8, place // 4 * 8 + lane % 4 * 2 + place % 2


def _wmma_places(product: Product) -> tuple[Integers, Integers]:
    """The same where each chain's patch of 16×16 is read lane by lane."""
    lane, place = np.arange(product.threads)[:, None], np.arange(product.chains * 8)
    at = place % 8 * 32 + lane
    return at // 16, place // 8 * 16 + at % 16
