"""Whether anyone notices a mutant: its results under several schedules, and the checks of the trace build.

Owns the settings that judge, cheapest first; `problems` what is multiplied. What is changed is `operators`'.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mutants.operators import Mutant
from mutants.problems import SM_COUNT, judged_problems
from mutants.subjects import Subject
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.host import compile_host, host_source, rolled
from tilewright.compile.traced import compile_traced
from tilewright.declare import Config
from tilewright.emulator.tracing import Watch
from tilewright.errors import CompileFailed, LaunchFailed
from tilewright.lab.tracing import declared_matrices
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.tracing import TracingBackend
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import Case, check_case, make_case
from tilewright.verify.operands import make_operands

TIMEOUT_S = 20.0
SETTINGS: tuple[dict[str, Any], ...] = (
    {"schedule": "default", "async_completion": "latest", "placement": "end"},
    {"schedule": "reverse", "async_completion": "earliest", "placement": "start"},
    {"schedule": "random", "async_completion": "random", "placement": "end"},
)


@dataclass(frozen=True, slots=True)
class Catch:
    """What noticed a mutant: 'wrong', a finding's flaw, an error's type or, by the compiler, 'refused'."""

    kind: str
    detail: str


@functools.cache
def cases(config: Config) -> list[Case]:
    """The problems on integers, NaN in all padding, and the batch with a beta of 0 over a C of NaN."""
    problems = judged_problems(config)
    made = [make_operands(problem, "integer", padding=np.nan) for problem in problems]
    made.append(make_operands(replace(problems[0], beta=0.0), "integer", padding=np.nan))
    made[-1].logical("c")[...] = np.nan
    return [make_case("integer", operands) for operands in made]


def first_catch(subject: Subject, mutant: Mutant, *, checks_first: bool) -> Catch | None:
    """By what the mutant is caught, asking until someone says; None for a survivor."""
    means = (by_checks, by_results) if checks_first else (by_results, by_checks)
    asked = (_refused_or(one, config) for config in subject.configs(mutant.source) for one in means)
    return next((catch for catch in asked if catch is not None), None)


def all_catches(subject: Subject, mutant: Mutant) -> tuple[Catch | None, Catch | None]:
    """By which result and by which check of one config it is caught, each asked alone; both None for a survivor."""
    asked = (
        tuple(_refused_or(one, config) for one in (by_results, by_checks)) for config in subject.configs(mutant.source)
    )
    return next(((results, checks) for results, checks in asked if results or checks), (None, None))


def _refused_or(means: Callable[[Config], Catch | None], config: Config) -> Catch | None:
    try:
        return means(config)
    except CompileFailed as error:
        return Catch("refused", str(error))


def by_results(config: Config) -> Catch | None:
    """The first wrong result or failed launch under any of SETTINGS."""
    for options in SETTINGS:
        with EmulatorBackend(timeout_s=TIMEOUT_S, **options) as backend:
            run = DeviceRuns(backend).of(config, compiled=rolled_by(compile_host), sm_count=SM_COUNT)
            for case in cases(config):
                try:
                    check = check_case(run, case)
                except LaunchFailed as error:
                    return Catch(type(error).__name__, f"{error} ({options['schedule']})")
                if not check.ok:
                    return Catch("wrong", f"{check.detail} ({options['schedule']})")
    return None


def by_checks(config: Config) -> Catch | None:
    """The first finding or failed launch of the trace build; neither depends on values, so one beta will do."""
    for case in cases(config)[:-1]:
        problem = case.operands.problem
        watch = Watch(counts=False, checks=True, matrices=declared_matrices(problem))
        with TracingBackend(watch, timeout_s=TIMEOUT_S) as backend:
            run = DeviceRuns(backend).of(config, compiled=rolled_by(compile_traced), sm_count=1)
            try:
                run(problem, case.operands)
                failure = None
            except LaunchFailed as error:
                failure = Catch(type(error).__name__, str(error))
            found = [Catch(finding.flaw, finding.text) for trace in backend.traces for finding in trace.findings]
            if found or failure:
                return found[0] if found else failure
    return None


def rolled_by(compiled: Callable[..., Binary]) -> Callable[[KernelSource], Binary]:
    """Compiles a source with its loops left as loops."""
    return lambda source: compiled(rolled(host_source(source)))
