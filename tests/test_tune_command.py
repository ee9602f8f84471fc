"""`tilewright tune` as a person and a script see it, and what expires; fakes in place of a compiler and a GPU."""

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from landscapes import synthetic_us
from tilewright.cli import app
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidConfig, LaunchFailed
from tilewright.facts.static import bare_row
from tilewright.lab import expired_command
from tilewright.lab.expired_command import run_expired
from tilewright.lab.tune_command import TuneOptions, parse_only, run_tune
from tilewright.measure.samples import Samples
from tilewright.problem import Problem
from tilewright.record import Record, recorded_best, timed_rows
from tilewright.report.command import write_report
from tilewright.tune import Machine, Store
from tilewright.tune.context import context_of, machine_fields
from tilewright.tune.expired import premises, retest
from tilewright.tune.final_rounds import Finals
from tilewright.tune.process import Limits
from tilewright.tune.rows import Choice
from tilewright.tune.trial import config_key

HERE = Path(__file__).parent
K12 = all_rungs().find("k12")
PROBLEM = Problem(m=4096, n=4096, k=4096)
RETUNED = rung_config(K12, {"BN": 256, "BK": 8, "TM": 4, "NUM_THREADS": 256}).values
ONLY = ["PAD=0", "MIN_CTAS=0,1", "BM=128", "BN=128", "BK=8", "WM=64", "WN=64"]


def samples_of(times_us, rounds=12):
    times = {label: (time_us,) * rounds for label, time_us in times_us.items()}
    fixed = {"inner": dict.fromkeys(times, 1), "slots": 2, "seed": 0, "stop": "precision", "warm": True}
    return Samples(times_us=times, order=(tuple(times),) * rounds, clocks=(None,) * rounds, rejected_rounds=0, **fixed)


def fake_finals(problem, configs, device, seed, budget_s):
    times = {label: synthetic_us(config, 0) for label, config in configs.items()}
    return Finals(samples=samples_of({**times, "cuBLAS": 7000.0}), wrong={}, baseline="cuBLAS (fake)")


MACHINE = Machine(
    builder="tuning_fakes:FakeBuilder",
    screen="tuning_fakes:FakeScreen",
    measure_finals=fake_finals,
    build_limits=Limits(job_s=20.0),
    screen_limits=Limits(job_s=20.0),
)


@pytest.fixture
def fakes(monkeypatch, cold_cache):
    return cold_cache


def options(**more):
    usual = TuneOptions("k12", (None, None, None), ONLY, "exhaustive", "full", None, None, 0, [], False, None)
    return dataclasses.replace(usual, **more)


def test_the_table_shows_the_best_with_intervals_marks_ties_and_counts_rejections(fakes, capsys, monkeypatch):
    settings = {"BN": 128, "BK": 8, "TM": 8, "TN": 8, "WNITER": 2, "WN": 64}
    broken = [rung_config(K12, {**settings, "MIN_CTAS": bound}).values for bound in (0, 1)]
    monkeypatch.setenv("FAKE_PLANTED", json.dumps({config_key(values): "wrong" for values in broken}))
    assert run_tune(options(), as_json=False, machine=MACHINE) == 0
    said = capsys.readouterr()
    assert "tilewright tune  k12_tall_thread_tile, 4096×4096×4096 NN float32 on Fake GPU" in said.out
    assert "every config was tried" in said.out and "% of cuBLAS" in said.out
    assert said.out.count("\n  ✓ ") == 1 and "128 registers" in said.out
    assert "WrongResult (run): " in said.out and "integer: 3 of 64 differ" in said.out
    assert "(BM // WM) * (BN // WN) == NUM_THREADS // 32, so that each warp has one warp tile" in said.out
    assert "configs of" in said.err and "✓" not in said.err


def test_the_record_has_a_row_a_trial_and_says_which_is_best(fakes, capsys, tmp_path):
    assert run_tune(options(out=tmp_path / "tune.json"), as_json=True, machine=MACHINE) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads((tmp_path / "tune.json").read_text(encoding="utf-8"))
    record = Record.from_json(data)
    assert record.to_json() == data
    about, trials = record.about, record.rows[:-1]
    assert record.rows[-1].rung == "cuBLAS" and about["evaluations"] == len(trials)
    assert about["space"]["valid"] == len(trials) and about["best"] in about["ties"]
    assert sum(about["rejected"].values()) + len(trials) == about["space"]["combinations"]
    best = record.rows[about["best"]]
    assert best.ratio_to_baseline.median == pytest.approx(7000 / best.time_us) and best.samples_us
    assert sum("the same instructions as" in (row.verdict or "") for row in trials) == len(trials) // 2
    assert len({row.arm for row in trials}) == len(trials)
    measured = [row.time_us for row in trials if row.samples_us]
    assert measured == sorted(measured) and trials[0].ratio_to_reference.median == 1.0


