"""`tilewright select`: which kernel a problem gets on a card, why, what it expects, what else there was. No GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from tilewright.arch import get_arch
from tilewright.errors import InvalidProblem
from tilewright.facts.roofline import Card, get_card
from tilewright.facts.static import problem_fields
from tilewright.lab.output import print_json, standard_output
from tilewright.lab.render import duration, percent
from tilewright.problem import Problem, storage_dtype
from tilewright.record import SCHEMA, environment
from tilewright.select import Choice, choose
from tilewright.select.calibration import Calibration, calibration_for
from tilewright.select.choice import Estimate, estimates, refusals
from tilewright.select.model import Terms, compute_us, memory_us

SHOWN = 5
PARTS = {
    "launch": "launch_us",
    "filling": "fill_us",
    "main loop": "mainloop_us",
    "writing results": "epilogue_us",
    "adding slices up": "reduction_us",
}


@dataclass(frozen=True)
class SelectRequest:
    """The command's arguments."""

    m: int
    n: int
    k: int
    dtype: str
    layout: str
    card: str
    alpha: float
    beta: float

    @property
    def problem(self) -> Problem:
        """The problem asked for. Raises InvalidProblem, also for k = 0."""
        if self.k == 0:
            raise InvalidProblem("k=0: leaves nothing to multiply; sizes must be at least 1")
        sizes = {"m": self.m, "n": self.n, "k": self.k}
        scales = {"alpha": self.alpha, "beta": self.beta}
        kind = {"layout": self.layout, "dtype": self.dtype, "out_dtype": storage_dtype(self.dtype)}
        fields: dict[str, Any] = {**sizes, **kind, **scales}
        return Problem(**fields)


def run_select(request: SelectRequest, *, as_json: bool) -> int:
    """Print the choice. Raises UnknownName for a card that isn't listed, InvalidProblem where no rung takes it."""
    problem, card = request.problem, get_card(request.card)
    arch = get_arch(card.arch)
    calibration = calibration_for(arch, card.sms, card.name)
    choice = choose(problem, arch, card.sms, card=card.name)
    ranked = estimates(problem, arch, calibration)
    refused = refusals(problem, arch, calibration)
    if as_json:
        print_json(_json(problem, card, calibration, choice, ranked, refused))
        return 0
    console = standard_output()
    console.print(Text(f"tilewright select  {problem} on {card.name}, {card.sms} SMs", style="bold"), soft_wrap=True)
    for line in _lines(problem, calibration, choice, ranked, refused):
        console.print(line, soft_wrap=True)
    return 0


def _lines(
    problem: Problem, calibration: Calibration, choice: Choice, ranked: list[Estimate], refused: list[str]
) -> Iterator[Text]:
    yield Text(f"{choice.config.rung.name}  {choice.config}", style="bold")
    yield Text(f"  {choice.why}")
    if choice.library:
        yield Text(f"  but the framework's own product is taken unless kernels='own': {choice.library}")
    terms = next((each.terms for each in ranked if each.candidate.config == choice.config), None)
    if choice.expected_us is not None:
        parts = "" if terms is None else f": {_parts(terms)}"
        yield Text(f"  expects {duration(choice.expected_us)}{parts}")
    rates = calibration.rates
    memory, compute = memory_us(problem, rates), compute_us(problem, rates)
    of_floor = "" if choice.expected_us is None else f"; {percent(max(memory, compute) / choice.expected_us)}% of it"
    yield Text(f"  floor {duration(memory)} by bytes, {duration(compute)} by FLOPs, from {rates.source}{of_floor}")
    others = [each for each in ranked if each.candidate.config != choice.config]
    if others:
        yield Text("next:")
    for each in others[:SHOWN]:
        config = each.candidate.config
        yield Text(f"  {duration(each.terms.total_us):>8}  {config.rung.name}  {config}", style="dim")
    if refused:
        yield Text("refused:")
    for reason in refused:
        yield Text(f"  {reason}", style="dim")


def _parts(terms: Terms) -> str:
    """The parts of a time in words, those of less than a hundredth left out."""
    told = [
        f"{name} {duration(value)}"
        for name, attribute in PARTS.items()
        if (value := float(getattr(terms, attribute))) >= 0.01 * terms.total_us
    ]
    waves = f"{terms.waves} wave{'s' if terms.waves > 1 else ''}"
    return f"{', '.join(told)} ({terms.bound}, {waves}); under it {duration(terms.memory_us)} of DRAM"


def _json(
    problem: Problem,
    card: Card,
    calibration: Calibration,
    choice: Choice,
    ranked: list[Estimate],
    refused: list[str],
) -> dict[str, Any]:
    rates = calibration.rates
    chosen = {
        "rung": choice.config.rung.name,
        "config": dict(choice.config.values),
        "why": choice.why,
        "expected_us": choice.expected_us,
        "tuned": choice.tuned,
        "library": choice.library or None,
    }
    rows = [
        {
            "rung": each.candidate.config.rung.name,
            "config": dict(each.candidate.config.values),
            "calibrated": each.candidate.calibrated,
            "expected_us": each.terms.total_us,
            "terms": each.terms._asdict(),
        }
        for each in ranked
    ]
    return {
        "schema": SCHEMA,
        "command": "select",
        "environment": environment(card=card.name, rates=rates.source, calibration=dict(calibration.about) or None),
        "problem": problem_fields(problem),
        "choice": chosen,
        "floor_us": {"memory": memory_us(problem, rates), "compute": compute_us(problem, rates)},
        "rows": rows,
        "refused": refused,
    }
