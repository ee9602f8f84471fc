"""The experiments that come with tilewright, the form of their files, and what is said of an outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.arch import get_arch
from tilewright.cli import app
from tilewright.errors import InvalidConfig, InvalidDeclaration, UnknownName
from tilewright.lab.build_record import build_record
from tilewright.lab.causes import confounded, differences
from tilewright.lab.experiment import all_experiments, find_experiment, read_experiment
from tilewright.lab.experiment_command import RECORDED, recorded_verdicts
from tilewright.lab.experimenting import built_experiment, measured_experiment
from tilewright.lab.measuring import Effort
from tilewright.lab.trial import Trial, build
from tilewright.problem import Problem
from tilewright.record import Record, load_records
from tilewright.report.experiments import experiments_document
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import check_case, make_case
from tilewright.verify.operands import make_operands

RUNNER = CliRunner()
SM_90A = get_arch("sm_90a")
EFFORT = Effort(30, 1.0)
EVERY = pytest.mark.parametrize("experiment", all_experiments().values(), ids=lambda e: e.name)
THREE_COLUMNS = Problem(m=256, n=384, k=48)
"""Of CTA tiles of 128: a number that a group of two doesn't divide."""
EDITED = [
    next(arm.entrant.candidate for arm in experiment.arms if arm.entrant.candidate.variant.edits)
    for experiment in all_experiments().values()
    if any(arm.entrant.candidate.variant.edits for arm in experiment.arms)
]


def nothing(text: str) -> None:
    pass


# --- the experiments that ship


@EVERY
def test_every_arm_differs_from_its_reference_in_what_it_says(experiment):
    records = {e.label: build_record(e.candidate, experiment.problem, SM_90A) for e in experiment.entrants}
    for arm in experiment.arms:
        entrant = arm.entrant
        if entrant.against is None:
            continue
        got = differences(records[entrant.against], records[entrant.label])
        why = confounded(got, named=entrant.named, bundle=entrant.bundle)
        assert got.causes and bool(why) == (arm.claim == "confounded"), why
        assert (len(got.causes) > 1) == (bool(entrant.bundle) or bool(why)), "a bundle is for several causes"


@EVERY
def test_every_arm_compiles_and_is_taken_by_its_rungs_rules(experiment):
    for each in build(Trial(experiment.problem, SM_90A, experiment.entrants)):
        assert each.sound, each.row.verdict


@EVERY
def test_every_experiment_says_what_it_expects(experiment):
    assert experiment.question.endswith("?") and len(experiment.prediction) > 80
    judged = [arm for arm in experiment.arms if arm.entrant.against is not None]
    assert judged and all(arm.prediction for arm in judged)
    assert bool(experiment.claim) == any(arm.claim for arm in judged), "claimed in words and by a word, or not at all"


@pytest.mark.parametrize("candidate", EDITED, ids=str)
def test_every_edited_kernel_is_right(candidate):
    case = make_case("integer", make_operands(THREE_COLUMNS, "integer"), exact=True)
    with EmulatorBackend() as backend:
        run = DeviceRuns(backend).of(candidate.config, variant=candidate.variant, sm_count=1)
        check = check_case(run, case)
    assert check.ok, str(check)


def test_the_launch_bounds_claim_has_expired_where_the_registers_are_the_same():
    record = built_experiment(find_experiment("launch-bounds"), SM_90A, nothing)
    assert record.about["verdict"] == "expired"
    assert "The claim's premise has expired here." in record.about["finding"]
    registers = record.about["arms"][1]["registers"]
    assert registers["sm_90a"][0] == registers["sm_90a"][1]
    assert registers["sm_120a"][0] < registers["sm_120a"][1]
    assert "others on sm_100a" in record.about["finding"]


def test_the_document_is_what_experiments_and_records_say():
    written = (Path(__file__).parent.parent / "docs" / "experiments.md").read_text(encoding="utf-8")
    assert written == experiments_document(all_experiments().values(), load_records(RECORDED))


