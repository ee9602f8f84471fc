"""What both examples share: two libraries timed in the same rounds, a plan in one line, the record of it all.

The order of rounds, the warm-up, the A/A control, the end and the intervals are those of `tilewright.measure`, as in
every record of this repository (docs/measuring.md).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.api.plan import Plan
from tilewright.errors import InvalidInput, Missing, TilewrightError
from tilewright.lab.candidate import Candidate
from tilewright.lab.gpu_environment import device_clocks, gpu_environment
from tilewright.lab.render import duration, percent
from tilewright.measure import Arm, CudaTimer, Samples, control_name, measure
from tilewright.measure.timer import Batch
from tilewright.record import Ratio, Record, Row
from tilewright.run.cuda import CudaBackend, probe

OURS = "tilewright"
Calls = Mapping[str, Callable[[], Any]]


def parser_of(description: str) -> argparse.ArgumentParser:
    """The arguments that both examples take."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=160, help="the most rounds a comparison (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=30.0, help="the most seconds for it (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything found, with every sample, to FILE")
    return parser


def status_of(example: Callable[[], None]) -> int:
    """0, or the status of what it raised, said in one line: 1 wrong, 2 cannot be, 3 this machine lacks something."""
    try:
        example()
    except TilewrightError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInput) else 3 if isinstance(error, Missing) else 1
    return 0


def need(module: str, package: str) -> Any:
    """The framework, on a machine with a GPU and with no say over TF32 but its own. Raises Missing, InvalidInput."""
    if "NVIDIA_TF32_OVERRIDE" in os.environ:
        raise InvalidInput("NVIDIA_TF32_OVERRIDE is set and decides over TF32 in the framework's place: unset it")
    try:
        framework = importlib.import_module(module)
    except (ImportError, OSError) as error:
        said = next((line for line in str(error).splitlines() if line.strip(" =")), type(error).__name__)
        raise Missing(f"{module} cannot be imported ({said}): pip install {package}") from error
    probe()
    return framework


def one_line(plan: Plan) -> str:
    """Whose kernel computes it."""
    kernels = ", ".join(str(Candidate(part.choice.config)) for part in plan.parts)
    return f"the framework's own product: {plan.library}" if plan.library else kernels


class CallTimer(CudaTimer):
    """Device time of a call that finds the GPU idle: what the GPU waits for Python counts, as it does for a caller."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.stream = stream

    def time_us(self, batches: Sequence[Batch], during: Callable[[], None]) -> list[float]:
        """See `Timer`; unlike `CudaTimer`, no delay is queued in front of the batches."""
        from cuda.core import EventOptions

        timing, times_us = EventOptions(timing_enabled=True), list[float]()
        for batch in batches:
            self.stream.sync()
            start = self.stream.record(options=timing)
            batch(self.stream)
            stop = self.stream.record(options=timing)
            if not times_us:
                during()
            self.stream.sync()
            times_us.append((stop - start) * 1000.0)
        return times_us


def timed(gpu: CudaBackend, calls: Calls, asked: argparse.Namespace, *, from_idle: bool) -> Samples:
    """Rounds in which each call, on the stream of `gpu`, runs once in random order; the first, the baseline, twice.

    Of a call `from_idle` the time that the GPU waits for the host counts; otherwise the work is queued beforehand.
    """
    timer = CallTimer(gpu.stream) if from_idle else CudaTimer(gpu.stream)
    with gpu.current():
        return measure(
            [_arm(name, call) for name, call in calls.items()],
            timer,
            rounds=asked.rounds,
            seed=asked.seed,
            budget_s=asked.budget,
            slots=1,
            baseline=next(iter(calls)),
            read_clocks=device_clocks(gpu).read,
        )


def _arm(name: str, call: Callable[[], Any]) -> Arm:
    return Arm(name, lambda slot, stream: call())


def show(measured: Mapping[str, Samples]) -> None:
    """A line for each comparison."""
    wide, baseline = max(map(len, measured)), str(next(iter(measured.values())).baseline)
    print(f"\n{'':<{wide}}  {baseline:>10}  {OURS:>10}  {f'{baseline} / {OURS} [95%]':>26}  A/A floor  rounds")
    for label, samples in measured.items():
        times = f"{duration(samples.median_us(baseline)):>10}  {duration(samples.median_us(OURS)):>10}"
        ours, floor = samples.ratio(OURS, baseline), percent(samples.aa_floor or 0.0)
        ratio = f"{ours.median:.3f} [{ours.low:.3f}, {ours.high:.3f}]"
        print(f"{label:<{wide}}  {times}  {ratio:>26}  {floor:>8}%  {samples.rounds:>6} ({samples.stop})")
    print(f"Medians; above 1 {OURS} is faster, and a difference below the A/A floor means nothing.")


def write_record(
    asked: argparse.Namespace,
    gpu: CudaBackend,
    measured: Mapping[str, Samples],
    *,
    problem: dict[str, Any],
    data: str,
    about: dict[str, Any],
) -> None:
    """The record, to the file that was asked for, if one was."""
    if asked.json is None:
        return
    clocks = device_clocks(gpu).reason
    rounds = [
        {"of": label, **gpu_environment(gpu, samples, clocks, data=data)["measurement"]}
        for label, samples in measured.items()
    ]
    record = Record(
        command="example",
        environment=gpu_environment(gpu, None, clocks, data=data),
        rows=[row for label, samples in measured.items() for row in _rows(label, samples, problem)],
        about={**about, "measurements": rounds},
    )
    text = json.dumps(record.to_json(), indent=1, ensure_ascii=False)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(text + "\n", encoding="utf-8")
    print(f"written: {asked.json}")


def _rows(label: str, samples: Samples, problem: dict[str, Any]) -> list[Row]:
    """One for each library; what is timed was checked before. On a throttled card no figure but the samples."""
    rows, baseline = [], str(samples.baseline)
    for name, times_us in samples.times_us.items():
        if name == control_name(baseline):
            continue
        row = Row(rung=name, arm=f"{label}: {name}", problem=problem, backend="cuda", verified=True)
        row.samples_us, row.inner = [round(time_us, 3) for time_us in times_us], samples.inner[name]
        row.host_us = samples.host_us.get(name)
        if samples.stop == "throttled":
            row.outcome = samples.stop
        else:
            ratio = samples.ratio(name, baseline)
            row.time_us = samples.median_us(name)
            row.ratio_to_baseline = None if name == baseline else Ratio(ratio.low, ratio.median, ratio.high)
        rows.append(row)
    return rows
