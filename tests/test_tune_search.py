"""The parts of a search: the space, what a binary shows, screening, strategies, the choice among finalists."""

import dataclasses
import gzip
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from landscapes import synthetic_us
from tilewright.arch import get_arch
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import all_rungs, enumerate_configs, rung_config
from tilewright.facts.code import code_digest, code_of
from tilewright.measure import Arm
from tilewright.measure.samples import Samples
from tilewright.problem import Problem
from tilewright.record import Record
from tilewright.tune import STRATEGIES, space_of
from tilewright.tune.build import Builder, check_problems
from tilewright.tune.context import problem_fields
from tilewright.tune.features import features
from tilewright.tune.finalists import finalists, label_of, ranked, winner
from tilewright.tune.model import expected_improvement, fitted, predict, scaled
from tilewright.tune.screen import screen, warm_up
from tilewright.tune.space import ACCUMULATORS
from tilewright.tune.strategies import strategy_named
from tilewright.tune.trial import Trial, config_key

GOLDEN = Path(__file__).parent / "golden"
K12 = all_rungs().find("k12")
SM90 = get_arch("sm_90a")
PROBLEM = Problem(m=4096, n=4096, k=4096)
ONLY = {"PAD": [0], "MIN_CTAS": [1]}


@pytest.fixture(scope="module")
def space():
    return space_of(K12, PROBLEM, SM90, ONLY)


# The space


def test_every_combination_is_in_the_space_or_rejected_by_a_rule(space):
    assert len(space.configs) + sum(space.rejected.values()) == space.combinations
    assert "BM % WM == 0, so that warps tile the CTA tile's rows" in space.rejected


def test_the_space_is_what_the_declaration_allows_but_for_what_can_only_spill(space):
    allowed = [c for c in enumerate_configs(dataclasses.replace(K12, params=narrowed(K12)), SM90)]
    assert len(allowed) == len(space.configs) + space.rejected[ACCUMULATORS]
    assert max(c.results_per_thread for c in space.configs) == 128


def narrowed(rung):
    asked = {name: {"values": tuple(values), "default": values[0]} for name, values in ONLY.items()}
    return tuple(dataclasses.replace(p, **asked.get(p.name, {})) for p in rung.params)


def test_what_can_only_spill_does_spill():
    """The rule is about registers alone; a config it rejects is compiled here to see that it is right."""
    rejected = rung_config(
        K12, {"NUM_THREADS": 512, "BM": 256, "BN": 256, "WM": 64, "WN": 64, "TM": 8, "TN": 8, "BK": 8}
    )
    assert rejected.fits(SM90) and rejected.results_per_thread == 128
    assert compile_cubin(kernel_source(rejected, PROBLEM), SM90).resources.spill_bytes > 0
    near = {name: [value] for name, value in rejected.values.items()} | {"BK": [8, 16], "NUM_THREADS": [256, 512]}
    assert rejected not in space_of(K12, PROBLEM, SM90, {**near, "BM": [128, 256], "BN": [256]}).configs


def test_a_value_beyond_the_declared_ones_can_be_asked_for():
    wide = space_of(K12, PROBLEM, SM90, {**ONLY, "PAD": [6]})
    assert wide.configs and all(c.values["PAD"] == 6 for c in wide.configs)
    assert all(c.rung is K12 for c in wide.configs)


def test_configs_that_the_problem_does_not_fit_are_rejected_by_that_rule():
    fits = space_of(K12, Problem(m=4096, n=4096, k=24), SM90, ONLY)
    assert {c.values["BK"] for c in fits.configs} == {8}
    assert any(rule.startswith("k % BK == 0") for rule in fits.rejected)


# What a binary shows


def test_a_config_is_checked_on_the_very_binary_that_is_timed():
    for rung in all_rungs().values():
        config = rung_config(rung)
        usual = Problem(m=PROBLEM.m, n=PROBLEM.n, k=PROBLEM.k, **rung.requires.usual._asdict())
        for problem in (usual, dataclasses.replace(usual, alpha=2.0, beta=1.0)):
            checked = check_problems(config, problem)
            assert all(small.kind == problem.kind for small in checked)
            for small in checked:
                config.require_problem(small)
            texts = {kernel_source(config, small).text for small in checked}
            assert kernel_source(config, problem).text in texts, rung.name
            assert all(small.flops < 1e9 for small in checked)
            assert len(checked) == (1 if rung.unguarded_when is None else 2)


def test_debug_information_and_an_unused_launch_bound_make_no_other_instructions():
    first, second, other = (
        compile_cubin(kernel_source(rung_config(K12, {"MIN_CTAS": bound, "BK": bk}), PROBLEM), SM90)
        for bound, bk in ((1, 16), (2, 16), (1, 8))
    )
    assert first.payload != second.payload and code_digest(first) == code_digest(second)
    assert code_digest(first) != code_digest(other) and len(code_of(first)) > len(code_of(other)) > 0


