import json
import os
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tilewright.declare import all_rungs
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidInput
from tilewright.problem import Problem
from tilewright.tune.context import context_of, problem_fields, problem_from
from tilewright.tune.store import Store, store_path
from tilewright.tune.trial import Trial

K12, K08 = (all_rungs().find(name) for name in ("k12", "k08"))
DEVICE = {"name": "Card", "compute_capability": [9, 0], "sm_count": 132, "smem_optin_bytes": 232448}
MACHINE = {**DEVICE, "driver": "580.1", "nvrtc": "13.0", "uuid": "u"}
HERE = context_of(K12, Problem(m=64, n=64, k=64), MACHINE)


def trial(bm=128, time_us=5.0, **more):
    return Trial(config={"BM": bm, "BN": 64}, outcome="timed", time_us=time_us, samples_us=(time_us,) * 3, **more)


@pytest.mark.parametrize(
    "kept",
    [
        trial(facts={"registers": 128, "identity": "ab"}),
        Trial(config={"BM": 1}, outcome="failed", failure="Crashed", stage="run", message="SIGSEGV: é"),
        Trial(config={"BM": 1}, outcome="same", same_as={"BM": 2}, time_us=3.0),
        Trial(config={"BM": 1}, outcome="slow", time_us=9.0, samples_us=(9.0,)),
    ],
)
def test_what_is_kept_comes_back_whole_from_another_connection(cold_cache, kept):
    with Store() as store:
        store.add_trial(HERE, kept)
    with Store() as store:
        assert store.trials(HERE) == [kept]
        assert store.path == cold_cache / "tune.sqlite3"


def test_the_order_of_a_configs_values_makes_no_other_config():
    assert Trial(config={"A": 1, "B": 2}, outcome="timed").key == Trial(config={"B": 2, "A": 1}, outcome="timed").key


def test_every_trial_is_kept_and_the_newest_counts(cold_cache):
    with Store() as store:
        for time_us in (5.0, 4.0, 6.0):
            store.add_trial(HERE, trial(time_us=time_us))
        assert [t.time_us for t in store.trials(HERE)] == [6.0]
        assert len(store.export()["contexts"][0]["trials"]) == 3


@pytest.mark.parametrize(
    "other",
    [
        context_of(K08, HERE.problem, MACHINE),
        context_of(K12, Problem(m=64, n=64, k=128), MACHINE),
        context_of(K12, Problem(m=64, n=64, k=64, beta=2.0), MACHINE),
        context_of(K12, Problem(m=64, n=64, k=64, alignment_bytes=16), MACHINE),
        context_of(K12, Problem(m=64, n=64, k=64, lda=68), MACHINE),
        context_of(K12, Problem(m=64, n=64, k=64, epilogue=Epilogue(("relu",))), MACHINE),
        *(context_of(K12, HERE.problem, {**MACHINE, key: 1}) for key in MACHINE if key != "uuid"),
    ],
)
def test_nothing_is_shared_between_contexts_that_differ(cold_cache, other):
    with Store() as store:
        store.add_trial(HERE, trial())
        assert store.trials(other) == []


def test_scales_and_twins_of_a_card_are_one_context():
    scaled = Problem(m=64, n=64, k=64, alpha=3.0)
    assert context_of(K12, scaled, {**MACHINE, "uuid": "another"}).key == HERE.key
    both = (Problem(m=64, n=64, k=64, beta=beta) for beta in (2.0, -1.0))
    assert len({context_of(K12, problem, MACHINE).key for problem in both}) == 1


def test_a_changed_kernel_is_another_context():
    import dataclasses

    edited = dataclasses.replace(K12, source=K12.source + "// once more\n")
    changed = context_of(edited, HERE.problem, MACHINE)
    assert HERE.changed(changed.fields) == ("source",)


def test_a_problem_comes_back_from_its_fields():
    problem = Problem(m=8, n=4, k=5, batch=2, lda=9, beta=1.0, epilogue=Epilogue(("bias",)), alignment_bytes=16)
    assert problem_from(json.loads(json.dumps(problem_fields(problem)))) == problem


