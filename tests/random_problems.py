"""Random products of integers: shapes, strides, scales. The same for NumPy and for torch, for CPU and GPU.

An operand is a flat buffer of integers and a recipe for the view of it that is multiplied. Everything is exact in
float32 whatever the order of sums.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np

SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 32, 33, 40, 47)
SCALES = (1.0, 1.0, 1.0, 2.0, -1.0, 0.5, 0.0)


@dataclass(frozen=True)
class Recipe:
    """How a view of `shape` lies in a flat buffer: which axis lies within which, and for each its step and its gap.

    `order` are the axes from the outermost to the innermost; a step of 2 skips every other element, a negative one runs
    backwards; `gaps` are elements beyond; axes in `repeated` are there once. `offset` elements come first.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]
    steps: tuple[int, ...]
    gaps: tuple[int, ...]
    repeated: frozenset[int]
    offset: int

    @property
    def stored(self) -> tuple[int, ...]:
        """Sizes in the buffer, outermost first."""
        sizes = [1 if axis in self.repeated else size for axis, size in enumerate(self.shape)]
        return tuple(sizes[axis] * abs(self.steps[axis]) + self.gaps[axis] for axis in self.order)

    @property
    def elements(self) -> int:
        """Elements of the buffer."""
        return self.offset + int(np.prod(self.stored, dtype=np.int64)) + 3

    def view(self, flat):
        """The view of a NumPy array or torch tensor."""
        sizes = [1 if axis in self.repeated else size for axis, size in enumerate(self.shape)]
        count = int(np.prod(self.stored, dtype=np.int64))
        array = flat[self.offset : self.offset + count].reshape(self.stored)
        if not self.shape:
            return array
        window = tuple(slice(0, sizes[axis] * abs(self.steps[axis]), abs(self.steps[axis])) for axis in self.order)
        array = array[window]
        places = tuple(self.order.index(axis) for axis in range(len(self.shape)))
        if not isinstance(flat, np.ndarray):
            return array.permute(places).expand(self.shape)
        turned = array.transpose(places)[tuple(slice(None, None, -1 if step < 0 else 1) for step in self.steps)]
        return np.broadcast_to(turned, self.shape, subok=True) if self.repeated else turned


def recipe(rng: random.Random, shape: tuple[int, ...], *, writable: bool = False, backwards: bool = True) -> Recipe:
    """A view of `shape`: half of them plain, else with one or more of the ways in which strides differ."""
    axes = range(len(shape))
    plain = rng.random() < 0.35
    order = list(axes)
    if not plain and len(shape) > 1 and rng.random() < 0.5:
        order[-2], order[-1] = order[-1], order[-2]
    if not plain and rng.random() < 0.15:
        rng.shuffle(order)
    steps = [rng.choice((2, -1) if backwards else (2,)) if not plain and rng.random() < 0.12 else 1 for _ in axes]
    gaps = [rng.choice((1, 3, 4)) if not plain and rng.random() < 0.35 else 0 for _ in axes]
    repeated = {axis for axis in axes if not writable and not plain and rng.random() < 0.08}
    offset = rng.choice((1, 2, 4)) if rng.random() < 0.3 else 0
    return Recipe(shape, tuple(order), tuple(steps), tuple(gaps), frozenset(repeated), offset)


@dataclass(frozen=True)
class RandomProblem:
    """One product. `c` and `out` may be None; `in_place` makes out C itself."""

    a: Recipe
    b: Recipe
    c: Recipe | None
    out: Recipe | None
    in_place: bool
    alpha: float
    beta: float | None
    seed: int

    def moved(self, rng: random.Random) -> RandomProblem:
        """The same with each array at another distance from the start of its buffer."""
        recipes = {name: getattr(self, name) for name in ("a", "b", "c", "out")}
        offsets = {name: replace(r, offset=rng.choice((0, 1, 2, 4))) for name, r in recipes.items() if r is not None}
        return replace(self, **offsets)

    def buffer(self, recipe: Recipe, salt: int) -> np.ndarray:
        """Small integers, the same for the same problem."""
        rng = np.random.default_rng((self.seed, salt))
        return rng.integers(-4, 5, recipe.elements).astype(np.float32)


def random_problem(seed: int, *, sizes=SIZES, backwards: bool = True) -> RandomProblem:
    """The problem of this number."""
    rng = random.Random(seed)
    m, n, k = (0 if rng.random() < 0.02 else rng.choice(sizes) for _ in range(3))
    batch = tuple(rng.choice((1, 2, 3)) for _ in range(rng.choice((0, 0, 0, 1, 1, 2))))
    a, b = _batched(rng, batch, (m, k)), _batched(rng, batch, (k, n))
    if rng.random() < 0.06:
        a = (k,)
    if rng.random() < 0.06:
        b = (k,)
    result = np.matmul(np.zeros(a), np.zeros(b)).shape
    made = {"backwards": backwards}
    has_c = rng.random() < 0.4
    in_place = has_c and rng.random() < 0.3
    c = recipe(rng, result, writable=in_place, **made) if has_c else None
    out = recipe(rng, result, writable=True, **made) if not in_place and rng.random() < 0.5 else None
    return RandomProblem(
        a=recipe(rng, a, **made),
        b=recipe(rng, b, **made),
        c=c,
        out=out,
        in_place=in_place,
        alpha=rng.choice(SCALES),
        beta=rng.choice(SCALES) if has_c else None,
        seed=seed,
    )


def _batched(rng: random.Random, batch: tuple[int, ...], matrix: tuple[int, int]) -> tuple[int, ...]:
    """A batch that broadcasts to `batch`: some axes 1, some leading ones left out."""
    own = tuple(1 if rng.random() < 0.25 else size for size in batch)
    return own[rng.choice((0, 0, len(batch))) :] + matrix


def run_random(gemm, problem: RandomProblem, to_framework=lambda host: host, to_host=lambda array: array) -> None:
    """Multiply, and assert that every element is exact and that nothing beside the result was written."""
    flat = {name: None for name in ("a", "b", "c", "out")}
    for salt, name in enumerate(flat):
        found = getattr(problem, name)
        flat[name] = None if found is None else problem.buffer(found, salt)
    placed = {name: None if host is None else to_framework(host.copy()) for name, host in flat.items()}
    views = {name: None if x is None else getattr(problem, name).view(x) for name, x in placed.items()}
    if problem.in_place:
        views["out"] = views["c"]
    scales = {"alpha": problem.alpha, "beta": problem.beta}
    got = gemm(views["a"], views["b"], views["c"], out=views["out"], **scales)
    hosts = {name: None if x is None else getattr(problem, name).view(x) for name, x in flat.items()}
    wanted = problem.alpha * (hosts["a"].astype(np.float64) @ hosts["b"].astype(np.float64))
    if problem.c is not None and problem.beta:
        wanted = wanted + problem.beta * hosts["c"]
    assert np.array_equal(to_host(got), wanted), f"problem {problem.seed}: {problem}"
    written = "c" if problem.in_place else "out" if problem.out is not None else None
    for name, host in flat.items():
        if host is not None:
            if name == written:
                getattr(problem, name).view(host)[...] = wanted
            assert np.array_equal(to_host(placed[name]), host), f"problem {problem.seed}: {name} was changed"
