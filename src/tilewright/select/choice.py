"""From a problem to one config: what tuning found for this very problem, else a fixed rule over the default configs.

The rule: of the rungs that take the problem, the one with the largest product of three numbers that the declaration
gives. How many of the card's SMs the CTA tiles fill, what part of the tiles is inside the result, and how many products
an element loaded for a tile takes part in. Equal ones are decided by the ladder: the later rung.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tilewright.arch import ArchSpec
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import Problem
from tilewright.select.stored import tuned_config


@dataclass(frozen=True, slots=True)
class Choice:
    """A config and why it was chosen; the time expected in µs, where somebody knows, and what would be chosen next."""

    config: Config
    why: str
    expected_us: float | None = None
    runner_up: Config | None = None


def choose(problem: Problem, arch: ArchSpec, sm_count: int) -> Choice:
    """The config for `problem` on a card of `arch` with `sm_count` SMs.

    Raises InvalidProblem with each rung's reason where none takes it.
    """
    fitting, refusals = _fitting(problem, arch, sm_count)
    if not fitting:
        reasons = "\n  ".join(refusals) or "none has these element types"
        raise InvalidProblem(f"{problem}: no rung takes it on {arch.name}:\n  {reasons}")
    ranked = sorted(fitting, key=lambda config: _score(config, problem, sm_count))
    best, runner_up = ranked[-1], ranked[-2] if len(ranked) > 1 else None
    tuned = tuned_config(problem, arch, sm_count)
    if tuned is not None and _refusal(tuned, problem, arch, sm_count) is None:
        return Choice(tuned, "tuned for this problem on this card", runner_up=best)
    return Choice(best, _why(best, problem, sm_count, len(fitting)), runner_up=runner_up)


@cache
def _default_configs() -> tuple[Config, ...]:
    """Every rung's default config, in the order of the ladder."""
    return tuple(rung_config(rung) for rung in all_rungs().values())


def _fitting(problem: Problem, arch: ArchSpec, sm_count: int) -> tuple[list[Config], list[str]]:
    """The default configs that take the problem, in the order of the ladder, and why the others of its type don't."""
    fitting, refusals = [], []
    for config in _default_configs():
        if problem.dtype not in config.rung.requires.every_dtype:
            continue
        reason = _refusal(config, problem, arch, sm_count)
        if reason is None:
            fitting.append(config)
        else:
            refusals.append(reason)
    return fitting, refusals


def _refusal(config: Config, problem: Problem, arch: ArchSpec, sm_count: int) -> str | None:
    if config.rung.scratch is not None:
        return f"{config.rung.name}: leaves sums in a workspace, which the library call does not allocate"
    try:
        config.require_problem(problem)
        config.require_arch(arch)
        config.grid(problem, sm_count=sm_count)
    except (InvalidProblem, InvalidConfig) as error:
        return str(error)
    return None


def _tiles(config: Config, problem: Problem) -> int:
    rows, cols, _ = config.tile
    return -(-problem.m // rows) * -(-problem.n // cols) * problem.batch


def _score(config: Config, problem: Problem, sm_count: int) -> float:
    rows, cols, _ = config.tile
    tiles = _tiles(config, problem)
    filled = min(1.0, tiles / sm_count)
    inside = problem.m * problem.n * problem.batch / (tiles * rows * cols)
    return filled * inside * rows * cols / (rows + cols)


def _why(config: Config, problem: Problem, sm_count: int, fitting: int) -> str:
    rows, cols, _ = config.tile
    return (
        f"of {fitting} rungs that take it, the best by a fixed rule, not measured: CTA tiles of {rows}×{cols}, "
        f"{_tiles(config, problem)} for {sm_count} SMs"
    )
