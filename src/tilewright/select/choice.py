"""From a problem to one config: what tuning found for it, else what was fastest for its like, else the model's choice.

Owns the order in which the sources are asked, and what is said of a choice. Nothing is compiled, launched or timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tilewright.arch import ArchSpec
from tilewright.declare import Config
from tilewright.errors import InvalidProblem
from tilewright.problem import Problem
from tilewright.select.calibration import Calibration, calibration_for, shape_class
from tilewright.select.candidates import Candidate, candidates_for, refusal
from tilewright.select.library import faster_in_class, faster_than_tuned, not_known_slower
from tilewright.select.mode import OFF, autotune_mode
from tilewright.select.model import Terms, memory_us
from tilewright.select.stored import State, store_state, tuned
from tilewright.select.traits import names_of

MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class Choice:
    """A config and why it was chosen; the time expected in µs, where somebody knows, and what would be chosen next.

    `library` says why the framework's own product is to be taken instead, in words; empty where it isn't. Where every
    launch of a call has one, batched or in parts, the whole call is the framework's. `tuned`: a search for this very
    problem stands behind it. `untried`: the framework's is taken for want of a measurement, which a search would make.
    `dependent`: the kernel is to be launched dependently, as that makes chains of the rung's products faster here.
    """

    config: Config
    why: str
    expected_us: float | None = None
    runner_up: Config | None = None
    library: str = ""
    tuned: bool = False
    untried: bool = False
    dependent: bool = False


class Estimate(NamedTuple):
    """A candidate that takes the problem, with what the model expects of it."""

    candidate: Candidate
    terms: Terms


def choose(
    problem: Problem,
    arch: ArchSpec,
    sm_count: int,
    *,
    kernels: str = "all",
    card: str | None = None,
) -> Choice:
    """The config for `problem` on a card of `arch` with `sm_count` SMs.

    `kernels` 'all' is the faster of ours and the framework's product, 'own' keeps that out. `card` is the card's name
    where that is listed: what was measured on another one of its size says nothing of the framework's product. Of
    results in the store those are used that $TILEWRIGHT_AUTOTUNE allows. Raises InvalidProblem with each rung's reason
    where none takes it.
    """
    stored = None if autotune_mode() == OFF else store_state()
    return _chosen(problem, arch, sm_count, kernels == "own", card, stored)


@lru_cache(maxsize=MOST_KEPT)
def _chosen(
    problem: Problem,
    arch: ArchSpec,
    sm_count: int,
    own: bool,
    card: str | None,
    stored: State | None,
) -> Choice:
    """See `choose`; `stored` is the state of the store that is asked, None to ask none."""
    calibration = calibration_for(arch, sm_count, card)
    best = estimates(problem, arch, calibration, most=2)
    found = None if stored is None else tuned(problem, arch, sm_count, stored)
    if found is not None and not refusal(found.config, problem, sm_count):
        runner_up = next((each.candidate.config for each in best if each.candidate.config != found.config), None)
        why = "tuned for this problem on this card"
        library = "" if own else faster_than_tuned(problem, found)
        dependent = is_launched_dependently(found.config, problem, arch, calibration, card)
        return Choice(found.config, why, found.time_us, runner_up, library, tuned=True, dependent=dependent)
    if not best:
        raise InvalidProblem(_none_takes(problem, arch, calibration))
    measured = fastest_measured(problem, arch, calibration)
    first = measured or best[0]
    why = why_of(first, calibration, measured=first is measured)
    runner_up = next((each.candidate.config for each in best if each.candidate is not first.candidate), None)
    library = "" if own else faster_in_class(problem, calibration, card)
    untried = "" if own or library else not_known_slower(problem, calibration, card)
    config, expected_us = first.candidate.config, first.terms.total_us
    dependent = is_launched_dependently(config, problem, arch, calibration, card)
    return Choice(config, why, expected_us, runner_up, library or untried, False, bool(untried), dependent)


def is_launched_dependently(
    config: Config, problem: Problem, arch: ArchSpec, calibration: Calibration, card: str | None
) -> bool:
    """Whether chains of the rung's products were measured to be faster so, on this very card."""
    learned = calibration.of(problem.dtype)
    if learned is None or card != calibration.rates.card or "dependent_launch" not in arch.features:
        return False
    return config.rung.can_wait and config.rung.name in learned.dependent


def fastest_measured(problem: Problem, arch: ArchSpec, calibration: Calibration) -> Estimate | None:
    """The candidate that the calibration's runs found fastest for the problem's shape class, where they had such."""
    wanted, sm_count = shape_class(problem), calibration.rates.sm_count
    for each in candidates_for(arch, problem.dtype, calibration):
        if wanted in each.fastest and not refusal(each.config, problem, sm_count):
            return Estimate(each, each.expected(problem, names_of(problem, sm_count), calibration))
    return None


def estimates(problem: Problem, arch: ArchSpec, calibration: Calibration, *, most: int | None = None) -> list[Estimate]:
    """The candidates that take the problem, the fastest by the model first, `most` of them; equals by the later rung.

    Rules are asked last, as they cost more than the model.
    """
    candidates = candidates_for(arch, problem.dtype, calibration)
    names = names_of(problem, calibration.rates.sm_count)
    through_dram_us = memory_us(problem, calibration.rates)
    suited: dict[str, bool] = {}
    expected = [
        Estimate(each, each.expected(problem, names, calibration, through_dram_us))
        for each in reversed(candidates)
        if each.is_suited(names, suited)
    ]
    found: list[Estimate] = []
    for each in sorted(expected, key=lambda estimate: estimate.terms.total_us):
        if most is not None and len(found) == most:
            break
        config = each.candidate.config
        may = each.candidate.may_take(problem, names)
        if may and not refusal(config, problem, calibration.rates.sm_count):
            found.append(each)
    return found


def refusals(problem: Problem, arch: ArchSpec, calibration: Calibration) -> list[str]:
    """Why the other candidates don't take the problem, each once."""
    sm_count = calibration.rates.sm_count
    reasons = (refusal(each.config, problem, sm_count) for each in candidates_for(arch, problem.dtype, calibration))
    return [reason for reason in dict.fromkeys(reasons) if reason]


def why_of(estimate: Estimate, calibration: Calibration, *, measured: bool) -> str:
    """What speaks for the choice, by runs of such shapes or by the model, in words."""
    terms, traits = estimate.terms, estimate.candidate.traits
    calibrated = "calibrated by runs on" if estimate.candidate.calibrated else "not calibrated by any run on"
    basis = "by runs of such shapes on" if measured else f"by the model, {calibrated}"
    return (
        f"fastest {basis} {calibration.rates.card}: CTA tiles of {traits.rows}×{traits.cols} in "
        f"{terms.waves} wave{'s' if terms.waves > 1 else ''}, bound by {slowest(terms)}"
    )


def slowest(terms: Terms) -> str:
    """The term that the time is mostly made of, in words."""
    parts = {
        f"the main loop's {terms.bound}": terms.mainloop_us,
        "DRAM": terms.memory_us,
        "the launch and filling": terms.launch_us + terms.fill_us,
        "writing results": terms.epilogue_us,
        "adding slices up": terms.reduction_us,
    }
    return max(parts, key=parts.__getitem__)


def _none_takes(problem: Problem, arch: ArchSpec, calibration: Calibration) -> str:
    reasons: Sequence[str] = refusals(problem, arch, calibration) or ["none has these element types"]
    lines = "\n  ".join(reasons)
    return f"{problem}: no rung takes it on {arch.name}:\n  {lines}"
