"""`tilewright replay`: a record built and measured again, and what became of its figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tilewright.lab.bench import open_bench
from tilewright.lab.measuring import Effort
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.replay import REFUTED, replayed
from tilewright.lab.trial_table import print_trial
from tilewright.measure.modes import COLD, GRAPH, STEADY, STREAM
from tilewright.record import Record, read_record


@dataclass(frozen=True)
class ReplayRequest:
    """The command's arguments; rounds of None are the record's."""

    path: Path
    device_id: int
    offline: bool
    rounds: int | None
    budget_s: float


def run_replay(request: ReplayRequest, *, as_json: bool) -> int:
    """Replay and print. Returns the exit status: 1 where the record is refuted or an arm can no longer be built."""
    record = read_record(request.path)
    effort = effort_of(record, request)
    console = standard_error() if as_json else standard_output()
    with open_bench(request.device_id, offline=request.offline) as (bench, why):
        with standard_error().status("") as status:
            made = replayed(record, bench, effort, status.update)
        _print(console, request.path, record, made, why)
    if as_json:
        print_json(made.to_json())
    assert made.about is not None
    return int(made.about["verdict"] == REFUTED or any(row.failure for row in made.rows))


def effort_of(record: Record, request: ReplayRequest) -> Effort:
    """The conditions that the record was measured under; an older one tells its launch mode by `in_graphs`."""
    then = record.environment.get("measurement", {})
    return Effort(
        request.rounds or then.get("rounds", 60),
        request.budget_s,
        then.get("mode", STEADY),
        then.get("cache", COLD),
        then.get("launch", GRAPH if then.get("in_graphs") else STREAM),
    )


def _print(console: Console, path: Path, record: Record, made: Record, why: str) -> None:
    assert made.about is not None
    then = record.environment
    where = then.get("device", {}).get("name", "an unknown device")
    title = f"tilewright replay  {path.name}, {record.command} on {where}, {then.get('date', 'undated')}"
    console.print(Text(title, style="bold"), soft_wrap=True)
    print_trial(console, made.rows, made.about["arms"])
    for arm in made.about["arms"]:
        console.print(Text(f"  {arm['arm']}: {arm['figure']}", style="dim"), soft_wrap=True)
    if why:
        console.print(why, style="dim", soft_wrap=True)
    console.print(Text(f"{made.about['verdict']}: {made.about['finding']}", style="bold"), soft_wrap=True)
