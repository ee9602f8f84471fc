"""A suite on a machine: for each shape the chosen kernel, verified, then timed against cuBLAS in the same rounds.

Owns the order of these steps. The machine is a `SuiteMachine`'s, the choice `select`'s, the rows `suite_rows`'s, the
means `suite_summary`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilewright.arch import ArchSpec
from tilewright.compile.batch import in_parallel
from tilewright.compile.source import kernel_source
from tilewright.declare import Config
from tilewright.errors import LaunchFailed, TilewrightError
from tilewright.lab.measuring import Effort, fill_times
from tilewright.lab.suite_machine import Call, Launched, SuiteMachine
from tilewright.lab.suite_rows import BEST, OWN, Entry, slim, told
from tilewright.measure.modes import GRAPH
from tilewright.problem import Problem
from tilewright.record import Record, Row
from tilewright.select import Choice, choose
from tilewright.select.calibration import Calibration, calibration_for
from tilewright.select.choice import estimates
from tilewright.select.model import compute_us, memory_us
from tilewright.suite import Shape

LEAST_ROUNDS, USUAL_OVER_FLOOR = 8, 1.5
WORTH_TRYING = 4.0
"""A candidate is not tried that by its own runs is expected to take more than so many times the best one's time."""

Say = Callable[[str], None]
OnEntry = Callable[[Entry], None]


@dataclass(frozen=True, slots=True)
class SuiteRequest:
    """What is asked for: shapes, whether our kernels alone are meant, whether every candidate is tried.

    `call`: the library call is timed, in place of the chosen kernel alone.
    """

    name: str
    shapes: Sequence[Shape]
    effort: Effort
    own: bool = False
    every: bool = False
    call: bool = False


def benched(request: SuiteRequest, machine: SuiteMachine, say: Say, on_entry: OnEntry) -> Record:
    """Every shape's rows; `on_entry` is given each shape when it is done. What fails is a row that says so.

    A launch that fails ends the run, since the device's context is lost with it; so does an interrupt. What was
    measured before stays.
    """
    calibration = calibration_for(machine.arch, machine.sm_count, machine.card)
    entries = [_planned(shape, request, machine, calibration) for shape in request.shapes]
    say(f"compiling for {len(entries)} shapes")
    _compile(entries, machine)
    measurements, lost = [], ""
    for entry in entries:
        if entry.choice is not None and not lost:
            try:
                measurements.append(_measured(entry, request, machine, calibration))
            except TilewrightError as error:
                entry.rows = [entry.failed_row(error)]
                lost = f"a launch failed: {error}" if isinstance(error, LaunchFailed) else ""
            except KeyboardInterrupt:
                lost = f"interrupted at {entry.shape.problem}"
        on_entry(entry)
    about = {
        "suite": request.name,
        "own": request.own,
        "every": request.every,
        "call": request.call,
        "launch": request.effort.launch_mode,
        "shapes": len(entries),
    }
    rows = [row for entry in entries for row in entry.rows]
    more = {"measurements": measurements, **({"lost": lost} if lost else {})}
    return Record(command="bench", environment=machine.environment(), rows=rows, about={**about, **more})


def _planned(shape: Shape, request: SuiteRequest, machine: SuiteMachine, calibration: Calibration) -> Entry:
    entry, problem = Entry(shape), shape.problem
    kernels = "own" if request.own else "all"
    try:
        entry.choice = choose(problem, machine.arch, machine.sm_count, kernels=kernels, card=machine.card)
    except TilewrightError as error:
        entry.rows = [entry.failed_row(error)]
        return entry
    if request.every:
        entry.tried = worth_trying(problem, machine.arch, calibration)
    return entry


def worth_trying(problem: Problem, arch: ArchSpec, calibration: Calibration) -> list[Config]:
    """Every candidate that takes the problem and isn't hopeless by the model, the fastest by it first."""
    ranked = estimates(problem, arch, calibration)
    limit_us = WORTH_TRYING * min((each.terms.total_us for each in ranked), default=0.0)
    return [
        each.candidate.config for each in ranked if each.terms.total_us <= limit_us or not each.candidate.calibrated
    ]


