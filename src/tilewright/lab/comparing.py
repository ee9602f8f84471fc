"""`tilewright compare`: two candidates built, held against the confound guard, and judged by one measurement.

Makes the record. Owns the reading of what was typed for each side; a trial's steps are `trial`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from tilewright.arch import ArchSpec
from tilewright.compile.nvrtc import nvrtc_version, parse_options
from tilewright.compile.variant import Variant
from tilewright.declare import all_rungs, rung_config
from tilewright.declare.config import BetaMode
from tilewright.errors import InvalidConfig
from tilewright.lab.candidate import Candidate
from tilewright.lab.findings import arm_sentence
from tilewright.lab.inspecting import add_instructions
from tilewright.lab.measuring import Effort
from tilewright.lab.settings import parse_side_settings, parse_sides
from tilewright.lab.trial import Bench, Built, Entrant, Say, Trial, build, run
from tilewright.problem import Problem
from tilewright.record import Record, environment

BETA_MODES = ("specialised", "runtime", "always_read")
GUARDS = {"on": True, "off": False}


@dataclass(frozen=True)
class Sides:
    """What was typed for A and B: rungs, and `SIDE=VALUE` texts for each way of setting a build apart."""

    first: str
    second: str
    settings: list[str]
    beta: list[str]
    guards: list[str]
    options: list[str]
    sources: list[str]


def candidates(sides: Sides) -> tuple[Candidate, Candidate]:
    """The two candidates. Raises UnknownName, InvalidConfig."""
    registry = all_rungs()
    rungs = registry.find(sides.first), registry.find(sides.second)
    settings = parse_side_settings(sides.settings, *rungs, registry)
    beta, guards = _last(sides.beta, "--beta", BETA_MODES), _last(sides.guards, "--guards", tuple(GUARDS))
    options, sources = parse_sides(sides.options, "--option"), _last(sides.sources, "--source", None)
    made = []
    for i, rung in enumerate(rungs):
        parse_options(tuple(options[i]))
        variant = Variant(
            text=_read(sources[i]) if sources[i] else None,
            beta_mode=cast(BetaMode, beta[i] or "specialised"),
            guarded=GUARDS[guards[i]] if guards[i] else None,
            options=tuple(options[i]),
        )
        made.append(Candidate(rung_config(rung, settings[i]), variant))
    return made[0], made[1]


def _last(texts: Iterable[str], option: str, allowed: tuple[str, ...] | None) -> tuple[str, str]:
    """The last value of each side, empty where none was given. Raises InvalidConfig for one that isn't allowed."""
    for values in (sides := parse_sides(texts, option)):
        for value in values:
            if allowed is not None and value not in allowed:
                raise InvalidConfig(f"{option} {value}: must be one of {', '.join(allowed)}")
    return (sides[0] or [""])[-1], (sides[1] or [""])[-1]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InvalidConfig(f"--source {path}: cannot be read ({error}); name a copy of the rung's .cu") from error


def entrants(pair: tuple[Candidate, Candidate], bundle: str) -> tuple[Entrant, Entrant]:
    """The two as arms A and B, B against A."""
    labels = tuple(f"{letter} {candidate}" for letter, candidate in zip("AB", pair, strict=True))
    return Entrant(label=labels[0], candidate=pair[0]), Entrant(
        label=labels[1], candidate=pair[1], against=labels[0], bundle=bundle
    )


def compared(trial: Trial, bench: Bench | None, effort: Effort, say: Say) -> Record:
    """The comparison of a trial's two arms: measured on `bench`, or without one only built."""
    say(f"compiling both for {trial.arch.name}")
    built = build(trial)
    for each in built:
        if each.sound:
            candidate = each.entrant.candidate
            add_instructions(each.row, candidate.config, candidate.cubin(trial.problem, trial.arch))
    rows = [each.row for each in built]
    if bench is None:
        made = environment(arch=trial.arch.name, nvrtc=nvrtc_version())
    else:
        baseline, samples = run(trial, built, bench, effort, say)
        rows += [baseline] if baseline is not None else []
        made = bench.environment(samples)
    return Record(command="compare", environment=made, rows=rows, about=_about(built))


def _about(built: list[Built]) -> dict[str, object]:
    reference, arm = built
    finding = arm_sentence(arm.row, reference.entrant.label) or "Not measured"
    return {
        "reference": reference.entrant.label,
        "arms": [each.about() for each in built],
        "verdict": arm.row.outcome or "not measured",
        "finding": f"{finding}.",
    }


def trial_of(pair: tuple[Candidate, Candidate], problem: Problem, arch: ArchSpec, bundle: str) -> Trial:
    """The two candidates as a trial."""
    return Trial(problem, arch, entrants(pair, bundle))
