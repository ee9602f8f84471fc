"""A whole search in real worker processes, with fake evaluators in place of a compiler and a GPU."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from landscapes import synthetic_us
from tilewright.arch import get_arch
from tilewright.declare import all_rungs
from tilewright.errors import InvalidInput, Missing
from tilewright.measure.samples import Samples
from tilewright.problem import Problem
from tilewright.tune import Machine, Request, Store, space_of, tune
from tilewright.tune.final_rounds import Finals
from tilewright.tune.process import Limits
from tilewright.tune.trial import config_key

HERE = Path(__file__).parent
K12 = all_rungs().find("k12")
PROBLEM = Problem(m=4096, n=4096, k=4096)
SMALL = {"PAD": [0], "MIN_CTAS": [1], "BM": [128], "BN": [128], "BK": [8], "WNITER": [1, 2], "NUM_THREADS": [128, 256]}
ROUNDS = 8


def fake_finals(problem, configs, device, seed, budget_s):
    """Samples that say what the screening said, against a baseline of 7 ms."""
    times = {label: (synthetic_us(config, 0),) * ROUNDS for label, config in configs.items()}
    times["cuBLAS"] = (7000.0,) * ROUNDS
    samples = Samples(
        times_us=times,
        order=tuple(tuple(times) for _ in range(ROUNDS)),
        clocks=(None,) * ROUNDS,
        inner=dict.fromkeys(times, 1),
        slots=2,
        seed=seed,
        stop="precision",
        warm=True,
        rejected_rounds=0,
    )
    return Finals(samples=samples, wrong={}, baseline="cuBLAS (fake)")


MACHINE = Machine(
    builder="tuning_fakes:FakeBuilder",
    screen="tuning_fakes:FakeScreen",
    measure_finals=fake_finals,
    build_limits=Limits(job_s=3.0, memory_bytes=64 * 2**20),
    screen_limits=Limits(job_s=1.0),
)
EXHAUSTIVE = Request(strategy="exhaustive", effort="full", only=SMALL)


@pytest.fixture
def fakes(monkeypatch, cold_cache):
    """Workers can import the fakes, and the store is the test's own."""
    return cold_cache


def configs(**only):
    return space_of(K12, PROBLEM, get_arch("sm_90a"), {**SMALL, **only}).configs


def plant(monkeypatch, kinds):
    """Give each kind of misfortune a config of its own."""
    chosen = dict(zip((config_key(c.values) for c in configs()), kinds, strict=False))
    monkeypatch.setenv("FAKE_PLANTED", json.dumps(chosen))
    return {kind: key for key, kind in chosen.items()}


def test_an_exhaustive_search_tries_every_config_and_finds_the_best(fakes):
    result = tune(K12, PROBLEM, EXHAUSTIVE, machine=MACHINE)
    assert {trial.key for trial in result.trials} == {config_key(c.values) for c in configs()}
    fastest = min((c for c in configs() if synthetic_us(c, 0)), key=lambda c: synthetic_us(c, 0))
    assert result.stop == "exhausted" and result.ranking[0].trial.config == fastest.values
    assert result.ranking[0].ratio_to_baseline.median == pytest.approx(7000 / synthetic_us(fastest, 0))


def test_ten_bad_configs_and_the_sweep_finishes_and_names_each(fakes, monkeypatch):
    expected = {
        "compile error": ("CompileFailed", "compile", "expected a ;"),
        "refused binary": ("InvalidConfig", "compile", "may not spill"),
        "compiler aborts": ("Crashed", "compile", "SIGABRT"),
        "compiler hangs": ("TimedOut", "compile", "no end within 3 s"),
        "compiler grows": ("OutOfMemory", "compile", "grew by more than 0.0625 GiB"),
        "illegal address": ("LaunchFailed", "run", "ILLEGAL_ADDRESS"),
        "segmentation fault": ("Crashed", "run", "SIGSEGV"),
        "hangs": ("TimedOut", "run", "no end within 1 s"),
        "wrong": ("WrongResult", "run", "3 of 64 differ"),
        "unforeseen": ("RuntimeError", "run", "cannot happen"),
        "prints and leaves": ("Crashed", "run", "exit status 3"),
    }
    where = plant(monkeypatch, expected)
    result = tune(K12, PROBLEM, EXHAUSTIVE, machine=MACHINE)
    trials = {trial.key: trial for trial in result.trials}
    assert len(trials) == len(configs())
    for kind, (failure, stage, words) in expected.items():
        trial = trials.pop(where[kind])
        assert (trial.failure, trial.stage) == (failure, stage) and words in trial.message, (kind, trial)
    assert all(trial.failure is None for trial in trials.values())
    assert result.winner is not None and result.winner.trial.outcome == "timed"


def test_configs_with_the_same_instructions_run_once(fakes):
    result = tune(
        K12,
        PROBLEM,
        Request(strategy="exhaustive", effort="full", only={**SMALL, "MIN_CTAS": [0, 1, 2]}),
        machine=MACHINE,
    )
    outcomes = Counter(trial.outcome for trial in result.trials)
    assert outcomes["same"] == 2 * len(configs()) and sum(outcomes.values()) == 3 * len(configs())
    times = {trial.key: trial.time_us for trial in result.trials}
    assert all(t.time_us == times[config_key(t.same_as)] for t in result.trials if t.outcome == "same")


