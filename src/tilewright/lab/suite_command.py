"""`tilewright bench`: a suite's shapes told as they are measured, then means by class and the worst of them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.errors import InvalidInput
from tilewright.lab.measuring import Effort
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.render import duration, percent, share
from tilewright.lab.suite_bench import SuiteRequest, benched
from tilewright.lab.suite_calls import TorchCalls
from tilewright.lab.suite_gpu import GpuSuite
from tilewright.lab.suite_rows import CHOSEN, Entry
from tilewright.lab.suite_summary import baseline_rows, chosen_rows, class_means, summary, worst
from tilewright.measure import find_baseline
from tilewright.measure.baseline import BASELINE
from tilewright.measure.baseline_torch import torch_with_gpu
from tilewright.measure.modes import check_cache
from tilewright.record import Record, Row
from tilewright.run.cuda import CudaBackend
from tilewright.suite import read_suite, selected

REFUSED = {"InvalidConfig", "InvalidProblem", "Unsupported"}


@dataclass(frozen=True)
class BenchRequest:
    """The command's arguments."""

    suite: str
    dtype: str | None
    groups: Sequence[str]
    limit: int | None
    own: bool
    every: bool
    device_id: int
    effort: Effort
    out: Path | None
    call: bool = False


def run_bench(request: BenchRequest, *, as_json: bool) -> int:
    """Measure and print. Returns the exit status: 0, 1 where a kernel failed, 2 where shapes were only refused."""
    launch = request.effort.launch_mode
    check_cache(request.effort.cache)
    shapes = selected(read_suite(request.suite), groups=request.groups, dtype=request.dtype, limit=request.limit)
    if request.call and request.every:
        raise InvalidInput("--call with --every: candidates are kernels and no calls; take each in a run of its own")
    asked = SuiteRequest(request.suite, shapes, request.effort, request.own, request.every, request.call)
    console, notes = standard_error() if as_json else standard_output(), standard_error()
    with CudaBackend(request.device_id) as gpu:
        calls = TorchCalls(torch_with_gpu()) if request.call else None
        baseline, why_none = find_baseline()
        what = "the library call" if request.call else "the chosen kernel"
        title = (
            f"tilewright bench  {request.suite}, {len(shapes)} shapes on {gpu.device.name}: {what}, {launch} launches"
        )
        console.print(Text(title, style="bold"), soft_wrap=True)
        machine = GpuSuite(gpu, baseline, [shape.problem for shape in shapes], request.effort.cache, calls)
        record = benched(
            asked,
            machine,
            lambda text: notes.print(Text(text, style="dim"), soft_wrap=True),
            lambda entry: console.print(entry_line(entry), soft_wrap=True),
        )
    record.about = {**(record.about or {}), **summary(record)}
    print_summary(console, record, why_none)
    if request.out is not None:
        text = json.dumps(record.to_json(), ensure_ascii=False)
        request.out.write_text(text.replace('{"rung"', '\n{"rung"') + "\n", encoding="utf-8")
    if as_json:
        print_json(record.to_json())
    return exit_status(record)


def exit_status(record: Record) -> int:
    """0 where every shape was measured, 2 where some were refused and nothing else failed, 1 otherwise."""
    failures = {row.failure for row in record.rows} - {None}
    if (record.about or {}).get("lost") or failures - REFUSED:
        return 1
    refused = any(row.failure is not None and row.arm == CHOSEN for row in record.rows)
    return 2 if refused else 0


def entry_line(entry: Entry) -> Text:
    """A shape in one line: what it is, what was chosen, both times, their ratio and the floor."""
    rows = {row.arm: row for row in entry.rows}
    row = rows.get(CHOSEN) or rows.get(entry.own_arm)
    problem = str(entry.shape.problem)
    if row is None:
        return Text(f"{entry.shape.group:<12} {problem}: not run, as the run ended before", style="yellow")
    if row.failure is not None:
        return Text(f"{entry.shape.group:<12} {problem}: {row.failure}: {row.verdict}", style="red")
    return Text(f"{entry.shape.group:<12} {problem:<34} {_figures(row, rows.get(BASELINE))}")


def _figures(row: Row, baseline: Row | None) -> str:
    if row.time_us is None:
        return f"{row.rung:<24} {row.outcome or 'not timed'}"
    against = "" if baseline is None or baseline.time_us is None else f"  cuBLAS {duration(baseline.time_us):>8}"
    ratio = "" if row.ratio_to_baseline is None else f"  {share(row.ratio_to_baseline)}%"
    floor = "" if row.floor_us is None else f"  floor {duration(row.floor_us['both'])}"
    return f"{row.rung:<24} {duration(row.time_us):>8}{against}{ratio}{floor}"


def print_summary(console: Console, record: Record, why_none: str = "") -> None:
    """Means by class, the worst shapes, and what was missing."""
    for line in ["", *summary_lines(record), *([why_none] if why_none else [])]:
        console.print(Text(line), soft_wrap=True)


def summary_lines(record: Record) -> Iterator[str]:
    """The record's classes and worst shapes as lines; % of cuBLAS are geometric means of median ratios."""
    means = class_means(record)
    if means:
        yield f"{'class':<14}{'shapes':>7}{'% of cuBLAS':>13}{'lowest':>9}{'floor, % of time':>18}{'over the best':>15}"
    for mean in means:
        regret = "" if mean.regret is None else f"{100 * (mean.regret - 1):.1f}%"
        yield (
            f"{mean.name:<14}{mean.shapes:>7}{percent(mean.mean):>13}{percent(mean.lowest):>9}"
            f"{percent(mean.of_floor):>18}{regret:>15}"
        )
    lowest = worst(record)
    if lowest:
        yield "worst:"
    for row in lowest:
        p = row.problem
        assert row.ratio_to_baseline is not None
        yield (
            f"  {percent(row.ratio_to_baseline.median):>6}%  {p['m']}×{p['n']}×{p['k']} {p['layout']} {p['dtype']}, "
            f"{row.shape_class}: {row.rung}"
        )
    about = record.about or {}
    host_us = [_median_host_us(rows) for rows in (chosen_rows(record), baseline_rows(record))]
    if about.get("call") and all(host_us):
        yield f"the host's time for a call, median: {host_us[0]:.2f} µs, torch.mm {host_us[1]:.2f} µs"
    lost = about.get("lost")
    if lost:
        yield f"the run ended early: {lost}"


def _median_host_us(rows: Sequence[Row]) -> float | None:
    known = [row.host_us for row in rows if row.host_us is not None]
    return statistics.median(known) if known else None
