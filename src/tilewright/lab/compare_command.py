"""`tilewright compare`: which of two builds is faster, and whether what differs between them can say why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from tilewright.arch import get_arch
from tilewright.lab.bench import open_bench
from tilewright.lab.comparing import Sides, candidates, compared, trial_of
from tilewright.lab.measuring import Effort
from tilewright.lab.notes import measurement_notes
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.settings import DEFAULT_SIZES, Sizes, sized_problem, usual_kind
from tilewright.lab.trial_table import print_trial
from tilewright.record import Record, Row

REFUSALS = {"InvalidConfig", "InvalidProblem"}


@dataclass(frozen=True)
class CompareRequest:
    """The command's arguments."""

    sides: Sides
    bundle: str
    sizes: Sizes
    arch: str
    device_id: int
    offline: bool
    effort: Effort


def run_compare(request: CompareRequest, *, as_json: bool) -> int:
    """Compare and print. Returns the exit status: 0 both sound, 1 one failed, 2 one was refused."""
    pair = candidates(request.sides)
    problem = sized_problem(request.sizes, DEFAULT_SIZES, usual_kind([each.config.rung for each in pair]))
    console = standard_error() if as_json else standard_output()
    with open_bench(request.device_id, offline=request.offline) as (bench, why):
        arch = bench.arch if bench is not None else get_arch(request.arch)
        trial = trial_of(pair, problem, arch, request.bundle)
        console.print(Text(f"tilewright compare  {problem}, {arch.name}", style="bold"), soft_wrap=True)
        with standard_error().status("") as status:
            record = compared(trial, bench, request.effort, status.update)
        _print(console, record, why, measured=bench is not None)
    if as_json:
        print_json(record.to_json())
    return exit_status(record)


def exit_status(record: Record) -> int:
    """0 where no row failed, 2 where what failed was refused by a rule, 1 otherwise."""
    failures = {row.failure for row in record.rows} - {None}
    return 0 if not failures else 2 if failures <= REFUSALS else 1


def _print(console: Console, record: Record, why: str, *, measured: bool) -> None:
    assert record.about is not None
    print_trial(console, record.rows, record.about["arms"])
    reference, arm = record.rows[:2]
    if reference.failure is None and arm.failure is None:
        for line in _instructions(reference, arm):
            console.print(line, style="dim", soft_wrap=True)
    if not record.about["arms"][1].get("confounded") and not arm.causes and arm.failure is None:
        console.print("no difference: two builds of the same, which shows the noise", style="dim")
    if not measured:
        console.print(f"nothing was timed, so there is no verdict: {why}", style="yellow", soft_wrap=True)
        return
    if why:
        console.print(why, style="dim", soft_wrap=True)
    console.print(Text(str(record.about["finding"]), style="bold"), soft_wrap=True)
    console.print(*measurement_notes(record), sep="\n", style="dim", soft_wrap=True)


def _instructions(reference: Row, arm: Row) -> Iterator[str]:
    """The instructions of the main loops that differ in number."""
    if reference.sass is None or arm.sass is None:
        yield f"no instructions: {reference.sass_missing or arm.sass_missing}"
        return
    names = dict.fromkeys([*reference.sass, *arm.sass])
    counts = {name: (reference.sass.get(name, 0), arm.sass.get(name, 0)) for name in names}
    changed = [f"{name} {a:g} → {b:g}" for name, (a, b) in counts.items() if a != b]
    units = {reference.sass_unit, arm.sass_unit}
    unit = f"one {units.pop()}" if len(units) == 1 else f"one {reference.sass_unit} and one {arm.sass_unit}"
    yield f"main loop, a thread for {unit}: {', '.join(changed) if changed else 'the same instructions'}"
