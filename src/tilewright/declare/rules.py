"""Rules: what must hold of a config, an architecture, a problem or a binary, and why.

A rule is an expression of the small language with its reason. The five kinds differ in what they may name and
when they are checked: config rules before anything (and again by the compiler, as static_assert), architecture
rules with a target at hand, problem rules before a launch, choice rules where the library chooses, binary rules after
compiling. Rules are ordered and the first failure stops, so a later rule may divide by what an earlier one has shown to
be non-zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from tilewright.declare.expr import Expr, ExpressionError, Names

Kind = Literal["config", "arch", "problem", "choice", "binary"]


class Rule(NamedTuple):
    """`expr` must be true, `reason` says what for."""

    kind: Kind
    expr: Expr
    reason: str


def config_rule(expr: str, reason: str) -> Rule:
    """A rule over parameters and derived values alone."""
    return Rule("config", Expr(expr), reason)


def arch_rule(expr: str, reason: str) -> Rule:
    """A rule that may also name `smem_bytes`, `threads` and the architecture's `arch_…` limits."""
    return Rule("arch", Expr(expr), reason)


def problem_rule(expr: str, reason: str) -> Rule:
    """A rule that may also name the problem's sizes, leading dimensions and alignment."""
    return Rule("problem", Expr(expr), reason)


def choice_rule(expr: str, reason: str) -> Rule:
    """A rule that may name what a problem rule may: where it doesn't hold a kernel is right, and never the fastest."""
    return Rule("choice", Expr(expr), reason)


def binary_rule(expr: str, reason: str) -> Rule:
    """A rule that may also name `registers`, `spill_bytes`, `stack_bytes` and the architecture's limits."""
    return Rule("binary", Expr(expr), reason)


class Check(NamedTuple):
    """A rule applied: the values of the names it uses, and whether it held (None: it could not be computed)."""

    rule: Rule
    values: dict[str, int]
    held: bool | None
    detail: str = ""

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.values.items())
        trouble = f" ({self.detail})" if self.detail else ""
        return f"{values}: {self.rule.expr.text} must hold{trouble}, {self.rule.reason}"


def check(rule: Rule, names: Names) -> Check:
    """Apply one rule to `names`."""
    try:
        held = bool(rule.expr.evaluate(names))
        detail = ""
    except ExpressionError as error:
        held, detail = None, str(error)
    values = {}
    for name in sorted(rule.expr.names, key=rule.expr.text.index):
        try:
            values[name] = names[name]
        except ExpressionError:
            continue
    return Check(rule, values, held, detail)


def first_failure(rules: Iterable[Rule], names: Names) -> Check | None:
    """The first rule that doesn't hold, or None."""
    for rule in rules:
        try:
            held = rule.expr.evaluate(names)
        except ExpressionError:
            held = 0
        if not held:
            return check(rule, names)
    return None
