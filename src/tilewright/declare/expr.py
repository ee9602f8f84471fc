"""A small integer language that means the same in Python and in C++.

One expression is parsed once into a whitelisted syntax tree, evaluated in Python as 64-bit integers and
rendered as C++ for static_assert. Names are integers; there are + - * // %, comparisons (chained too), and, or,
not, and ceil_div, min, max. Division and remainder take non-negative numbers only, where both languages agree.
Nothing is ever passed to `eval`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from tilewright.errors import InvalidDeclaration

INT64_MAX = 2**63 - 1
Names = Mapping[str, int]
_Evaluate = Callable[[Names], int]
_Node = tuple[_Evaluate, str]


class ExpressionError(ArithmeticError):
    """An expression has no value: it overflows 64 bits, divides by zero or divides a negative number."""


def _checked(value: int, node: ast.expr) -> int:
    if not -INT64_MAX <= value <= INT64_MAX:
        raise ExpressionError(f"{ast.unparse(node)} overflows 64 bits")
    return value


def _divide(a: int, b: int, node: ast.expr, *, remainder: bool) -> int:
    if b == 0:
        raise ExpressionError(f"{ast.unparse(node)} divides by zero")
    if a < 0 or b < 0:
        raise ExpressionError(f"{ast.unparse(node)} divides negative numbers")
    return a % b if remainder else a // b


_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[int, int, ast.expr], int]]] = {
    ast.Add: ("+", lambda a, b, node: _checked(a + b, node)),
    ast.Sub: ("-", lambda a, b, node: _checked(a - b, node)),
    ast.Mult: ("*", lambda a, b, node: _checked(a * b, node)),
    ast.FloorDiv: ("/", lambda a, b, node: _divide(a, b, node, remainder=False)),
    ast.Mod: ("%", lambda a, b, node: _divide(a, b, node, remainder=True)),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[int, int], bool]]] = {
    ast.Eq: ("==", lambda a, b: a == b),
    ast.NotEq: ("!=", lambda a, b: a != b),
    ast.Lt: ("<", lambda a, b: a < b),
    ast.LtE: ("<=", lambda a, b: a <= b),
    ast.Gt: (">", lambda a, b: a > b),
    ast.GtE: (">=", lambda a, b: a >= b),
}
_FUNCTIONS: dict[str, tuple[str, Callable[[int, int, ast.expr], int]]] = {
    "ceil_div": (
        "(({a} + {b} - 1) / {b})",
        lambda a, b, node: _divide(_checked(a + b - 1, node), b, node, remainder=False),
    ),
    "min": ("({a} < {b} ? {a} : {b})", lambda a, b, _: min(a, b)),
    "max": ("({a} > {b} ? {a} : {b})", lambda a, b, _: max(a, b)),
}


_WORD = re.compile(r"\b[^\W\d]\w*")
_NOT_NAMES = frozenset({"and", "or", "not", *_FUNCTIONS})


def _name(node: ast.Name) -> _Node:
    key = node.id
    if key in _FUNCTIONS:
        raise InvalidDeclaration(f"{key}: is a function of two values, and no name")
    return (lambda names: names[key]), f"(long long)({key})"


def _constant(node: ast.Constant) -> _Node:
    if type(node.value) is not int:
        raise InvalidDeclaration(f"{node.value!r}: only integer constants are allowed in an expression")
    value = _checked(node.value, node)
    return (lambda names: value), f"{value}LL"


def _binary(node: ast.BinOp) -> _Node:
    if type(node.op) not in _ARITHMETIC:
        raise InvalidDeclaration(f"{ast.unparse(node)}: the operators are + - * // %")
    symbol, function = _ARITHMETIC[type(node.op)]
    (left, left_cpp), (right, right_cpp) = _build(node.left), _build(node.right)
    return (lambda names: function(left(names), right(names), node)), f"({left_cpp} {symbol} {right_cpp})"


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

    pairs = zip(steps, sides, sides[1:], strict=False)
    cpp = "(" + " && ".join(f"{a} {symbol} {b}" for (symbol, _), (_, a), (_, b) in pairs) + ")"
    if len(steps) == 1:
        ((_, compare),), ((left, _), (right, _)) = steps, sides
        return (lambda names: int(compare(left(names), right(names)))), cpp

    def evaluate(names: Names) -> int:
        values = [side(names) for side, _ in sides]
        return int(all(test(a, b) for (_, test), a, b in zip(steps, values, values[1:], strict=False)))

    return evaluate, cpp


def _call(node: ast.Call) -> _Node:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in _FUNCTIONS or len(node.args) != 2 or node.keywords:
        raise InvalidDeclaration(f"{ast.unparse(node)}: the functions are {', '.join(_FUNCTIONS)}, each of two values")
    template, function = _FUNCTIONS[name]
    (left, left_cpp), (right, right_cpp) = _build(node.args[0]), _build(node.args[1])
    return (lambda names: function(left(names), right(names), node)), template.format(a=left_cpp, b=right_cpp)


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


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text)) - _NOT_NAMES


@cache
def _parsed(text: str) -> _Node:
    """The evaluation of an expression and its C++; many are written more than once."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise InvalidDeclaration(f"{text!r}: not an expression ({error.msg})") from None
    return _build(tree)


@dataclass(frozen=True)
class Expr:
    """An expression, parsed when it is first used, as a process uses few of all rungs'.

    Anything outside the language raises InvalidDeclaration then.
    """

    text: str

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name in it but those of functions."""
        return _words(self.text)

    @property
    def cpp(self) -> str:
        """The same in C++."""
        return _parsed(self.text)[1]

    @cached_property
    def evaluate(self) -> _Evaluate:
        """From names to the value; truth is 1 or 0. Raises ExpressionError, or KeyError for an unbound name."""
        return _parsed(self.text)[0]
