"""What a search may try: every config that a rung, an architecture and a problem allow, and why not the others.

Owns the narrowing by a person's own values and the count of rejections by rule. It compiles and times nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.arch import ArchSpec
from tilewright.declare import Config, Rung, enumerate_configs
from tilewright.declare.rules import Rule, first_failure
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import Problem

Only = Mapping[str, Sequence[int]]
ACCUMULATORS = "results of one thread < registers that it may have, since more than that can only spill"


@dataclass(frozen=True, kw_only=True)
class Space:
    """The configs to choose from, in the declaration's order.

    `combinations` is how many the parameters' values make; `rejected` says, by rule, how many of them are not here.
    """

    rung: Rung
    problem: Problem
    arch: ArchSpec
    only: dict[str, tuple[int, ...]]
    configs: tuple[Config, ...]
    combinations: int
    rejected: dict[str, int]


def space_of(rung: Rung, problem: Problem, arch: ArchSpec, only: Only | None = None) -> Space:
    """Every config of `rung` that can run `problem` on `arch`; a parameter named in `only` takes those values alone.

    Raises InvalidConfig for a parameter or value that cannot be, InvalidProblem where no config is left.
    """
    narrowed = _narrowed(rung, only or {})
    rejected: Counter[str] = Counter()

    def on_rejected(rule: Rule, combinations: int) -> None:
        rejected[_words(rule)] += combinations

    configs = []
    for found in enumerate_configs(narrowed, on_rejected=on_rejected):
        config = Config(rung, found.values)
        reason = _refusal(config, problem, arch)
        if reason is None:
            configs.append(config)
        else:
            rejected[reason] += 1
    if not configs:
        rules = "; ".join(f"{count} by {rule}" for rule, count in rejected.most_common(3))
        raise InvalidProblem(f"{rung.name} on {arch.name}: no config can run {problem}: {rules}; use other sizes")
    return Space(
        rung=rung,
        problem=problem,
        arch=arch,
        only={name: tuple(values) for name, values in (only or {}).items()},
        configs=tuple(configs),
        combinations=prod(len(p.values) for p in narrowed.params),
        rejected=dict(rejected.most_common()),
    )


def _narrowed(rung: Rung, only: Only) -> Rung:
    known = {p.name: p for p in rung.params}
    for name, values in only.items():
        if name not in known:
            raise InvalidConfig(f"{rung.name}: {name}: no such parameter; there are {', '.join(known)}")
        lowest, highest = known[name].lowest, known[name].highest
        for value in values:
            if not lowest <= value <= highest:
                raise InvalidConfig(f"{rung.name}: {name}={value}: must be an integer from {lowest} to {highest}")
        if not values:
            raise InvalidConfig(f"{rung.name}: {name}: no value given; give one or more, as in {name}=8,16")
    params = tuple(
        replace(p, values=tuple(dict.fromkeys(only[p.name])), default=only[p.name][0]) if p.name in only else p
        for p in rung.params
    )
    return replace(rung, params=params)


def _refusal(config: Config, problem: Problem, arch: ArchSpec) -> str | None:
    """The rule that keeps a valid config from running the problem on the architecture, or None."""
    missing = sorted(config.rung.requires.features - arch.features)
    if missing:
        return f"needs {', '.join(missing)}, which {arch.name} lacks"
    broken = next((check.rule for check in config.arch_checks(arch) if not check.held), None)
    if broken is not None:
        return _words(broken)
    if config.results_per_thread >= min(arch.max_registers_per_thread, arch.max_registers_per_cta // config.threads):
        return ACCUMULATORS
    failure = first_failure(config.rung.rules_of("problem"), config.problem_scope(problem))
    if failure is not None:
        return _words(failure.rule)
    try:
        config.require_problem(problem)
    except InvalidProblem as error:
        return str(error)
    return None


def _words(rule: Rule) -> str:
    return f"{rule.expr.text}, {rule.reason}"
