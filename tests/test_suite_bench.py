"""A suite on a machine that only seems to be there: what is timed, what rows say, means, and what calibrating finds."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from suite_fakes import FakeMachine
from tilewright.cli import app
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidInput, LaunchFailed
from tilewright.lab import suite_bench, suite_command
from tilewright.lab.calibrate_command import file_text
from tilewright.lab.measuring import Effort
from tilewright.lab.suite_bench import SuiteRequest, benched
from tilewright.lab.suite_command import entry_line, exit_status, summary_lines
from tilewright.lab.suite_machine import Call
from tilewright.lab.suite_summary import chosen_rows, class_means, summary, worst
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.record import RECORDS_DIR, Record, Row, read_record, timed_rows
from tilewright.report.reading import Source
from tilewright.report.report_page import report_page
from tilewright.report.tables import suite_means
from tilewright.select import Choice, choose
from tilewright.select.calibrating import calibrated, faster_than_library
from tilewright.select.calibration import FOLDER, Calibration, shape_class
from tilewright.select.samples import card_of, problem_of, rates_of, rows_of
from tilewright.suite import Shape, read_suite, selected

EFFORT = Effort(20, 0.5)


def run(machine, shapes, *, said=lambda entry: None, launch=None, **more) -> Record:
    effort = replace(EFFORT, launch=launch)
    record = benched(SuiteRequest("suite", shapes, effort, **more), machine, lambda text: None, said)
    record.about = {**record.about, **summary(record)}
    return record


def shape(m=1024, n=1024, k=1024, group="square", **more) -> Shape:
    return Shape(Problem(m=m, n=n, k=k, **more), group, "somewhere")


def test_each_shape_has_its_chosen_kernel_with_ratio_floor_and_expectation_beside_the_baseline():
    machine = FakeMachine()
    record = run(machine, [shape(), shape(512, 512, 512)])
    assert [row.arm for row in record.rows] == ["chosen", BASELINE] * 2
    row = record.rows[0]
    expected = choose(shape().problem, machine.arch, 132, card="H200")
    assert (row.rung, row.config) == (expected.config.rung.name, expected.config.values)
    assert row.verified and row.expected_us == expected.expected_us and row.summary == expected.why
    assert row.ratio_to_baseline.median == pytest.approx(50.0 / row.time_us, rel=0.01)
    assert row.floor_us["both"] == max(row.floor_us["memory"], row.floor_us["compute"]) > 30.0
    assert (row.shape_class, row.source, row.registers) == ("square", "somewhere", 64)
    assert record.about["measurements"][0]["rounds"] == 12 and exit_status(record) == 0
    assert Record.from_json(json.loads(json.dumps(record.to_json()))).rows == record.rows


def test_a_wrong_kernel_is_never_timed_and_neither_is_a_wrong_baseline():
    machine = FakeMachine()
    name = choose(shape().problem, machine.arch, 132, card="H200").config.rung.name
    machine.wrong[name] = "1 of 1024 rows are not those of A·B"
    record = run(machine, [shape()])
    assert machine.timed == [] and record.rows[0].failure == "WrongResult" and record.rows[0].time_us is None
    assert exit_status(record) == 1
    machine.wrong = {BASELINE: "3 of 1024 rows are not those of A·B"}
    chosen, baseline = run(machine, [shape()]).rows
    assert chosen.time_us is not None and chosen.ratio_to_baseline is None
    assert baseline.failure == "WrongResult" and baseline.time_us is None


def test_what_does_not_fit_or_no_rung_takes_is_a_row_that_says_so():
    machine = FakeMachine()
    shapes = [shape(200_000, 64, 64), shape(4, 4, 4, dtype="tfloat32", layout="TN"), shape()]
    lines = []
    record = run(machine, shapes, said=lambda entry: lines.append(entry_line(entry).plain))
    assert [(row.failure, row.arm) for row in record.rows[:2]] == [("InvalidProblem", "chosen")] * 2
    assert "needs 200 GiB" in lines[0] and "no rung takes it" in lines[1] and "floor" in lines[2]
    assert exit_status(record) == 2


def test_a_launch_that_fails_ends_the_run_and_keeps_what_is_known():
    machine = FakeMachine()
    shapes = [shape(512, 512, 512), shape(), shape(256, 256, 256)]
    machine.raises[shapes[1].problem] = LaunchFailed("CUDA_ERROR_ILLEGAL_ADDRESS")
    lines = []
    record = run(machine, shapes, said=lambda entry: lines.append(entry_line(entry).plain))
    assert [row.failure for row in record.rows] == [None, None, "LaunchFailed"] and exit_status(record) == 1
    assert record.about["lost"] == "a launch failed: CUDA_ERROR_ILLEGAL_ADDRESS" and lines[2].endswith("ended before")


def test_an_interrupt_ends_the_run_and_keeps_what_was_measured():
    machine = FakeMachine()
    shapes = [shape(512, 512, 512), shape(), shape(256, 256, 256)]
    machine.raises[shapes[1].problem] = KeyboardInterrupt()
    lines = []
    record = run(machine, shapes, said=lambda entry: lines.append(entry_line(entry).plain))
    assert {row.problem["m"] for row in record.rows} == {512} and record.rows[0].time_us is not None
    assert record.about["lost"].startswith("interrupted at") and len(lines) == 3 and exit_status(record) == 1


def test_every_candidate_is_screened_and_the_best_of_them_joins_the_rounds():
    machine = FakeMachine()
    record = run(machine, [shape()], every=True)
    tried = [row for row in record.rows if row.arm not in ("chosen", "best", BASELINE)]
    assert len(tried) >= 6 and all(row.time_us is not None and row.verified for row in tried)
    fastest = min(tried, key=lambda row: row.time_us)
    best = next((row for row in record.rows if row.arm == "best"), record.rows[0])
    assert (best.rung, best.config) == (fastest.rung, fastest.config)
    (mean,) = class_means(record)
    assert mean.regret == pytest.approx(record.rows[0].time_us / best.time_us)


def test_the_librarys_product_counts_where_it_is_chosen_and_ours_is_timed_beside_it(monkeypatch):
    def of_library(problem, arch, sm_count, **more) -> Choice:
        return replace(choose(problem, arch, sm_count, **more), library="faster here")

    monkeypatch.setattr(suite_bench, "choose", of_library)
    record = run(FakeMachine(), [shape()])
    assert [(row.arm, row.rung == BASELINE) for row in record.rows] == [
        ("chosen", True),
        ("own", False),
        (BASELINE, True),
    ]
    assert record.rows[0].ratio_to_baseline.median == pytest.approx(1.0, abs=0.002)
    (mean,) = class_means(record)
    assert mean.mean == pytest.approx(1.0, abs=0.002)


@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_every_timed_row_and_the_record_say_how_launches_were_queued(launch):
    record = run(FakeMachine(), [shape()], every=True, launch=launch)
    assert {row.launch for row in record.rows if row.time_us is not None} == {launch}
    assert record.about["launch"] == record.about["measurements"][0]["launch"] == launch
    assert run(FakeMachine(), [shape()]).about["launch"] == "stream"


@pytest.mark.parametrize(("own", "kernels"), [(True, "own"), (False, "all")])
def test_the_library_call_takes_the_place_of_the_kernel_alone(own, kernels):
    machine = FakeMachine()
    record = run(machine, [shape()], call=True, own=own)
    chosen, baseline = record.rows
    assert (chosen.arm, baseline.arm, record.about["call"]) == ("chosen", BASELINE, True)
    ((_, arms, _),) = machine.timed
    assert arms == {"chosen": Call(kernels)}
    assert chosen.verified and chosen.config and chosen.host_us == baseline.host_us == 3.5
    assert chosen.rung in chosen.summary and chosen.ratio_to_baseline is not None
    assert "the host's time for a call, median: 3.50 µs, torch.mm 3.50 µs" in summary_lines(record)
    assert "host's time" not in "".join(summary_lines(run(FakeMachine(), [shape()])))


def test_a_call_that_takes_the_frameworks_product_is_its_own_arm_and_a_wrong_one_is_not_timed():
    machine = FakeMachine()
    machine.choose = lambda *of, **more: replace(choose(*of, **more), library="faster here")
    chosen, _ = run(machine, [shape()], call=True).rows
    assert (chosen.rung, chosen.config, chosen.arm) == (BASELINE, None, "chosen")
    assert "the framework's own product is taken" in chosen.summary and machine.timed[0][1] == {"chosen": Call("all")}
    machine.wrong, machine.timed = {"call": "3 of 1024 rows are not those of A·B"}, []
    record = run(machine, [shape()], call=True)
    assert record.rows[0].failure == "WrongResult" and machine.timed == [] and exit_status(record) == 1


@pytest.mark.parametrize(("launch", "launches"), [("stream", 1), ("graph", 2)])
def test_a_long_product_gets_time_for_a_few_rounds(launch, launches):
    machine = FakeMachine()
    run(machine, [shape(64, 64, 64), shape(16384, 16384, 16384)], launch=launch)
    short, long = (effort.budget_s for _, _, effort in machine.timed)
    assert short == 0.5 and long > launches * 16 * 3 * 0.133


def test_means_are_geometric_by_class_and_the_worst_come_first():
    def row(group, ratio):
        known = {"low": ratio, "median": ratio, "high": ratio}
        fields = {
            "rung": "k12",
            "arm": "chosen",
            "problem": {"m": 4, "n": 4, "k": 4, "layout": "NN", "dtype": "float32"},
        }
        made = Row.from_json({**fields, "shape_class": group, "time_us": 10.0, "ratio_to_baseline": known})
        made.floor_us = {"both": 5.0}
        return made

    record = Record(command="bench", environment={}, rows=[row("a", 2.0), row("a", 0.5), row("b", 0.81)])
    first, second, both = class_means(record)
    assert (first.name, first.shapes, first.mean, first.lowest) == ("a", 2, pytest.approx(1.0), 0.5)
    assert (second.mean, both.name, both.of_floor) == (0.81, "all", 0.5)
    assert both.mean == pytest.approx(math.prod([2.0, 0.5, 0.81]) ** (1 / 3))
    assert [each.ratio_to_baseline.median for each in worst(record)] == [0.5, 0.81, 2.0]
    lines = list(summary_lines(record))
    assert lines[1].split() == ["a", "2", "100.0", "50.0", "50.0"] and "50.0%  4×4×4 NN float32, a: k12" in lines[5]


# --- calibrating from such a record


@pytest.fixture(scope="module")
def every_record() -> Record:
    shapes = selected(read_suite("suite"), groups=["square", "skinny", "smallk", "tall"])
    machine = FakeMachine(baseline_us=lambda problem: 5.0 if problem.m == 1 else 1000.0)
    return run(machine, [each for each in shapes if each.problem.m < 8192], every=True)


@pytest.fixture(scope="module")
def calibration(every_record) -> Calibration:
    return calibrated({"one": every_record})


def test_a_calibration_finds_the_hidden_constants_well_enough_on_shapes_that_were_kept_out(every_record, calibration):
    found = calibration.learned["float32"]
    assert found.fit["held_out_shapes"] == found.fit["shapes"] >= 10
    assert found.fit["held_out_error"] < 1.06 and found.fit["held_out_regret"] < 1.04
    uncalibrated = class_means(every_record)[-1].regret
    assert found.fit["held_out_regret"] < uncalibrated


def test_another_half_is_kept_out_by_another_seed_and_the_same_by_the_same(every_record, calibration):
    again, other = (calibrated({"one": every_record}, seed=seed).to_json() for seed in (0, 1))
    one = calibration.to_json()
    assert one == again and one["learned"]["float32"]["fit"] != other["learned"]["float32"]["fit"]


def test_the_fastest_of_a_class_is_one_that_was_measured_fastest(calibration, every_record):
    learned, problem = calibration.of("float32"), Problem(m=2048, n=2048, k=2048)
    times = {
        (row.rung, tuple(row.config.items())): row.time_us
        for row in every_record.rows
        if row.config and row.arm not in ("chosen", "best") and problem_of(row.problem) == problem
    }
    kept = {(x.rung, tuple(x.settings.items())) for x in learned.configs}
    (fastest,) = (x for x in learned.configs if shape_class(problem) in x.fastest)
    assert times[fastest.rung, tuple(fastest.settings.items())] == min(times[key] for key in kept & times.keys())


def test_the_library_is_a_candidate_where_every_shape_of_a_class_was_surely_faster_by_it(calibration):
    learned = calibration.learned["float32"]
    gemv, square = Problem(m=1, n=4096, k=4096), Problem(m=1024, n=1024, k=1024)
    assert learned.library[shape_class(gemv)] < 1.0 and shape_class(square) not in learned.library
    assert shape_class(gemv) == shape_class(Problem(m=1, n=4100, k=4000)) != shape_class(Problem(m=1, n=4097, k=4096))
    assert all("NN aligned" in name for name in learned.library)


def test_a_calibration_learns_nothing_from_what_a_choice_took(every_record, calibration):
    chosen = replace(every_record, about={**every_record.about, "every": False})
    both = calibrated({"one": every_record, "two": chosen})
    assert both.learned == calibration.learned and both.about["records"] == ["one"]
    with pytest.raises(InvalidInput, match="no verified and timed row"):
        calibrated({"two": chosen})


def said(record, launch, factor) -> Record:
    """The same run in another launch mode, its times so many times as long."""
    rows = [
        replace(row, launch=launch, time_us=None if row.time_us is None else factor * row.time_us)
        for row in record.rows
    ]
    return replace(record, rows=rows)


def test_a_calibration_learns_from_graphs_where_a_shape_has_both_and_else_from_what_there_is(every_record, calibration):
    graph, old = said(every_record, "graph", 1.0), said(every_record, None, 2.0)
    learned = calibrated({"graph": graph, "stream": said(every_record, "stream", 2.0), "old": old}).learned
    assert learned == calibration.learned == calibrated({"old": said(every_record, None, 1.0)}).learned
    first = problem_of(every_record.rows[0].problem)
    partly = replace(graph, rows=[row for row in graph.rows if problem_of(row.problem) == first])
    times = {(problem_of(row.problem) == first, row.launch) for _, row in rows_of([partly, old])}
    assert times == {(True, "graph"), (False, None)}


def test_a_launch_mode_that_is_named_is_the_only_one_learned_from(every_record, calibration):
    records = {"graph": said(every_record, "graph", 2.0), "stream": said(every_record, "stream", 1.0)}
    named = calibrated(records, launch="stream")
    assert named.learned == calibration.learned and named.about["launch"] == "stream"
    with pytest.raises(InvalidInput, match="no verified and timed row of launch mode graph"):
        calibrated({"old": said(every_record, None, 1.0)}, launch="graph")


def test_means_of_launch_modes_and_of_calls_are_lines_of_their_own():
    made = [
        run(FakeMachine(), [shape()], own=True, launch="stream"),
        run(FakeMachine(), [shape()], own=True, launch="graph"),
        run(FakeMachine(), [shape()], call=True, launch="graph"),
    ]
    old = replace(made[0], about={"suite": "suite", "own": True})
    kernels = [line.split(" | ")[1] for line in suite_means([*made, old]).splitlines()[2:]]
    assert kernels == [
        "own, as chosen",
        "own, as chosen, in graphs",
        "own, as chosen, on a stream",
        "as the library chooses, called, in graphs",
    ]


def test_a_calibration_survives_its_file(calibration):
    text = file_text(calibration)
    again = Calibration.from_json(json.loads(text))
    assert file_text(again) == text and max(map(len, text.splitlines())) < 400
    assert again.learned["float32"].rungs.keys() == calibration.learned["float32"].rungs.keys()


def test_records_that_cannot_be_used_together_are_refused(every_record):
    other = Record(command="bench", environment={"device": {"name": "NVIDIA A100"}})
    with pytest.raises(InvalidInput, match="records of NVIDIA A100, NVIDIA H200: must be of one card"):
        calibrated({"one": every_record, "other": other})
    with pytest.raises(InvalidInput, match="no verified and timed row"):
        calibrated({"other": other})
    unknown = Record(command="bench", environment={"device": {"name": "Made Up"}})
    with pytest.raises(InvalidInput, match="Made Up: its datasheet is not listed"):
        calibrated({"other": unknown})


def test_the_packages_calibrations_are_of_records_and_configs_that_there_are():
    for path in FOLDER.glob("*.json"):
        kept = Calibration.from_json(json.loads(path.read_text(encoding="utf-8")))
        records = {name: read_record(RECORDS_DIR / name) for name in kept.about["records"]}
        rates = json.loads(file_text(replace(kept, rates=rates_of(card_of(records)[0], list(records.values())))))[
            "rates"
        ]
        assert rates == kept.to_json()["rates"]
        for dtype, learned in kept.learned.items():
            assert learned.own == pytest.approx(faster_than_library(records.values(), dtype), rel=1e-3)
        for learned in kept.learned.values():
            assert {known.rung for known in learned.configs} <= set(learned.rungs)
            for known in learned.configs:
                assert rung_config(all_rungs()[known.rung], known.settings).values == known.settings


def test_problems_come_back_from_rows(every_record):
    assert problem_of(every_record.rows[0].problem) == read_suite("suite")[0].problem


def test_the_report_shows_classes_the_worst_and_all_shapes(every_record):
    text = report_page([Source("suite.json", "s", every_record)])
    for words in (
        "Suite suite",
        "Means by class",
        "skinny",
        "The lowest ratios",
        f"All {len(chosen_rows(every_record))} shapes",
        "4096³ NN float32",
    ):
        assert words in text
    assert list(timed_rows([every_record], "k04_shared_tile")) == []


# --- on the command line


def test_bench_needs_a_gpu_and_says_how_to_get_one(monkeypatch):
    done = CliRunner().invoke(app, ["bench", "suite", "--limit", "1"])
    assert done.exit_code == 3 and "no usable GPU" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch"], "suite 'nosuch': cannot be read"),
        (["suite", "--mode", "hot"], "steady, burst"),
        (["suite", "--launch", "hot"], "launch 'hot': must be one of stream, graph"),
        (["suite", "--call", "--every"], "--call with --every"),
    ],
)
def test_what_bench_cannot_do_is_refused_before_a_gpu_is_asked_for(arguments, says):
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert done.exit_code == 2 and says in done.stderr


@pytest.mark.parametrize(("options", "launch"), [([], "stream"), (["--launch", "graph"], "graph")])
def test_a_bench_of_calls_opens_torch_and_writes_what_was_asked_for(monkeypatch, tmp_path, options, launch):
    opened, out = [], tmp_path / "record.json"

    def suite(gpu, baseline, problems, cache, calls) -> FakeMachine:
        opened.append((calls, cache, len(problems)))
        return FakeMachine()

    gpu = SimpleNamespace(device=SimpleNamespace(name="NVIDIA H200"))
    monkeypatch.setattr(suite_command, "CudaBackend", lambda device: contextlib.nullcontext(gpu))
    monkeypatch.setattr(suite_command, "torch_with_gpu", lambda: "torch")
    monkeypatch.setattr(suite_command, "TorchCalls", lambda torch: f"calls into {torch}")
    monkeypatch.setattr(suite_command, "GpuSuite", suite)
    done = CliRunner().invoke(app, ["bench", "suite", "--limit", "2", "--call", *options, "--out", str(out)])
    assert done.exit_code == 0 and f"the library call, {launch} launches" in done.stdout
    record = read_record(out)
    assert opened == [("calls into torch", "cold", 2)]
    assert (record.about["call"], record.about["launch"]) == (True, launch)
    assert {row.launch for row in record.rows} == {launch}


def test_calibrate_refuses_another_launch_mode(tmp_path):
    done = CliRunner().invoke(app, ["calibrate", str(tmp_path), "--launch", "hot"])
    assert done.exit_code == 2 and "launch 'hot': must be one of stream, graph" in done.stderr


def test_calibrate_writes_a_file_and_says_how_well_it_holds(tmp_path, every_record):
    record = tmp_path / "record.json"
    record.write_text(json.dumps(every_record.to_json()))
    done = CliRunner().invoke(app, ["calibrate", str(record), "-o", str(tmp_path / "card.json")])
    assert done.exit_code == 0 and "shapes that were kept out: off by 1.0" in done.stdout
    assert Calibration.from_json(json.loads((tmp_path / "card.json").read_text())).rates.card == "H200"
