"""The checkers accept right results and reject wrong ones, each by the layer that is for it."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compile.binary import Binary
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem, UnknownName, WrongResult
from tilewright.problem import Problem, ProblemKind
from tilewright.run.args import GemmArgs
from tilewright.run.protocol import Grid
from tilewright.verify import (
    LAYERS,
    Operands,
    Result,
    Run,
    bound,
    judge,
    judge_exact,
    make_operands,
    numpy_run,
    problem_set,
    reference,
    run_on,
    verify,
)
from tilewright.verify.accept import MODES, RANDOM_DATA, eta_out, u_out
from tilewright.verify.host import stored
from tilewright.verify.operands import CANARY, DATA, GUARD, data_mask, integer_bounds, logical_view, stored_view

U = 2.0**-24
GUARDED = problem_set(guarded=True, tile=(16, 16, 16), stages=2)
UNGUARDED = problem_set(guarded=False, tile=(16, 16, 16))


# Right results


def in_order(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for index in range(a.shape[1]):
        total = total + a[:, index, None] * b[None, index]
    return total


def fused(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    for index in range(a.shape[1]):
        total = (total + wide_a[:, index, None] * wide_b[None, index]).astype(np.float32)
    return total


def backwards(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return in_order(a[:, ::-1], b[::-1])


def split_k(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    parts = np.array_split(np.arange(a.shape[1]), 4)
    return np.sum([fused(a[:, part], b[part]) for part in parts], axis=0, dtype=np.float32)


@pytest.mark.parametrize("sums", [in_order, fused, backwards, split_k, np.matmul])
@pytest.mark.parametrize("k", [1, 2, 7, 64, 65, 1023, 32769])
def test_float32_sums_in_any_order_are_within_the_bound_and_exact_on_integers(sums, k):
    problem = Problem(m=3, n=4, k=k)
    for data in RANDOM_DATA:
        operands = make_operands(problem, data, seed=k)
        right = reference(operands)
        result = sums(operands.logical("a")[0], operands.logical("b")[0])[None]
        judgement = judge(result, right.value, right.magnitude, mode="fp32", k=k)
        assert judgement.ok and not judgement.suspect, judgement.message
    operands = make_operands(problem, "integer", seed=k)
    result = sums(operands.logical("a")[0], operands.logical("b")[0])[None]
    assert judge_exact(result, reference(operands).value).ok


@pytest.mark.parametrize("accumulate", [np.float32, np.float64])
@pytest.mark.parametrize("problems", [GUARDED, UNGUARDED], ids=["guarded", "unguarded"])
def test_a_right_product_passes_every_layer(problems, accumulate):
    verdict = verify(numpy_run(accumulate), problems)
    verdict.raise_if_wrong()
    assert verdict.ok and not verdict.suspects and 0 < verdict.worst_ratio < 1
    assert {check.layer for check in verdict.checks} == set(LAYERS)


@pytest.mark.parametrize("layout", ["NT", "TN", "TT"])
def test_transposed_layouts_and_epilogues_pass(layout):
    problems = problem_set(guarded=True, tile=(8, 8, 4), kinds=[ProblemKind(layout)])
    with_epilogue = [replace(problem, epilogue=Epilogue(("bias", "relu"))) for problem in problems]
    verify(numpy_run(), with_epilogue).raise_if_wrong()


# Wrong results, each by the layer that should see it


def product(operands: Operands, a: np.ndarray | None = None, b: np.ndarray | None = None) -> np.ndarray:
    """alpha·a·b + beta·C in float32, `a` and `b` the operands' own where not given."""
    p = operands.problem
    with np.errstate(all="ignore"):
        total = np.zeros((p.batch, p.m, p.n), np.float32)
        if p.alpha != 0:
            a = operands.logical("a") if a is None else a
            b = operands.logical("b") if b is None else b
            total += np.float32(p.alpha) * np.matmul(a, b)
        return total + np.float32(p.beta) * operands.logical("c") if p.reads_c else total


def nan_result(operands: Operands) -> Result:
    wrong = product(operands)
    wrong[:, -1, -1] = np.nan
    return stored(operands, wrong)


def zeros(operands: Operands) -> Result:
    return stored(operands, product(operands) * 0)


def unwritten_tile(operands: Operands) -> Result:
    result = stored(operands, product(operands))
    logical_view(operands.problem, "d", result.d)[:, 16:, :] = logical_view(operands.problem, "d", operands.d)[:, 16:]
    return result


