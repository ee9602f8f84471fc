"""Random products, integer-exact: through the emulator, and many more through a driver that multiplies by NumPy."""

import functools
import random

import numpy as np
import pytest

import device_double
import tilewright as tw
from random_problems import SIZES, random_problem, run_random

EMULATED, CHUNKS = 500, 10


@pytest.mark.usefixtures("one_float32_rung")
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_products_in_the_emulator(chunk):
    emulated = functools.partial(tw.gemm, backend="emulator")
    for seed in range(chunk, EMULATED, CHUNKS):
        run_random(emulated, random_problem(seed))


@pytest.mark.parametrize(("sizes", "count"), [(SIZES, 150), ((16, 64, 128, 192), 40)], ids=["odd", "whole tiles"])
def test_random_products_on_a_device_where_calls_like_earlier_ones_are_not_planned_again(sizes, count, monkeypatch):
    target, rng = device_double.install(monkeypatch), random.Random(2)
    target.sm_count = 132 if 128 not in sizes else 2  # few SMs are filled by large tiles
    for seed in range(10_000, 10_000 + count):
        problem = random_problem(seed, sizes=sizes)
        for moved in (problem, *(problem.moved(rng) for _ in range(3))):
            run_random(tw.gemm, moved, device_double.on_double, np.asarray)
    assert len(target.loaded) < 0.9 * len(target.driver.launches)
    rungs = {part.choice.config.rung.name for part in target.loaded}
    assert len(rungs) > (1 if 128 in sizes else 0)


def test_the_generator_meets_every_way_an_array_can_lie():
    recipes = [
        r for seed in range(300) for p in [random_problem(seed)] for r in (p.a, p.b, p.c, p.out) if r is not None
    ]
    assert any(step < 0 for r in recipes for step in r.steps)
    assert any(step == 2 for r in recipes for step in r.steps)
    assert any(r.repeated for r in recipes) and any(r.offset for r in recipes)
    assert any(gap for r in recipes for gap in r.gaps) and any(0 in r.shape for r in recipes)
    assert {len(r.shape) for r in recipes} >= {0, 1, 2, 3, 4}
    orders = {r.order for r in recipes if len(r.shape) == 3}
    assert len(orders) > 3
