"""The right answer in float64, and the magnitude its error is measured in.

Owns the meaning of a problem on operands as stored. Never a GPU library's result: those are judged too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.verify.accept import Float64Array
from tilewright.verify.operands import Operands


@dataclass(frozen=True, slots=True)
class Reference:
    """R and G, each (batch, m, n) in float64."""

    value: Float64Array
    magnitude: Float64Array


def reference(operands: Operands) -> Reference:
    """R = epilogue(alpha·op(A)·op(B) + beta·C), G = |alpha|(|A||B|) + |beta||C| + |bias|, times the epilogue's growth.

    Reads the operands as stored and alpha and beta as float32, as a kernel receives them. By the BLAS rules
    alpha = 0 leaves A and B out and beta = 0 leaves C out, whatever they hold. On integer data within
    `integer_bounds` every sum is below 2**53, so R is exact in any order of summation.
    """
    problem = operands.problem
    shape = (problem.batch, problem.m, problem.n)
    value, magnitude = np.zeros(shape), np.zeros(shape)
    with np.errstate(all="ignore"):
        if problem.alpha != 0.0:
            alpha = np.float64(np.float32(problem.alpha))
            a, b = operands.logical("a").astype(np.float64), operands.logical("b").astype(np.float64)
            value += alpha * np.matmul(a, b)
            magnitude += np.abs(alpha) * np.matmul(np.abs(a), np.abs(b))
        if problem.reads_c:
            scaled = np.float64(np.float32(problem.beta)) * operands.logical("c").astype(np.float64)
            value += scaled
            magnitude += np.abs(scaled)
        bias = None if operands.bias is None else operands.bias.astype(np.float64)
        if bias is not None:
            magnitude += np.abs(bias)
        return Reference(problem.epilogue.reference(value, bias), magnitude * problem.epilogue.growth)
