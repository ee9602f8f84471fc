"""Which config a problem gets, and what is said of it."""

import pytest

from tilewright.arch import get_arch
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidProblem
from tilewright.problem import Problem
from tilewright.select import choose
from tilewright.tune import Store
from tilewright.tune.context import context_of

H200, SMS = get_arch("sm_90a"), 132


def test_every_choice_takes_its_problem_and_says_why():
    for sizes in (
        (1, 1, 1),
        (33, 7, 65),
        (128, 64, 16),
        (1024, 1024, 1024),
        (4096, 4096, 4096),
        (1, 4096, 4096),
        (4, 4, 0),
    ):
        problem = Problem(**dict(zip("mnk", sizes, strict=True)))
        choice = choose(problem, H200, SMS)
        choice.config.require_problem(problem)
        choice.config.require_arch(H200)
        assert "CTA tiles of" in choice.why and choice.expected_us is None
        assert choice.runner_up is not None and choice.runner_up != choice.config


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_large_products_get_larger_tiles_than_small_ones(dtype):
    def area(size):
        rows, columns, _ = choose(Problem(m=size, n=size, k=size, dtype=dtype, out_dtype=dtype), H200, SMS).config.tile
        return rows * columns

    assert area(4096) >= area(512) >= area(64) and area(4096) > area(64)


def test_a_card_that_lacks_a_feature_gets_a_rung_that_needs_none():
    problem = Problem(m=4096, n=4096, k=4096, dtype="bfloat16", out_dtype="bfloat16", layout="NT")
    assert "wgmma" in choose(problem, H200, SMS).config.rung.requires.features
    assert "wgmma" not in choose(problem, get_arch("sm_80"), 108).config.rung.requires.features


def test_what_no_rung_takes_is_refused_with_each_rungs_reason():
    problem = Problem(m=4, n=4, k=4, dtype="tfloat32", out_dtype="float32", layout="TN")
    with pytest.raises(InvalidProblem, match=r"no rung takes it on sm_90a:\n  t05_wgmma: .*besides NT tfloat32 only"):
        choose(problem, H200, SMS)


@pytest.fixture
def stored(cold_cache):
    """Keep a choice for k08 as a tuning run would, on a device that is named."""
    problem, rung = Problem(m=512, n=512, k=512), all_rungs().find("k08")

    def keep(settings, time_us, *, sm_count=SMS, source=None):
        device = {"name": "H200", "compute_capability": [9, 0], "sm_count": sm_count, "smem_optin_bytes": 232448}
        context = context_of(rung, problem, device)
        if source is not None:
            context.fields["source"] = source
        with Store() as store:
            store.add_choice(context, {"best": rung_config(rung, settings).values, "time_us": time_us})
        return problem

    return keep


def test_what_tuning_found_for_this_problem_and_card_comes_first(stored):
    problem = stored({"BK": 8}, 10.0)
    choice = choose(problem, H200, SMS)
    assert choice.config == rung_config(all_rungs().find("k08"), {"BK": 8})
    assert choice.why == "tuned for this problem on this card" and choice.runner_up is not None
    assert choose(Problem(m=512, n=512, k=256), H200, SMS).why != choice.why
    assert choose(problem, H200, 78).why != choice.why
    assert choose(problem, get_arch("sm_80"), SMS).why != choice.why


def test_a_newer_choice_is_seen_at_once_and_an_older_kernels_is_not_used(stored):
    problem = stored({"BK": 8}, 10.0)
    assert choose(problem, H200, SMS).config.values["BK"] == 8
    stored({"BK": 32}, 9.0)
    assert choose(problem, H200, SMS).config.values["BK"] == 32
    stored({"BK": 16}, 1.0, source="another kernel's")
    assert choose(problem, H200, SMS).config.values["BK"] == 32


def test_without_a_store_none_is_made(cold_cache):
    choose(Problem(m=64, n=64, k=64), H200, SMS)
    assert not cold_cache.exists()
