"""What the model reads of a config: a CTA's work in one step along K, how many fit an SM, how the steps overlap.

Counted once for each config from its declaration; nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from tilewright.arch import ArchSpec, occupancy
from tilewright.declare import Config, Expr
from tilewright.declare.expr import INT64_MAX, ExpressionError
from tilewright.errors import InvalidConfig
from tilewright.problem import LAYOUTS, Problem

SPLIT = "SPLIT_K"
"""The constant that says in how many slices along K a kernel computes, each added up with the others at the end."""
STORED = "stored"
"""Beside a problem's names: how its operands are stored, as one number."""
GROUP = "SLICE_GROUP"
"""The constant that says how many slices one CTA adds up, where there are more."""
TILES = "ceil_div(m, BM) * ceil_div(n, BN) * batch"
"""The grid of a kernel of a CTA a tile, computed here without its expression: most candidates have it."""
OTHER_REGISTERS = 64
"""What a thread is taken to need beside its accumulators, where nothing was compiled."""


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """One CTA's work: results, and elements loaded in a step along K; how many CTAs fit an SM, and how many there are.

    A `persistent` kernel's CTAs take tiles in turn; where it also `deals` they share out the steps of the last ones.
    Where pieces come `by_tiles` there is one for each tile and slice.
    `constants` are what `grid`, the launch's dimensions that aren't 1, and slices are computed with, beside the
    problem's own names, and where that is `by_problem` what the rung derives from these.
    """

    rows: int
    cols: int
    k_step: int
    stages: int
    results: int
    global_elements: int
    shared_elements: int
    ctas_per_sm: int
    persistent: bool
    deals: bool
    by_tiles: bool
    grid: tuple[Expr, ...]
    constants: Mapping[str, int]
    by_problem: bool
    copied: dict[int, int] = field(default_factory=dict, repr=False)

    @property
    def flop(self) -> int:
        """Of a step."""
        return 2 * self.results * self.k_step


def traits_of(config: Config, arch: ArchSpec, ctas_per_sm: int | None = None) -> Traits:
    """The traits of `config` on an architecture that takes it; CTAs an SM are guessed where they aren't known."""
    rows, cols, k_step = config.tile
    declared, scope = config.rung.accesses, config.scope
    grid = tuple(expr for expr in config.rung.launch.grid if expr.text != "1")
    chosen = {item.name for item in config.rung.from_problem}
    named = {SPLIT, GROUP}.union(*(expr.names for expr in grid))
    return Traits(
        rows=rows,
        cols=cols,
        k_step=k_step,
        stages=config.stages,
        results=declared.results.evaluate(scope),
        global_elements=declared.global_loads.evaluate(scope),
        shared_elements=declared.shared_loads.evaluate(scope),
        ctas_per_sm=ctas_per_sm or _guessed_ctas(config, arch),
        persistent=config.rung.launch.persistent,
        deals=config.rung.launch.persistent and config.rung.scratch is not None,
        by_tiles=config.rung.launch.persistent or [expr.text for expr in grid] in ([TILES], [f"{TILES} * {SPLIT}"]),
        grid=grid,
        constants={name: value for name, value in config.constants.items() if name in named},
        by_problem=not chosen.isdisjoint(named),
    )


class Pieces(NamedTuple):
    """How a problem is shared out: CTAs' worth of work, slices counted, slices along K, copies in a CTA's step."""

    ctas: int
    split: int
    copies: int = 0


def pieces_of(config: Config, traits: Traits, problem: Problem, names: Mapping[str, int]) -> Pieces:
    """The pieces of `problem`, whose `names` with the card's sm_count are computed once for all configs.

    Of a problem that the config doesn't take some number, at least 1.
    """
    split, copies = traits.constants.get(SPLIT, 1), _copies(config, traits, problem, names)
    if traits.by_tiles:
        tiles = -(-problem.m // traits.rows) * -(-problem.n // traits.cols) * problem.batch
        return Pieces(tiles * split, split, copies)
    known = {**names, **traits.constants}
    if traits.by_problem:
        known.update(config.problem_scope(problem))
    try:
        ctas = prod(expr.evaluate(known) for expr in traits.grid)
    except ExpressionError:  # beyond 64 bits, so beyond any launch
        ctas = INT64_MAX
    return Pieces(max(ctas, 1), split, copies)


def _copies(config: Config, traits: Traits, problem: Problem, names: Mapping[str, int]) -> int:
    """The copies of a step, whose widths depend on layout and alignment; counted once for each of these."""
    counted = config.rung.accesses.copies
    if counted is None:
        return 0
    found = traits.copied.get(names[STORED])
    if found is None:
        found = traits.copied[names[STORED]] = counted.evaluate(config.problem_scope(problem))
    return found


def names_of(problem: Problem, sm_count: int) -> dict[str, int]:
    """What grids may name of a problem and a card, and by STORED a number for what widths of copies depend on."""
    flags = (
        problem.n >= problem.m,
        *(x % 4 == 0 for x in (problem.lda, problem.ldb)),
        problem.alignment_bytes % 16 == 0,
    )
    stored = LAYOUTS.index(problem.layout)
    for flag in flags:
        stored = 2 * stored + flag
    return {**problem.names(), "sm_count": sm_count, STORED: stored}


def _guessed_ctas(config: Config, arch: ArchSpec) -> int:
    registers = min(config.results_per_thread + OTHER_REGISTERS, arch.max_registers_per_thread)
    try:
        held = occupancy(arch, threads_per_cta=config.threads, registers=registers, smem_bytes=config.smem_bytes)
    except InvalidConfig:  # the guess is too high; the declaration says that one fits
        return 1
    return max(held.ctas_per_sm, 1)