def test_the_report_draws_the_record_and_takes_cublas_for_no_config(fakes, tmp_path, capsys):
    run_tune(options(out=tmp_path / "tune.json"), as_json=True, machine=MACHINE)
    trials = json.loads(capsys.readouterr().out)["about"]["evaluations"]
    assert write_report([tmp_path / "tune.json"], tmp_path / "report.html") == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"All {trials} trials as a table" in page and f"{trials} configs from" in page


def test_of_a_tuning_record_only_the_winner_counts_as_a_recorded_time(fakes, tmp_path, capsys):
    run_tune(options(out=tmp_path / "tune.json"), as_json=True, machine=MACHINE)
    record = Record.from_json(json.loads(capsys.readouterr().out))
    best = record.rows[record.about["best"]]
    assert [row for _, row in timed_rows([record], K12.name)] == [best]
    assert recorded_best([record], K12.name, best.config).row == best
    record.about["best"] = None
    assert list(timed_rows([record], K12.name)) == []


def test_a_search_that_finds_nothing_right_is_status_1(fakes, capsys, monkeypatch):
    one = [f"{name}={value}" for name, value in rung_config(K12).values.items()]
    monkeypatch.setenv("FAKE_PLANTED", json.dumps({config_key(rung_config(K12).values): "wrong"}))
    assert run_tune(options(only=one), as_json=False, machine=MACHINE) == 1
    assert "no config was tried and right; the rung's defaults stand" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["BK", "BK=", "=8", "BK=8,", "BK=big", "BK=-8"])
def test_an_only_that_cannot_be_read_is_refused(text):
    with pytest.raises(InvalidConfig, match="must be NAME=INTEGER,INTEGER"):
        parse_only([text])


def test_an_only_has_several_values_and_may_come_twice():
    assert parse_only(["BK=8,16", "PAD=0", "BK=32"]) == {"BK": [8, 16, 32], "PAD": [0]}


def call(*args):
    return CliRunner().invoke(app, ["tune", *map(str, args)])


def test_the_command_refuses_in_one_line(cold_cache, tmp_path):
    assert "RUNG: must be named" in call().stderr and call().exit_code == 2
    assert "no such rung" in call("k99").stderr
    missing = call("--import", tmp_path / "nothing.json")
    assert missing.exit_code == 2 and "cannot be read" in missing.stderr and "Traceback" not in missing.stderr


def test_a_search_without_a_gpu_says_what_is_missing(cold_cache):
    done = call("k12", *(f"--only={text}" for text in ONLY))
    assert done.exit_code == 3 and "no usable GPU" in done.stderr


def test_what_is_known_travels_as_a_file(fakes, monkeypatch, tmp_path, capsys):
    run_tune(options(trials=3), as_json=False, machine=MACHINE)
    file = tmp_path / "known.json"
    assert call("--export", file).exit_code == 0
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert "4 trials and choices added" in call("--import", file).stdout
    assert "0 trials and choices added" in call("--import", file).stdout
    capsys.readouterr()
    run_tune(options(trials=3), as_json=False, machine=MACHINE)
    assert "3 of them known before" in capsys.readouterr().out


# What expires

DEVICE = {
    "name": "Card",
    "compute_capability": [9, 0],
    "sm_count": 132,
    "smem_optin_bytes": 1,
    "driver": "1",
    "nvrtc": "13.0",
}
CONTEXT = context_of(K12, PROBLEM, DEVICE)


def choice(context=CONTEXT, best=RETUNED, ties=()):
    return Choice(context, "2026-11-30T00:00:00", {"best": best, "ties": [best, *ties]})


def found(choices=(), records=(), **changed):
    now = machine_fields({**DEVICE, **changed})
    return premises(list(choices), list(records), all_rungs(), now, PROBLEM)


def test_a_stored_winner_expires_with_card_driver_compiler_or_source():
    assert [p for p in found([choice()]) if p.kind == "stored winner"] == []
    for change, name in (({"name": "Other"}, "device"), ({"driver": "2"}, "driver"), ({"nvrtc": "14.0"}, "nvrtc")):
        (expired,) = [p for p in found([choice()], **change) if p.kind == "stored winner"]
        assert expired.changed == (name,) and expired.config == RETUNED
    edited = context_of(dataclasses.replace(K12, source=K12.source + "//\n"), PROBLEM, DEVICE)
    (expired,) = [p for p in found([choice(edited)]) if p.kind == "stored winner"]
    assert expired.changed == ("source",)


