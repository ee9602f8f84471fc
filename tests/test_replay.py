"""A record built and measured again: what it rests on, whether its figures still hold, and what is said of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.arch import get_arch
from tilewright.cli import app
from tilewright.compile import nvrtc
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidInput
from tilewright.facts.static import problem_fields
from tilewright.lab.candidate import Candidate
from tilewright.lab.experiment import find_experiment
from tilewright.lab.experimenting import measured_experiment
from tilewright.lab.measuring import Effort
from tilewright.lab.replay import outcome, recorded_arms, replayed
from tilewright.lab.replay_command import ReplayRequest, effort_of
from tilewright.problem import Problem
from tilewright.record import Ratio, Record, Row

RUNNER = CliRunner()
EFFORT = Effort(30, 1.0)
PROBLEM = Problem(m=4096, n=4096, k=4096)
EXPERIMENT = find_experiment("outer-product-order")
TIMES = {"back and forth": 1000.0, "row by row": 1100.0}


def nothing(text: str) -> None:
    pass


@pytest.fixture
def recorded(simulated_bench) -> Record:
    record = measured_experiment(EXPERIMENT, simulated_bench(TIMES), EFFORT, nothing)
    return Record.from_json(json.loads(json.dumps(record.to_json())))


def test_the_same_again_is_reproduced(recorded, simulated_bench):
    bench = simulated_bench(TIMES)
    made = replayed(recorded, bench, EFFORT, nothing)
    assert made.about["verdict"] == made.about["figures"] == "reproduced" and made.about["changed"] == []
    assert [row.outcome for row in made.rows] == ["reproduced", "reproduced", None]
    assert [candidate for candidate, _ in bench.checked] == [e.candidate for e in EXPERIMENT.entrants]


def test_another_time_is_refuted(recorded, simulated_bench):
    made = replayed(recorded, simulated_bench({**TIMES, "row by row": 1050.0}), EFFORT, nothing)
    assert made.about["verdict"] == "refuted"
    assert [row.outcome for row in made.rows[:2]] == ["reproduced", "refuted"]
    assert "recorded 0.909" in made.about["arms"][1]["figure"] and "now 0.952" in made.about["arms"][1]["figure"]


def test_a_kernel_that_is_wrong_now_refutes_its_record(recorded, simulated_bench):
    wrong = str(EXPERIMENT.entrants[1].candidate)
    made = replayed(recorded, simulated_bench(TIMES, wrong=[wrong]), EFFORT, nothing)
    assert made.about["verdict"] == "refuted" and made.rows[1].failure == "WrongResult"


def test_another_card_expires_the_record_and_its_figures_are_told_all_the_same(recorded, simulated_bench):
    slower = {**TIMES, "row by row": 1300.0}
    made = replayed(recorded, simulated_bench(slower, device="NVIDIA H100"), EFFORT, nothing)
    assert (made.about["verdict"], made.about["figures"]) == ("expired", "refuted")
    assert made.about["changed"] == ["card: NVIDIA H200 → NVIDIA H100"]
    assert "Some figures are not what they were. Changed since: card" in made.about["finding"]


def test_a_source_that_changed_expires_the_record(recorded, simulated_bench):
    for arm in recorded.about["arms"]:
        arm["build"]["headers"] = "other"
    made = replayed(recorded, simulated_bench(TIMES), EFFORT, nothing)
    assert made.about["verdict"] == "expired"
    assert made.about["changed"] == ["headers of back and forth, row by row"]


def test_another_binary_from_the_same_source_is_told(recorded, simulated_bench):
    recorded.about["arms"][0]["build"]["cubin"] = "other"
    made = replayed(recorded, simulated_bench(TIMES), EFFORT, nothing)
    assert made.about["changed"] == ["binary, from the same source and compiler, of back and forth"]


def ladder_record(version: str) -> Record:
    """A ladder's record of rung 1 as a compiler of that version would have left it."""
    config = rung_config(all_rungs().find("k01"))
    key = nvrtc.cubin_key(Candidate(config).source(PROBLEM), get_arch("sm_90a"), version=version)
    row = Row(
        rung="k01_uncoalesced",
        problem=problem_fields(PROBLEM),
        config=dict(config.values),
        verified=True,
        time_us=1000.0,
        samples_us=[1000.0] * 9,
        binary=key,
    )
    made = {"arch": "sm_90a", "nvrtc": version, "device": {"name": "NVIDIA H200"}, "date": "2026-01-01"}
    return Record(command="ladder", environment=made, rows=[row])


