"""`tilewright verify RUNG --races`: every problem under every schedule with the checks of the trace build on."""

from __future__ import annotations

import itertools

from rich.text import Text

from tilewright.declare import Config, all_rungs
from tilewright.emulator.findings import NOTHING_FOUND
from tilewright.emulator.tracing import Watch
from tilewright.errors import InvalidConfig
from tilewright.facts.static import bare_row
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.settings import configs_of, parse_settings
from tilewright.lab.tracing import declared_matrices, trace_config
from tilewright.lab.verifying import SCHEDULES, problems_for
from tilewright.problem import Problem
from tilewright.record import Record, Row, environment

MOST_SHOWN = 6
FAILURE = "UnsafeMemory"
"""What a row calls findings: no launch failed and no result need be wrong."""


def verify_races(query: str, settings: list[str], schedule: str, seed: int, *, as_json: bool) -> int:
    """Check one config for races and the like and print what is found. Returns the exit status."""
    rung = all_rungs().find(query)
    config = configs_of([rung], parse_settings(settings, [rung], all_rungs()))[0]
    chosen = [name for name in SCHEDULES if schedule in (name, "all")]
    if not chosen:
        raise InvalidConfig(f"--schedule {schedule}: must be one of {', '.join(SCHEDULES)} or all")
    console = standard_error() if as_json else standard_output()
    console.print(Text(f"{rung.name}  {config}", style="bold"), soft_wrap=True)
    record = Record(command="verify", environment=environment())
    problems = distinct_problems(config)
    for name in chosen:
        label = f"emulator, {name} schedule{f', seed {seed}' if name == 'random' else ''}, traced"
        found = list(dict.fromkeys(itertools.chain.from_iterable(_findings(config, p, name, seed) for p in problems)))
        record.rows.append(_row(config, problems[0], label, found))
        console.print(Text(f"  {label}", style="cyan"))
        console.print(*_lines(found, len(problems)), sep="\n", soft_wrap=True)
    if as_json:
        print_json(record.to_json())
    return int(any(row.failure for row in record.rows))


def distinct_problems(config: Config) -> list[Problem]:
    """Of the covering problems those that differ in more than scale: order and places depend on no value."""
    made: dict[object, Problem] = {}
    for problem in problems_for(config):
        sizes = (problem.m, problem.n, problem.k, problem.batch, problem.beta == 0)
        made.setdefault((*sizes, *(getattr(problem, f"ld{x}") for x in "abcd"), problem.batch_stride_b), problem)
    return list(made.values())


def _findings(config: Config, problem: Problem, schedule: str, seed: int) -> list[str]:
    """What the checks and the launch itself object to, in words that name no problem, so that each is told once."""
    watch = Watch(counts=False, checks=True, matrices=declared_matrices(problem))
    trace, failure = trace_config(config, problem, watch, schedule=schedule, seed=seed)
    return [*(str(finding) for finding in trace.findings), *([str(failure)] if failure is not None else [])]


def _row(config: Config, problem: Problem, label: str, found: list[str]) -> Row:
    row = bare_row(config, problem)
    row.backend, row.verified = label, not found
    row.verdict = found[0] if found else NOTHING_FOUND
    if found:
        row.failure, row.findings = FAILURE, found
    return row


def _lines(found: list[str], problems: int) -> list[Text]:
    if not found:
        return [Text(f"    ✓ {NOTHING_FOUND} on {problems} problems", style="green")]
    more = [Text(f"    … and {len(found) - MOST_SHOWN} more", style="dim")] if len(found) > MOST_SHOWN else []
    return [*(Text(f"    ✗ {text}", style="red") for text in found[:MOST_SHOWN]), *more]
