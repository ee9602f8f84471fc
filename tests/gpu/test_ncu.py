"""Counters of a card by Nsight Compute. Run with `pytest -m gpu`."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from tilewright.cli import app
from tilewright.facts.predict import FMA_METRIC
from tilewright.lab.ncu import find_ncu, profiled
from tilewright.lab.ncu_launch import Task

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(shutil.which("ncu") is None, reason="no ncu on PATH")]


def test_a_rung_and_the_baseline_are_counted_side_by_side():
    done = CliRunner().invoke(app, ["inspect", "k08", "--ncu", "-m", "512", "-n", "512", "-k", "512", "--json"])
    assert done.exit_code == 0, done.output
    ours, *baseline = json.loads(done.stdout)["rows"]
    assert ours["kernel"].startswith("k08_warp_tile") and baseline
    for row in (ours, *baseline):
        assert 0 < row["counters"]["smsp__issue_active.avg.pct_of_peak_sustained_active"] <= 100
        assert row["counters"]["dram__bytes_read.sum"] > 0


def test_exactly_one_launch_of_the_rung_is_counted(tmp_path):
    import sys

    from tilewright.declare import all_rungs, rung_config

    config = rung_config(all_rungs()["k08_warp_tile"])
    task = Task(config.rung.name, dict(config.values), 256, 256, 256, str(tmp_path / "found.json"))
    program = [sys.executable, "-m", "tilewright.lab.ncu_launch", task.to_text()]
    launches = profiled(find_ncu(), [FMA_METRIC], program)
    ours = [launch for launch in launches if launch.kernel.startswith("k08_warp_tile")]
    assert [launch.counters[FMA_METRIC] for launch in ours] == [256**3]
