"""The list of rungs, and one rung's words."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from tilewright.arch import ARCHS, archs_with
from tilewright.declare import Rung, Search, Step, all_rungs, enumerate_configs, rung_config
from tilewright.lab.outcomes import outcome_sentence, outcomes
from tilewright.lab.output import print_json, standard_output
from tilewright.lab.picture import draw_tiles
from tilewright.record import SCHEMA, load_records


def show_rungs(query: str | None, *, as_json: bool) -> int:
    """Print every rung in a line or two, or the one called `query` whole. Returns the exit status."""
    chosen = list(all_rungs().steps) if query is None else [all_rungs().find_step(query)]
    if as_json:
        print_json({"schema": SCHEMA, "command": "rungs", "rows": [described(step) for step in chosen]})
        return 0
    console = standard_output()
    for step in chosen:
        beside = str(rung_config(step)) if isinstance(step, Rung) else f"no kernel: searches {step.builds_on}"
        line = Text(f"{step.name:<20}", style="bold").append(f"  {beside}", style="cyan not bold")
        console.print(line, soft_wrap=True)
        console.print(Text(f"  {step.summary}", style="dim"), soft_wrap=True)
        if isinstance(step, Rung) and (needs := _special_needs(step)):
            able = ", ".join(archs_with(step.requires.features))
            console.print(Text(f"  needs {', '.join(needs)}: for {able} alone", style="yellow"), soft_wrap=True)
        if query is not None:
            _print_lesson(console, step)
            if isinstance(step, Rung):
                _print_parameters(console, step)
            else:
                _print_space(console, step)
    return 0


def _special_needs(rung: Rung) -> list[str]:
    """Features that the rung needs and not every architecture here has."""
    return sorted(f for f in rung.requires.features if any(f not in arch.features for arch in ARCHS.values()))


def described(step: Rung | Search) -> dict[str, Any]:
    """A declaration as JSON types; `kernel` is None for a search."""
    words = {
        "rung": step.name,
        "number": step.number,
        "track": step.track,
        "title": step.title,
        "builds_on": step.builds_on,
        "summary": step.summary,
        "lesson": asdict(step.lesson),
    }
    if isinstance(step, Search):
        return {**words, "kernel": None}
    return {
        **words,
        "kernel": step.entry,
        "features": sorted(step.requires.features),
        "archs": archs_with(step.requires.features),
        "config": rung_config(step).constants,
        "params": {p.name: {"default": p.default, "values": p.values, "doc": p.doc} for p in step.params},
        "rules": [{"kind": r.kind, "expr": r.expr.text, "reason": r.reason} for r in step.rules],
    }


def _print_lesson(console: Console, step: Step) -> None:
    console.print(f"\nbuilds on {step.builds_on or 'nothing'}\n")
    if isinstance(step, Rung):
        console.print(Padding(Text(draw_tiles(rung_config(step).constants)), (0, 2)), soft_wrap=True)
        console.print()
    for heading, words in asdict(step.lesson).items():
        console.print(Text(heading, style="cyan"))
        console.print(Padding(Text(" ".join(words.split())), (0, 2)))
    if isinstance(step, Rung):
        console.print(Text("outcome", style="cyan"))
        told = [outcome_sentence(*found) for found in outcomes(load_records(), step.name)] or ["not recorded yet"]
        console.print(Padding(Text("\n".join(told)), (0, 2)))


def _print_space(console: Console, search: Search) -> None:
    searched = all_rungs().find(search.builds_on or "")
    points = math.prod(len(param.values) for param in searched.params)
    valid = sum(1 for _ in enumerate_configs(searched))
    line = f"\n{searched.name}: {points} combinations of its parameters' values, {valid} of them valid"
    console.print(Text(line), soft_wrap=True)


def _print_parameters(console: Console, rung: Rung) -> None:
    console.print(Text("\nparameters", style="cyan"))
    for param in rung.params:
        values = " ".join(str(v) for v in param.values)
        console.print(Text(f"  {param.name:<12} {param.default:>5}  of {values:<16}  {param.doc}"), soft_wrap=True)
    for item in rung.derived:
        value = rung_config(rung).constants[item.name]
        console.print(
            Text(f"  {item.name:<12} {value:>5}  = {item.expr.text}: {item.doc}", style="dim"), soft_wrap=True
        )
    console.print("\nrules, in the order they are checked")
    for rule in rung.rules:
        console.print(Text(f"  {rule.kind:<8} {rule.expr.text}, {rule.reason}"), soft_wrap=True)
