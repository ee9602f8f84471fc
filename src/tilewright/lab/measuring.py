"""The ladder on a GPU: every rung and cuBLAS timed in the same rounds.

Brings kernels, buffers and baseline to `measure`, and turns its samples into rows. It decides nothing about how a
time is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.compile.batch import in_parallel
from tilewright.declare import Config
from tilewright.errors import TilewrightError
from tilewright.facts.static import problem_fields
from tilewright.lab.gpu_environment import device_clocks, gpu_environment
from tilewright.lab.ladder import (
    Observer,
    Plan,
    attempt,
    cases_at_size,
    cases_bytes,
    explained_row,
    failed,
    judged,
    require_memory,
    verified_at_size,
)
from tilewright.lab.verifying import cubin
from tilewright.measure import Arm, Baseline, CudaTimer, Samples, measure
from tilewright.measure.baseline import BASELINE, told
from tilewright.measure.baseline_check import baseline_verdict
from tilewright.measure.modes import COLD, STEADY, launch_of
from tilewright.measure.ring import DATA, SEED, OperandRing, slots_for
from tilewright.problem import Problem
from tilewright.record import Ratio, Record, Row
from tilewright.run.cuda import CudaBackend
from tilewright.run.emulator import host_free_bytes
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import Case


@dataclass(frozen=True)
class Effort:
    """How long to measure at most, and under which conditions."""

    rounds: int
    budget_s: float
    mode: str = STEADY
    cache: str = COLD
    launch: str | None = None

    @property
    def launch_mode(self) -> str:
        """'stream' or 'graph'; see `modes.launch_of`, which says what is meant where none is named."""
        return launch_of(self.launch, self.mode)


def measured_ladder(
    plan: Plan,
    gpu: CudaBackend,
    baseline: Baseline | None,
    effort: Effort,
    on_row: Observer,
    on_status: Callable[[str], None],
) -> Record:
    """Compile, verify and time every config and the baseline. A rung that fails is a row and takes no further part."""
    ring_bytes = (slots_for(plan.problem, gpu, effort.cache) + 1) * plan.problem.operand_bytes
    require_memory(plan.problem, ring_bytes, gpu.free_bytes(), str(gpu.device.name))
    require_memory(plan.problem, cases_bytes(plan.problem), host_free_bytes(), "host")
    record = Record(command="ladder", environment={})
    on_status(f"compiling {len(plan.configs)} rungs for {plan.arch.name}")
    rows = in_parallel(lambda c: attempt(c, plan.problem, lambda: explained_row(plan, c)), plan.configs)
    on_status("computing the reference in float64")
    cases = cases_at_size(plan.problem)
    for config, row in zip(plan.configs, rows, strict=True):
        on_status(f"verifying {row.rung}")
        if row.failure is None:
            row = attempt(config, plan.problem, lambda r=row, c=config: _verified(r, c, gpu, cases))  # type: ignore[misc]
        record.rows.append(row)
        on_row(row)
    if baseline is not None:
        on_status("verifying cuBLAS")
        record.rows.append(baseline_row(plan.problem, baseline, gpu, cases))
    _time_rows(plan, gpu, effort, baseline, record, on_status)
    for row in record.rows:
        on_row(row)
    return record


def _verified(row: Row, config: Config, gpu: CudaBackend, cases: list[Case]) -> Row:
    row.backend = "cuda"
    return judged(row, verified_at_size(DeviceRuns(gpu).of(config), cases))


def baseline_row(problem: Problem, baseline: Baseline, gpu: CudaBackend, cases: list[Case]) -> Row:
    """The baseline's row, verified like a rung; in float32 proved not to use TF32."""
    row = Row(
        rung=BASELINE, problem=problem_fields(problem), backend="cuda", summary=f"the baseline: {baseline.version}"
    )

    try:
        return judged(row, baseline_verdict(baseline, gpu, cases))
    except TilewrightError as error:
        return failed(row, error)


def _time_rows(
    plan: Plan,
    gpu: CudaBackend,
    effort: Effort,
    baseline: Baseline | None,
    record: Record,
    on_status: Callable[[str], None],
) -> None:
    """Time the rows that verified and fill in what follows from their times; then the environment."""
    sound = [row for row in record.rows if row.verified]
    clocks = device_clocks(gpu)
    samples, cache = None, None
    if sound:
        on_status(f"measuring {len(sound)} arms, up to {effort.rounds} rounds or {effort.budget_s:g} s")
        ring = OperandRing(plan.problem, gpu, effort.cache)
        cache = ring.cache
        arms = _arms(plan, gpu, ring, baseline, {row.rung for row in sound})
        with gpu.current():
            samples = measure(
                arms,
                CudaTimer(gpu.stream),
                rounds=effort.rounds,
                seed=SEED,
                budget_s=effort.budget_s,
                slots=ring.slots,
                baseline=BASELINE if BASELINE in {arm.name for arm in arms} and len(arms) > 1 else None,
                read_clocks=clocks.read,
                mode=effort.mode,
                launch=effort.launch,
            )
        peak = peak_tflops(gpu, samples)
        for row in sound:
            fill_times(row, samples, plan.problem, peak)
        _fill_gains(plan, record.rows)
    record.environment = gpu_environment(gpu, samples, clocks.reason, data=DATA, cache=cache, baseline=told(baseline))


def _arms(plan: Plan, gpu: CudaBackend, ring: OperandRing, baseline: Baseline | None, names: set[str]) -> list[Arm]:
    """An arm for each named rung and the baseline, over the ring."""
    chosen = [config for config in plan.configs if config.rung.name in names]
    arms = [ring.config_arm(config.rung.name, config, cubin(config, plan.problem, plan.arch)) for config in chosen]
    if baseline is not None and BASELINE in names:
        arms.append(ring.baseline_arm(BASELINE, baseline))
    return arms


def peak_tflops(gpu: CudaBackend, samples: Samples) -> float | None:
    """SMs × FP32 lanes × 2 × the median clock of the rounds; None where clocks could not be read."""
    if samples.median_sm_mhz is None:
        return None
    return gpu.sm_count * gpu.arch.fp32_lanes_per_sm * 2 * samples.median_sm_mhz / 1e6


def fill_times(row: Row, samples: Samples, problem: Problem, peak_tflops: float | None) -> None:
    """What was measured of a row's arm; on a throttled card the samples and no figure that follows from them.

    `peak_tflops` is the FP32 lanes', so it says nothing of other products.
    """
    arm = row.arm or row.rung
    row.samples_us = [round(t, 3) for t in samples.times_us[arm]]
    row.inner, row.launch = samples.inner[arm], samples.launch
    row.host_us = samples.host_us.get(arm)
    if samples.stop == "throttled":
        row.outcome = samples.stop
        return
    row.time_us = samples.median_us(arm)
    row.tflops = problem.flops / row.time_us / 1e6
    if arm != BASELINE and BASELINE in samples.times_us:
        interval = samples.ratio(arm, BASELINE)
        row.ratio_to_baseline = Ratio(interval.low, interval.median, interval.high)
    if peak_tflops is not None and problem.dtype == "float32":
        row.fraction_of_peak = row.tflops / peak_tflops


def _fill_gains(plan: Plan, rows: list[Row]) -> None:
    times = {row.rung: row.time_us for row in rows}
    below = {config.rung.name: config.rung.builds_on for config in plan.configs}
    for row in rows:
        under = times.get(below.get(row.rung) or "")
        if row.time_us is not None and under is not None:
            row.gain_over_below = under / row.time_us
