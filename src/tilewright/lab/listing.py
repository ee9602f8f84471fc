"""The list of rungs, and one rung's words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from tilewright.declare import Rung, rung_config, rungs
from tilewright.lab.outcomes import outcome_sentence, outcomes
from tilewright.lab.output import print_json, standard_output
from tilewright.lab.picture import draw_tiles
from tilewright.record import SCHEMA, load_records


def show_rungs(query: str | None, *, as_json: bool) -> int:
    """Print every rung in a line or two, or the one called `query` whole. Returns the exit status."""
    chosen = list(rungs().values()) if query is None else [rungs().find(query)]
    if as_json:
        print_json({"schema": SCHEMA, "command": "rungs", "rows": [described(rung) for rung in chosen]})
        return 0
    console = standard_output()
    for rung in chosen:
        line = Text(f"{rung.name:<18}", style="bold").append(f"  {rung_config(rung)}", style="cyan not bold")
        console.print(line, soft_wrap=True)
        console.print(Text(f"  {rung.summary}", style="dim"), soft_wrap=True)
        if query is not None:
            _print_whole(console, rung)
    return 0


def described(rung: Rung) -> dict[str, Any]:
    """A rung's declaration as JSON types."""
    return {
        "rung": rung.name,
        "number": rung.number,
        "track": rung.track,
        "title": rung.title,
        "builds_on": rung.builds_on,
        "summary": rung.summary,
        "lesson": asdict(rung.lesson),
        "config": rung_config(rung).constants,
        "params": {p.name: {"default": p.default, "values": p.values, "doc": p.doc} for p in rung.params},
        "rules": [{"kind": r.kind, "expr": r.expr.text, "reason": r.reason} for r in rung.rules],
    }


def _print_whole(console: Console, rung: Rung) -> None:
    console.print(f"\nbuilds on {rung.builds_on or 'nothing'}\n")
    console.print(Padding(Text(draw_tiles(rung_config(rung).constants)), (0, 2)), soft_wrap=True)
    console.print()
    for heading, words in asdict(rung.lesson).items():
        console.print(Text(heading, style="cyan"))
        console.print(Padding(Text(" ".join(words.split())), (0, 2)))
    console.print(Text("outcome", style="cyan"))
    told = [outcome_sentence(*found) for found in outcomes(load_records(), rung.name)] or ["not recorded yet"]
    console.print(Padding(Text("\n".join(told)), (0, 2)))
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
