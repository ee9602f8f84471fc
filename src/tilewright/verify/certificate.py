"""The algebraic certificate: a kernel run once over a finite field on random operands.

Over a field nothing rounds, so a kernel whose steps do not depend on its data computes a polynomial in its operands.
Two different polynomials of degree d agree at a random point with probability at most d / PRIME (Schwartz, Zippel):
one right result shows that every output is alpha · (the sum over every k of a·b, each once) + beta · c, at any k.
Owns operands, the comparison and what is claimed; how a kernel runs over the field is its caller's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from tilewright.problem import Problem
from tilewright.verify.accept import describe, place
from tilewright.verify.field import PRIME, Field, add, matrix_product, multiply, random_elements
from tilewright.verify.layers import Check, damage
from tilewright.verify.operands import Operands, Result, flat_size, logical_view

DEGREE = 3
WRONG_PASSES = DEGREE / PRIME
"""The probability bound for a kernel that computes another polynomial of that degree, as alpha · a · b has."""
POISON = np.uint64(2**64 - 1)
"""What D holds before the launch: no element of the field."""
DATA = f"random over the field of 2^61 - 1, alpha and beta too; a wrong kernel passes with p < {WRONG_PASSES:.1e}"

Scales = tuple[int, int]
FieldRun = Callable[[Problem, Operands, Scales], Result]
"""Runs a product over the field: 8-byte elements, and alpha and beta in place of the problem's."""


def certificate(run: FieldRun, problems: Iterable[Problem], *, seed: int = 0) -> Iterator[Check]:
    """A check of `run` for each of the problems, whose layouts and strides count and whose scales do not."""
    for index, problem in enumerate(problems):
        general = replace(problem, alpha=1.0, beta=1.0)
        rng = np.random.default_rng((seed, index))
        alpha, beta = (int(x) for x in rng.integers(1, PRIME, size=2))
        operands = field_operands(general, rng)
        result = run(general, operands, (alpha, beta))
        complaint = damage(operands, result) or _difference(operands, result, alpha, beta)
        ok = not complaint
        detail = f"{problem.batch * problem.m * problem.n} elements equal" if ok else complaint
        yield Check("certificate", general, DATA, ok, detail, 0.0 if ok else math.inf)


def field_operands(problem: Problem, rng: np.random.Generator) -> Operands:
    """Random elements everywhere, padding and guards too, and poison in D."""
    a, b, c, d = (random_elements(rng, flat_size(problem, operand)) for operand in "abcd")
    logical_view(problem, "d", d)[...] = POISON
    return Operands(problem, DATA, a, b, c, d, None, np.asarray(POISON))


def field_reference(operands: Operands, alpha: int, beta: int) -> Field:
    """Alpha · op(A) · op(B) + beta · C, (batch, m, n)."""
    product = matrix_product(operands.logical("a"), operands.logical("b"))
    scaled = multiply(np.asarray(beta, np.uint64), operands.logical("c"))
    return add(multiply(np.asarray(alpha, np.uint64), product), scaled)


def _difference(operands: Operands, result: Result, alpha: int, beta: int) -> str:
    """The first wrong element and, where one term explains it, that term; empty when there is none."""
    got, expected = logical_view(operands.problem, "d", result.d), field_reference(operands, alpha, beta)
    bad = got != expected
    if not bad.any():
        return ""
    batch, row, column = index = tuple(int(i) for i in np.argwhere(bad)[0])
    lacks = np.uint64((int(expected[index]) - int(got[index])) % PRIME)
    terms = multiply(operands.logical("a")[batch, row], operands.logical("b")[batch, :, column])
    terms = multiply(np.asarray(alpha, np.uint64), terms)
    where = f"{place(index)}: got {got[index]}, expected {expected[index]}"
    for what, difference in (("is left out", lacks), ("is counted twice", np.uint64(PRIME) - lacks)):
        if (found := np.flatnonzero(terms == difference)).size:
            where += f": its term k = {found[0]} {what}"
    return f"{where}; {describe(bad)} differ"
