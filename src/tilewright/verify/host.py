"""The product on the host by NumPy: a right `Run`, to check checkers and to stand in for a device.

Owns no acceptance. Not the reference: it rounds as a kernel would.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.problem import Problem
from tilewright.verify.accept import Array
from tilewright.verify.operands import Operands, Result, Run, logical_view


def stored(operands: Operands, product: Array) -> Result:
    """The buffers after a launch that wrote `product` (batch, m, n) to D and touched nothing else."""
    d = operands.d.copy()
    logical_view(operands.problem, "d", d)[...] = product
    return Result(operands.a.copy(), operands.b.copy(), d if operands.in_place else operands.c.copy(), d)


def numpy_run(accumulate: npt.DTypeLike = np.float32) -> Run:
    """A Run that multiplies by NumPy with sums in `accumulate` (float32 or float64), rounded once to D's type."""

    def run(problem: Problem, operands: Operands) -> Result:
        kind: np.dtype[Any] = np.dtype(accumulate)
        product: Array = np.zeros((problem.batch, problem.m, problem.n), dtype=kind)
        with np.errstate(all="ignore"):
            if problem.alpha != 0.0:
                a, b = operands.logical("a").astype(kind), operands.logical("b").astype(kind)
                product += kind.type(problem.alpha) * np.matmul(a, b)
            if problem.reads_c:
                product += kind.type(problem.beta) * operands.logical("c").astype(kind)
            bias = None if operands.bias is None else operands.bias.astype(kind)
            return stored(operands, problem.epilogue.reference(product, bias))

    return run
