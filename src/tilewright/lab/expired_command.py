"""`tilewright tune --expired`: what was tuned under other conditions than today's, and whether it still holds."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from tilewright.compile.nvrtc import nvrtc_version
from tilewright.declare import all_rungs
from tilewright.errors import NoDevice
from tilewright.facts.static import problem_fields
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.render import percent
from tilewright.lab.settings import DEFAULT_SIZES, Sizes, sized_problem
from tilewright.problem import ProblemKind
from tilewright.record import SCHEMA, environment, load_records
from tilewright.run.cuda import CudaBackend
from tilewright.tune import Machine, Store
from tilewright.tune.context import machine_fields
from tilewright.tune.expired import Premise, Retested, premises, retest
from tilewright.tune.finalists import label_of
from tilewright.tune.gpu import describe_device


def run_expired(sizes: Sizes, device: int, seed: int, *, as_json: bool, machine: Machine | None = None) -> int:
    """List what may have expired and, with a GPU, measure it again. Returns the exit status."""
    console = standard_error() if as_json else standard_output()
    now, no_device = _now(device) if machine is None else ({"nvrtc": nvrtc_version()}, "")
    problem = sized_problem(sizes, DEFAULT_SIZES, ProblemKind())
    with Store() as store:
        found = premises(store.choices(), load_records(), all_rungs(), now, problem)
    if not found:
        console.print(
            Text("nothing stored or recorded was found under other conditions, and no rung has a rival"), soft_wrap=True
        )
    rows = []
    for premise in found:
        _print_premise(console, premise)
        told = None if no_device else _retested(premise, machine or Machine(devices=(device,)), seed)
        if told is not None:
            _print_retested(console, told)
        rows.append(_row(premise, told))
    if no_device:
        console.print(
            Text(f"\nlisted only, since nothing can be measured here: {no_device}", style="dim"), soft_wrap=True
        )
    if as_json:
        about = {"schema": SCHEMA, "command": "tune --expired", "environment": environment(**now)}
        print_json({**about, "rows": rows})
    return 0


def _now(device: int) -> tuple[dict[str, Any], str]:
    """This machine's fields of a context, and why there is no device among them."""
    try:
        with CudaBackend(device) as gpu:
            return machine_fields(describe_device(gpu)), ""
    except NoDevice as error:
        return {"nvrtc": nvrtc_version()}, str(error)


def _retested(premise: Premise, machine: Machine, seed: int) -> Retested:
    return retest(premise, all_rungs()[premise.rung], machine, seed=seed)


def _print_premise(console: Console, premise: Premise) -> None:
    rung = all_rungs()[premise.rung]
    title = f"\n{premise.kind} of {premise.rung}, {premise.problem}: {label_of(rung, premise.config)}"
    console.print(Text(title, style="bold"), soft_wrap=True)
    changed = f"; changed since: {', '.join(premise.changed)}" if premise.changed else ""
    console.print(Text(f"  {premise.since}{changed}"), soft_wrap=True)
    if premise.words:
        console.print(Text(f"  its premise: {premise.words}", style="dim italic"), soft_wrap=True)
    if premise.kind == "defaults":
        rivals = "; ".join(label_of(rung, config) for config in premise.rivals)
        console.print(Text(f"  other configs measured: {rivals}"), soft_wrap=True)


def _print_retested(console: Console, told: Retested) -> None:
    line = f"  {told.held}"
    if told.ratio is not None and told.rival is not None:
        against = label_of(all_rungs()[told.premise.rung], told.rival)
        low, high = (percent(told.ratio.low), percent(told.ratio.high))
        line += f": {against} takes {percent(1 / told.ratio.median)}% of its time, paired ratio {low} to {high}%"
    elif told.detail:
        line += f": {told.detail}"
    style = {"holds": "green", "no longer holds": "bold red"}.get(told.held, "yellow")
    console.print(Text(line, style=style), soft_wrap=True)


def _row(premise: Premise, told: Retested | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": premise.kind,
        "rung": premise.rung,
        "problem": problem_fields(premise.problem),
        "config": premise.config,
        "rivals": list(premise.rivals),
        "since": premise.since,
        "changed": list(premise.changed),
    }
    if told is not None:
        row["held"], row["detail"] = told.held, told.detail
        if told.ratio is not None:
            row["rival"] = told.rival
            row["ratio_of_rival"] = {"low": told.ratio.low, "median": told.ratio.median, "high": told.ratio.high}
    return row
