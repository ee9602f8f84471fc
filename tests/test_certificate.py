"""The algebraic certificate: its arithmetic against Python's integers, right kernels certified, wrong ones refused."""

import dataclasses
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.declare import all_rungs, rung_config
from tilewright.lab.verifying import certified_problems, field_run
from tilewright.problem import Problem
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify import certificate
from tilewright.verify.field import PRIME, SLICE, add, matrix_product, multiply, random_elements
from tilewright.verify.operands import Result, logical_view

ELEMENTS = st.one_of(st.integers(0, PRIME - 1), st.sampled_from([0, 1, PRIME - 1, PRIME - 2, 2**60, 2**42, 2**21 - 1]))


def field(values) -> np.ndarray:
    return np.array(values, np.uint64)


@given(st.lists(st.tuples(ELEMENTS, ELEMENTS), min_size=1, max_size=20))
def test_sums_and_products_are_those_of_integers_modulo_the_prime(pairs):
    x, y = field([p[0] for p in pairs]), field([p[1] for p in pairs])
    assert [int(v) for v in add(x, y)] == [(a + b) % PRIME for a, b in pairs]
    assert [int(v) for v in multiply(x, y)] == [a * b % PRIME for a, b in pairs]


@settings(deadline=None, max_examples=20)
@given(st.tuples(st.integers(1, 5), st.integers(0, 9), st.integers(1, 5)), st.integers(0, 2**32))
def test_a_matrix_product_is_that_of_integers_modulo_the_prime(sizes, seed):
    m, k, n = sizes
    rng = np.random.default_rng(seed)
    a, b = random_elements(rng, (2, m, k)), random_elements(rng, (2, k, n))
    exact = a.astype(object) @ b.astype(object) % PRIME if k else np.zeros((2, m, n), object)
    assert matrix_product(a, b).tolist() == exact.tolist()


def test_a_sum_of_the_largest_elements_over_a_slice_and_one_more_is_exact():
    k = SLICE + 1
    largest = np.full((1, 1, k), PRIME - 1, np.uint64)
    assert int(matrix_product(largest, largest.reshape(1, k, 1))[0, 0, 0]) == k


def certified(name: str, old: str = "", new: str = "", *, problem: Problem | None = None):
    """The checks of a rung, its deep problem or another one, with part of its text changed."""
    rung = all_rungs().find(name)
    assert old in rung.source
    config = rung_config(dataclasses.replace(rung, source=rung.source.replace(old, new, 1) if old else rung.source))
    with EmulatorBackend() as device:
        return next(certificate(field_run(config, device), [problem or certified_problems(config)[0]]))


def test_a_right_kernel_is_certified_at_a_depth_no_float_reaches_and_the_claim_is_stated():
    check = certified("k02")
    assert check.ok and check.problem.k > 40000
    assert "a wrong kernel passes with p < 1.3e-18" in str(check) and "961 elements equal" in str(check)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("k02", "k < args.k", "k < args.k - 1", "its term k = 40008 is left out; all elements differ"),
        ("k02", "acc = Scalar::fma(", "if (k != 20000) acc = Scalar::fma(", "its term k = 20000 is left out"),
        ("k08", "k0 < args.k", "k0 < args.k - BK", "row 0, column 0: got .*; all elements differ"),
        (
            "k08",
            "outer_product(acc, frag_a, frag_b);",
            "for (int twice = 0; twice < 1 + (k0 == 39936 && k == 7); ++twice) outer_product(acc, frag_a, frag_b);",
            "row 0, column 0: got .*: its term k = 39943 is counted twice",
        ),
    ],
)
def test_one_term_too_few_or_too_many_in_forty_thousand_is_found(name, old, new, words):
    check = certified(name, old, new)
    assert not check.ok
    assert re.search(words, check.detail), check.detail


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("acc);\n}", "Scalar::mul(acc, acc));\n}"),
        ("row, col, acc", "row, col, Scalar::mul(acc, args.alpha)"),
        ("row, col, acc", "row, col, Scalar::add(acc, args.beta)"),
    ],
)
def test_another_polynomial_in_operands_and_scales_is_refused(old, new):
    assert not certified("k02", old, new, problem=Problem(m=9, n=8, k=7)).ok


def test_padding_and_neighbours_take_no_part():
    problem = Problem(m=9, n=8, k=7, lda=9, ldb=11, ldc=13, ldd=10, batch=2)
    assert certified("k04", problem=problem).ok
    assert not certified("k04", "args.lda", "args.k", problem=problem).ok


def test_what_is_left_unwritten_or_overwritten_is_named():
    def untouched(problem, operands, scales):
        return Result(operands.a, operands.b, operands.c, operands.d)

    def overwritten(problem, operands, scales):
        a = operands.a.copy()
        logical_view(problem, "a", a)[0, 0, 0] = 0
        return Result(a, operands.b, operands.c, operands.d)

    problem = Problem(m=3, n=2, k=4)
    assert "not written" in next(certificate(untouched, [problem])).detail
    assert "input A was modified" in next(certificate(overwritten, [problem])).detail


def test_every_rung_that_names_only_its_scalar_is_certified_in_verify():
    assert all(rung.is_scalar_generic for rung in all_rungs().values() if rung.track == "simt" and rung.source)
