"""A Gaussian process over configs: what their times may be, and how surely, from those tried.

Owns the regression: a Matérn 5/2 covariance, its length and noise by the likelihood of what was seen. Which config to
try next is the strategy's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
LENGTHS = (0.6, 1.0, 1.8, 3.2)
NOISES = (1e-4, 1e-3, 1e-2)


@dataclass(frozen=True, slots=True)
class Shape:
    """How far a time tells of its neighbours', and how much of it is noise, as variance over the whole spread."""

    length: float
    noise: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """For each point the expected value and its standard deviation."""

    mean: Matrix
    deviation: Matrix


def scaled(table: Matrix) -> Matrix:
    """Columns to mean 0 and variance 1, divided by the root of their number so that distances don't grow with it."""
    spread = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0) / math.sqrt(table.shape[1]))


def covariance(a: Matrix, b: Matrix, length: float) -> Matrix:
    """Matérn 5/2 of the distances between the rows of `a` and of `b`."""
    squared = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    distance = math.sqrt(5.0) * np.sqrt(np.maximum(squared, 0.0)) / length
    return np.asarray((1.0 + distance + distance**2 / 3.0) * np.exp(-distance))


def fitted(known: Matrix, values: Matrix) -> Shape:
    """The shape under which `values` at the rows of `known` are likeliest."""
    target = (values - values.mean()) / (values.std() or 1.0)
    shapes = [Shape(length, noise) for length in LENGTHS for noise in NOISES]
    return max(shapes, key=lambda shape: _likelihood(known, target, shape))


def predict(known: Matrix, values: Matrix, points: Matrix, shape: Shape) -> Prediction:
    """What `values` at the rows of `known` say of the rows of `points`."""
    centre, spread = float(values.mean()), float(values.std()) or 1.0
    target = (values - centre) / spread
    inverse = np.linalg.inv(_factor(known, shape))
    between = inverse @ covariance(known, points, shape.length)
    explained = (between**2).sum(axis=0)
    deviation = np.sqrt(np.maximum(1.0 - explained, 1e-12))
    return Prediction(centre + spread * (between.T @ (inverse @ target)), spread * deviation)


def _factor(known: Matrix, shape: Shape) -> Matrix:
    return np.asarray(np.linalg.cholesky(covariance(known, known, shape.length) + shape.noise * np.eye(len(known))))


def _likelihood(known: Matrix, target: Matrix, shape: Shape) -> float:
    """Log marginal likelihood, up to a constant, at the best overall variance."""
    factor = _factor(known, shape)
    residual = np.linalg.solve(factor, target)
    variance = float(residual @ residual) / len(target)
    return -0.5 * len(target) * math.log(max(variance, 1e-300)) - float(np.log(np.diag(factor)).sum())


def expected_improvement(prediction: Prediction, best: float) -> Matrix:
    """By how much each point is expected to fall below `best`."""
    z = (best - prediction.mean) / prediction.deviation
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    below = 0.5 * (1.0 + np.array([math.erf(x / math.sqrt(2.0)) for x in z]))
    return np.asarray(prediction.deviation * (z * below + density))