def builder(rung, problem=PROBLEM):
    return Builder({"rung": rung.name, "problem": problem_fields(problem), "arch": "sm_90a"})


def test_a_builder_tells_what_the_binary_shows():
    facts = builder(K12).evaluate({"config": rung_config(K12).values})["facts"]
    assert facts["registers"] > 128 and facts["spill_bytes"] == 0 and facts["ctas_per_sm"] == 2
    assert facts["occupancy"] == 0.125 and facts["smem_bytes"] == rung_config(K12).smem_bytes


def test_a_binary_that_a_rule_refuses_is_a_failure_with_its_facts():
    spills = {"BM": 128, "BN": 256, "WM": 64, "WN": 128, "TM": 16, "TN": 8, "WNITER": 2}
    answer = builder(all_rungs().find("k08")).evaluate({"config": rung_config(all_rungs().find("k08"), spills).values})
    assert answer["failure"] == "InvalidConfig" and "may not spill" in answer["message"]
    assert answer["facts"]["spill_bytes"] > 0


# Screening


class FakeTimer:
    """A device whose launches take what their arm says; the clock runs with them."""

    def __init__(self):
        self.us = 0.0

    def now_s(self):
        return self.us / 1e6

    def time_us(self, batches, during):
        return [self._one(batch) for batch in batches]

    def _one(self, batch):
        start = self.us
        batch(self)
        return self.us - start


def arm_taking(times_us, slots):
    seen = iter(times_us)

    def launch(slot, timer):
        slots.append(slot)
        timer.us += next(seen)

    return Arm("a", launch)


def test_a_screening_is_the_median_of_three_after_one_launch():
    slots = []
    result = screen(arm_taking([9000, 5000, 5200, 5100], slots), FakeTimer(), slots=2, best_us=None)
    assert (result.time_us, result.samples_us, result.slow) == (5100, (5000, 5200, 5100), False)
    assert slots == [0, 0, 1, 0]


def test_one_launch_is_enough_for_what_is_far_behind():
    result = screen(arm_taking([7600], []), FakeTimer(), slots=2, best_us=5000)
    assert (result.time_us, result.slow) == (7600, True)
    assert not screen(arm_taking([7400] * 4, []), FakeTimer(), slots=2, best_us=5000).slow


def test_short_kernels_are_launched_often_enough_for_the_events_to_resolve_them():
    slots = []
    assert screen(arm_taking([10.0] * 400, slots), FakeTimer(), slots=5, best_us=None).time_us == pytest.approx(10)
    assert len(slots) == 1 + 3 * 100


def test_warming_up_takes_a_second():
    timer = FakeTimer()
    warm_up(arm_taking(iter(lambda: 2000.0, None), []), timer, slots=2)
    assert 1.0 <= timer.now_s() < 1.1


# Strategies


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_strategy_asks_for_every_config_once_and_for_none_that_it_was_told_of(name):
    small = space_of(K12, PROBLEM, SM90, {**ONLY, "BM": [128], "BN": [128], "BK": [8], "WNITER": [2]})
    strategy = strategy_named(name, small, seed=3, sm_count=132)
    known, seen = small.configs[::3], []
    for config in known:
        strategy.tell(config, 5000.0)
    while asked := strategy.ask(4):
        assert len(asked) <= 4
        for index, config in enumerate(asked):
            seen.append(config_key(config.values))
            strategy.tell(config, None if index == 1 else 4000.0 + index)
    assert sorted(seen) == sorted({config_key(c.values) for c in small.configs} - {config_key(c.values) for c in known})


def test_exhaustive_keeps_the_declarations_order_and_random_its_seeds(space):
    def order(name, seed):
        return strategy_named(name, space, seed=seed, sm_count=132).ask(50)

    assert order("exhaustive", 0) == list(space.configs[:50])
    assert order("random", 0) == order("random", 0) != order("random", 1)


def test_the_guided_search_begins_with_the_rungs_defaults(space):
    assert strategy_named("model", space, seed=0, sm_count=132).ask(1) == [rung_config(K12)]


def tenth(name, space, times, seed):
    """The true time of the best finalist after a tenth of the evaluations, each seen with 0.4% of noise."""
    strategy, noise = strategy_named(name, space, seed=seed, sm_count=132), random.Random(seed)
    seen = []
    for _ in range(len(space.configs) // 10):
        (config,) = strategy.ask(1)
        time_us = times[config_key(config.values)]
        told = None if time_us is None else time_us * math.exp(noise.gauss(0, 0.004))
        strategy.tell(config, told)
        if told is not None:
            seen.append((told, time_us))
    return min(time_us for _, time_us in sorted(seen)[:8])


def test_a_tenth_of_the_evaluations_lands_within_one_percent_of_the_best(space):
    times = {config_key(c.values): synthetic_us(c, 1) for c in space.configs}
    best = min(time_us for time_us in times.values() if time_us is not None)
    assert [tenth("model", space, times, seed) <= 1.01 * best for seed in range(3)] == [True] * 3
    by_luck = [tenth("random", space, times, seed) / best for seed in range(3)]
    assert min(by_luck) > 1.01, "luck is enough on this landscape, so it shows nothing"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("tune-*.json.gz")), ids=lambda path: path.name)
