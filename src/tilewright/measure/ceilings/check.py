"""Every ceiling's kernel proved to have done its work: each thread's result against NumPy's, bit for bit.

The array that is read is the one the write kernel wrote, so one sweep checks both; a copy is checked by reading it.
Owns the buffers that the launches use, in the check and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.errors import WrongResult
from tilewright.measure.ceilings.kernels import CONSTANTS, THREADS, VECTOR_BYTES, CeilingArgs
from tilewright.measure.ceilings.products import product_sums
from tilewright.measure.ceilings.words import MULTIPLIER, OTHER_SEED, SEED, Words, words_at
from tilewright.measure.ceilings.work import Work
from tilewright.run.protocol import Backend, Memory


@dataclass(frozen=True)
class Buffers:
    """Two large arrays and one word a thread."""

    array: Memory
    copy: Memory
    results: Memory


def allocate(backend: Backend, works: Sequence[Work]) -> Buffers:
    """Buffers that serve every one of `works`."""
    array_bytes = max(work.count for work in works) * VECTOR_BYTES
    return Buffers(
        array=backend.alloc(array_bytes, label="array"),
        copy=backend.alloc(array_bytes, label="copy"),
        results=backend.alloc(
            max(work.threads for work in works if work.ceiling.kernel in EXPECTED) * 4, label="results"
        ),
    )


def args_of(work: Work, buffers: Buffers, *, source: Memory | None = None, seed: int = SEED) -> CeilingArgs:
    """The kernel's argument. A read kernel reads `source`, by default the array that was written."""
    out = {"global_write": buffers.array, "global_copy": buffers.copy}.get(work.ceiling.kernel, buffers.results)
    return CeilingArgs((source or buffers.array).address, out.address, work.count, work.repeats, seed)


def check(backend: Backend, works: Sequence[Work], buffers: Buffers) -> None:
    """Run every one of `works` once and compare. Raises WrongResult, naming thread and words.

    Afterwards both arrays hold what the write kernel writes.
    """
    by_name = {work.ceiling.name: work for work in works}

    def launch(name: str, **how: Any) -> None:
        work = by_name[name]
        backend.launch(work.binary, work.grid, args_of(work, buffers, **how))

    def compare(name: str, expected: Words, what: str = "", **how: Any) -> None:
        launch(name, **how)
        got = backend.download(buffers.results).view(np.uint32)[: len(expected)]
        _require_equal(f"{name}{what}", got, expected)

    launch("ceiling_dram_write", seed=OTHER_SEED)
    launch("ceiling_dram_copy")
    launch("ceiling_dram_write")
    swept = read_sums(by_name["ceiling_dram_read"])
    compare("ceiling_dram_read", swept, " of what ceiling_dram_write wrote")
    launch("ceiling_dram_copy")
    compare("ceiling_dram_read", swept, " of what ceiling_dram_copy copied", source=buffers.copy)
    for name, work in by_name.items():
        if work.ceiling.limit != "dram":
            compare(name, EXPECTED[work.ceiling.kernel](work))


def read_sums(work: Work) -> Words:
    """What each thread of a global read sums up, (threads,)."""
    at = np.arange(work.threads, dtype=np.int64) % work.count
    step = work.threads % work.count
    # The sum of a vector's words is 16·v + 6 times the multiplier plus four seeds, so only the indices are summed up.
    index_sums = np.zeros(work.threads, np.int64)
    for _ in range(work.repeats):
        index_sums += at
        at += step
        at[at >= work.count] -= work.count
    constant = (6 * int(MULTIPLIER) + 4 * SEED) * work.repeats % 2**32
    return (16 * index_sums).astype(np.uint32) * MULTIPLIER + np.uint32(constant)


def shared_sums(work: Work) -> Words:
    """What each thread of a shared read sums up, (threads,)."""
    loads, span = CONSTANTS["LOADS"], CONSTANTS["VECTORS"] // CONSTANTS["LOADS"]
    words = words_at(np.arange(loads * span * 4)).reshape(loads, span, 4)
    sums = np.add.reduce(words, axis=(0, 2), dtype=np.uint32)
    first = np.arange(THREADS)
    one_cta = np.zeros(THREADS, np.uint32)
    for start in range(min(work.repeats, span // 32)):
        times = len(range(start, work.repeats, span // 32))
        one_cta += sums[(first + 32 * start) % span] * np.uint32(times)
    return np.tile(one_cta, work.grid.grid[0])


def fma_sums(work: Work) -> Words:
    """What each thread's chains come to, (threads,)."""
    bits_a = words_at(np.arange(work.threads))
    bits_b = words_at(bits_a)
    total = np.zeros(work.threads, np.uint32)
    for chain in range(CONSTANTS["CHAINS"]):
        pair = np.uint32(chain % work.ceiling.constants["PAIRS"])
        a, b = (1 + (bits >> pair & 3) for bits in (bits_a, bits_b))
        total += (chain + work.repeats * a * b).astype(np.uint32)
    return total


EXPECTED: Mapping[str, Callable[[Work], Words]] = {
    "ffma": fma_sums,
    "wmma": product_sums,
    "mma_sync": product_sums,
    "wgmma": product_sums,
    "shared_read": shared_sums,
    "global_read": read_sums,
}


def _require_equal(what: str, got: Words, expected: Words) -> None:
    wrong = np.flatnonzero(got != expected)
    if wrong.size:
        first = int(wrong[0])
        raise WrongResult(
            f"{what}: {wrong.size} of {expected.size} threads differ; thread {first} gives {got[first]:#010x}, "
            f"must be {expected[first]:#010x}"
        )
