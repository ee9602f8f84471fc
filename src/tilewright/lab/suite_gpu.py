"""One GPU for a whole suite: one stretch of memory that every shape's operands are placed in, filled on the device.

Owns that memory, the baseline and how each is launched. What is launched, and when, is `suite_bench`'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.api.plan import Plan
from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Config
from tilewright.errors import InvalidInput, InvalidProblem
from tilewright.facts.roofline import card_of_device
from tilewright.lab.gpu_environment import device_clocks, gpu_environment
from tilewright.lab.ladder import require_memory
from tilewright.lab.measuring import Effort
from tilewright.lab.suite_calls import TorchCalls
from tilewright.lab.suite_machine import Call, Launched
from tilewright.measure import Arm, Baseline, CudaTimer, Samples, measure
from tilewright.measure.baseline import BASELINE, check_problem, prove_ieee, prove_tf32, told
from tilewright.measure.modes import COLD, GRAPH
from tilewright.measure.ring import Addresses, OperandRing, slots_for
from tilewright.measure.timer import Batch, Timer
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
    """A GPU and the baseline that this machine has, for these problems. See `suite_bench.SuiteMachine`.

    `calls` are for library calls; with them the baseline is torch's product, called in the same way.
    """

    def __init__(
        self,
        gpu: CudaBackend,
        baseline: Baseline | None,
        problems: Sequence[Problem],
        cache: str = COLD,
        calls: TorchCalls | None = None,
    ) -> None:
        self._gpu, self._baseline, self._cache, self._calls = gpu, baseline, cache, calls
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

    def complaint(self, problem: Problem, launched: Launched | None) -> str:
        """See `SuiteMachine`. The first time that float32 or TF32 is multiplied, the baseline is proved to do so."""
        if self._uniform:
            self.open(problem)
        with self._current(problem):
            ring = OperandRing(problem, self._gpu, sets=self._sets(problem)[:1])
            arm = self._baseline_arm(ring) if launched is None else self._arm("checked", ring, launched)
            placed = self._placed(problem)
            if launched is None:
                self._prove(problem.dtype)
            return self._check.complaint(problem, placed, lambda: arm.launch(0, self._gpu.stream))

    def plan(self, problem: Problem, call: Call) -> Plan:
        """See `SuiteMachine`."""
        with self._current(problem):
            return self._require_calls().plan(call, problem, self._sets(problem)[0])

    def screen(self, problem: Problem, config: Config, best_us: float | None, launch: str) -> Screened:
        """See `SuiteMachine`."""
        ring = self._ring(problem)
        timer = _GraphTimer(self._timer) if launch == GRAPH else self._timer
        return screen(self._arm("screened", ring, config), timer, slots=ring.slots, best_us=best_us)

    def time(self, problem: Problem, arms: Mapping[str, Launched], effort: Effort, *, with_baseline: bool) -> Samples:
        """See `SuiteMachine`."""
        ring = self._ring(problem)
        with self._current(problem):
            made = [self._arm(label, ring, launched) for label, launched in arms.items()]
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
                launch=effort.launch,
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

    @contextlib.contextmanager
    def _current(self, problem: Problem) -> Iterator[None]:
        """The GPU's context; for calls the stream and the precision that they are made under, too."""
        calling = contextlib.nullcontext() if self._calls is None else self._calls.current(problem, self._gpu.stream)
        with self._gpu.current(), calling:
            yield

    def _require_calls(self) -> TorchCalls:
        if self._calls is None:
            raise InvalidInput("a library call: needs torch's tensors; open the suite with them")
        return self._calls

    def _arm(self, label: str, ring: OperandRing, launched: Launched) -> Arm:
        problem = ring.problem
        if isinstance(launched, Call):
            return self._require_calls().arm(label, launched, problem, self._sets(problem)[: ring.slots])
        return ring.config_arm(label, launched, self.binary(launched, problem))

    def _baseline_arm(self, ring: OperandRing) -> Arm:
        if self._calls is not None:
            return self._calls.baseline_arm(ring.problem, self._sets(ring.problem)[: ring.slots])
        assert self._baseline is not None
        return ring.baseline_arm(BASELINE, self._baseline)

    def _prove(self, dtype: str) -> None:
        prove = {"float32": prove_ieee, "tfloat32": prove_tf32}.get(dtype)
        if prove is not None and dtype not in self._proved and self._baseline is not None:
            prove(self._baseline, self._gpu, self._gpu.stream)
            self._proved.add(dtype)


class _GraphTimer:
    """A timer that captures every batch into a graph first, and times its replay."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self.now_s, self.idle, self.capture = timer.now_s, timer.idle, timer.capture

    def time_us(self, batches: Sequence[Batch], during: Callable[[], None]) -> list[float]:
        """See `Timer`."""
        return self._timer.time_us([self._timer.capture(batch) for batch in batches], during)