# --- measured, on a simulated bench


def measured(bench_of, name: str, **times_us: float) -> Record:
    """The experiment with the arms named taking those times, and the others 1000 µs."""
    experiment = find_experiment(name)
    labels = [entrant.label for entrant in experiment.entrants]
    times = {label: 1000.0 for label in labels} | {label.replace("_", " "): t for label, t in times_us.items()}
    return measured_experiment(experiment, bench_of(times), EFFORT, nothing)


def verdicts(record: Record, kind: str) -> list[str | None]:
    return [arm.get(f"{kind}_verdict") for arm in record.about["arms"]]


def test_a_claim_holds_or_does_not_by_the_word_that_was_measured(simulated_bench):
    record = measured(simulated_bench, "tile-depth", BK_8=900.0, BK_32=1200.0)
    assert [row.outcome for row in record.rows] == [None, "faster", "slower", None]
    assert verdicts(record, "claim") == [None, "does not hold", "does not hold"]
    assert verdicts(record, "prediction") == [None, "holds", "holds"]
    assert record.about["verdict"] == "does not hold"
    assert record.about["finding"].startswith("BK 8: faster, 1.111 [")
    assert record.about["finding"].endswith("The claim does not hold here.")


def test_the_confounded_form_is_called_so_whatever_it_shows(simulated_bench):
    record = measured(simulated_bench, "beta-branch", **{"at_run_time,_one_argument": 1040.0})
    assert [row.outcome for row in record.rows] == [None, "equivalent", "confounded", None]
    assert record.about["verdict"] == "holds" and "launch bounds MIN_CTAS" in record.about["arms"][2]["confounded"]


def test_an_expired_premise_outweighs_the_times(simulated_bench):
    record = measured(simulated_bench, "launch-bounds", two_arguments=1000.0)
    assert record.rows[1].outcome == "equivalent" and record.about["verdict"] == "expired"


def test_the_largest_gains_are_ranked_and_held_against_the_claim(simulated_bench):
    steps = {"coalesced": 100.0, "flat block": 100.0, "shared tiles": 50.0, "1D register tile": 20.0}
    times = {
        **dict.fromkeys((e.label for e in find_experiment("steps").entrants), 19.0),
        "uncoalesced": 1000.0,
        **steps,
    }
    record = measured_experiment(find_experiment("steps"), simulated_bench(times, baseline_us=20.0), EFFORT, nothing)
    assert "the largest gains: coalesced, 1D register tile, shared tiles" in record.about["finding"]
    assert record.about["verdict"] == "mixed"


def test_one_spilling_arm_is_timed_although_the_rules_refuse_it(simulated_bench):
    record = measured(simulated_bench, "spilling", **{"16×16": 9000.0, "16×8": 1100.0, "8×4": 1100.0})
    arm = next(row for row in record.rows if row.arm == "16×16")
    assert arm.spill_bytes > 1000 and arm.verified and arm.outcome == "slower"
    assert record.about["verdict"] == "holds"


def test_a_record_holds_what_its_experiment_was(simulated_bench):
    record = Record.from_json(json.loads(json.dumps(measured(simulated_bench, "raster").to_json())))
    experiment = find_experiment("raster")
    for name in ("question", "claim", "prediction"):
        assert record.about[name] == getattr(experiment, name)
    assert record.about["reference"] == "row by row"
    assert all("GROUP" in arm["candidate"]["constants"] for arm in record.about["arms"][1:])
    assert recorded_verdicts([record])["raster"] == [record]
    said = experiments_document([experiment], [record])
    assert "**Found** (NVIDIA H200" in said and "| groups of 2 | 1 |" in said and "Not recorded yet" not in said


# --- the form of a file

