"""An inspection as a person reads it in a terminal: one section a question. Computes nothing that it shows."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from tilewright.declare import Config
from tilewright.facts.counts import Counts, counts
from tilewright.facts.footprint import SECTOR_BYTES, WarpAccess
from tilewright.facts.roofline import MIB, Roofline, get_card
from tilewright.lab.inspect_sass import print_mix, print_source_lines
from tilewright.lab.inspecting import Inspection, Known, rule_checks
from tilewright.lab.render import INSTRUCTIONS, duration, percent
from tilewright.lab.sections import heading, print_pairs, print_words
from tilewright.record import Row


def print_inspection(console: Console, found: Inspection) -> None:
    """Every section, in the order of the questions a reader has."""
    rung = found.config.rung
    console.print(Text(f"{rung.name} on {found.arch.name}, {found.problem}", style="bold"))
    console.print(Text(f"  {rung.summary}", style="dim"), soft_wrap=True)
    heading(console, "constants")
    constants = " ".join(f"{n}={v}" for n, v in found.config.constants.items())
    print_words(console, constants)
    _print_resources(console, found.config, found.row)
    _print_counts(console, counts(found.config, found.problem))
    _print_warp_accesses(console, found.warp_accesses)
    if found.loop is None:
        heading(console, "main loop")
        console.print(Text(f"  {found.no_loop}", style="yellow"), soft_wrap=True)
    else:
        print_mix(console, found.loop)
        print_source_lines(console, found.loop, found.config)
    _print_roles(console, found.row)
    _print_roofline(console, found)
    _print_waves(console, found)
    _print_rules(console, found)


def _print_rules(console: Console, found: Inspection) -> None:
    heading(console, "rules")
    for result in rule_checks(found.config, found.arch, found.problem):
        values = ", ".join(f"{n}={v}" for n, v in result.values.items())
        line = Text("  ✓ ", style="green").append(f"{result.rule.expr.text}", style="default")
        line.append(f"  ({values}), {result.rule.reason}", style="dim")
        console.print(line, soft_wrap=not console.is_terminal)


def _print_resources(console: Console, config: Config, row: Row) -> None:
    heading(console, "resources")
    limits = " and ".join(row.limiters or [])
    occupancy = f"{100 * (row.occupancy or 0):.1f}%, {row.ctas_per_sm} CTAs an SM, limited by {limits}"
    print_pairs(
        console,
        (
            ("threads", f"{config.threads} a CTA"),
            ("registers", f"{row.registers} a thread{registers_by_role(row)}"),
            ("spills", f"{row.spill_bytes} bytes"),
            ("stack", f"{row.stack_bytes} bytes"),
            ("shared memory", f"{row.smem_bytes} bytes a CTA{f' in {row.stages} stages' if config.stages > 1 else ''}"),
            ("occupancy", occupancy),
        ),
    )
    if row.failure is not None:
        console.print(Text(f"  ✗ {row.verdict}", style="red"), soft_wrap=not console.is_terminal)


def registers_by_role(row: Row) -> str:
    """What setmaxnreg makes of a kernel's registers, in words; nothing where all threads keep theirs."""
    told = ", ".join(f"{role['role']} {role['registers']}" for role in row.roles or [])
    return f"; by setmaxnreg {told}" if told else ""


def _print_roles(console: Console, row: Row) -> None:
    if not row.roles:
        return
    heading(
        console, "roles", "warps that part ways; a thread, for one trip of its loop, and beside it as the code stands"
    )
    for role in row.roles:
        parts = [
            ", ".join(f"{kind} ×{count:g}" for kind, count in role[part].items()) for part in ("loop", "elsewhere")
        ]
        print_pairs(console, ((role["role"], parts[0] or "no loop"), ("", f"elsewhere {parts[1] or 'nothing'}")))


def _print_waves(console: Console, found: Inspection) -> None:
    filled = found.waves
    if filled is None:
        return
    heading(console, "waves", f"tiles that {filled.card} works on at once, each taken to last equally long")
    least, most = filled.tiles_per_cta
    shared = f"{most}" if least == most else f"{least} or {most}"
    ctas = f"{_plural(filled.ctas, 'persistent CTA')}, {shared} tiles each" if filled.persistent else "one a CTA"
    last = f"{filled.tail} of {filled.slots} in the last, {percent(filled.tail_efficiency)}% of it"
    print_pairs(
        console,
        (
            ("tiles", f"{filled.tiles}, {ctas}; {filled.slots} at once"),
            ("waves", f"{filled.waves:.3g}; {last}"),
            ("utilisation", f"{percent(filled.utilisation)}% of the card, by whole waves"),
        ),
    )


