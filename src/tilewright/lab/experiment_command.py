"""`tilewright experiment`: the questions listed, or answered, with what was predicted before."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tilewright.arch import ArchSpec, get_arch
from tilewright.errors import InvalidInput
from tilewright.lab.bench import GpuBench, open_bench
from tilewright.lab.experiment import Experiment, all_experiments, find_experiment
from tilewright.lab.experimenting import built_experiment, measured_experiment
from tilewright.lab.measuring import Effort
from tilewright.lab.notes import measurement_notes
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.trial import Say
from tilewright.lab.trial_table import print_trial
from tilewright.record import RECORDS_DIR, SCHEMA, Record, load_records

EVERY, LIST = "all", "list"
RECORDED = RECORDS_DIR / "experiments"


@dataclass(frozen=True)
class ExperimentRequest:
    """The command's arguments; a budget of None is each experiment's own."""

    query: str
    arch: str
    device_id: int
    offline: bool
    rounds: int
    budget_s: float | None
    out: Path | None


def run_experiments(request: ExperimentRequest, *, as_json: bool) -> int:
    """List or run what was asked for and print it. Returns the exit status: 1 where an arm failed or isn't as said."""
    if request.query == LIST:
        return _list(as_json=as_json)
    chosen = list(all_experiments().values()) if request.query == EVERY else [find_experiment(request.query)]
    console = standard_error() if as_json else standard_output()
    records = []
    with open_bench(request.device_id, offline=request.offline) as (bench, why):
        if request.out is not None and bench is None:
            raise InvalidInput(f"--out {request.out}: keeps what was measured, and nothing can be: {why}")
        if why:
            left_out = "nothing is timed, so only builds are judged: " if bench is None else ""
            console.print(f"{left_out}{why}", style="yellow", soft_wrap=True)
        for experiment in chosen:
            with standard_error().status("") as status:
                record = _run(experiment, bench, get_arch(request.arch), request, status.update)
            _print(console, experiment, record)
            records.append(record)
            if request.out is not None:
                _keep(record, request.out)
    if as_json:
        print_json(records[0].to_json() if request.query != EVERY else _many(records))
    return int(any(_astray(each, record) for each, record in zip(chosen, records, strict=True)))


def _run(
    experiment: Experiment, bench: GpuBench | None, arch: ArchSpec, request: ExperimentRequest, say: Say
) -> Record:
    if bench is None:
        return built_experiment(experiment, arch, say)
    budget_s = experiment.budget_s if request.budget_s is None else request.budget_s
    return measured_experiment(experiment, bench, Effort(request.rounds, budget_s), say)


def _astray(experiment: Experiment, record: Record) -> bool:
    """Whether an arm failed that wasn't expected to, or differs from its reference in something it doesn't say."""
    rows = {row.arm: row for row in record.rows}
    for arm in experiment.arms:
        row, expected = rows[arm.entrant.label], (arm.claim, arm.prediction)
        if (row.failure is not None and "invalid" not in expected) or (
            row.outcome == "confounded" and "confounded" not in expected
        ):
            return True
    return False


def _print(console: Console, experiment: Experiment, record: Record) -> None:
    assert record.about is not None
    console.print(Text(f"\n{experiment.name}  {experiment.question}", style="bold"), soft_wrap=True)
    console.print(Text(f"  {experiment.problem}", style="dim"), soft_wrap=True)
    for heading, words in (("claimed", experiment.claim or "nothing"), ("predicted", experiment.prediction)):
        console.print(Text.assemble((f"  {heading}: ", "cyan"), words), soft_wrap=True)
    print_trial(console, record.rows, record.about["arms"])
    console.print(Text.assemble(("  found: ", "cyan"), str(record.about["finding"])), soft_wrap=True)
    for line in measurement_notes(record):
        console.print(f"  {line}", style="dim", soft_wrap=True)


def _many(records: Iterable[Record]) -> dict[str, Any]:
    return {"schema": SCHEMA, "command": "experiment", "experiments": [record.to_json() for record in records]}


def _keep(record: Record, folder: Path) -> None:
    """Write the record to `folder`, named for its card and experiment. Raises InvalidInput where that can't be."""
    assert record.about is not None
    card = record.environment["device"]["name"].removeprefix("NVIDIA ").lower().replace(" ", "-")
    path = folder / f"{card}-{record.about['experiment']}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"--out {folder}: {path.name} cannot be written ({error}); name another folder") from error


def recorded_verdicts(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Recorded experiments by name, the newest first."""
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda r: str(r.environment.get("date", "")), reverse=True):
        if record.command == "experiment" and record.about is not None:
            found.setdefault(record.about["experiment"], []).append(record)
    return found


def _list(*, as_json: bool) -> int:
    recorded = recorded_verdicts(load_records(RECORDED))
    rows = []
    for experiment in all_experiments().values():
        newest = next(iter(recorded.get(experiment.name, ())), None)
        verdict = newest.about["verdict"] if newest is not None and newest.about is not None else None
        told = {"experiment": experiment.name, "question": experiment.question}
        rows.append(told if verdict is None else {**told, "verdict": verdict})
    if as_json:
        print_json({"schema": SCHEMA, "command": "experiment", "experiments": rows})
        return 0
    console = standard_output()
    width = max(len(row["experiment"]) for row in rows)
    for row in rows:
        verdict = f"  (recorded: {row['verdict']})" if "verdict" in row else ""
        line = Text.assemble((f"{row['experiment']:<{width}}  ", "bold"), row["question"], (verdict, "dim"))
        console.print(line, soft_wrap=True)
    return 0