def test_without_a_bench_only_what_the_binary_is_made_of_is_compared():
    now = replayed(ladder_record(nvrtc.nvrtc_version()), None, EFFORT, nothing)
    assert now.about["verdict"] == "not measured" and now.about["changed"] == []
    older = replayed(ladder_record("12.0"), None, EFFORT, nothing)
    assert older.about["changed"] == [f"NVRTC: 12.0 → {nvrtc.nvrtc_version()}"], "the source itself is the same"
    other = ladder_record(nvrtc.nvrtc_version())
    other.rows[0].binary = "0" * 64
    assert replayed(other, None, EFFORT, nothing).about["changed"] == ["source, headers or options of k01_uncoalesced"]


def test_figures_meet_within_the_margin_of_two_sessions():
    def row(low: float, median: float, high: float) -> Row:
        return Row(rung="k01", problem={}, ratio_to_baseline=Ratio(low, median, high))

    then = row(0.90, 0.91, 0.92)
    assert outcome(then, row(0.925, 0.93, 0.935)) == "reproduced"
    assert outcome(then, row(0.935, 0.94, 0.945)) == "refuted"
    assert outcome(then, row(0.85, 0.86, 0.88)) == "refuted"
    timed = Row(rung="k01", problem={}, samples_us=[100.0] * 9)
    assert outcome(timed, Row(rung="k01", problem={}, samples_us=[100.5] * 9)) == "reproduced"
    assert outcome(timed, Row(rung="k01", problem={}, samples_us=[110.0] * 9)) == "refuted"
    assert outcome(timed, Row(rung="k01", problem={})) == "not measured"


def test_of_a_tuning_record_the_winner_is_replayed():
    record = ladder_record("13.0")
    record.rows.append(Row(**{**record.rows[0].to_json(), "config": {"BM": 16, "BN": 32}}))
    with pytest.raises(InvalidInput, match="the same name"):
        recorded_arms(record)
    record.about = {"best": 1}
    assert [arm.row.config["BM"] for arm in recorded_arms(record)] == [16]


@pytest.mark.parametrize(
    ("then", "launch"),
    [({}, "stream"), ({"in_graphs": True}, "graph"), ({"launch": "graph"}, "graph"), ({"launch": "stream"}, "stream")],
)
def test_it_is_measured_again_in_the_records_launch_mode(then, launch):
    record = Record(command="ladder", environment={"measurement": {"rounds": 33, "mode": "steady", **then}})
    effort = effort_of(record, ReplayRequest(Path("record.json"), 0, False, None, 5.0))
    assert (effort.launch_mode, effort.rounds, effort.budget_s) == (launch, 33, 5.0)


def test_a_record_without_a_timed_rung_is_refused():
    with pytest.raises(InvalidInput, match="nothing to replay"):
        recorded_arms(Record(command="verify", environment={}, rows=[Row(rung="k01", problem={})]))


def test_the_command_reads_a_record_and_says_what_changed(tmp_path):
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps(ladder_record("12.0").to_json()))
    done = RUNNER.invoke(app, ["replay", str(path), "--offline"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "ladder on NVIDIA H200, 2026-01-01" in done.stdout and "Changed since: NVRTC: 12.0" in done.stdout
    path.write_text("{}")
    refused = RUNNER.invoke(app, ["replay", str(path)], catch_exceptions=False)
    assert refused.exit_code == 2 and "not a record" in refused.stderr
