"""A small integer language that means the same in Python and in C++.

One expression is parsed once into a whitelisted syntax tree, evaluated in Python as 64-bit integers and
rendered as C++ for static_assert. Names are integers; there are + - * // %, comparisons (chained too), and, or,
not, and ceil_div, min, max. Division and remainder take non-negative numbers only, where both languages agree.
Nothing is ever passed to `eval`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilewright.errors import InvalidDeclaration

INT64_MAX = 2**63 - 1
Names = Mapping[str, int]
_Evaluate = Callable[[Names], int]
_Node = tuple[_Evaluate, str]


class ExpressionError(ArithmeticError):
    """An expression has no value: it overflows 64 bits, divides by zero or divides a negative number."""


def _checked(value: int, text: str) -> int:
    if not -INT64_MAX <= value <= INT64_MAX:
        raise ExpressionError(f"{text} overflows 64 bits")
    return value


def _divide(a: int, b: int, text: str, *, remainder: bool) -> int:
    if b == 0:
        raise ExpressionError(f"{text} divides by zero")
    if a < 0 or b < 0:
        raise ExpressionError(f"{text} divides negative numbers")
    return a % b if remainder else a // b


_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[int, int, str], int]]] = {
    ast.Add: ("+", lambda a, b, t: _checked(a + b, t)),
    ast.Sub: ("-", lambda a, b, t: _checked(a - b, t)),
    ast.Mult: ("*", lambda a, b, t: _checked(a * b, t)),
    ast.FloorDiv: ("/", lambda a, b, t: _divide(a, b, t, remainder=False)),
    ast.Mod: ("%", lambda a, b, t: _divide(a, b, t, remainder=True)),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[int, int], bool]]] = {
    ast.Eq: ("==", lambda a, b: a == b),
    ast.NotEq: ("!=", lambda a, b: a != b),
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("<=", lambda a, b: a <= b),
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b),
}
_FUNCTIONS: dict[str, tuple[str, Callable[[int, int, str], int]]] = {
    "ceil_div": ("(({a} + {b} - 1) / {b})", lambda a, b, t: _divide(_checked(a + b - 1, t), b, t, remainder=False)),
    "min": ("({a} < {b} ? {a} : {b})", lambda a, b, _: min(a, b)),
    "max": ("({a} > {b} ? {a} : {b})", lambda a, b, _: max(a, b)),
}


def _name(node: ast.Name) -> _Node:
    key = node.id
    return (lambda names: names[key]), f"(long long)({key})"


def _constant(node: ast.Constant) -> _Node:
    if type(node.value) is not int:
        raise InvalidDeclaration(f"{node.value!r}: only integer constants are allowed in an expression")
    value = _checked(node.value, str(node.value))
    return (lambda names: value), f"{value}LL"


def _binary(node: ast.BinOp) -> _Node:
    if type(node.op) not in _ARITHMETIC:
        raise InvalidDeclaration(f"{ast.unparse(node)}: the operators are + - * // %")
    symbol, function = _ARITHMETIC[type(node.op)]
    (left, left_cpp), (right, right_cpp) = _build(node.left), _build(node.right)
    text = ast.unparse(node)
    return (lambda names: function(left(names), right(names), text)), f"({left_cpp} {symbol} {right_cpp})"


def _boolean(node: ast.BoolOp) -> _Node:
    parts = [_build(value) for value in node.values]
    if isinstance(node.op, ast.And):
        return (lambda names: int(all(part(names) for part, _ in parts))), "(" + " && ".join(c for _, c in parts) + ")"
    return (lambda names: int(any(part(names) for part, _ in parts))), "(" + " || ".join(c for _, c in parts) + ")"


def _unary(node: ast.UnaryOp) -> _Node:
    inner, cpp = _build(node.operand)
    if isinstance(node.op, ast.Not):
        return (lambda names: int(not inner(names))), f"(!{cpp})"
    if isinstance(node.op, ast.USub):
        return (lambda names: -inner(names)), f"(-{cpp})"
    raise InvalidDeclaration(f"{ast.unparse(node)}: the unary operators are - and not")


def _compare(node: ast.Compare) -> _Node:
    sides = [_build(side) for side in (node.left, *node.comparators)]
    try:
        steps = [_COMPARE[type(op)] for op in node.ops]
    except KeyError:
        raise InvalidDeclaration(f"{ast.unparse(node)}: the comparisons are == != < <= > >=") from None

    def evaluate(names: Names) -> int:
        values = [side(names) for side, _ in sides]
        return int(all(test(a, b) for (_, test), a, b in zip(steps, values, values[1:], strict=False)))

    pairs = zip(steps, sides, sides[1:], strict=False)
    return evaluate, "(" + " && ".join(f"{a} {symbol} {b}" for (symbol, _), (_, a), (_, b) in pairs) + ")"


def _call(node: ast.Call) -> _Node:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in _FUNCTIONS or len(node.args) != 2 or node.keywords:
        raise InvalidDeclaration(f"{ast.unparse(node)}: the functions are {', '.join(_FUNCTIONS)}, each of two values")
    template, function = _FUNCTIONS[name]
    (left, left_cpp), (right, right_cpp) = _build(node.args[0]), _build(node.args[1])
    text = ast.unparse(node)
    return (lambda names: function(left(names), right(names), text)), template.format(a=left_cpp, b=right_cpp)


_BUILDERS: dict[type[ast.expr], Callable[..., _Node]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.Call: _call,
}


def _build(node: ast.expr) -> _Node:
    builder = _BUILDERS.get(type(node))
    if builder is None:
        raise InvalidDeclaration(f"{ast.unparse(node)}: not part of the rule language")
    return builder(node)


@dataclass(frozen=True)
class Expr:
    """A parsed expression. Raises InvalidDeclaration for anything outside the language."""

    text: str
    names: frozenset[str] = field(init=False, compare=False)
    cpp: str = field(init=False, compare=False, repr=False)
    _evaluate: _Evaluate = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            raise InvalidDeclaration(f"{self.text!r}: not an expression ({error.msg})") from None
        evaluate, cpp = _build(tree)
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called}
        for key, value in (("names", frozenset(names)), ("cpp", cpp), ("_evaluate", evaluate)):
            object.__setattr__(self, key, value)

    def evaluate(self, names: Names) -> int:
        """The value for `names`; truth is 1 or 0. Raises ExpressionError, or KeyError for an unbound name."""
        return self._evaluate(names)
