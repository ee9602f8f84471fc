"""One config on one architecture, explained from its declaration and its binary: no GPU, no C++ compiler."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tilewright.arch import ArchSpec, get_arch
from tilewright.declare import Config, rungs
from tilewright.declare.rules import Check, check
from tilewright.facts.counts import Counts, counts
from tilewright.lab.ladder import Plan, compiled_row
from tilewright.lab.output import print_json, standard_output
from tilewright.lab.settings import configs_of, parse_settings, sized_problem
from tilewright.problem import Problem
from tilewright.record import Record, Row, environment

DEFAULT_SIZE = 4096


def inspect_rung(
    query: str, settings: list[str], arch_name: str, sizes: tuple[int | None, int | None, int | None], *, as_json: bool
) -> int:
    """Print rules with their values, resources, occupancy and access counts of one config. Returns the exit status."""
    rung = rungs().find(query)
    config = configs_of([rung], parse_settings(settings, [rung], rungs()))[0]
    arch = get_arch(arch_name)
    problem = sized_problem(*(DEFAULT_SIZE if size is None else size for size in sizes))
    row = compiled_row(Plan(problem, [config], arch), config)
    if as_json:
        print_json(Record(command="inspect", environment=environment(arch=arch.name), rows=[row]).to_json())
        return 0
    console = standard_output()
    console.print(Text(f"{rung.name} on {arch.name}, {problem}", style="bold"))
    console.print(Text(f"  {rung.summary}\n", style="dim"), soft_wrap=True)
    _print_constants(console, config)
    _print_rules(console, config, arch, problem)
    _print_resources(console, config, row)
    _print_counts(console, counts(config, problem))
    return 0


def rule_checks(config: Config, arch: ArchSpec, problem: Problem) -> list[Check]:
    """Config, problem and architecture rules applied, in the order they are checked."""
    names = config.scope.with_values({**problem.names(), **arch.names()})
    own = [check(r, names) for r in config.rung.rules if r.kind in ("config", "problem")]
    return own + config.arch_checks(arch)


def _print_constants(console: Console, config: Config) -> None:
    console.print("constants", style="cyan")
    console.print(Text("  " + "  ".join(f"{n}={v}" for n, v in config.constants.items()) + "\n"), soft_wrap=True)


def _print_rules(console: Console, config: Config, arch: ArchSpec, problem: Problem) -> None:
    console.print("rules", style="cyan")
    for result in rule_checks(config, arch, problem):
        values = ", ".join(f"{n}={v}" for n, v in result.values.items())
        line = Text("  ✓ ", style="green").append(f"{result.rule.expr.text}", style="default")
        console.print(line.append(f"  ({values}), {result.rule.reason}", style="dim"), soft_wrap=True)


def _print_resources(console: Console, config: Config, row: Row) -> None:
    console.print("\nresources", style="cyan")
    limits = " and ".join(row.limiters or [])
    occupancy = f"{100 * (row.occupancy or 0):.1f}%, {row.ctas_per_sm} CTAs an SM, limited by {limits}"
    for name, value in (
        ("threads", f"{config.threads} a CTA"),
        ("registers", f"{row.registers} a thread"),
        ("spills", f"{row.spill_bytes} bytes"),
        ("stack", f"{row.stack_bytes} bytes"),
        ("shared memory", f"{row.smem_bytes} bytes a CTA"),
        ("occupancy", occupancy),
    ):
        console.print(Text(f"  {name:<14} {value}"), soft_wrap=True)


def _print_counts(console: Console, counted: Counts) -> None:
    console.print("\naccesses, as the kernel asks for them, before any cache", style="cyan")
    for name, value in (
        ("global loads", f"{float(counted.global_loads_per_result):g} elements for one result"),
        ("shared loads", f"{float(counted.shared_loads_per_result):g} elements for one result"),
        ("shared stores", f"{float(counted.shared_stores_per_result):g} elements for one result"),
        ("intensity", f"{counted.flop_per_byte:.3g} FLOP a byte of global loads"),
    ):
        console.print(Text(f"  {name:<14} {value}"), soft_wrap=True)
