"""A search on a card: real workers, real faults, the final rounds. Run with `pytest -m gpu`."""

import dataclasses
import json
from pathlib import Path

import pytest

from tilewright.declare import all_rungs, rung_config
from tilewright.errors import WrongResult
from tilewright.lab.tune_command import TuneOptions, run_tune
from tilewright.problem import Problem
from tilewright.run import kernel
from tilewright.run.cuda import CudaBackend, probe
from tilewright.tune import Machine, Request, Store, tune
from tilewright.tune.build import check_problems
from tilewright.tune.context import problem_fields
from tilewright.tune.gpu import GpuScreen
from tilewright.tune.process import Limits, Worker
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import make_case, require_right
from tilewright.verify.operands import make_operands

pytestmark = pytest.mark.gpu
K12 = all_rungs().find("k12")
PROBLEM = Problem(m=1024, n=1024, k=1024)
ONLY = {"BM": [128], "BN": [128], "BK": [8], "WM": [64], "WN": [64], "PAD": [0], "MIN_CTAS": [1, 2]}
REQUEST = Request(strategy="exhaustive", effort="full", only=ONLY)


def test_a_search_measures_verifies_and_chooses(cold_cache):
    result = tune(K12, PROBLEM, REQUEST)
    assert result.stop == "exhausted" and not [t for t in result.trials if t.outcome == "failed" and t.stage == "run"]
    assert result.winner is not None and result.finals.samples.rounds >= 20
    assert any(trial.outcome == "same" for trial in result.trials), "MIN_CTAS 1 and 2 are the same instructions"
    again = tune(K12, PROBLEM, REQUEST)
    assert again.known == len(result.trials)
    with Store() as store:
        assert [choice.data["measured"] for choice in store.choices()] == [True]


def test_a_search_without_a_store_prints_a_whole_record(cold_cache, capsys, tmp_path):
    only = [f"{name}={','.join(map(str, values))}" for name, values in ONLY.items()]
    options = TuneOptions("k12", (512, 512, 512), only, "random", "quick", 6, 60.0, 0, [0], False, tmp_path / "r.json")
    assert run_tune(options, as_json=True) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["environment"]["measurement"]["median_sm_mhz"] > 0
    best = record["rows"][record["about"]["best"]]
    assert best["verified"] and len(best["samples_us"]) >= 20
    assert record == json.loads((tmp_path / "r.json").read_text())


def test_a_wrong_config_is_found_before_it_is_timed(monkeypatch):
    """A launch of one CTA too few leaves poison; the small problems of the check show it."""
    real = kernel.grid_of

    def too_few(config, problem, *, sm_count):
        grid = real(config, problem, sm_count=sm_count)
        return dataclasses.replace(grid, grid=(max(1, grid.grid[0] - 1), *grid.grid[1:]))

    monkeypatch.setattr(kernel, "grid_of", too_few)
    config = rung_config(K12)
    with CudaBackend() as gpu, pytest.raises(WrongResult, match="not written"):
        for problem in check_problems(config, PROBLEM):
            require_right(DeviceRuns(gpu).of(config), make_case("integer", make_operands(problem, "integer")))


class Faulty(GpuScreen):
    """Faults on one config: its matrices are said to be where nothing is."""

    def evaluate(self, job):
        if job["config"]["BK"] == 16:
            config = rung_config(K12, job["config"])
            kernel.bind(config, PROBLEM, self._gpu)(a=256, b=256, d=256)
            self._gpu.synchronize()
        return super().evaluate(job)


def test_a_fault_is_an_answer_and_the_next_config_runs_in_a_fresh_context(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    setup = {"rung": K12.name, "problem": problem_fields(PROBLEM), "device": 0}
    worker = Worker("test_tune:Faulty", setup, Limits(job_s=60.0))
    try:
        right, faults = ({"config": rung_config(K12, {"BK": bk}).values, "best_us": None} for bk in (8, 16))
        assert worker.run(right)["time_us"] > 0
        answer = worker.run(faults)
        assert answer["failure"] == "LaunchFailed" and "ILLEGAL_ADDRESS" in answer["message"]
        assert worker.run(right)["time_us"] > 0 and worker.starts == 2
    finally:
        worker.close()


def test_two_gpus_share_a_sweep(cold_cache):
    if len(probe()) < 2:
        pytest.skip("needs two GPUs")
    result = tune(K12, PROBLEM, REQUEST, machine=Machine(devices=(0, 1)))
    assert result.stop == "exhausted" and result.winner is not None
