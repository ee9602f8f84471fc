"""One GPU for a whole suite: one stretch of memory that every shape's operands are placed in, filled on the device.

Owns that memory, the baseline and how each is launched. What is launched, and when, is `suite_bench`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Config
from tilewright.errors import InvalidProblem
from tilewright.facts.roofline import card_of_device
from tilewright.lab.gpu_environment import device_clocks, gpu_environment
from tilewright.lab.ladder import require_memory
from tilewright.lab.measuring import Effort
from tilewright.measure import Arm, Baseline, CudaTimer, Samples, measure
from tilewright.measure.baseline import BASELINE, check_problem, prove_ieee, prove_tf32, told
from tilewright.measure.modes import COLD
from tilewright.measure.ring import Addresses, OperandRing, slots_for
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.run.cuda import CudaBackend
from tilewright.tune.screen import Screened, screen
from tilewright.verify.freivalds import GUARD, Filling, FreivaldsCheck, Kernels, Matrix, Placed

ALIGNMENT_BYTES = 256
DATA = "uniform [-1, 1], from a hash of each element's place"
SEED = 20260101
BASELINE_DTYPES = ("float32", "tfloat32", "float16", "bfloat16")
MEMORY_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Layout:
    """Where A, B and D lie from the start of a set, guards around D, and how far the next set is."""

    a: int
    b: int
    d: int
    stride: int


def layout_of(problem: Problem) -> Layout:
    """One set's layout in bytes."""
    sizes = {x: problem.total_extent(x) * ITEMSIZE_BYTES[problem.storage_dtype(x)] for x in "abd"}
    guard = GUARD * ITEMSIZE_BYTES[problem.out_dtype]
    b = _aligned(sizes["a"])
    d = b + _aligned(sizes["b"]) + guard
    return Layout(0, b, d, d + _aligned(sizes["d"] + guard))


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


class GpuSuite:
    """A GPU and the baseline that this machine has, for these problems. See `suite_bench.SuiteMachine`."""

    def __init__(
        self, gpu: CudaBackend, baseline: Baseline | None, problems: Sequence[Problem], cache: str = COLD
    ) -> None:
        self._gpu, self._baseline, self._cache = gpu, baseline, cache
        self._clocks = device_clocks(gpu)
        self._timer = CudaTimer(gpu.stream)
        self._kernels = Kernels(gpu, lambda source: compile_cubin(source, gpu.arch), gpu.sm_count)
        self._check = FreivaldsCheck(gpu, self._kernels)
        self._proved: set[str] = set()
        self._binaries: dict[KernelSource, Binary] = {}
        usable = int(gpu.free_bytes() * MEMORY_SHARE)
        self._size_bytes = max((need for p in problems if (need := self._need_bytes(p)) <= usable), default=0)
        self._memory = gpu.alloc(self._size_bytes, label="operands")
        self._uniform = False

    @property
    def arch(self) -> ArchSpec:
        """The GPU's architecture."""
        return self._gpu.arch

    @property
    def sm_count(self) -> int:
        """The GPU's SMs."""
        return self._gpu.sm_count

    @property
    def card(self) -> str | None:
        """The listed card that the GPU's name names."""
        card = card_of_device(str(self._gpu.device.name))
        return None if card is None else card.name

    def binary(self, config: Config, problem: Problem) -> Binary:
        """See `SuiteMachine`. A kernel that several shapes share is looked up once."""
        source = kernel_source(config, problem)
        if source not in self._binaries:
            self._binaries[source] = compile_cubin(source, self.arch)
        return self._binaries[source]

    def open(self, problem: Problem) -> None:
        """See `SuiteMachine`."""
        require_memory(problem, self._need_bytes(problem), self._size_bytes, str(self._gpu.device.name))
        self._check.prepare(problem, self._placed(problem))
        self._uniform = False

    def has_baseline(self, problem: Problem) -> bool:
        """See `SuiteMachine`."""
        if self._baseline is None:
            return False
        try:
            check_problem(problem, BASELINE_DTYPES)
        except InvalidProblem:
            return False
        return True

    def complaint(self, problem: Problem, config: Config | None) -> str:
        """See `SuiteMachine`. The first time that float32 or TF32 is multiplied, the baseline is proved to do so."""
        ring = OperandRing(problem, self._gpu, sets=self._sets(problem)[:1])
        arm = self._baseline_arm(ring) if config is None else self._arm("checked", ring, config)
        placed = self._placed(problem)
        if self._uniform:
            self.open(problem)
        with self._gpu.current():
            if config is None:
                self._prove(problem.dtype)
            return self._check.complaint(problem, placed, lambda: arm.launch(0, self._gpu.stream))

    def screen(self, problem: Problem, config: Config, best_us: float | None) -> Screened:
        """See `SuiteMachine`."""
        ring = self._ring(problem)
        return screen(self._arm("screened", ring, config), self._timer, slots=ring.slots, best_us=best_us)

    def time(self, problem: Problem, arms: Mapping[str, Config], effort: Effort, *, with_baseline: bool) -> Samples:
        """See `SuiteMachine`."""
        ring = self._ring(problem)
        made = [self._arm(label, ring, config) for label, config in arms.items()]
        with self._gpu.current():
            return measure(
                [*made, *([self._baseline_arm(ring)] if with_baseline else [])],
                self._timer,
                rounds=effort.rounds,
                seed=SEED,
                budget_s=effort.budget_s,
                slots=ring.slots,
                baseline=BASELINE if with_baseline else None,
                read_clocks=self._clocks.read,
                mode=effort.mode,
            )

    def environment(self) -> dict[str, Any]:
        """See `SuiteMachine`."""
        return gpu_environment(
            self._gpu, None, self._clocks.reason, data=DATA, operands=DATA, baseline=told(self._baseline)
        )

    def _need_bytes(self, problem: Problem) -> int:
        return slots_for(problem, self._gpu, self._cache) * layout_of(problem).stride

    def _sets(self, problem: Problem) -> list[Addresses]:
        """Every set's A, B, C and D; C, which takes no part, is D."""
        layout, start = layout_of(problem), self._memory.address
        starts = [start + slot * layout.stride for slot in range(slots_for(problem, self._gpu, self._cache))]
        return [(at + layout.a, at + layout.b, at + layout.d, at + layout.d) for at in starts]

    def _placed(self, problem: Problem) -> Placed:
        a, b, _, d = self._sets(problem)[0]
        return Placed(a, b, d)

    def _ring(self, problem: Problem) -> OperandRing:
        """Every set, filled with the data that times are taken on."""
        sets = self._sets(problem)
        if not self._uniform:
            count = len(sets) * layout_of(problem).stride // ITEMSIZE_BYTES[problem.dtype]
            whole = Matrix(dtype=problem.dtype, address=self._memory.address, rows=1, cols=count, row_step=count)
            self._kernels.fill(whole, Filling(low=-1.0, high=1.0), SEED)
            self._gpu.synchronize()
            self._uniform = True
        return OperandRing(problem, self._gpu, self._cache, sets=sets)

    def _arm(self, label: str, ring: OperandRing, config: Config) -> Arm:
        return ring.config_arm(label, config, self.binary(config, ring.problem))

    def _baseline_arm(self, ring: OperandRing) -> Arm:
        assert self._baseline is not None
        return ring.baseline_arm(BASELINE, self._baseline)

    def _prove(self, dtype: str) -> None:
        prove = {"float32": prove_ieee, "tfloat32": prove_tf32}.get(dtype)
        if prove is not None and dtype not in self._proved and self._baseline is not None:
            prove(self._baseline, self._gpu, self._gpu.stream)
            self._proved.add(dtype)
