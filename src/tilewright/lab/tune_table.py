"""A search's result as a person reads it: the best ten, what was rejected and what failed."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from tilewright.lab.render import duration, percent
from tilewright.lab.sections import heading
from tilewright.measure import Interval
from tilewright.tune import Trial, TuneResult
from tilewright.tune.finalists import Finalist, label_of

BEST = 10
MOST_RULES = 8
STOPS = {
    "exhausted": "every config was tried",
    "evaluations": "as many trials as were asked for",
    "budget": "the time budget",
    "interrupted": "interrupted",
}


def time_of(trial: Trial) -> str:
    """A trial's screening time in words."""
    return "" if trial.time_us is None else duration(trial.time_us)


def print_result(console: Console, result: TuneResult) -> None:
    """Everything there is to say of a result."""
    rung, space = result.space.rung, result.space
    title = f"tilewright tune  {rung.name}, {space.problem} on {result.device['name']}"
    console.print(Text(title, style="bold"), soft_wrap=True)
    known = f", {result.known} of them known before" if result.known else ""
    told = f"{len(result.trials)} of {len(space.configs)} configs tried{known}; ended by: {STOPS[result.stop]}"
    console.print(Text(told, style="dim"), soft_wrap=True)
    _print_best(console, result)
    _print_failures(console, result)
    if space.rejected:
        heading(console, "rejected by rule", f"of {space.combinations} combinations")
        for rule, count in list(space.rejected.items())[:MOST_RULES]:
            console.print(Text(f"  {count:>9}  {rule}"), soft_wrap=True)
    if result.finals is not None and result.finals.no_baseline:
        console.print(Text(f"\n{result.finals.no_baseline}", style="dim"), soft_wrap=True)


def _print_best(console: Console, result: TuneResult) -> None:
    if result.best is None:
        console.print(Text("\nno config was tried and right; the rung's defaults stand"), soft_wrap=True)
        return
    measured = {finalist.trial.key for finalist in result.ranking}
    rest = sorted(
        (t for t in result.trials if t.outcome == "timed" and t.key not in measured),
        key=lambda trial: (trial.time_us or 0.0, trial.key),
    )
    heading(console, "best", "✓ taken, = ties with the fastest; 95% intervals of the final rounds, ~ screening alone")
    best = result.winner
    for finalist in result.ranking[:BEST]:
        mark = "✓" if finalist is best else "=" if finalist.ties else " "
        console.print(Text(f"  {mark} {_measured(result, finalist)}"), soft_wrap=True)
    for trial in rest[: max(0, BEST - len(result.ranking))]:
        label = label_of(result.space.rung, trial.config)
        console.print(Text(f"  ~ {time_of(trial):>8}{_facts(trial)}  {label}", style="dim"), soft_wrap=True)


def _measured(result: TuneResult, finalist: Finalist) -> str:
    time = finalist.time
    interval = f"[{duration(time.low)}, {duration(time.high)}]"
    ratio = "" if finalist.ratio_to_baseline is None else f"  {_share(finalist.ratio_to_baseline)} % of cuBLAS"
    return f"{duration(time.median):>8} {interval}{ratio}{_facts(finalist.trial)}  {finalist.label}"


def _share(interval: Interval) -> str:
    return f"{percent(interval.median)} [{percent(interval.low)}, {percent(interval.high)}]"


def _facts(trial: Trial) -> str:
    if "registers" not in trial.facts:
        return ""
    occupancy = trial.facts.get("occupancy")
    held = "" if occupancy is None else f", {percent(occupancy)}%"
    return f"  {trial.facts['registers']} registers{held}"


def _print_failures(console: Console, result: TuneResult) -> None:
    failed = [trial for trial in result.trials if trial.failure is not None]
    if not failed:
        return
    kinds = Counter((str(trial.failure), str(trial.stage)) for trial in failed)
    heading(console, "failed", f"{len(failed)} of {len(result.trials)}")
    for (failure, stage), count in kinds.most_common():
        first = next(t for t in failed if (t.failure, t.stage) == (failure, stage))
        lines = first.message.strip().splitlines() or [""]
        where = label_of(result.space.rung, first.config)
        console.print(Text(f"  {count:>5}  {failure} ({stage}): {where}: {lines[0]}"), soft_wrap=True)
