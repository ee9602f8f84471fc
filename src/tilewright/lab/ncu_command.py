"""`tilewright inspect RUNG --ncu`: what a card's counters say of a rung, and of the cuBLAS kernel beside it."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.arch import get_arch
from tilewright.declare import Config, all_rungs
from tilewright.errors import InvalidConfig, LaunchFailed
from tilewright.facts.static import problem_fields, static_row
from tilewright.lab.ncu import Launch, find_ncu, profiled
from tilewright.lab.ncu_launch import Task
from tilewright.lab.ncu_metrics import METRICS, NAMES, STALLS, Metric
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.sections import heading, print_pairs
from tilewright.lab.settings import DEFAULT_SIZES, Sizes, configs_of, parse_settings, sized_problem, usual_kind
from tilewright.lab.verifying import cubin
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.record import Record, Row
from tilewright.run.cuda import probe

LEAST_STALL = 0.005
NAME_WIDTH, VALUE_WIDTH = 56, 12


def inspect_ncu(rung: str, settings: list[str], sizes: Sizes, others: Sequence[str], *, as_json: bool) -> int:
    """Count one launch of each and print both. Returns the exit status.

    `others` are options given that have no meaning here: InvalidConfig. Raises NoDevice, Missing, LaunchFailed.
    """
    if others:
        raise InvalidConfig(f"--ncu with {' and '.join(others)}: it counts on the card there is; leave them out")
    chosen = [all_rungs().find(rung)]
    config = configs_of(chosen, parse_settings(settings, chosen, all_rungs()))[0]
    problem = sized_problem(sizes, DEFAULT_SIZES, usual_kind(chosen))
    config.require_problem(problem)
    probe()
    ncu = find_ncu()
    with standard_error().status(f"counting one launch of {config.rung.name} and of cuBLAS, {problem}, under ncu"):
        record = ncu_record(ncu, config, problem)
    if as_json:
        print_json(record.to_json())
    else:
        print_counters(standard_output(), record)
    return 0


def ncu_record(ncu: str, config: Config, problem: Problem) -> Record:
    """A row for the rung and one for each kernel that cuBLAS launched."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        task = Task(config.rung.name, dict(config.values), problem.m, problem.n, problem.k, str(found))
        program = [sys.executable, "-m", "tilewright.lab.ncu_launch", task.to_text()]
        launches = profiled(ncu, NAMES, program)
        if not found.exists():
            raise LaunchFailed(f"{config.rung.name}: the program under ncu did not end; see `tilewright doctor`")
        environment = json.loads(found.read_text(encoding="utf-8"))
    return Record(
        command="inspect", environment=environment, rows=_rows(config, problem, environment["arch"], launches)
    )


def _rows(config: Config, problem: Problem, arch_name: str, launches: Sequence[Launch]) -> list[Row]:
    first, *baseline = launches or [Launch("nothing", {})]
    if first.kernel.partition("(")[0] != config.rung.entry:
        raise LaunchFailed(f"{config.rung.name}: ncu counted {first.kernel} where {config.rung.entry} was launched")
    arch = get_arch(arch_name)
    row = static_row(config, problem, arch, cubin(config, problem, arch))
    row.kernel, row.counters = first.kernel, first.counters
    return [row, *(_baseline_row(problem, each, f"{i} of {len(baseline)}") for i, each in enumerate(baseline, start=1))]


def _baseline_row(problem: Problem, launch: Launch, place: str) -> Row:
    arm = None if place == "1 of 1" else f"cuBLAS, kernel {place}"
    problem_of = problem_fields(problem)
    return Row(rung=BASELINE, arm=arm, problem=problem_of, kernel=launch.kernel, counters=launch.counters)


def print_counters(console: Console, record: Record) -> None:
    """Every metric a line, a column for each kernel; then the kernels' names and what the card does not count."""
    rows, environment = record.rows, record.environment
    size = "×".join(str(rows[0].problem[name]) for name in "mnk")
    device = environment.get("device", {}).get("name", "this card")
    console.print(Text(f"{rows[0].rung} under Nsight Compute on {device}, {size}", style="bold"), soft_wrap=True)
    heading(console, "counters", "one launch of each, caches flushed before, clocks as they are")
    console.print(_line("", [row.rung.partition("_")[0] for row in rows], "cyan"), soft_wrap=True)
    for metric in METRICS:
        console.print(_metric_line(metric, rows), soft_wrap=True)
    heading(console, "stalls", "what warps wait for: cycles for each instruction that is issued")
    for metric in sorted(STALLS, key=lambda metric: -_value(rows[0], metric)):
        if any(_value(row, metric) >= LEAST_STALL for row in rows):
            console.print(_metric_line(metric, rows), soft_wrap=True)
    heading(console, "kernels")
    print_pairs(console, [(row.arm or row.rung.partition("_")[0], row.kernel or "") for row in rows])
    _print_absent(console, rows)
    if no_baseline := environment.get("no_baseline"):
        console.print(Text(f"\n{no_baseline}", style="yellow"), soft_wrap=True)


def _value(row: Row, metric: Metric) -> float:
    return (row.counters or {}).get(metric.name, 0.0)


def _metric_line(metric: Metric, rows: Sequence[Row]) -> Text:
    values = [(row.counters or {}).get(metric.name) for row in rows]
    return _line(metric.words, ["absent" if value is None else metric.form(value) for value in values])


def _line(name: str, values: Sequence[str], style: str = "") -> Text:
    cells = "".join(f"{value:>{VALUE_WIDTH}}" for value in values)
    return Text(f"  {name:<{NAME_WIDTH}}{cells}".rstrip(), style=style)


def _print_absent(console: Console, rows: Sequence[Row]) -> None:
    absent = [name for name in NAMES if not all(name in (row.counters or {}) for row in rows)]
    if absent:
        heading(console, "not counted here", "this card or this ncu has no such metric")
        for name in absent:
            console.print(Text(f"  {name}", style="dim"), soft_wrap=True)
