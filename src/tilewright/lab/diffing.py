"""Two configs compared: their texts, parameters, accesses, resources, instructions and recorded times.

Makes one `Comparison` that the terminal and the page both show. Owns no layout, and measures nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.arch import ArchSpec, get_arch
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidConfig
from tilewright.facts.counts import counts
from tilewright.facts.roles import CONSUMER
from tilewright.lab.inspecting import inspect_config
from tilewright.lab.outcomes import size_of
from tilewright.lab.render import duration, percent
from tilewright.lab.settings import DEFAULT_SIZES, Sizes, parse_side_settings, sized_problem, usual_kind
from tilewright.lab.source_diff import Hunk, hunks
from tilewright.problem import Problem
from tilewright.record import Record, Row, load_records

Value = int | float | str | None


@dataclass(frozen=True)
class Side:
    """One of the two: its config, and what is known of it without a run."""

    letter: str
    config: Config
    row: Row

    @property
    def title(self) -> str:
        """What columns are headed with."""
        return f"{self.letter} {self.config.rung.name}"


@dataclass(frozen=True)
class Fact:
    """One figure of both sides as text; `factor` is B over A, empty where that says nothing."""

    name: str
    left: str
    right: str
    factor: str = ""

    @property
    def differs(self) -> bool:
        """Whether the sides differ in it."""
        return self.left != self.right


@dataclass(frozen=True)
class Group:
    """Facts of one kind; `note` says where they are from, or why there are none."""

    title: str
    facts: tuple[Fact, ...]
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """Everything `tilewright diff` shows."""

    left: Side
    right: Side
    problem: Problem
    arch: ArchSpec
    hunks: tuple[Hunk, ...]
    groups: tuple[Group, ...]

    @property
    def one_text(self) -> bool:
        """Whether both have the same kernel text, so that only constants differ."""
        return all(hunk.same for hunk in self.hunks)


def compare(first: str, second: str | None, settings: Iterable[str], arch_name: str, sizes: Sizes) -> Comparison:
    """Compare the configs asked for; a second rung left out is the first again.

    Raises UnknownName, InvalidConfig (also where both are the same), InvalidProblem, CompileFailed.
    """
    registry = all_rungs()
    chosen = registry.find(first), registry.find(second or first)
    parsed = parse_side_settings(settings, *chosen, registry)
    left, right = (rung_config(rung, own) for rung, own in zip(chosen, parsed, strict=True))
    if left == right:
        raise InvalidConfig(
            f"A and B are both {left.rung.name} with {left}: name two rungs, or set one side apart, as in "
            f"--set B.{next(iter(left.values))}=VALUE"
        )
    return compared(
        left, right, sized_problem(sizes, DEFAULT_SIZES, usual_kind(chosen)), get_arch(arch_name), load_records()
    )


def compared(left: Config, right: Config, problem: Problem, arch: ArchSpec, records: Iterable[Record]) -> Comparison:
    """The comparison of two configs for one problem and architecture."""
    a, b = (
        Side(letter, config, inspect_config(config, arch, problem, None).row)
        for letter, config in zip("AB", (left, right), strict=True)
    )
    groups = (
        _parameters(a, b),
        _launch(a, b, problem),
        _accesses(a, b, problem),
        _resources(a, b, arch),
        *_instructions(a.row, b.row),
        _recorded(a.config, b.config, records),
    )
    return Comparison(a, b, problem, arch, tuple(hunks(left.rung.source, right.rung.source)), groups)


def _fact(name: str, left: Value, right: Value, form: str = "{:g}") -> Fact:
    """A fact of two numbers or texts; None is a dash."""

    def say(value: Value) -> str:
        return "–" if value is None else value if isinstance(value, str) else form.format(value)

    factor = ""
    if isinstance(left, int | float) and isinstance(right, int | float) and left and right and left != right:
        factor = f"×{right / left:.3g}"
    return Fact(name, say(left), say(right), factor)


def _parameters(a: Side, b: Side) -> Group:
    left, right = a.config.constants, b.config.constants
    names = dict.fromkeys([*left, *right])
    return Group("parameters", tuple(_fact(name, left.get(name), right.get(name), "{}") for name in names))


def _launch(a: Side, b: Side, problem: Problem) -> Group:
    left, right = a.config, b.config
    ctas = _fact("CTAs", _ctas(left, problem), _ctas(right, problem), "{}")
    return Group("launch", (ctas, _fact("threads a CTA", left.threads, right.threads, "{}")))


def _ctas(config: Config, problem: Problem) -> int | str:
    return "by SMs" if config.rung.launch.persistent else math.prod(config.grid(problem))


def _accesses(a: Side, b: Side, problem: Problem) -> Group:
    left, right = (counts(side.config, problem) for side in (a, b))
    facts = tuple(
        _fact(words, float(getattr(left, name)), float(getattr(right, name)), form)
        for words, name, form in (
            ("global loads a result", "global_loads_per_result", "{:g}"),
            ("shared loads a result", "shared_loads_per_result", "{:g}"),
            ("shared stores a result", "shared_stores_per_result", "{:g}"),
            ("FLOP a global byte", "flop_per_byte", "{:.3g}"),
        )
    )
    return Group("accesses", facts, "elements asked for, before any cache")


def _resources(a: Side, b: Side, arch: ArchSpec) -> Group:
    left, right = a.row, b.row
    facts = [
        _fact(words, getattr(left, name), getattr(right, name), "{}")
        for words, name in (
            ("registers a thread", "registers"),
            ("spilled bytes", "spill_bytes"),
            ("shared bytes a CTA", "smem_bytes"),
            ("stages", "stages"),
            ("CTAs an SM", "ctas_per_sm"),
        )
    ]
    by_role = [{role["role"]: role["registers"] for role in row.roles or []} for row in (left, right)]
    for name in dict.fromkeys([*by_role[0], *by_role[1]]):
        facts.insert(1, _fact(f"  of a {name}", by_role[0].get(name), by_role[1].get(name), "{}"))
    facts.append(_fact("occupancy", left.occupancy, right.occupancy, "{:.1%}"))
    facts.append(_fact("limited by", *(", ".join(row.limiters or ()) for row in (left, right))))
    return Group("resources", tuple(facts), f"compiled for {arch.name}")


def _instructions(left: Row, right: Row) -> tuple[Group, ...]:
    title = "instructions of the main loop"
    if left.sass is None or right.sass is None:
        return (Group(title, (), left.sass_missing or right.sass_missing or ""),)
    names = dict.fromkeys([*left.sass, *right.sass])
    facts = tuple(_fact(name, left.sass.get(name, 0), right.sass.get(name, 0), "{:g}") for name in names)
    apart = f"one {left.sass_unit} (A), one {right.sass_unit} (B)"
    unit = f"one {left.sass_unit}" if left.sass_unit == right.sass_unit else apart
    return (Group(title, facts, f"a thread, for {unit}"), *_beside_the_main_loop(left, right))


def _beside_the_main_loop(left: Row, right: Row) -> Iterable[Group]:
    """What kernels that part their warps do in other places: a producer's loop, and what stands beside the loops."""
    parts = [
        {(role["role"], part): role[part] for role in row.roles or [] for part in ("loop", "elsewhere")}
        for row in (left, right)
    ]
    words = {"loop": "a trip of its loop", "elsewhere": "as it stands, beside its loop"}
    for role, part in dict.fromkeys([*parts[0], *parts[1]]):
        if (role, part) == (CONSUMER, "loop"):
            continue
        a, b = (each.get((role, part), {}) for each in parts)
        facts = tuple(_fact(kind, a.get(kind, 0), b.get(kind, 0), "{:g}") for kind in dict.fromkeys([*a, *b]))
        if facts:
            yield Group(f"instructions of the {role}", facts, words[part])