def test_choices_come_back_the_newest_of_each_context(cold_cache):
    other = context_of(K08, HERE.problem, MACHINE)
    with Store() as store:
        for context, best in ((HERE, 1), (other, 2), (HERE, 3)):
            store.add_choice(context, {"best": {"BM": best}, "time_us": 1.0})
        assert [(c.context.rung, c.data["best"]["BM"]) for c in store.choices()] == [(K08.name, 2), (K12.name, 3)]
        assert [c.data["best"]["BM"] for c in store.choices(other)] == [2]


def test_an_export_makes_another_store_the_same_and_adds_nothing_twice(cold_cache, tmp_path):
    with Store() as store, Store(tmp_path / "other.sqlite3") as other:
        store.add_trial(HERE, trial())
        store.add_choice(HERE, {"best": {"BM": 128}, "time_us": 1.0})
        data = json.loads(json.dumps(store.export()))
        assert other.add_exported(data) == 2 and other.export() == store.export()
        assert other.add_exported(data) == 0 and other.export() == store.export()


@pytest.mark.parametrize(
    "data",
    [
        {"schema": "tilewright/1", "contexts": []},
        {"schema": "tilewright-tune/1"},
        {"schema": "tilewright-tune/1", "contexts": [{"fields": {}, "trials": [{"made": "x"}], "choices": []}]},
        {"schema": "tilewright-tune/1", "contexts": [{"fields": {}, "trials": [{"made": "x", "data": {"y": 1}}]}]},
        {"schema": "tilewright-tune/1", "contexts": [7]},
    ],
)
def test_another_file_is_refused_and_leaves_no_trace(cold_cache, data):
    with Store() as store:
        with pytest.raises(InvalidInput, match=r"schema=|nothing was imported"):
            store.add_exported(data)
        store.add_trial(HERE, trial())
        assert len(store.export()["contexts"]) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"not a database at all, but long enough to hold a header of its own, and more",
        lambda data: data[:100] + b"\xff" * (len(data) - 100),
        lambda data: data[: len(data) // 2],
    ],
)
def test_a_damaged_file_is_set_aside_and_said_so(cold_cache, damage):
    with Store() as store:
        for bm in range(200):
            store.add_trial(HERE, trial(bm, facts={"identity": "x" * 200}))
    path = store_path()
    path.write_bytes(damage(path.read_bytes()))
    with (
        pytest.warns(RuntimeWarning, match=r"is damaged .*; it is now tune\.sqlite3\.damaged-.*starts afresh"),
        Store() as store,
    ):
        assert store.trials(HERE) == []
        store.add_trial(HERE, trial())
    assert len(list(cold_cache.glob("tune.sqlite3.damaged-*"))) == 1
    with Store() as store:
        assert store.trials(HERE) == [trial()]


def test_a_store_that_cannot_be_written_costs_a_warning_and_no_result(cold_cache):
    cold_cache.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="cannot be written.*TILEWRIGHT_CACHE_DIR"), Store() as store:
        store.add_trial(HERE, trial())
        assert store.trials(HERE) == [trial()]


def test_the_cache_can_be_left_alone(cold_cache, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_SKIP_CACHE", "1")
    with warnings.catch_warnings(), Store() as store:
        warnings.simplefilter("error")
        store.add_trial(HERE, trial())
    assert not store_path().exists()


WRITE = """
import sys
sys.path.insert(0, {here!r})
from test_tune_store import HERE, trial
from tilewright.tune.store import Store
with Store() as store:
    for i in range(25):
        store.add_trial(HERE, trial(1000 * int(sys.argv[1]) + i))
"""


def test_many_processes_write_at_once_and_nothing_is_lost(cold_cache):
    code = WRITE.format(here=str(Path(__file__).parent))
    command = [sys.executable, "-W", "error", "-c", code]
    running = [subprocess.Popen([*command, str(n)], env=dict(os.environ)) for n in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    with Store() as store:
        assert len(store.trials(HERE)) == 100
    assert sqlite3.connect(store_path()).execute("pragma journal_mode").fetchone() == ("wal",)