def _compile(entries: Sequence[Entry], machine: SuiteMachine) -> None:
    """Every binary before the first launch, on all cores. What doesn't compile fails again where it is used."""

    def build(job: tuple[Config, Problem]) -> None:
        try:
            machine.binary(*job)
        except TilewrightError:
            return

    jobs = [(c, e.shape.problem) for e in entries if e.choice is not None for c in (e.config, *e.tried)]
    list(in_parallel(build, {kernel_source(*job): job for job in jobs}.values()))


def _measured(
    entry: Entry, request: SuiteRequest, machine: SuiteMachine, calibration: Calibration
) -> dict[str, object]:
    """Fill in the entry's rows: all are verified first, then timed. Returns how the rounds went."""
    problem, choice = entry.shape.problem, entry.choice
    assert choice is not None
    machine.open(problem)
    chosen, launched = _chosen(entry, choice, request, machine)
    candidates = [entry.checked_row(config, machine) for config in entry.tried]
    baseline = entry.baseline_row(machine)
    _screen(entry, candidates, machine, request.effort.launch_mode)
    arms: dict[str, Launched] = {}
    if chosen.verified:
        arms[str(chosen.arm)] = launched
    rows = [chosen]
    fastest = _fastest(entry.tried, candidates)
    if fastest is not None and fastest[0] != choice.config:
        arms[BEST] = fastest[0]
        rows.append(entry.marked(Row.from_json(fastest[1].to_json()), BEST))
    floor = {"memory": memory_us(problem, calibration.rates), "compute": compute_us(problem, calibration.rates)}
    sound = baseline is not None and bool(baseline.verified)
    measurement: dict[str, object] = {"rounds": 0}
    if arms:
        effort = _effort(request.effort, len(arms), max(floor.values()))
        samples = machine.time(problem, arms, effort, with_baseline=sound)
        measurement = told(samples)
        for row in [*rows, *([baseline] if baseline is not None and sound else [])]:
            if row.verified:
                fill_times(row, samples, problem, None)
        if chosen.arm == OWN and sound and samples.stop != "throttled":
            rows.insert(0, entry.library_row(samples))
    entry.rows = [*rows, *([baseline] if baseline is not None else []), *map(slim, candidates)]
    for row in entry.rows:
        row.floor_us = {**floor, "both": max(floor.values())}
    return measurement


def _chosen(entry: Entry, choice: Choice, request: SuiteRequest, machine: SuiteMachine) -> tuple[Row, Launched]:
    """The row of what the shape gets, verified, and what its arm launches."""
    if request.call:
        call = Call("own" if request.own else "all")
        return entry.called_row(call, machine), call
    row = entry.checked_row(choice.config, machine, entry.own_arm)
    row.expected_us, row.summary = choice.expected_us, choice.why
    return row, choice.config


def _screen(entry: Entry, rows: Sequence[Row], machine: SuiteMachine, launch: str) -> None:
    """A quick time in the row of every candidate that is right."""
    best_us: float | None = None
    for config, row in zip(entry.tried, rows, strict=True):
        if row.verified:
            found = machine.screen(entry.shape.problem, config, best_us, launch)
            row.time_us, row.samples_us = found.time_us, [round(t, 3) for t in found.samples_us]
            row.launch, row.outcome = launch, "slow" if found.slow else None
            best_us = min(found.time_us, best_us or found.time_us)


def _fastest(configs: Sequence[Config], rows: Sequence[Row]) -> tuple[Config, Row] | None:
    timed = [(config, row) for config, row in zip(configs, rows, strict=True) if row.time_us is not None]
    return min(timed, key=lambda pair: pair[1].time_us or 0.0, default=None)


def _effort(effort: Effort, arms: int, floor_us: float) -> Effort:
    """The budget, or what a few rounds of arms so long take, half of it for warming up.

    In a graph a sample is a pass over the ring, which for products so long is of two buffer sets.
    """
    launches = 2 if effort.launch_mode == GRAPH else 1
    round_s = launches * (arms + 2) * USUAL_OVER_FLOOR * floor_us / 1e6
    return replace(effort, budget_s=max(effort.budget_s, 2 * LEAST_ROUNDS * round_s))