def test_so_it_does_on_a_recorded_landscape(path):
    record = Record.from_json(json.loads(gzip.decompress(path.read_bytes())))
    rung = all_rungs()[record.rows[0].rung]
    sizes = {name: record.rows[0].problem[name] for name in "mnk"}
    recorded = space_of(rung, Problem(**sizes), get_arch(record.rows[0].arch), record.about["space"]["only"])
    times = {config_key(row.config): None if row.failure else row.time_us for row in record.rows if row.config}
    best = min(time_us for time_us in times.values() if time_us is not None)
    assert [tenth("model", recorded, times, seed) <= 1.01 * best for seed in range(3)] == [True] * 3


def test_the_model_goes_through_what_it_knows_and_is_unsure_elsewhere():
    known = np.linspace(0, 1, 9)[:, None]
    values = np.sin(3 * known[:, 0])
    said = predict(known, values, np.array([[0.5], [0.3], [9.0]]), fitted(known, values))
    assert said.mean[:2] == pytest.approx(np.sin([1.5, 0.9]), abs=0.02)
    assert said.deviation[0] < 0.05 < 0.3 < said.deviation[2]
    assert expected_improvement(said, 0.0)[0] < 1e-6 < expected_improvement(said, 0.0)[2]


def test_features_are_finite_and_tell_configs_apart(space):
    table = scaled(features(space.configs, PROBLEM, SM90, sm_count=132))
    assert np.isfinite(table).all() and len(np.unique(table.round(9), axis=0)) == len(space.configs)
    assert np.median(table.std(axis=0)) == pytest.approx(1 / math.sqrt(table.shape[1]))


# The choice


def timed(time_us, registers=128, smem_bytes=1024, **settings):
    values = rung_config(K12).values | settings
    return Trial(
        config=values, outcome="timed", time_us=time_us, facts={"registers": registers, "smem_bytes": smem_bytes}
    )


def test_finalists_are_the_fastest_within_three_percent_and_at_most_eight():
    trials = [timed(100.0 + 0.5 * i, BK=8 + i) for i in range(12)]
    slow = dataclasses.replace(timed(90.0, BK=99), outcome="slow")
    same = dataclasses.replace(timed(90.0, BK=98), outcome="same", same_as={})
    assert [t.time_us for t in finalists([*reversed(trials), slow, same])] == [100.0 + 0.5 * i for i in range(7)]
    assert len(finalists([timed(100.0, BK=8 + i) for i in range(12)])) == 8
    assert finalists([slow]) == []


def measured(**times_us):
    """Samples of thirty rounds with one percent of drift that all arms share, and a thousandth of noise of each."""
    noise = {name: random.Random(name) for name in times_us}
    drift = [1 + 0.01 * i / 30 for i in range(30)]
    times = {n: tuple(t * d * (1 + noise[n].gauss(0, 0.001)) for d in drift) for n, t in times_us.items()}
    fixed = {"inner": dict.fromkeys(times, 1), "slots": 2, "seed": 0, "stop": "rounds", "warm": True}
    return Samples(times_us=times, order=(tuple(times),) * 30, clocks=(None,) * 30, rejected_rounds=0, **fixed)


def test_ties_are_those_whose_interval_reaches_half_a_percent_and_the_leanest_is_taken():
    trials = {"a": timed(1, 200), "b": timed(1, 150, 4096), "c": timed(1, 150, 2048), "d": timed(1, 60)}
    ranking = ranked(trials, measured(a=100.0, b=100.2, c=100.3, d=102.0, cuBLAS=98.0), "cuBLAS")
    assert [f.label for f in ranking] == ["a", "b", "c", "d"]
    assert [f.ties for f in ranking] == [True, True, True, False]
    assert winner(ranking).label == "c", "fewest registers, then least shared memory"
    assert winner(ranking).ratio_to_baseline.median == pytest.approx(98 / 100.3, rel=2e-3)


def test_without_rounds_or_without_a_baseline_nothing_is_made_up():
    nothing = dataclasses.replace(measured(a=100.0), order=(), times_us={"a": ()}, clocks=())
    assert ranked({"a": timed(1)}, nothing, None) == [] and winner([]) is None
    assert ranked({"a": timed(1)}, measured(a=100.0), None)[0].ratio_to_baseline is None


def test_a_config_is_named_by_what_it_changes():
    assert label_of(K12, rung_config(K12).values) == "defaults"
    assert label_of(K12, rung_config(K12).values | {"BK": 8, "PAD": 2}) == "BK=8 PAD=2"