def test_a_winner_found_since_takes_an_expired_ones_place():
    older = context_of(K12, PROBLEM, {**DEVICE, "driver": "0"})
    assert [p.kind for p in found([choice(older), choice()])] == ["defaults"]
    assert [p.kind for p in found([choice(older)])] == ["stored winner", "defaults"]


def test_without_a_device_compiler_and_source_are_compared():
    nothing = premises([choice()], [], all_rungs(), {"nvrtc": "13.0"}, PROBLEM)
    assert [p.kind for p in nothing] == ["defaults"]
    other = premises([choice()], [], all_rungs(), {"nvrtc": "14.0"}, PROBLEM)
    assert [p.changed for p in other] == [("nvrtc",), ()]


def test_a_recorded_winner_expires_with_card_or_compiler():
    row = bare_row(rung_config(K12, RETUNED), PROBLEM)
    row.time_us, row.verified = 5.0, True
    environment = {"date": "2026-11-30", "nvrtc": "13.0", "device": {"name": "Card"}}
    record = Record(command="tune", environment=environment, rows=[row], about={"best": 0, "ties": [0]})
    assert [p.kind for p in found(records=[record])] == ["defaults"]
    expired = found(records=[record], name="Other")[0]
    assert (expired.kind, expired.changed, expired.since) == ("recorded winner", ("device",), "2026-11-30, Card")


def test_defaults_are_an_inherited_constant_once_another_config_was_measured():
    (premise,) = found([choice()])
    assert premise.config == rung_config(K12).values and premise.rivals == (RETUNED,)
    assert premise.words.startswith("Constants are right for one card and one compiler.")


def retested(times_us, wrong=(), **changed):
    """The defaults of rung 12 re-tested against its retuned config, when they take these times."""

    def finals(problem, configs, device, seed, budget_s):
        measured = {label: times_us[0 if label == "defaults" else 1] for label in configs if label not in wrong}
        return Finals(samples=samples_of(measured), wrong=dict.fromkeys(wrong, "3 of 64 differ"), baseline=None)

    (premise,) = found([choice()])
    return retest(premise, K12, dataclasses.replace(MACHINE, measure_finals=finals), seed=0)


def test_a_premise_holds_until_a_rival_is_faster_for_sure():
    assert retested((100.0, 101.0)).held == "holds"
    assert retested((100.0, 99.8)).held == "holds", "within half a percent is a tie"
    lost = retested((103.0, 100.0))
    assert lost.held == "no longer holds" and lost.rival == RETUNED and lost.ratio.median == pytest.approx(1.03)


def test_what_cannot_be_tested_says_why():
    assert retested((100.0, 99.0), wrong=["defaults"]).detail == "3 of 64 differ"

    def faults(*_):
        raise LaunchFailed("CUDA_ERROR_ILLEGAL_ADDRESS")

    (premise,) = found([choice()])
    told = retest(premise, K12, dataclasses.replace(MACHINE, measure_finals=faults), seed=0)
    assert (told.held, told.detail) == ("cannot be tested", "CUDA_ERROR_ILLEGAL_ADDRESS")
    alone = dataclasses.replace(premise, rivals=())
    assert "no other config" in retest(alone, K12, MACHINE, seed=0).detail
    refused = dataclasses.replace(premise, rivals=({"BM": 7},))
    assert "no other config" in retest(refused, K12, MACHINE, seed=0).detail


def test_expired_lists_without_a_gpu_and_tests_with_one(fakes, capsys, monkeypatch):
    with Store() as store:
        store.add_choice(CONTEXT, {"best": RETUNED, "ties": [RETUNED], "time_us": 1.0})
    assert call("--expired").exit_code == 0
    listed = call("--expired").stdout
    assert "stored winner of k12_tall_thread_tile" in listed and "changed since: nvrtc" in listed
    assert "its premise: Constants are right for one card" in listed and "listed only, since nothing" in listed
    monkeypatch.setattr(expired_command, "nvrtc_version", lambda: "13.0")
    capsys.readouterr()
    assert run_expired((None, None, None), 0, 0, as_json=True, machine=MACHINE) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["kind"] for row in rows] == ["defaults"] and rows[0]["held"] in ("holds", "no longer holds")
    assert rows[0]["rival"] == RETUNED and rows[0]["ratio_of_rival"]["median"] > 0