def dropped_last_k(operands: Operands) -> Result:
    return stored(operands, product(operands, operands.logical("a")[..., :-1], operands.logical("b")[:, :-1]))


def doubled_last_k(operands: Operands) -> Result:
    a, b = operands.logical("a"), operands.logical("b")
    return stored(operands, product(operands, np.concatenate((a, a[..., -1:]), 2), np.concatenate((b, b[:, -1:]), 1)))


def swapped_m_and_n(operands: Operands) -> Result:
    right = product(operands)
    return stored(operands, right.reshape(right.shape[0], right.shape[2], right.shape[1]).swapaxes(1, 2))


def tf32(operands: Operands) -> Result:
    def truncated(x: np.ndarray) -> np.ndarray:
        return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

    return stored(operands, product(operands, *(truncated(operands.logical(x).copy()) for x in "ab")))


def fp16_accumulator(operands: Operands) -> Result:
    p = operands.problem
    total = np.zeros((p.batch, p.m, p.n), np.float16)
    with np.errstate(all="ignore"):
        for index in range(p.k if p.alpha else 0):
            total += operands.logical("a")[:, :, index, None] * operands.logical("b")[:, None, index]
    return stored(operands, product(operands, *identity(total.astype(np.float32))))


def identity(total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return total, np.eye(total.shape[-1], dtype=np.float32)


def fp16_partials(operands: Operands) -> Result:
    a, b = operands.logical("a"), operands.logical("b")
    parts = np.array_split(np.arange(operands.problem.k), 4)
    with np.errstate(all="ignore"):
        partial = [np.matmul(a[..., part], b[:, part]).astype(np.float16).astype(np.float32) for part in parts]
    return stored(operands, product(operands, *identity(np.sum(partial, axis=0, dtype=np.float32))))


def alpha_dropped(operands: Operands) -> Result:
    p = operands.problem
    ignoring = replace(operands, problem=replace(p, alpha=1.0 if p.alpha else 0.0))
    return stored(operands, product(ignoring))


def alpha_zero_still_multiplies(operands: Operands) -> Result:
    p = operands.problem
    extra = np.float32(0) * np.matmul(operands.logical("a"), operands.logical("b")) if p.alpha == 0 else 0
    return stored(operands, product(operands) + extra)


def beta_zero_still_reads(operands: Operands) -> Result:
    with np.errstate(all="ignore"):
        extra = np.float32(0) * operands.logical("c") if operands.problem.beta == 0 else 0
    return stored(operands, product(operands) + extra)


def nan_replaced_by_zero(operands: Operands) -> Result:
    return stored(operands, product(operands, np.nan_to_num(operands.logical("a"), posinf=np.inf, neginf=-np.inf)))


def padding_read_times_zero(operands: Operands) -> Result:
    p = operands.problem
    beyond = stored_view(replace(p, k=p.lda), "a", operands.a)[..., p.k :] if p.lda > p.k and p.layout == "NN" else 0
    return stored(operands, product(operands) + np.sum(0 * np.asarray(beyond, np.float32)))


def padding_overwritten(operands: Operands) -> Result:
    result = stored(operands, product(operands))
    p = operands.problem
    if p.ldd > p.n and p.m > 1:
        result.d[data_mask(p, "d").argmax() + p.n] = 0
    return result


def written_before_start(operands: Operands) -> Result:
    result = stored(operands, product(operands))
    result.d[data_mask(operands.problem, "d").argmax() - 1] = 0
    return result


def input_modified(operands: Operands) -> Result:
    result = stored(operands, product(operands))
    logical_view(operands.problem, "b", result.b)[:, -1:, -1:] += 1
    return result


def c_modified(operands: Operands) -> Result:
    result = stored(operands, product(operands))
    logical_view(operands.problem, "c", result.c)[:, -1, -1] = 5
    return result


def d_cleared_before_c_is_read(operands: Operands) -> Result:
    cleared = replace(operands, c=np.zeros_like(operands.c)) if operands.in_place else operands
    return stored(operands, product(cleared))


def only_first_of_batch(operands: Operands) -> Result:
    right = product(operands)
    return stored(operands, np.broadcast_to(right[:1], right.shape))


NOISE = np.random.default_rng(1)


def noisy(operands: Operands) -> Result:
    right = product(operands)
    return stored(operands, np.where(NOISE.random(right.shape) < 0.1, np.nextafter(right, np.float32(np.inf)), right))


def old_contents_matter(operands: Operands) -> Result:
    right = product(operands)
    finite = np.isfinite(operands.logical("d")) & (not operands.in_place)
    return stored(operands, np.where(finite, np.nextafter(right, np.float32(np.inf)), right))


SABOTAGES: list[tuple[Callable[[Operands], Result], str, str]] = [
    (nan_result, "integer", "got nan"),
    (nan_result, "bound", "got nan"),
    (zeros, "integer", "got 0"),
    (zeros, "bound", "got "),
    (unwritten_tile, "integer", "not written"),
    (unwritten_tile, "bound", "all in row 16,"),
    (dropped_last_k, "integer", "differ"),
    (doubled_last_k, "integer", "differ"),
    (swapped_m_and_n, "integer", "differ"),
    (swapped_m_and_n, "bound", "differ"),
    (tf32, "bound", "× the accepted"),
    (tf32, "probe", "expected 1024.5"),
    (fp16_accumulator, "probe", "got 2048, expected 2049"),
    (fp16_partials, "probe", "expected 0.5"),
    (fp16_partials, "bound", "× the accepted"),
    (alpha_dropped, "integer", "differ"),
    (alpha_zero_still_multiplies, "special", "got nan"),
    (beta_zero_still_reads, "special", "got nan"),
    (nan_replaced_by_zero, "special", "expected nan"),
    (padding_read_times_zero, "special", "got nan"),
    (padding_overwritten, "integer", "wrote outside D"),
    (padding_overwritten, "special", "to 0"),
    (written_before_start, "bound", "-1 elements from D's start"),
    (input_modified, "integer", "input B was modified"),
    (c_modified, "integer", "input C was modified"),
    (d_cleared_before_c_is_read, "special", "in place"),
    (only_first_of_batch, "integer", "batch 1"),
    (noisy, "determinism", "other bits again"),
    (old_contents_matter, "determinism", "over other old contents of D"),
]


@pytest.mark.parametrize(("sabotage", "layer", "words"), SABOTAGES, ids=lambda x: getattr(x, "__name__", None))
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_sabotage_is_rejected_by_its_layer(sabotage, layer, words):
    verdict = verify(lambda _, operands: sabotage(operands), GUARDED, layers=layer)
    assert any(words in str(check) for check in verdict.failed), [str(check) for check in verdict.checks]
    with pytest.raises(WrongResult, match=layer):
        verdict.raise_if_wrong()


def test_only_determinism_sees_a_last_bit_that_depends_on_old_contents():
    others = [layer for layer in LAYERS if layer != "determinism"]
    assert verify(lambda _, operands: old_contents_matter(operands), GUARDED, layers=others).ok


@pytest.mark.parametrize("sabotage", [dropped_last_k, doubled_last_k])
def test_at_large_k_only_integers_see_one_wrong_term(sabotage):
    problem = Problem(m=5, n=3, k=32769)
    blind = make_operands(problem, "positive")
    right = reference(blind)
    got = logical_view(problem, "d", sabotage(blind).d)
    assert judge(got, right.value, right.magnitude, mode="fp32", k=problem.k).ok
    assert not verify(lambda _, operands: sabotage(operands), [problem], layers="integer").ok


def test_tf32_is_right_where_it_was_asked_for():
    verify(lambda _, operands: tf32(operands), GUARDED, mode="tf32_truncated").raise_if_wrong()


# The bounds


@pytest.mark.parametrize(
    ("mode", "k", "expected"),
    [
        ("fp32", 1, 5 * U),
        ("fp32", 64, 68 * U),
        ("fp32", 10000, 804 * U),
        ("fp16", 400, 108 * U),
        ("bf16", 400, 108 * U),
        ("tf32_rounded", 400, 2.0**-10 + 108 * U),
        ("tf32_truncated", 400, 2.0**-9 + 108 * U),
        ("fp8_promoted", 1280, 2.0**-9 + 18 * U),
        ("fp8_fast", 1280, 2.0**-9),
    ],
)
def test_bound_is_the_modes_constant(mode, k, expected):
    assert bound(mode, k) == pytest.approx(expected, rel=1e-15)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 2**20), st.sampled_from(sorted(MODES)))
