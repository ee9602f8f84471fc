"""One problem's operands on a GPU, many times over, and arms that launch on them in turn.

Owns the buffers and what they hold; it times nothing and verifies nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes  # noqa: F401 -- so that NumPy knows bfloat16
import numpy as np

from tilewright.compile.binary import Binary
from tilewright.compile.variant import PLAIN, Variant
from tilewright.declare import Config
from tilewright.errors import InvalidInput
from tilewright.measure.baseline import Baseline
from tilewright.measure.modes import COLD, WARM, check_cache
from tilewright.measure.schedule import Arm
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.run.cuda import CudaBackend
from tilewright.run.kernel import bind

DATA = "uniform [-1, 1]"
SEED = 20260101
MAX_SLOTS = 1024
Addresses = tuple[int, int, int, int]


def ring_slots(set_bytes: int, l2_bytes: int) -> int:
    """How many buffer sets of `set_bytes` let twice the L2 pass between two uses of one set: 2 to 1024.

    Sets too small for that many to outlast the L2 are measured from it. Raises InvalidInput for sizes below 1.
    """
    if set_bytes < 1 or l2_bytes < 1:
        raise InvalidInput(f"set_bytes={set_bytes}, l2_bytes={l2_bytes}: must be at least 1; pass the operands' bytes")
    return min(MAX_SLOTS, 1 + math.ceil(2 * l2_bytes / set_bytes))


def slots_for(problem: Problem, gpu: CudaBackend, cache: str = COLD) -> int:
    """How many sets of `problem`'s operands outlast the GPU's L2; one where the cache is to be warm."""
    check_cache(cache)
    return 1 if cache == WARM else ring_slots(problem.operand_bytes, _l2_bytes(gpu))


class OperandRing:
    """Sets of A, B, C and D, enough that none is found in the L2 when its turn comes again; one for a `warm` cache.

    Inputs are `DATA`, seeded. Where C takes no part it is D, for builds that read it all the same. The backend frees
    them when it closes. `sets` are the addresses of sets that somebody else keeps and has filled. Raises InvalidInput
    for another cache state.
    """

    def __init__(
        self, problem: Problem, gpu: CudaBackend, cache: str = COLD, *, sets: Sequence[Addresses] | None = None
    ) -> None:
        self.problem = problem
        self._gpu = gpu
        self._sets = sets or [_operand_set(problem, gpu, slot) for slot in range(slots_for(problem, gpu, cache))]

    @property
    def cache(self) -> str:
        """'cold' where the sets do outlast the L2, else 'warm', whatever was asked for."""
        return COLD if (self.slots - 1) * self.problem.operand_bytes >= _l2_bytes(self._gpu) else WARM

    @property
    def slots(self) -> int:
        """How many sets there are."""
        return len(self._sets)

    def config_arm(self, label: str, config: Config, binary: Binary | None = None, *, variant: Variant = PLAIN) -> Arm:
        """An arm that launches `config`, or a `binary` that was compiled from it for the ring's problem."""
        kernel = bind(config, self.problem, self._gpu, variant=variant, binary=binary)

        def launch(slot: int, stream: Any) -> None:
            kernel.launch(*self._sets[slot], 0, self._gpu.stream_handle(stream))

        return Arm(label, launch)

    def baseline_arm(self, label: str, baseline: Baseline) -> Arm:
        """An arm that calls the baseline."""

        def launch(slot: int, stream: Any) -> None:
            a, b, c, d = self._sets[slot]
            baseline.gemm(self.problem, a, b, c, d, stream)

        return Arm(label, launch)


def _l2_bytes(gpu: CudaBackend) -> int:
    return int(gpu.device.properties.l2_cache_size)


def _operand_set(problem: Problem, gpu: CudaBackend, slot: int) -> Addresses:
    rng = np.random.default_rng(SEED + slot)
    addresses = []
    for operand in "abcd":
        if operand == "c" and not problem.reads_c:
            continue
        count, dtype = problem.total_extent(operand), problem.storage_dtype(operand)
        memory = gpu.alloc(count * ITEMSIZE_BYTES[dtype], label=operand.upper())
        if operand != "d":
            host = (rng.random(count, np.float32) * 2 - 1).astype(np.dtype(dtype))
            gpu.upload(memory, host.view(np.uint8))
        addresses.append(memory.address)
    *inputs, d = addresses
    a, b, c = inputs if problem.reads_c else (*inputs, d)
    return a, b, c, d
