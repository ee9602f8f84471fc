"""Every rung that ships, in the emulator: every layer, every schedule, both placements, several configs."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tilewright.arch import get_arch
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem, WrongResult
from tilewright.facts.counts import counts
from tilewright.lab.verifying import emulator_run, emulator_settings, problems_for, sweep
from tilewright.problem import Problem
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify import Verdict, verify
from tilewright.verify.layers import check_case, make_case
from tilewright.verify.operands import make_operands

RUNGS = pytest.mark.parametrize("rung", all_rungs().values(), ids=lambda r: r.name)


def rungs_with_schedules():
    """Every rung under every schedule; those past the seeds' twelve, which are slow to compile, take them in turn."""
    settings = emulator_settings("all", 1)
    for rung in all_rungs().values():
        is_late = rung.track == "simt" and rung.number > 12
        for setting in settings[rung.number % 3 :][:1] if is_late else settings:
            yield pytest.param(rung, setting, id=f"{setting.label.split(',')[1].strip()}-{rung.name}")


@pytest.mark.parametrize(("rung", "setting"), list(rungs_with_schedules()))
def test_every_layer_holds_under_every_schedule(rung, setting):
    Verdict(tuple(sweep(rung_config(rung), setting))).raise_if_wrong()


def results(config):
    """Results one thread computes; more than 128 leave no registers for anything else."""
    return config.rung.accesses.results.evaluate(config.scope) // config.threads


def few_configs():
    for rung in (r for r in all_rungs().values() if r.kernel is None):
        count = 3 if rung.track == "simt" and rung.number <= 12 else 1  # the others take seconds to compile
        for config in drawn_configs(rung, count):
            yield pytest.param(config, id=f"{rung.name} {config}")


def drawn_configs(rung, count):
    """Up to `count` configs that an H200 can run, other than the default, without making all there are."""
    draw, arch, found = random.Random(rung.number), get_arch("sm_90a"), []
    for _ in range(20_000):
        config = Config(rung, {param.name: draw.choice(param.values) for param in rung.params})
        if config.fits(arch) and config not in (*found, rung_config(rung)) and results(config) <= 128:
            found.append(config)
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize("config", list(few_configs()))
def test_other_configs_are_exact_too(config):
    problems = problems_for(config)[:9:2]
    with EmulatorBackend(schedule="reverse") as backend:
        verify(emulator_run(config, backend), problems, layers=("integer", "bound")).raise_if_wrong()


def test_an_outbox_that_tiles_share_is_not_filled_while_the_last_store_reads_it():
    config = rung_config(all_rungs().find("t08"), {"BN": 64, "BK": 32, "STAGES": 2})
    two_tiles = Problem(m=2 * 128, n=64, k=32, dtype="bfloat16", out_dtype="bfloat16")
    with EmulatorBackend(workers=1, async_completion="latest") as backend:
        outcome = check_case(emulator_run(config, backend), make_case("integer", make_operands(two_tiles, "integer")))
    assert outcome.ok, outcome


@RUNGS
def test_an_epilogue_is_applied_before_the_one_rounding(rung):
    kind = rung.requires.usual._asdict()
    problem = Problem(m=128, n=128, k=32, alpha=2.0, beta=-1.0, epilogue=Epilogue(("bias", "relu")), **kind)
    with EmulatorBackend() as backend:
        case = make_case("integer", make_operands(problem, "integer", seed=3))
        assert (case.expected.value == 0).any() and (case.expected.value > 0).any()
        outcome = check_case(emulator_run(rung_config(rung), backend), case)
    assert outcome.ok, outcome


@pytest.mark.parametrize(
    ("query", "global_loads", "shared_loads"),
    [
        *((query, 2 * 4096, 0) for query in ("k01", "k02", "k03")),
        ("k04", 256, 2 * 4096),
        ("k05", 128, 4096 * 9 / 8),
        *((query, 64, 1024) for query in ("k06", "k07")),
        *((query, 96, 1024) for query in ("k08", "k10", "k11")),
        ("k12", 64, 4096 * 24 / 128),
    ],
)
def test_accesses_for_one_result_are_those_that_the_lesson_counts(query, global_loads, shared_loads):
    made = counts(rung_config(all_rungs().find(query)), Problem(m=4096, n=4096, k=4096))
    assert (made.global_loads_per_result, made.shared_loads_per_result) == (global_loads, shared_loads)


@pytest.mark.parametrize("mode", ["runtime", "always_read"])
def test_beta_decided_at_run_time_agrees_with_the_specialised_kernel(mode):
    from tilewright.compile.host import compile_host, host_source
    from tilewright.compile.source import kernel_source
    from tilewright.compile.variant import Variant
    from tilewright.run.kernel import grid_of
    from tilewright.verify.device import run_on

    config = rung_config(all_rungs().find("k08"))
    for beta in (0.0, 0.5):
        problem = Problem(m=128, n=64, k=32, beta=beta)
        binary = compile_host(host_source(kernel_source(config, problem, Variant(beta_mode=mode))))
        with EmulatorBackend() as backend:
            run = run_on(backend, binary, lambda p: grid_of(config, p, sm_count=1))
            assert verify(run, [problem], layers="integer").ok
            operands = make_operands(problem, "integer")
            operands.logical("c")[...] = np.nan
            leaks = np.isnan(run(problem, operands).d).any()
            assert leaks == (mode == "always_read" or beta != 0)


def test_off_tile_sizes_are_refused_by_the_rung_without_guards_before_any_launch():
    config = rung_config(all_rungs().find("k08"))
    for fields in ({"m": 127}, {"n": 63}, {"k": 31}):
        with pytest.raises(InvalidProblem, match="has no guards"):
            config.require_problem(Problem(**{"m": 128, "n": 64, "k": 32, **fields}))


@pytest.mark.parametrize(
    ("query", "ops", "others"),
    [
        ("k01", ("bias", "gelu"), ("bias", "relu")),
        ("k21", ("silu",), ("gelu",)),
        ("t08", ("bias", "gelu"), ("bias", "silu")),
    ],
)
def test_an_activation_that_rounds_is_within_its_bound_and_another_is_not(query, ops, others):
    config = rung_config(all_rungs().find(query))
    problem = Problem(m=128, n=256, k=32, alpha=0.05, epilogue=Epilogue(ops), **config.rung.requires.usual._asdict())
    compile_cubin(kernel_source(config, problem), get_arch("sm_90a"))
    with EmulatorBackend() as backend:
        run = emulator_run(config, backend)
        verify(run, [problem], layers=("integer", "bound")).raise_if_wrong()

        def mistaken(asked, operands):
            return run(replace(asked, epilogue=Epilogue(others)), operands)

        with pytest.raises(WrongResult):
            verify(mistaken, [problem], layers=("bound",)).raise_if_wrong()