def test_the_worst_case_is_never_below_the_usual_bound(k, mode):
    assert 0 < MODES[mode].c(k) <= MODES[mode].worst(k)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_output_rounding_is_accepted_and_twice_it_is_not(dtype):
    exact = np.full((1, 1, 1), 1 + u_out(np.dtype(dtype).name))
    rounded = exact.astype(dtype)
    assert judge(rounded, exact, exact * 0, mode="fp32", k=1).ok
    two_off = np.nextafter(np.nextafter(rounded, dtype(2)), dtype(2))
    assert not judge(two_off, exact, exact * 0, mode="fp32", k=1).ok


def test_half_the_smallest_subnormal_is_accepted():
    tiny = np.full((1, 1, 1), eta_out("float16"))
    assert judge(tiny.astype(np.float16), tiny, tiny * 0, mode="fp32", k=1).ok
    assert not judge(np.float16(4 * tiny), tiny, tiny * 0, mode="fp32", k=1).ok


def test_between_usual_and_worst_a_result_is_suspect():
    one, k = np.ones((1, 1, 1)), 10000
    for units, ok, suspect in ((800, True, False), (900, True, True), (10100, False, False)):
        judgement = judge((one + units * U).astype(np.float32), one, one, mode="fp32", k=k)
        assert (judgement.ok, judgement.suspect) == (ok, suspect), judgement.message