def _print_counts(console: Console, counted: Counts) -> None:
    heading(console, "accesses", "as the kernel asks for them, before any cache")
    print_pairs(
        console,
        (
            ("global loads", f"{float(counted.global_loads_per_result):g} elements for one result"),
            ("shared loads", f"{float(counted.shared_loads_per_result):g} elements for one result"),
            ("shared stores", f"{float(counted.shared_stores_per_result):g} elements for one result"),
            ("intensity", f"{counted.flop_per_byte:.3g} FLOP a byte of global loads"),
        ),
    )


def _print_warp_accesses(console: Console, accesses: list[WarpAccess]) -> None:
    if not accesses:
        return
    heading(console, "one warp's accesses", "its 32 lanes together, in bytes")
    console.print(Text(f"  {'':<21}{'a lane':>8}{'distinct':>10}{'span':>10}", style="cyan"), soft_wrap=True)
    for access in accesses:
        sizes = f"{access.lane_bytes:>8}{access.distinct_bytes:>10}{access.span_bytes:>10}"
        line = f"  {access.name:<7}{access.kind:<14}{sizes}   {_cost(access)}"
        console.print(Text(line), soft_wrap=True)


def _cost(access: WarpAccess) -> str:
    if access.sectors is not None:
        used = access.distinct_bytes / (SECTOR_BYTES * access.sectors)
        return f"{_plural(access.sectors, 'sector')}, {100 * used:.3g}% of their bytes used"
    conflict = "no conflict" if access.conflict_ways == 1 else f"{access.conflict_ways}-way conflict"
    return f"{_plural(access.banks or 0, 'bank')}, {conflict}, {_plural(access.wavefronts or 0, 'wavefront')}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _print_roofline(console: Console, found: Inspection) -> None:
    roof = found.roof
    if roof is None:
        heading(console, "roofline")
        console.print(Text(f"  no card of {found.arch.name} is listed", style="yellow"), soft_wrap=True)
        return
    card = get_card(roof.card)
    heading(
        console,
        "roofline",
        f"{card.name} by its datasheet: {card.sms} SMs, {card.boost_mhz} MHz, {card.dram_gb_per_s} GB/s, "
        f"{card.l2_mib} MiB of L2",
    )
    print_pairs(console, _bounds(roof))
    for known in found.times:
        print_pairs(console, held_against(known, roof))
    print_words(console, f"The memory bound takes every requested byte to come from DRAM. {roof.premise()}")


def held_against(known: Known, roof: Roofline) -> Iterable[tuple[str, str]]:
    """A known time beside the bounds, and what being above the memory bound means."""
    flops = 1e6 * roof.flops / known.time_us
    memory, compute = flops / roof.memory_flops, flops / roof.peak_flops
    yield (
        duration(known.time_us),
        f"{known.source}, {flops / 1e12:.3g} TFLOP/s: {percent(compute)}% of the compute bound",
    )
    broken = ", which is no bound here" if memory > 1 else ""
    yield "", f"{percent(memory)}% of the memory bound{broken}"


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"


def _bounds(roof: Roofline) -> Iterable[tuple[str, str]]:
    memory, compute = (f"{_three_digits(flops / 1e12)} TFLOP/s" for flops in (roof.memory_flops, roof.peak_flops))
    requested, operands, least = (
        duration(1000 * floor) for floor in (roof.memory_floor_ms, roof.operand_floor_ms, roof.compute_floor_ms)
    )
    size = f"{roof.requested_bytes / 1e9:.3g} GB"
    measured = (
        "" if roof.peak_source == "datasheet" else f", {INSTRUCTIONS[roof.peak_source]} as measured on such a card"
    )
    return (
        ("memory bound", f"{memory} at {roof.flop_per_byte:.3g} FLOP a byte; {requested} for {size} requested"),
        ("", f"{operands} if every operand crossed once, {roof.operand_bytes / MIB:.3g} MiB"),
        ("compute bound", f"{compute}{measured}; {least}"),
    )