def _recorded(left: Config, right: Config, records: Iterable[Record]) -> Group:
    """Times of both on the same device and problem, the newest of each."""
    newest: dict[tuple[str, str], dict[str, Row]] = {}
    for record in sorted(records, key=lambda r: str(r.environment.get("date", ""))):
        device = record.environment.get("device", {}).get("name", "unknown device").removeprefix("NVIDIA ")
        for row in record.rows:
            for letter, config in (("A", left), ("B", right)):
                if row.time_us is not None and row.verified and (row.rung, row.config) == _identity(config):
                    newest.setdefault((device, _size(row)), {})[letter] = row
    facts: list[Fact] = []
    for (device, size), sides in newest.items():
        if len(sides) == 2:
            facts += _times(f"{device}, {size}", sides["A"], sides["B"])
    note = "another run on the card named, not this one" if facts else "no record has both on one device at one size"
    return Group("recorded times", tuple(facts), note)


def _identity(config: Config) -> tuple[str, dict[str, int]]:
    return config.rung.name, config.values


def _times(where: str, left: Row, right: Row) -> list[Fact]:
    assert left.time_us is not None and right.time_us is not None
    facts = [Fact(where, duration(left.time_us), duration(right.time_us), f"×{right.time_us / left.time_us:.3g}")]
    if left.ratio_to_baseline is not None and right.ratio_to_baseline is not None:
        shares = (percent(row.ratio_to_baseline.median) for row in (left, right) if row.ratio_to_baseline)
        facts.append(Fact("  % of cuBLAS", *shares))
    return facts


def _size(row: Row) -> str:
    """The row's problem in short: its size, and whatever isn't as usual."""
    usual = {"layout": "NN", "dtype": "float32", "out_dtype": row.problem.get("dtype"), "alpha": 1.0, "beta": 0.0}
    told = ("m", "n", "k") if row.problem.get("dtype", "float32") == "float32" else ("m", "n", "k", "layout", "dtype")
    rest = {name: value for name, value in row.problem.items() if name not in told}
    more = "".join(f" {name}={value}" for name, value in rest.items() if usual.get(name) != value)
    return size_of(row) + more
