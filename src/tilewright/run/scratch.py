"""The workspace and flags of launches on a backend, for kernels whose CTAs leave sums for each other.

A backend's launches share one of each: they follow each other in a stream, and a kernel leaves its flags zero. Launches
that may run side by side need backends of their own. Owns this memory; what is in it is the kernel's business.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from tilewright.declare import Config
from tilewright.problem import Problem
from tilewright.run.protocol import Backend, Memory

ACCUMULATOR_BYTES, FLAG_BYTES = 4, 4
_held: WeakKeyDictionary[Backend, dict[str, Memory]] = WeakKeyDictionary()


def scratch_addresses(
    config: Config, problem: Problem, backend: Backend, *, accumulator_bytes: int = ACCUMULATOR_BYTES
) -> dict[str, int]:
    """Addresses of `workspace` and `flags` for a launch of `config`; none where its rung declares no scratch.

    Raises what allocating them raises.
    """
    declared = config.scratch(problem, sm_count=backend.sm_count)
    if declared is None:
        return {}
    sums, flags = declared
    held = _held.setdefault(backend, {})
    _require(backend, held, "workspace", sums * accumulator_bytes)
    if _require(backend, held, "flags", flags * FLAG_BYTES):
        backend.upload(held["flags"], np.zeros(flags * FLAG_BYTES, np.uint8))
    return {label: memory.address for label, memory in held.items()}


def _require(backend: Backend, held: dict[str, Memory], label: str, nbytes: int) -> bool:
    """Hold memory of that size; whether it is new. The emulator's has the size exactly, so that overruns are seen."""
    there = held.get(label)
    if there is not None and (there.nbytes == nbytes or (there.nbytes > nbytes and backend.name != "emulator")):
        return False
    held[label] = backend.alloc(nbytes, label=label)
    return True
