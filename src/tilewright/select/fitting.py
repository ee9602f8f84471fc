"""A few positive numbers fitted to measured times: damped least squares on the logarithm of the ratio.

Owns the method. What is fitted, and to what, is `calibrating`'s.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
STEP, ROUNDS, ENOUGH = 1e-4, 40, 1e-6
MOST = 2.0
"""How far a logarithm may move in one round."""


def fitted(start: Vector, residuals: Callable[[Vector], Vector]) -> Vector:
    """The numbers near `start` whose residuals have the least sum of squares; all stay above 0.

    Levenberg and Marquardt's method on the numbers' logarithms, the slopes by differences.
    """
    at = np.log(start)
    found = residuals(np.exp(at))
    damping = 1e-3
    for _ in range(ROUNDS):
        slopes = np.stack([(residuals(np.exp(_moved(at, i))) - found) / STEP for i in range(len(at))], axis=1)
        squared, gradient = slopes.T @ slopes, slopes.T @ found
        before = float(found @ found)
        while damping < 1e6:
            scale = damping * np.diag(np.diag(squared) + 1e-12)
            trial = at - np.clip(np.linalg.solve(squared + scale, gradient), -MOST, MOST)
            again = residuals(np.exp(trial))
            if float(again @ again) < before:
                break
            damping *= 4.0
        else:
            return np.asarray(np.exp(at))
        at, found, damping = trial, again, damping / 4.0
        if before - float(found @ found) <= ENOUGH * before:
            break
    return np.asarray(np.exp(at))


def _moved(at: Vector, index: int) -> Vector:
    moved = at.copy()
    moved[index] += STEP
    return moved
