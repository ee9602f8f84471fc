"""What only a GPU can show of comparisons: that builds set apart run, are right, are timed, and come out again."""

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli import app
from tilewright.compile.variant import Variant
from tilewright.declare import all_rungs, rung_config
from tilewright.lab.bench import open_bench
from tilewright.lab.candidate import Candidate
from tilewright.problem import Problem

pytestmark = pytest.mark.gpu
RUNNER = CliRunner()
SIZES = ["-m", "1024", "-n", "1024", "-k", "1024"]
OWN = """
question = "Does the read of C cost anything at 1024³?"
prediction = "It does."
[problem]
m = 1024
n = 1024
k = 1024
[[arms]]
name = "C read"
rung = "k10"
beta = "always_read"
[[arms]]
name = "C left alone"
against = "C read"
beta = "specialised"
differs_in = ["BETA_MODE"]
prediction = "faster"
"""


def call(*args: str):
    return RUNNER.invoke(app, list(args), catch_exceptions=False)


@pytest.mark.parametrize("mode", ["specialised", "runtime", "always_read"])
def test_every_way_of_handling_c_is_right_at_size(mode):
    problem = Problem(m=512, n=512, k=256)
    candidate = Candidate(rung_config(all_rungs().find("k12")), Variant(beta_mode=mode))
    with open_bench(0, offline=False) as (bench, _):
        assert bench.check(candidate, problem).ok


def test_a_build_compared_with_itself_is_not_told_apart():
    done = call("compare", "k10", "k10", *SIZES, "--budget", "3", "--json")
    assert done.exit_code == 0, done.output
    arm = json.loads(done.stdout)["rows"][1]
    assert arm["outcome"] in ("equivalent", "inconclusive") and arm["causes"] == []


def test_one_difference_is_judged_and_two_are_confounded():
    one = json.loads(call("compare", "k08", "k10", *SIZES, "--budget", "3", "--json").stdout)
    assert one["rows"][1]["outcome"] in ("faster", "slower", "equivalent", "inconclusive")
    assert {"time_us", "ratio_to_reference", "ratio_to_baseline"} <= set(one["rows"][1])
    two = json.loads(call("compare", "k08", "k10", "--set", "B.BK=8", *SIZES, "--budget", "3", "--json").stdout)
    assert two["rows"][1]["outcome"] == "confounded"


def test_an_experiment_is_kept_and_can_be_replayed(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(OWN, encoding="utf-8")
    done = call("experiment", str(own), "--budget", "3", "--out", str(tmp_path / "kept"))
    assert done.exit_code == 0, done.output
    (kept,) = (tmp_path / "kept").glob("*-own.json")
    again = call("replay", str(kept), "--budget", "3", "--json")
    assert again.exit_code == 0, again.output
    about = json.loads(again.stdout)["about"]
    assert about["verdict"] == "reproduced" and about["changed"] == []