GOOD = """
question = "Which is faster?"
prediction = "B."
[[arms]]
name = "A"
rung = "k01"
[[arms]]
name = "B"
against = "A"
set = { BM = 16 }
differs_in = ["BM"]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_arm_is_what_it_is_against_with_what_it_sets_apart(tmp_path):
    made = read_experiment(written(tmp_path, GOOD))
    assert (made.name, made.problem, made.claim) == ("mine", Problem(m=4096, n=4096, k=4096), "")
    first, second = made.entrants
    assert second.candidate.config.values == {**first.candidate.config.values, "BM": 16}
    assert second.named == ("BM",) and second.against == "A"


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("question =", "quesion =", InvalidDeclaration, "mine.toml: quesion: not known there"),
        ('prediction = "B."\n', "", InvalidDeclaration, "mine.toml: must say its prediction"),
        ('question = "', "question = ", InvalidDeclaration, "cannot be read as TOML"),
        ('rung = "k01"\n', "", InvalidDeclaration, "arm 'A': must name its rung, or the arm it is against"),
        ('rung = "k01"', 'rung = "k99"', UnknownName, "k99"),
        ('against = "A"', 'against = "C"', InvalidDeclaration, "arm 'B': against='C': must name an arm before it: A"),
        ('name = "B"', 'name = "A"', InvalidDeclaration, "must have a name of its own"),
        ('differs_in = ["BM"]\n', "", InvalidDeclaration, "must say by differs_in what sets it apart from 'A'"),
        ("BM = 16", "BMM = 16", InvalidConfig, "BMM: no such parameter"),
        ("differs_in", 'claim = "better"\ndiffers_in', InvalidDeclaration, "claim='better': must be one of faster"),
        ("differs_in", 'premise = "time"\ndiffers_in', InvalidDeclaration, "premise='time': must be one of registers"),
        ("differs_in", 'edits = ["e"]\ndiffers_in', InvalidDeclaration, r"edits=\['e'\]: not among the file's"),
        ("differs_in", "speed = 2\ndiffers_in", InvalidDeclaration, "arm 'B': speed: not known there"),
        ('"B."', '"B."\nlargest = ["C"]', InvalidDeclaration, r"largest=\['C'\]: must name arms"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_name(tmp_path, old, new, error, words):
    assert old in GOOD
    with pytest.raises(error, match=words):
        read_experiment(written(tmp_path, GOOD.replace(old, new, 1)))


# --- the command


def call(*args: str):
    return RUNNER.invoke(app, ["experiment", *args], catch_exceptions=False)


def test_the_list_has_every_experiment_with_its_question():
    done = call("list")
    assert done.exit_code == 0
    for experiment in all_experiments().values():
        assert experiment.name in done.stdout and experiment.question in done.stdout
    listed = json.loads(call("list", "--json").stdout)["experiments"]
    assert [row["experiment"] for row in listed] == list(all_experiments())


def test_without_a_gpu_an_experiment_is_built_and_told_with_its_prediction():
    done = call("pipeline-occupancy", "--offline")
    assert done.exit_code == 0, done.output
    assert "nothing is timed" in done.stdout and "predicted: Yes:" in done.stdout
    assert "differs in launch bounds MIN_CTAS: (128) → (128, 4)" in done.stdout
    record = json.loads(call("pipeline-occupancy", "--offline", "--json").stdout)
    assert record["about"]["verdict"] == "no claim" and "time_us" not in record["rows"][0]


def test_a_file_of_ones_own_is_run_and_what_it_does_not_name_is_status_1(tmp_path):
    assert call(str(written(tmp_path, GOOD)), "--offline").exit_code == 0
    path = written(tmp_path, GOOD.replace("BM = 16", "BM = 16, BN = 16"))
    done = call(str(path), "--offline")
    assert done.exit_code == 1
    assert "confounded: named was BM, and they also differ in parameter BN: 32 → 16" in done.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["no-such"], "experiment 'no-such': no such experiment; try"),
        (["/no/such.toml"], "cannot be read as TOML"),
        (["raster", "--offline", "--out", "here"], "keeps what was measured, and nothing can be"),
    ],
)
def test_what_cannot_be_asked_is_one_line_and_status_2(args, words):
    done = call(*args)
    assert done.exit_code == 2 and words in done.stderr
