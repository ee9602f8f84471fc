"""What is known of one config on one architecture, put together from its declaration and its binary.

Needs no GPU and no C++ compiler. Without nvdisasm everything but the instructions is still known. Printing is
`inspect_view.py`, the command line's wishes are `inspect_command.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary
from tilewright.declare import Config
from tilewright.declare.rules import Check, check
from tilewright.errors import Missing
from tilewright.facts.disassemble import disassemble
from tilewright.facts.footprint import WarpAccess, warp_accesses
from tilewright.facts.mainloop import MainLoop, main_loop, plain
from tilewright.facts.roles import roles
from tilewright.facts.roofline import Card, Roofline, roofline
from tilewright.facts.static import static_row
from tilewright.facts.waves import Waves, waves
from tilewright.lab.verifying import cubin
from tilewright.problem import Problem
from tilewright.record import Row, compute_ceiling, load_records

PUBLISHED_CARD = "RTX 5080"
"""The card with the SMs, bandwidth and L2 of the one that published times were measured on."""


@dataclass(frozen=True)
class Inspection:
    """Everything known of `config` on `arch`. `loop` is None where `no_loop` says why; `roof` without a card."""

    config: Config
    arch: ArchSpec
    problem: Problem
    row: Row
    loop: MainLoop | None
    no_loop: str
    warp_accesses: list[WarpAccess]
    roof: Roofline | None
    waves: Waves | None
    times: list[Known]


@dataclass(frozen=True)
class Known:
    """A time that is known for this very config, problem and card, and from where."""

    source: str
    time_us: float


def inspect_config(config: Config, arch: ArchSpec, problem: Problem, card: Card | None) -> Inspection:
    """Compile, disassemble and count. Raises what a rule or NVRTC refuses."""
    config.require_arch(arch)
    config.require_problem(problem)
    binary = cubin(config, problem, arch)
    row = static_row(config, problem, arch, binary)
    loop, no_loop = add_instructions(row, config, binary)
    accesses = warp_accesses(config, problem)
    row.footprints = [access.to_json() for access in accesses]
    roof, filled = None, None
    if card is not None:
        roof = roofline(config, problem, card, recorded_ceiling(card, problem.dtype))
        filled = waves(config, problem, card, row.ctas_per_sm or 0)
        row.roofline, row.waves = roof.to_json(), filled.to_json()
    times = known_times(row, config, problem, card)
    return Inspection(config, arch, problem, row, loop, no_loop, accesses, roof, filled, times)


def recorded_ceiling(card: Card, dtype: str) -> Row | None:
    """What such a card was measured to do at most with elements of `dtype`, or None where that is not recorded."""
    records = load_records()
    devices = {str(record.environment.get("device", {}).get("name", "")) for record in records}
    device = next((name for name in sorted(devices) if name.endswith(card.name)), None)
    return None if device is None else compute_ceiling(records, device, dtype)


def add_instructions(row: Row, config: Config, binary: Binary) -> tuple[MainLoop | None, str]:
    """The main loop of `binary`, its mix and the kernel's roles put into `row`; None and why where it can't be told."""
    try:
        code = disassemble(binary)
        loop = main_loop(code, config)
        no_loop = "" if loop else "no loop of this kernel holds an FMA"
        row.roles = [role.to_json() for role in roles(code, loop)] or None
    except Missing as error:
        loop, no_loop = None, str(error)
    if loop is None:
        row.sass_missing = no_loop
    else:
        row.sass = {kind: plain(count) for kind, count in sorted(loop.mix.items())}
        row.sass_unit = loop.unit
    return loop, no_loop


def known_times(row: Row, config: Config, problem: Problem, card: Card | None) -> list[Known]:
    """Recorded times on the card, and the published one where config, problem and card are the article's."""
    if card is None:
        return []
    known = []
    for record in load_records():
        device = record.environment.get("device", {}).get("name", "")
        same = [r for r in record.rows if (r.rung, r.config, r.problem) == (row.rung, row.config, row.problem)]
        if device.endswith(card.name):
            known += [Known(f"recorded on {device}", r.time_us) for r in same if r.time_us is not None and r.verified]
    published = config.rung.published.time_ms
    defaults = {param.name: param.default for param in config.rung.params}
    articles = card.name == PUBLISHED_CARD and problem == Problem(m=4096, n=4096, k=4096)
    if published is not None and articles and config.values == defaults:
        known.append(Known("published for such a card", 1000 * published))
    return known


def rule_checks(config: Config, arch: ArchSpec, problem: Problem) -> list[Check]:
    """Config, problem and architecture rules applied, in the order they are checked."""
    names = config.problem_scope(problem).with_values(arch.names())
    own = [check(r, names) for r in config.rung.rules if r.kind in ("config", "problem")]
    return own + config.arch_checks(arch)
