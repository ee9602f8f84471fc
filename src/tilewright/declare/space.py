"""The space of a rung's configs: make one, enumerate the valid ones, find the nearest to a rejected one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from tilewright.arch import ArchSpec
from tilewright.declare.config import Config, Scope, scope_of
from tilewright.declare.expr import ExpressionError
from tilewright.declare.nearest import advice, nearest_values
from tilewright.declare.rules import Check, Rule, first_failure
from tilewright.declare.rung import Rung
from tilewright.errors import InvalidConfig, InvalidDeclaration


def rung_config(rung: Rung, settings: Mapping[str, int] | None = None) -> Config:
    """The rung's default config with `settings` changed.

    Raises InvalidConfig naming the value, the rule, the reason and the nearest valid config.
    """
    values = {p.name: p.default for p in rung.params}
    for name, value in (settings or {}).items():
        if name not in values:
            raise InvalidConfig(f"{rung.name}: {name}: no such parameter; there are {', '.join(values)}")
        param = next(p for p in rung.params if p.name == name)
        if isinstance(value, bool) or not isinstance(value, int) or not param.lowest <= value <= param.highest:
            raise InvalidConfig(
                f"{rung.name}: {name}={value!r}: must be an integer from {param.lowest} to {param.highest}"
            )
        values[name] = value
    config = Config(rung, values)
    failure = _failure(rung, config.constants_scope)
    if failure is not None:
        raise InvalidConfig(f"{rung.name}: {failure}; {advice(rung, values, lambda trial: _is_valid(rung, trial))}")
    return config


def config_failure(rung: Rung, values: Mapping[str, int]) -> Check | None:
    """The first config rule that `values` break, or None.

    Raises InvalidDeclaration when a rule has no value although every earlier one held.
    """
    return _failure(rung, scope_of(rung, values))


def _failure(rung: Rung, names: Scope) -> Check | None:
    failure = first_failure(rung.rules_of("config"), names)
    if failure is not None and failure.held is None:
        raise InvalidDeclaration(
            f"{rung.name}: {failure.rule.expr.text}: {failure.detail}, and no earlier rule says so"
        )
    return failure


def _is_valid(rung: Rung, values: Mapping[str, int]) -> bool:
    return first_failure(rung.rules_of("config"), scope_of(rung, values)) is None


def nearest_config(rung: Rung, values: Mapping[str, int]) -> Config | None:
    """The valid config that differs from `values` in the fewest parameters, then by the smallest factors.

    Looks at the parameters' candidate values, changing at most three of them; None if there is none.
    """
    found = nearest_values(rung, values, lambda trial: _is_valid(rung, trial))
    return None if found is None else Config(rung, found)


def enumerate_configs(
    rung: Rung, arch: ArchSpec | None = None, *, on_rejected: Callable[[Rule, int], None] | None = None
) -> Iterator[Config]:
    """Every valid config among the parameters' candidate values, in the parameters' order.

    With `arch`, only those that meet its architecture rules too. Config rules are applied as soon as the parameters
    they depend on are bound, so whole subtrees fall at once; `on_rejected` is told the rule and how many combinations.
    """
    order = [p.name for p in rung.params]
    levels = _rules_by_level(rung, order)
    for values in _extend(rung, {}, levels, on_rejected or (lambda rule, count: None)):
        config = Config(rung, values)
        if arch is None or config.fits(arch):
            yield config


def _rules_by_level(rung: Rung, order: list[str]) -> list[list[Rule]]:
    needs = {name: frozenset({name}) for name in order}
    for item in rung.derived:
        needs[item.name] = frozenset().union(*(needs[n] for n in item.expr.names))
    levels: list[list[Rule]] = [[] for _ in order]
    for rule in rung.rules:
        if rule.kind == "config":
            bound = frozenset().union(*(needs[n] for n in rule.expr.names))
            levels[max((order.index(n) for n in bound), default=0)].append(rule)
    return levels


def _extend(
    rung: Rung, values: dict[str, int], levels: list[list[Rule]], on_rejected: Callable[[Rule, int], None]
) -> Iterator[dict[str, int]]:
    depth = len(values)
    if depth == len(levels):
        yield values
        return
    param = rung.params[depth]
    for value in param.values:
        trial = {**values, param.name: value}
        failed = _failed_rule(levels[depth], scope_of(rung, trial))
        if failed is None:
            yield from _extend(rung, trial, levels, on_rejected)
        else:
            on_rejected(failed, math.prod(len(p.values) for p in rung.params[depth + 1 :]))


def _failed_rule(rules: list[Rule], scope: Scope) -> Rule | None:
    """The first rule that doesn't hold. One without a value doesn't: an earlier one, not bound yet, excludes that."""
    for rule in rules:
        try:
            if not rule.expr.evaluate(scope):
                return rule
        except ExpressionError:
            return rule
    return None
