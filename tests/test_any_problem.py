"""One rung takes every problem, so that no product fails for want of a kernel."""

import itertools
from dataclasses import replace

import pytest

from tilewright.arch import ARCHS
from tilewright.declare import all_rungs, rung_config
from tilewright.problem import LAYOUTS, MAX_SIZE, Problem
from tilewright.verify.problems import problem_set

TAKES_ALL = rung_config(all_rungs().find("k13"))
COVERING = problem_set(guarded=True, tile=(16, 16, 16), stages=2)
LONG = MAX_SIZE


def with_odd_rows(problem: Problem, layout: str) -> Problem:
    """The problem stored in another layout, its rows of an odd length at addresses aligned to one element."""
    strides = dict.fromkeys(("batch_stride_a", "batch_stride_b", "batch_stride_c", "batch_stride_d"), -1)
    tight = replace(problem, layout=layout, lda=0, ldb=0, ldc=0, ldd=0, **strides)
    odd = {f"ld{operand}": getattr(tight, f"ld{operand}") | 1 for operand in "abcd"}
    return replace(tight, **odd, **strides, alignment_bytes=4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_covering_problem_is_taken_in_every_layout_with_odd_rows(layout):
    for problem in COVERING:
        TAKES_ALL.require_problem(with_odd_rows(problem, layout))


@pytest.mark.parametrize(
    "sizes", [(LONG, 1, 1), (1, LONG, 1), (1, 1, LONG), (1, 1, 0), (65536 * 128, 2, 3), (3, 3, 3)], ids=str
)
def test_sizes_and_strides_at_their_limits_are_taken_and_can_be_launched(sizes):
    m, n, k = sizes
    for layout, batch in itertools.product(LAYOUTS, (1, 70000 if m * n < 10 else 1)):
        tight = Problem(m=m, n=n, k=k, layout=layout, batch=batch, alignment_bytes=4)
        far = replace(tight, lda=LONG, ldb=LONG, batch_stride_a=-1, batch_stride_b=-1)
        for problem in (tight, far):
            TAKES_ALL.require_problem(problem)
            assert min(TAKES_ALL.grid(problem)) >= 1


def test_it_runs_on_every_architecture():
    for arch in ARCHS.values():
        TAKES_ALL.require_arch(arch)