@pytest.mark.parametrize("got", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("expected", [np.nan, np.inf, -np.inf, 0.0])
def test_nan_and_infinities_must_stand_where_the_reference_has_them(got, expected):
    same = got == expected or (math.isnan(got) and math.isnan(expected))
    result, right = np.full((1, 1, 1), got, np.float32), np.full((1, 1, 1), expected)
    assert judge(result, right, abs(right), mode="fp32", k=1).ok == same
    assert judge_exact(result, right).ok == same


def test_an_overflow_of_the_output_type_is_right_only_as_infinity():
    right = np.full((1, 1, 1), 1e6)
    assert judge(np.full((1, 1, 1), np.inf, np.float16), right, right, mode="fp16", k=1).ok
    assert not judge(np.full((1, 1, 1), 65504, np.float16), right, right, mode="fp16", k=1).ok


def test_the_first_difference_is_told_in_words():
    right = np.full((2, 64, 40), 7.0)
    result = right.astype(np.float32)
    result[1, 3:32, 17] = 5
    judgement = judge_exact(result, right)
    assert judgement.first_bad == ((1, 3, 17), 5.0, 7.0)
    assert judgement.message == (
        "batch 1, row 3, column 17: got 5, expected 7; 29 elements, all in batch 1, rows 3..31, column 17, differ"
    )
    assert "50% of elements, all in batch 0, differ" in judge_exact(right * [[[0]], [[1]]], right).message


def test_unknown_names_say_what_exists():
    problem = Problem(m=1, n=1, k=1)
    for call in (
        lambda: bound("fp64", 1),
        lambda: u_out("int8"),
        lambda: make_operands(problem, "random"),
        lambda: verify(numpy_run(), [problem], layers="speed"),
        lambda: verify(numpy_run(), [problem], mode="fp64"),
    ):
        with pytest.raises(UnknownName, match="there are"):
            call()


def test_checking_nothing_is_not_a_pass():
    verdict = verify(numpy_run(), [])
    assert not verdict.ok
    with pytest.raises(WrongResult, match="nothing was checked"):
        verdict.raise_if_wrong()


# Operands


@st.composite
def problems(draw: Any) -> Problem:
    m, n, k, batch = (draw(st.integers(*span)) for span in ((1, 9), (1, 9), (0, 9), (1, 3)))
    plain = Problem(m=m, n=n, k=k, batch=batch, layout=draw(st.sampled_from(["NN", "NT", "TN", "TT"])))
    leading = {f"ld{x}": getattr(plain, f"ld{x}") + draw(st.integers(0, 3)) for x in "abcd"}
    wide = replace(plain, **leading, **{f"batch_stride_{x}": -1 for x in "abcd"})
    strides = {f"batch_stride_{x}": wide.extent(x) + draw(st.integers(0, 3)) for x in "abcd"}
    scales = {x: draw(st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0, -0.75, 16.0])) for x in ("alpha", "beta")}
    return replace(wide, **strides, **scales, alignment_bytes=draw(st.sampled_from([4, 16, 256])))


