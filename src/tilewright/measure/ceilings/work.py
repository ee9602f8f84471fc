"""How much each ceiling's launch does on a card, and what the card's own figures say it could do at most.

Owns sizes and arithmetic. It launches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arch import ArchSpec, occupancy
from tilewright.compile.binary import Binary
from tilewright.compile.nvrtc import compile_cubin
from tilewright.errors import InvalidInput
from tilewright.facts.static import resources_of
from tilewright.measure.ceilings.kernels import CEILINGS, CONSTANTS, THREADS, VECTOR_BYTES, Ceiling, Product
from tilewright.run.protocol import Grid

FMA_ROUNDS, PRODUCT_ROUNDS, SHARED_ROUNDS = 32768, 4096, 4096
SHARED_BYTES_PER_CLOCK = 128
"""Of one SM: 32 banks of four bytes."""
L2_SHARE, L2_SWEEPS = 3, 256
MOST_ARRAY_BYTES = 8 << 30
LEAST_ARRAY_OVER_L2 = 16


@dataclass(frozen=True)
class Card:
    """What sizes follow from. `array_bytes` is the size of each of the two large arrays."""

    arch: ArchSpec
    sm_count: int
    l2_bytes: int
    array_bytes: int
    memory_bus_bits: int = 0


@dataclass(frozen=True)
class Clocks:
    """Median clocks while the rounds ran, in MHz; None where nobody told."""

    sm_mhz: float | None
    memory_mhz: float | None


@dataclass(frozen=True)
class Work:
    """One ceiling's launch on one card: a single wave that fills it, but for the copy.

    `count` is the vectors of the array that is read, `repeats` what one thread does (see `args.cuh`). `flop` and
    `moved_bytes` are the whole launch's; the one that the ceiling isn't about is 0.
    """

    ceiling: Ceiling
    binary: Binary
    grid: Grid
    count: int
    repeats: int
    flop: int = 0
    moved_bytes: int = 0

    @property
    def threads(self) -> int:
        """Threads of the launch."""
        return self.grid.grid[0] * THREADS


def array_bytes(free_bytes: int, l2_bytes: int) -> int:
    """Bytes for each large array: a quarter of what is free, at most 8 GiB.

    Raises InvalidInput where that is below 16 times the L2.
    """
    size = min(MOST_ARRAY_BYTES, free_bytes // 4)
    if size < LEAST_ARRAY_OVER_L2 * l2_bytes:
        raise InvalidInput(
            f"{free_bytes / 2**30:.1f} GiB of device memory free: a quarter must be at least {LEAST_ARRAY_OVER_L2} "
            f"times the L2 of {l2_bytes >> 20} MiB, so that DRAM is measured and not the L2; end what else uses it"
        )
    return size


def works(card: Card) -> list[Work]:
    """Every ceiling that the card has, compiled for it and sized to it. Those of the DRAM have one grid and size."""
    had = [ceiling for ceiling in CEILINGS if ceiling.features <= card.arch.features]
    binaries = [(ceiling, compile_cubin(ceiling.source, card.arch)) for ceiling in had]
    dram_ctas = min(_ctas_per_sm(binary, card.arch) for ceiling, binary in binaries if ceiling.limit == "dram")
    made = []
    for ceiling, binary in binaries:
        smem_bytes = ceiling.dynamic_smem_bytes
        ctas_per_sm = dram_ctas if ceiling.limit == "dram" else _ctas_per_sm(binary, card.arch, smem_bytes)
        grid = Grid((card.sm_count * ctas_per_sm, 1, 1), (THREADS, 1, 1), smem_bytes)
        made.append(_sized(ceiling, binary, grid, card))
    return made


def _ctas_per_sm(binary: Binary, arch: ArchSpec, dynamic_smem_bytes: int = 0) -> int:
    found = resources_of(binary)
    smem_bytes = found.smem_bytes + dynamic_smem_bytes
    held = occupancy(arch, threads_per_cta=THREADS, registers=found.registers, smem_bytes=smem_bytes)
    return held.ctas_per_sm


def _sized(ceiling: Ceiling, binary: Binary, grid: Grid, card: Card) -> Work:
    threads = grid.grid[0] * THREADS
    if ceiling.limit == "fma":
        return Work(ceiling, binary, grid, 0, FMA_ROUNDS, flop=2 * threads * CONSTANTS["CHAINS"] * FMA_ROUNDS)
    if ceiling.product is not None:
        return Work(
            ceiling, binary, grid, 0, PRODUCT_ROUNDS, flop=PRODUCT_ROUNDS * _round_flop(ceiling.product, threads)
        )
    if ceiling.limit == "shared":
        moved = threads * CONSTANTS["LOADS"] * SHARED_ROUNDS * VECTOR_BYTES
        return Work(ceiling, binary, grid, 0, SHARED_ROUNDS, moved_bytes=moved)
    if ceiling.limit == "l2":
        count = card.l2_bytes // L2_SHARE // VECTOR_BYTES
        repeats = _whole(count * L2_SWEEPS // threads)
        return Work(ceiling, binary, grid, count, repeats, moved_bytes=threads * repeats * VECTOR_BYTES)
    repeats = _whole(card.array_bytes // VECTOR_BYTES // threads)
    count = threads * repeats
    if ceiling.kernel == "global_copy":
        one_each = Grid((count // THREADS, 1, 1), (THREADS, 1, 1))
        return Work(ceiling, binary, one_each, count, 1, moved_bytes=2 * count * VECTOR_BYTES)
    return Work(ceiling, binary, grid, count, repeats, moved_bytes=count * VECTOR_BYTES)


def _round_flop(product: Product, threads: int) -> int:
    """FLOP of one round of all threads."""
    return 2 * product.m * product.n * product.depth * product.chains * threads // product.threads


def _whole(repeats: int) -> int:
    """The multiple of IN_FLIGHT below, since a kernel moves that many at a time; at least one."""
    return max(repeats // CONSTANTS["IN_FLIGHT"], 1) * CONSTANTS["IN_FLIGHT"]


def theoretical(ceiling: Ceiling, card: Card, clocks: Clocks) -> float | None:
    """FLOP or bytes a second by the card's own figures at these clocks; None where there is no such figure."""
    if ceiling.limit in ("fma", "tensor") and clocks.sm_mhz is not None:
        return card.sm_count * card.arch.fmas_per_sm(ceiling.dtype) * 2 * clocks.sm_mhz * 1e6
    if ceiling.limit == "shared" and clocks.sm_mhz is not None:
        return card.sm_count * SHARED_BYTES_PER_CLOCK * clocks.sm_mhz * 1e6
    if ceiling.limit == "dram" and clocks.memory_mhz is not None and card.memory_bus_bits:
        return card.memory_bus_bits / 8 * 2 * clocks.memory_mhz * 1e6
    return None