def test_a_second_run_makes_no_trial_again(fakes, monkeypatch):
    first = tune(K12, PROBLEM, EXHAUSTIVE, machine=MACHINE)
    monkeypatch.setenv("FAKE_PAUSE_S", "60")  # any job would run into its limit
    second = tune(K12, PROBLEM, EXHAUSTIVE, machine=MACHINE)
    assert second.known == len(first.trials) and second.best.config == first.best.config
    assert sorted(t.key for t in second.trials) == sorted(t.key for t in first.trials)


def test_again_and_the_environment_make_them_anew(fakes, monkeypatch):
    few = Request(strategy="exhaustive", effort="full", only=SMALL, trials=3)
    assert tune(K12, PROBLEM, few, machine=MACHINE).known == 0
    assert tune(K12, PROBLEM, few, machine=MACHINE).known == 3
    monkeypatch.setenv("TILEWRIGHT_FORCE_TUNE", "1")
    assert tune(K12, PROBLEM, few, machine=MACHINE).known == 0
    with Store() as store:
        assert len(store.export()["contexts"][0]["trials"]) == 6


def test_no_effort_tells_what_is_known_and_tries_nothing(fakes):
    nothing = tune(K12, PROBLEM, Request(effort="none", only=SMALL), machine=MACHINE)
    assert nothing.trials == () and nothing.best is None
    tune(K12, PROBLEM, EXHAUSTIVE, machine=MACHINE)
    known = tune(K12, PROBLEM, Request(effort="none", only=SMALL), machine=MACHINE)
    assert known.best is not None and known.known == len(known.trials) == len(configs())


def test_a_budget_ends_the_sweep_and_leaves_the_best_so_far(fakes, monkeypatch):
    monkeypatch.setenv("FAKE_PAUSE_S", "0.2")
    result = tune(K12, PROBLEM, Request(strategy="random", effort="full", only=SMALL, budget_s=2.0), machine=MACHINE)
    assert result.stop == "budget" and 0 < len(result.trials) < len(configs()) and result.winner is not None


def test_two_devices_share_one_sweep(fakes, monkeypatch):
    import dataclasses

    monkeypatch.setenv("FAKE_PAUSE_S", "0.02")
    machine = dataclasses.replace(MACHINE, devices=(0, 1))
    result = tune(K12, PROBLEM, EXHAUSTIVE, machine=machine)
    assert len(result.trials) == len({t.key for t in result.trials}) == len(configs())


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(effort="much"), "effort 'much': no such effort; there are none, quick, full"),
        (
            Request(strategy="luck", only=SMALL),
            "strategy 'luck': no such strategy; there are exhaustive, random, model",
        ),
        (Request(trials=-1), "trials=-1: must be at least 0"),
        (Request(only={"BMM": [1]}), "BMM: no such parameter; there are BM, BN"),
        (Request(only={"BM": [0]}), "BM=0: must be an integer from 1"),
        (Request(only={"BM": []}), "BM: no value given"),
        (Request(only={"WM": [128], "BM": [64]}), "no config can run 4096×4096×4096"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(fakes, request_, words):
    with pytest.raises(InvalidInput, match=words.replace("(", r"\(")):
        tune(K12, PROBLEM, request_, machine=MACHINE)


def test_a_worker_that_cannot_start_says_what_is_missing(fakes):
    with pytest.raises(Missing, match="a worker did not start: no usable GPU"):
        tune(K12, PROBLEM, EXHAUSTIVE, machine=Machine())


RUN = """
import sys
sys.path.insert(0, {here!r})
from test_tune import EXHAUSTIVE, K12, MACHINE, PROBLEM
from tilewright.tune import tune
result = tune(K12, PROBLEM, EXHAUSTIVE, machine=MACHINE,
              on_progress=lambda p: print(p.done, flush=True))
print("stop", result.stop, len(result.trials))
"""


def started(**environment):
    return subprocess.Popen(
        [sys.executable, "-c", RUN.format(here=str(HERE))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FAKE_PAUSE_S": "0.03", **environment},
    )


def stored_keys():
    with Store() as store:
        return [t["data"]["config"] for c in store.export()["contexts"] for t in c["trials"]]


def test_killed_at_five_points_it_loses_nothing_finished_and_a_rerun_resumes(fakes):
    seen = 0
    for extra in (1, 4, 2, 6, 3):
        running = started()
        while seen < len(configs()) and int(running.stdout.readline()) < seen + extra:
            pass
        running.kill()
        rest = running.communicate()[0]
        told = max([seen, *(int(line) for line in rest.splitlines() if line.isdigit())])
        kept = stored_keys()
        assert len(kept) >= max(told, seen + extra), "a trial that was told of is not in the store"
        assert len(kept) == len({config_key(c) for c in kept}), "a finished trial was made again"
        seen = len(kept)
    finished, _ = started().communicate()
    assert finished.splitlines()[-1] == f"stop exhausted {len(configs())}"
    assert len(stored_keys()) == len(configs())


def test_an_interrupt_keeps_what_is_known_and_ends_every_process(fakes):
    running = started(FAKE_PAUSE_S="0.1")
    while int(running.stdout.readline()) < 2:
        pass
    running.send_signal(signal.SIGINT)
    told, errors = running.communicate(timeout=20)
    assert told.splitlines()[-1].startswith("stop interrupted"), errors
    with Store() as store:
        (choice,) = store.choices()
    assert choice.data["measured"] is False and choice.data["best"] in stored_keys()
    assert not workers_of(running.pid)


def workers_of(pid):
    time.sleep(0.3)
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"PPid:\t{pid}\n" in (process / "status").read_text():
                found.append(process.name)
        except OSError:
            continue
    return found