@settings(max_examples=50, deadline=None)
@given(problems(), st.sampled_from(sorted(DATA)))
def test_data_and_padding_fill_each_buffer_between_them(problem, data):
    if problem.k < 8 and data == "slices":
        problem = replace(problem, k=0)
    if problem.k == 0 and data not in (*RANDOM_DATA, "integer"):
        data = "integer"
    operands = make_operands(problem, data)
    for name in "abcd":
        flat, mask = getattr(operands, name), data_mask(problem, name)
        rows, columns = problem.stored_shape(name)
        assert mask.sum() == problem.batch * rows * columns
        assert (flat[~mask] == CANARY).all() and not (flat[mask] == CANARY).any()
        assert (flat[:GUARD] == CANARY).all() and (flat[-GUARD:] == CANARY).all()
    assert np.isnan(operands.logical("d")).all()


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(0, 3), st.booleans())
def test_integer_data_are_exact_in_float32_whatever_the_scales(problem, seed, biased):
    problem = replace(problem, epilogue=Epilogue(("bias",) if biased else ()))
    verdict = verify(numpy_run(np.float32), [problem] * (seed + 1), layers="integer")
    assert verdict.ok, verdict.failed[0]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 2**18), *[st.sampled_from([0.0, 1.0, -2.0, 0.5, 0.0625])] * 2)
def test_integer_bounds_keep_every_partial_sum_exact(k, alpha, beta):
    problem = Problem(m=1, n=1, k=k, alpha=alpha, beta=beta)
    limits = integer_bounds(problem)
    units = max(alpha.as_integer_ratio()[1], beta.as_integer_ratio()[1])
    terms = k * limits["a"] * limits["b"]
    assert terms <= 2**24 and min(limits.values()) >= 1
    assert (abs(alpha) * terms + abs(beta) * limits["c"]) * units <= 2**24


def test_integers_that_cannot_be_exact_are_refused():
    with pytest.raises(InvalidProblem, match="use a smaller k"):
        make_operands(Problem(m=1, n=1, k=2**25), "integer")
    with pytest.raises(InvalidProblem, match=r"alpha=0\.3"):
        make_operands(Problem(m=1, n=1, k=1, alpha=0.3), "integer")


def test_scales_that_would_round_are_verified_on_integers_as_one():
    verdict = verify(numpy_run(), [Problem(m=3, n=5, k=7, alpha=0.3, beta=0.5)], layers="integer")
    assert verdict.ok and verdict.checks[0].problem.alpha == 1.0 and verdict.checks[0].problem.beta == 0.5


def test_the_same_seed_gives_the_same_operands_and_another_seed_others():
    problem = Problem(m=8, n=8, k=8)
    first, again, other = (make_operands(problem, "zero_mean", seed=seed) for seed in (1, 1, 2))
    assert (first.a == again.a).all() and (first.a != other.a).any()


# The problem set


def test_guarded_problems_cover_orders_edges_and_scales():
    tile, stages = (32, 48, 8), 3
    problems = problem_set(guarded=True, tile=tile, stages=stages)
    sizes = {(p.m, p.n, p.k) for p in problems}
    primes = problems[0].m, problems[0].n, problems[0].k
    assert set(itertools.permutations(primes)) <= sizes and len(set(primes)) == 3
    assert all(value % divisor for value in primes for divisor in range(2, value))
    assert {1, 7, 8, 9, 23, 24, 25} <= {p.k for p in problems}
    assert {31, 33, 1} <= {p.m for p in problems} and {47, 49, 1} <= {p.n for p in problems}
    assert any(p.lda == p.k + 1 and p.ldd == p.n + 1 and p.ldc != p.ldd for p in problems)
    assert any(p.lda == p.k for p in problems)


def test_unguarded_problems_are_multiples_with_aligned_rows():
    tile = (32, 48, 8)
    problems = problem_set(guarded=False, tile=tile, stages=2)
    assert all(p.m % 32 == 0 and p.n % 48 == 0 and p.k % 8 == 0 for p in problems)
    assert all(getattr(p, f"{kind}{x}") % 4 == 0 for p in problems for x in "abcd" for kind in ("ld", "batch_stride_"))
    assert {(i * 32, j * 48, k * 8) for i, j, k in itertools.permutations((1, 2, 3))} <= {
        (p.m, p.n, p.k) for p in problems
    }
    assert any(p.lda > p.k for p in problems) and any(p.lda == p.k for p in problems)


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("tile", [(1, 1, 1), (16, 16, 1), (64, 128, 16), (128, 128, 8)])
def test_a_problem_set_is_small_and_has_every_pair_of_scales(guarded, tile):
    problems = problem_set(guarded=guarded, tile=tile, stages=2)
    scales = (0.0, 1.0, -1.0, 0.5, 2.0)
    assert {(p.alpha, p.beta) for p in problems} == set(itertools.product(scales, scales))
    assert any(p.batch > 1 and p.batch_stride_b == 0 for p in problems) and any(p.k == 0 for p in problems)
    launches = 0

    def counted(problem: Problem, operands: Operands) -> Result:
        nonlocal launches
        launches += 1
        return numpy_run()(problem, operands)

    verdict = verify(counted, problems)
    assert verdict.ok and launches <= 65
    assert sum(check.problem.flops for check in verdict.checks) < 1e9


