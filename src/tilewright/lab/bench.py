"""One GPU with what every trial on it shares: buffers, references, the baseline, and what has been verified already.

Owns these for as long as the GPU is open. It decides nothing about how a time is taken and judges no arm.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.arch import ArchSpec
from tilewright.errors import NoDevice
from tilewright.lab.candidate import Candidate
from tilewright.lab.gpu_environment import device_clocks, gpu_environment
from tilewright.lab.ladder import cases_at_size, cases_bytes, require_memory, verified_at_size
from tilewright.lab.measuring import Effort, baseline_row, peak_tflops
from tilewright.measure import Baseline, CudaTimer, Samples, find_baseline, measure
from tilewright.measure.baseline import BASELINE, told
from tilewright.measure.ring import DATA, SEED, OperandRing, slots_for
from tilewright.problem import Problem
from tilewright.record import Row
from tilewright.run.cuda import CudaBackend, probe
from tilewright.run.emulator import host_free_bytes
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import Case, Verdict


class GpuBench:
    """A GPU and the baseline that this machine has, if it has one. See `trial.Bench`."""

    def __init__(self, gpu: CudaBackend, baseline: Baseline | None) -> None:
        self._gpu, self._baseline = gpu, baseline
        self._timer = CudaTimer(gpu.stream)
        self._clocks = device_clocks(gpu)
        self._cases: dict[Problem, list[Case]] = {}
        self._rings: dict[tuple[Problem, str], OperandRing] = {}
        self._cache: str | None = None
        self._verdicts: dict[tuple[str, Problem], Verdict] = {}
        self._baseline_rows: dict[Problem, Row] = {}
        self._runs = DeviceRuns(gpu)

    @property
    def arch(self) -> ArchSpec:
        """The GPU's architecture."""
        return self._gpu.arch

    def check(self, candidate: Candidate, problem: Problem) -> Verdict:
        """Every case at size, once for each binary; see `trial.Bench`."""
        key = candidate.cubin(problem, self.arch).key, problem
        if key not in self._verdicts:
            run = self._runs.of(candidate.config, variant=candidate.variant)
            self._verdicts[key] = verified_at_size(run, self._cases_of(candidate.provable(problem)))
        return self._verdicts[key]

    def baseline_row(self, problem: Problem) -> Row | None:
        """The baseline, verified like an arm and proved not to use TF32, once for each problem."""
        if self._baseline is None:
            return None
        if problem not in self._baseline_rows:
            row = baseline_row(problem, self._baseline, self._gpu, self._cases_of(problem))
            row.arm = BASELINE
            self._baseline_rows[problem] = row
        return Row.from_json(self._baseline_rows[problem].to_json())

    def time(self, problem: Problem, arms: Mapping[str, Candidate], effort: Effort) -> Samples:
        """See `trial.Bench`."""
        ring = self._ring_of(problem, effort.cache)
        self._cache = ring.cache
        made = [ring.config_arm(name, arm.config, arm.cubin(problem, self.arch)) for name, arm in arms.items()]
        row = self.baseline_row(problem)
        with_baseline = self._baseline is not None and row is not None and bool(row.verified)
        if with_baseline and self._baseline is not None:
            made.append(ring.baseline_arm(BASELINE, self._baseline))
        reference = made[0].name if len(arms) > 1 else BASELINE if with_baseline else None
        with self._gpu.current():
            return measure(
                made,
                self._timer,
                rounds=effort.rounds,
                seed=SEED,
                budget_s=effort.budget_s,
                slots=ring.slots,
                baseline=reference,
                read_clocks=self._clocks.read,
                mode=effort.mode,
                launch=effort.launch,
            )

    def peak_tflops(self, samples: Samples) -> float | None:
        """See `measuring.peak_tflops`."""
        return peak_tflops(self._gpu, samples)

    def environment(self, samples: Samples | None) -> dict[str, Any]:
        """See `trial.Bench`."""
        return gpu_environment(
            self._gpu, samples, self._clocks.reason, data=DATA, cache=self._cache, baseline=told(self._baseline)
        )

    def _cases_of(self, problem: Problem) -> list[Case]:
        if problem not in self._cases:
            require_memory(problem, cases_bytes(problem), host_free_bytes(), "host")
            self._cases[problem] = cases_at_size(problem)
        return self._cases[problem]

    def _ring_of(self, problem: Problem, cache: str) -> OperandRing:
        if (problem, cache) not in self._rings:
            need_bytes = slots_for(problem, self._gpu, cache) * problem.operand_bytes
            require_memory(problem, need_bytes, self._gpu.free_bytes(), str(self._gpu.device.name))
            self._rings[problem, cache] = OperandRing(problem, self._gpu, cache)
        return self._rings[problem, cache]


@contextlib.contextmanager
def open_bench(device_id: int, *, offline: bool) -> Iterator[tuple[GpuBench | None, str]]:
    """A bench on that GPU, or None and why; with the bench the words say what is missing, such as a baseline.

    Raises NoDevice where there are GPUs and none of that number.
    """
    if offline:
        yield None, "--offline was asked for"
        return
    try:
        probe()
    except NoDevice as error:
        yield None, str(error)
        return
    with CudaBackend(device_id) as gpu:
        baseline, why_none = find_baseline()
        yield GpuBench(gpu, baseline), why_none
