"""Chains of products, each of which reads the last one's result, with and without dependent launch.

A model's layers are such a chain. X (m, k) goes to and fro between two buffers, times another W (k, k) at every link,
and there are more W than the L2 holds. Each W is a Householder reflection, so X keeps its length in any chain.
Owns the chains and their record; which rungs are launched dependently by what it says is `select.calibrating`'s.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401 -- so that NumPy knows bfloat16
import numpy as np

from tilewright.compile.variant import Variant
from tilewright.declare import Config
from tilewright.errors import WrongResult
from tilewright.facts.roofline import card_of_device
from tilewright.facts.static import problem_fields
from tilewright.lab.gpu_environment import device_clocks, gpu_environment
from tilewright.lab.measuring import fill_times
from tilewright.measure import CudaTimer, Samples, measure
from tilewright.measure.modes import LAUNCHES
from tilewright.measure.ring import OperandRing, ring_slots
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.record import Record, Row
from tilewright.run.cuda import CudaBackend
from tilewright.select import choose

PLAIN, DEPENDENT = "plain", "dependent"
CHECKED_LINKS = 16
DATA = "X uniform [-1, 1], every W a Householder reflection"
SHAPES: tuple[tuple[str, int, int], ...] = (
    *(("float32", size, size) for size in (256, 512, 768, 1024, 2048, 4096)),
    *(("float32", rows, 4096) for rows in (1, 8, 16, 64, 128, 256)),
    *(("float32", rows, 1024) for rows in (1, 8, 64, 256)),
    *(("bfloat16", size, size) for size in (1024, 4096)),
    *(("bfloat16", rows, 4096) for rows in (128, 512)),
)
"""Element type, rows of X, columns of X and of every W."""


def chains_record(
    device: int = 0,
    *,
    shapes: Sequence[tuple[str, int, int]] = SHAPES,
    rounds: int = 30,
    budget_s: float = 1.5,
    on_ratio: Callable[[dict[str, Any]], None] = lambda ratio: None,
) -> Record:
    """Measure on a GPU the kernel that would be chosen for each shape, in both launch modes. Raises NoDevice.

    `about["ratios"]` are plain time over dependent time. Shapes of rungs that cannot wait are left out.
    """
    rows: list[Row] = []
    ratios: list[dict[str, Any]] = []
    with CudaBackend(device) as gpu:
        clocks, timer, card = device_clocks(gpu), CudaTimer(gpu.stream), card_of_device(str(gpu.device.name))
        for dtype, m, k in shapes:
            problem = Problem(m=m, n=k, k=k, dtype=dtype, out_dtype=dtype)
            name = None if card is None else card.name
            config = choose(problem, gpu.arch, gpu.sm_count, kernels="own", card=name).config
            if not config.rung.can_wait:
                continue
            ring = _chain(problem, gpu)
            arms = [
                ring.config_arm(arm, config, variant=Variant(dependent=arm == DEPENDENT)) for arm in (PLAIN, DEPENDENT)
            ]
            _require_same_bits(problem, gpu, ring, arms)
            for launch in LAUNCHES:
                with gpu.current():
                    samples = measure(
                        arms,
                        timer,
                        rounds=rounds,
                        seed=m + k,
                        budget_s=budget_s,
                        slots=ring.slots,
                        baseline=PLAIN,
                        read_clocks=clocks.read,
                        launch=launch,
                    )
                rows += _rows(problem, config, samples)
                interval = samples.ratio(DEPENDENT, PLAIN)
                made = {"rung": config.rung.name, "problem": problem_fields(problem), "launch": launch}
                ratios.append({**made, "low": interval.low, "median": interval.median, "high": interval.high})
                on_ratio(ratios[-1])
            ring.close()
        environment = gpu_environment(gpu, None, clocks.reason, data=DATA)
    return Record(command="chain", environment=environment, rows=rows, about={"ratios": ratios})


def _rows(problem: Problem, config: Config, samples: Samples) -> list[Row]:
    rows = []
    for arm in (PLAIN, DEPENDENT):
        row = Row(rung=config.rung.name, problem=problem_fields(problem), backend="cuda", config=config.values)
        row.arm = arm
        fill_times(row, samples, problem, None)
        rows.append(row)
    return rows


def _chain(problem: Problem, gpu: CudaBackend) -> _Chain:
    itemsize = ITEMSIZE_BYTES[problem.dtype]
    l2_bytes = int(gpu.device.properties.l2_cache_size)
    links = ring_slots(problem.k * problem.n * itemsize, l2_bytes)
    links += links % 2
    rng, dtype = np.random.default_rng(problem.m + problem.k), np.dtype(problem.dtype)
    x = rng.uniform(-1, 1, (problem.m, problem.k)).astype(dtype)
    buffers = [gpu.alloc(x.nbytes, label="X") for _ in range(2)]
    weights = [gpu.alloc(problem.k * problem.n * itemsize, label="W") for _ in range(links)]
    for memory in weights:
        v = rng.uniform(-1, 1, problem.k).astype(np.float32)
        reflection = np.eye(problem.k, dtype=np.float32) - np.outer(v, v) * np.float32(2 / (v @ v))
        gpu.upload(memory, reflection.astype(dtype).reshape(-1).view(np.uint8))
    sets = []
    for link, weight in enumerate(weights):
        a, d = buffers[link % 2].address, buffers[1 - link % 2].address
        sets.append((a, weight.address, d, d))
    return _Chain(problem, gpu, sets, x, buffers, weights)


class _Chain(OperandRing):
    """A ring whose sets are the links of a chain."""

    def __init__(self, problem: Problem, gpu: CudaBackend, sets: Any, x: Any, buffers: Any, weights: Any) -> None:
        super().__init__(problem, gpu, sets=sets)
        self._x, self._buffers, self._weights = x, buffers, weights

    def restart(self) -> None:
        """Put X back to where the chain begins."""
        self._gpu.upload(self._buffers[0], self._x.reshape(-1).view(np.uint8))

    def result(self) -> Any:
        """X after an even number of links."""
        return self._gpu.download(self._buffers[0])

    def close(self) -> None:
        """Give the memory back."""
        self._gpu.free([*self._buffers, *self._weights])


def _require_same_bits(problem: Problem, gpu: CudaBackend, ring: _Chain, arms: Sequence[Any]) -> None:
    """Raise WrongResult unless both ways through the chain give the same bits, which no read too early would."""
    found = []
    for arm in arms:
        ring.restart()
        for link in range(CHECKED_LINKS):
            arm.launch(link % ring.slots, gpu.stream)
        gpu.synchronize()
        found.append(ring.result())
    ring.restart()
    if not np.array_equal(*found):
        at = random.choice(np.argwhere(found[0] != found[1]))
        raise WrongResult(f"{problem}: after {CHECKED_LINKS} links a dependent chain differs, as at byte {at[0]}")