def test_a_tile_below_one_is_refused():
    with pytest.raises(InvalidProblem, match="at least 1"):
        problem_set(guarded=True, tile=(16, 0, 8))


# A backend


class HostMemory:
    def __init__(self, nbytes: int) -> None:
        self._bytes = np.zeros(nbytes + 256, np.uint8)
        self._start = -self._bytes.ctypes.data % 256
        self.nbytes = nbytes
        self.address = self._bytes.ctypes.data + self._start

    @property
    def contents(self) -> np.ndarray:
        return self._bytes[self._start : self._start + self.nbytes]


class HostBackend:
    """Multiplies in plain memory, reading the argument struct as a kernel does."""

    def __init__(self, name: str = "host", overrun: int = 0) -> None:
        self.name, self.overrun = name, overrun
        self.allocations: dict[str, int] = {}
        self.addresses: set[int] = set()

    def alloc(self, nbytes: int, *, label: str, alignment_bytes: int = 256, read_only: bool = False) -> HostMemory:
        self.allocations[label] = self.allocations.get(label, 0) + 1
        return HostMemory(nbytes)

    def upload(self, memory: HostMemory, host: np.ndarray) -> None:
        memory.contents[: host.nbytes] = host

    def download(self, memory: HostMemory) -> np.ndarray:
        return memory.contents.copy()

    def launch(self, binary: Binary, grid: Grid, args: GemmArgs, *, stream: Any = None) -> None:
        self.addresses.add(args.d)
        a, b, c, d = (self._matrix(args, x) for x in "abcd")
        with np.errstate(all="ignore"):
            total = np.float32(args.alpha) * (a[:, : args.k] @ b[: args.k, : args.n])
        d[:, : args.n] = total + np.float32(args.beta) * c[:, : args.n] if args.beta else total
        end = args.d + 4 * ((args.m - 1) * args.ldd + args.n)
        ctypes.memset(end, 0, 4 * self.overrun)

    def _matrix(self, args: GemmArgs, name: str) -> np.ndarray:
        rows, ld = {"a": args.m, "b": args.k}.get(name, args.m), getattr(args, f"ld{name}")
        pointer = ctypes.cast(getattr(args, name), ctypes.POINTER(ctypes.c_float))
        return np.ctypeslib.as_array(pointer, shape=(rows, ld))

    def synchronize(self) -> None:
        pass

    def free_bytes(self) -> int:
        return 2**30

    def close(self) -> None:
        pass


def on_host(backend: HostBackend) -> Run:
    binary = Binary(entry="none", target="host", payload=b"", key="", compiler="none")
    return run_on(backend, binary, lambda problem: Grid((1, 1, 1), (1, 1, 1)))


SINGLE = [p for p in GUARDED if p.batch == 1]


def test_run_on_a_backend_passes_what_is_right_and_keeps_allocations():
    backend = HostBackend()
    verify(on_host(backend), [SINGLE[0]] * 5).raise_if_wrong()
    assert backend.allocations["A"] <= 2


def test_run_on_a_backend_sees_a_write_past_the_end():
    verdict = verify(on_host(HostBackend(overrun=1)), SINGLE, layers="integer")
    assert "wrote outside D: 1 element(s)" in verdict.failed[0].detail
    assert len(verdict.failed) == len(verdict.checks)


@pytest.mark.parametrize("alignment_bytes", [4, 16, 128, 256])
def test_addresses_have_the_problems_alignment_and_no_more(alignment_bytes):
    backend = HostBackend()
    verify(on_host(backend), [Problem(m=2, n=3, k=4, alignment_bytes=alignment_bytes)], layers="integer")
    (address,) = backend.addresses
    assert address % alignment_bytes == 0 and (alignment_bytes == 256 or address % (2 * alignment_bytes) != 0)


def test_integer_bounds_reach_a_depth_of_a_million_under_unit_scales():
    limits = integer_bounds(Problem(m=1, n=1, k=2**20, alpha=-1.0, beta=1.0))
    assert 2**20 * limits["a"] * limits["b"] + limits["c"] <= 2**24 and min(limits.values()) >= 1
