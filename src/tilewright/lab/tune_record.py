"""A search's result as a record: one row a trial, the finalists with their samples. Claims nothing of its own."""

from __future__ import annotations

from typing import Any

from tilewright.declare import Config
from tilewright.facts.static import bare_row, problem_fields
from tilewright.measure import Interval, Samples
from tilewright.measure.baseline import BASELINE
from tilewright.record import Ratio, Record, Row
from tilewright.tune.finalists import Finalist, label_of
from tilewright.tune.result import TuneResult
from tilewright.tune.trial import Trial

FACTS = ("registers", "spill_bytes", "stack_bytes", "smem_bytes", "occupancy", "ctas_per_sm", "binary")


def tune_record(result: TuneResult, environment: dict[str, Any]) -> Record:
    """The record of a search: its trials from the fastest on, failures last, then cuBLAS where it was measured.

    A row with `samples_us` was in the final rounds; another row's `time_us` is its screening's and only orders.
    `ratio_to_reference` is the fastest finalist's time over this one's.
    """
    measured = {finalist.trial.key: finalist for finalist in result.ranking}
    order = sorted(result.trials, key=lambda trial: _order(trial, measured))
    rows = [_row(result, trial, measured.get(trial.key)) for trial in order]
    samples = result.finals.samples if result.finals is not None else None
    if samples is not None and BASELINE in samples.times_us:
        rows.append(_baseline_row(result, samples))
    index = {trial.key: number for number, trial in enumerate(order)}
    return Record(command="tune", environment=environment, rows=rows, about=_about(result, index))


def _order(trial: Trial, measured: dict[str, Finalist]) -> tuple[bool, bool, float, str]:
    finalist = measured.get(trial.key)
    time_us = finalist.time.median if finalist is not None else trial.time_us
    return trial.failure is not None, finalist is None, time_us or 0.0, trial.key


def _about(result: TuneResult, index: dict[str, int]) -> dict[str, Any]:
    space, best = result.space, result.best
    return {
        "space": {"combinations": space.combinations, "valid": len(space.configs), "only": space.only},
        "strategy": result.request.strategy,
        "effort": result.request.effort,
        "seed": result.request.seed,
        "evaluations": len(result.trials),
        "known_before": result.known,
        "stop": result.stop,
        "best": None if best is None else index[best.key],
        "ties": [index[trial.key] for trial in result.ties],
        "rejected": space.rejected,
    }


def _row(result: TuneResult, trial: Trial, finalist: Finalist | None) -> Row:
    row = bare_row(Config(result.space.rung, trial.config), result.space.problem)
    row.summary, row.arm = None, label_of(result.space.rung, trial.config)
    row.arch, row.backend = result.space.arch.name, "cuda"
    row.time_us, row.failure, row.verdict = trial.time_us, trial.failure, _verdict(result, trial) or None
    row.verified = trial.failure is None
    for name in FACTS:
        setattr(row, name, trial.facts.get(name))
    if finalist is not None:
        assert result.finals is not None and result.finals.samples is not None
        _fill_measured(row, finalist, result.finals.samples)
    if row.time_us is not None:
        row.tflops = result.space.problem.flops / row.time_us / 1e6
    return row


def _verdict(result: TuneResult, trial: Trial) -> str:
    if trial.failure is not None:
        return f"{trial.stage}: {trial.message}"
    if trial.same_as is not None:
        return f"the same instructions as {label_of(result.space.rung, trial.same_as)}"
    return "given up after one launch" if trial.outcome == "slow" else ""


def _fill_measured(row: Row, finalist: Finalist, samples: Samples) -> None:
    row.time_us = finalist.time.median
    row.samples_us = [round(time, 3) for time in samples.times_us[finalist.label]]
    row.inner, row.launch = samples.inner[finalist.label], samples.launch
    row.ratio_to_reference = _ratio(finalist.ratio_to_fastest)
    if finalist.ratio_to_baseline is not None:
        row.ratio_to_baseline = _ratio(finalist.ratio_to_baseline)


def _baseline_row(result: TuneResult, samples: Samples) -> Row:
    time_us = samples.median_us(BASELINE)
    return Row(
        rung=BASELINE,
        problem=problem_fields(result.space.problem),
        backend="cuda",
        verified=True,  # one that is wrong takes no part
        time_us=time_us,
        samples_us=[round(time, 3) for time in samples.times_us[BASELINE]],
        inner=samples.inner[BASELINE],
        launch=samples.launch,
        tflops=result.space.problem.flops / time_us / 1e6,
    )


def _ratio(interval: Interval) -> Ratio:
    return Ratio(interval.low, interval.median, interval.high)
