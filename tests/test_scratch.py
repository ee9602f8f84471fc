"""Workspace and flags: declared, allocated once for each backend, and left as the next launch needs them."""

from dataclasses import replace

import numpy as np
import pytest

from test_declare import tiny
from tilewright.declare import all_rungs, rung_config, scratch
from tilewright.errors import InvalidDeclaration
from tilewright.lab.verifying import emulator_run
from tilewright.problem import Problem
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.kernel import bind
from tilewright.verify.operands import bits, logical_view, make_operands

SPLIT = rung_config(
    all_rungs().find("k15"), {"BM": 32, "BN": 32, "WM": 32, "WN": 32, "TN": 4, "SPLIT_K": 6, "STAGES": 2}
)
SMALL = Problem(m=40, n=33, k=90)
"""Four tiles and twelve steps along k."""


def test_a_declaration_that_names_what_is_not_known_is_refused():
    with pytest.raises(InvalidDeclaration, match="scratch: 'm \\* WHAT' names WHAT"):
        tiny(scratch=scratch(sums="m * WHAT", flags="1"))


def test_a_launch_gets_what_its_problem_needs_and_the_same_again():
    accumulators, flags = 4 * 6 * 32 * 32, 4
    assert SPLIT.scratch(SMALL) == (accumulators, flags)
    with EmulatorBackend() as backend:
        run, seen = emulator_run(SPLIT, backend), []
        for problem in (SMALL, SMALL, Problem(m=400, n=33, k=90)):
            run(problem, make_operands(problem, "integer"))
            seen.append((backend.scratch.workspace, backend.scratch.flags))
            assert not backend.download(backend.scratch.flags).any()
    assert seen[0] == seen[1] and (seen[0][0].nbytes, seen[0][1].nbytes) == (4 * accumulators, 4 * flags)
    assert seen[2][0].nbytes > 4 * accumulators


def test_a_rung_without_scratch_gets_none():
    with EmulatorBackend() as backend:
        bind(rung_config(all_rungs().find("k13")), SMALL, backend)
        assert backend.scratch.workspace is None and backend.scratch.flags is None


@pytest.mark.parametrize("slices", [6, 48])
def test_split_sums_have_the_same_bits_whoever_comes_last_and_leave_flags_zero(slices):
    """All at once, and in three groups of sixteen."""
    config = rung_config(SPLIT.rung, {**SPLIT.values, "SPLIT_K": slices})
    operands = make_operands(SMALL, "zero_mean")
    results = []
    for schedule in ("default", "reverse", "random"):
        with EmulatorBackend(schedule=schedule, seed=3) as backend:
            run = emulator_run(config, backend)
            results += [bits(logical_view(SMALL, "d", run(SMALL, operands).d)) for _ in range(2)]
            assert not backend.download(backend.scratch.flags).any()
    assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("k", [0, 1, 8, 9, 40])
def test_slices_that_have_no_step_along_k_add_nothing(k):
    problem = replace(SMALL, k=k, lda=0, ldb=0, batch_stride_a=-1, batch_stride_b=-1, beta=1.0)
    operands = make_operands(problem, "integer")
    with EmulatorBackend() as backend:
        d = logical_view(problem, "d", emulator_run(SPLIT, backend)(problem, operands).d)
    np.testing.assert_array_equal(d, operands.logical("a") @ operands.logical("b") + operands.logical("c"))


STREAM_K = rung_config(
    all_rungs().find("k19"),
    {"BM": 64, "BN": 64, "WM": 32, "WN": 32, "TM": 8, "TN": 4, "STAGES": 4, "LEAST_STEPS": 2, "MATH_REGISTERS": 256},
)


@pytest.mark.parametrize("ctas", [1, 2, 3, 5, 8, 17, 27])
def test_stream_k_computes_every_step_once_however_many_ctas_share_them(ctas):
    """Tiles in one part and in many; few, most and nearly all of a wave over; k of no step and of part of one."""
    with EmulatorBackend(workers=ctas, schedule="random", seed=ctas) as backend:
        run = emulator_run(STREAM_K, backend)
        for m, n, k in ((40, 33, 900), (190, 190, 200), (130, 65, 17), (64, 576, 128), (250, 250, 65), (70, 40, 0)):
            problem = Problem(m=m, n=n, k=k, beta=1.0)
            operands = make_operands(problem, "integer")
            for _ in range(2):
                d = logical_view(problem, "d", run(problem, operands).d)
                np.testing.assert_array_equal(d, operands.logical("a") @ operands.logical("b") + operands.logical("c"))
            assert not backend.download(backend.scratch.flags).any()
