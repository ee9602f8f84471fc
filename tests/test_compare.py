"""Two builds compared: what they differ in, whether that was meant, and what a measurement then may say."""

from __future__ import annotations

import dataclasses
import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tilewright.arch import get_arch
from tilewright.cli import app
from tilewright.compile.nvrtc import compile_cubin, cubin_key
from tilewright.compile.source import kernel_source
from tilewright.compile.variant import PLAIN, Edit, Variant
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidConfig, InvalidInput, InvalidProblem, UnknownName
from tilewright.lab.build_record import build_record
from tilewright.lab.candidate import Candidate
from tilewright.lab.causes import confounded, differences
from tilewright.lab.comparing import Sides, candidates, compared, trial_of
from tilewright.lab.measuring import Effort
from tilewright.lab.trial import Entrant, Trial
from tilewright.problem import Problem
from tilewright.record import Record

RUNNER = CliRunner()
PROBLEM = Problem(m=4096, n=4096, k=4096)
SM_90A = get_arch("sm_90a")
EFFORT = Effort(30, 1.0)


def candidate(query: str, variant: Variant = PLAIN, **settings: int) -> Candidate:
    return Candidate(rung_config(all_rungs().find(query), settings), variant)


def found(reference: Candidate, arm: Candidate, problem: Problem = PROBLEM):
    return differences(*(build_record(each, problem, SM_90A) for each in (reference, arm)))


def causes(reference: Candidate, arm: Candidate) -> list[tuple[str, str]]:
    return [(cause.kind, cause.what) for cause in found(reference, arm).causes]


def edited(*edits: tuple[str, str]) -> Variant:
    return Variant(edits=tuple(Edit(*edit) for edit in edits))


# --- variants


def test_a_variant_changes_what_it_names_and_nothing_else():
    config = rung_config(all_rungs().find("k04"))
    plain = kernel_source(config, PROBLEM)
    guarded = kernel_source(config, PROBLEM, Variant(guarded=True))
    assert guarded.text == plain.text.replace("int GUARDED = 0;", "int GUARDED = 1;") != plain.text
    more = kernel_source(config, PROBLEM, Variant(constants=(("GROUP", 4),)))
    assert more.text == plain.text.replace(
        "int GUARDED = 0;\n", "int GUARDED = 0;\n[[maybe_unused]] constexpr int GROUP = 4;\n"
    )
    assert kernel_source(config, PROBLEM, Variant(options=("ptxas=-O1",))).text == plain.text


@pytest.mark.parametrize("times", [1, 3])
def test_an_edit_must_fit_as_often_as_it_says(times):
    config = rung_config(all_rungs().find("k04"))
    assert config.rung.source.count("__syncthreads();") == 2
    with pytest.raises(
        InvalidConfig, match=rf"must fit {times} times and fits 2; copy the lines from k04_shared_tile.cu"
    ):
        kernel_source(config, PROBLEM, Variant(edits=(Edit("__syncthreads();", "", times),)))
    both = kernel_source(config, PROBLEM, Variant(edits=(Edit("__syncthreads();", "", 2),)))
    assert "__syncthreads" not in both.text


def test_guards_can_be_set_where_the_rung_has_them_and_the_sizes_need_none():
    with pytest.raises(InvalidConfig, match="has no guards to set"):
        candidate("k08", Variant(guarded=True)).source(PROBLEM)
    with pytest.raises(InvalidProblem, match="needs guards"):
        candidate("k04", Variant(guarded=False)).source(Problem(m=33, n=32, k=32))


def test_options_reach_the_compiler_and_the_key():
    plain, capped = candidate("k08"), candidate("k08", Variant(options=("ptxas=-O1",)))
    sources = [each.source(PROBLEM) for each in (plain, capped)]
    assert len({cubin_key(source, SM_90A) for source in sources}) == 2
    binaries = [compile_cubin(source, SM_90A) for source in sources]
    assert binaries[0].payload != binaries[1].payload
    assert cubin_key(sources[0], SM_90A, version="13.0") != cubin_key(sources[0], SM_90A, version="13.1")


@pytest.mark.parametrize("option", ["maxrregcount", "maxrregcount=lots", "ptxas=O1", "use_fast_math=1"])
def test_an_option_that_is_none_is_refused_by_name(option):
    with pytest.raises(InvalidConfig, match=re.escape(f"option '{option}': must be maxrregcount=COUNT")):
        compile_cubin(candidate("k01", Variant(options=(option,))).source(PROBLEM), SM_90A)


def test_a_build_that_always_reads_c_is_verified_by_the_very_binary_that_is_timed():
    arm = candidate("k08", Variant(beta_mode="always_read"))
    assert arm.provable(PROBLEM).beta == 1.0 and candidate("k08").provable(PROBLEM) == PROBLEM
    assert arm.source(arm.provable(PROBLEM)) == arm.source(PROBLEM)


def test_a_candidate_survives_json_whatever_it_sets_apart():
    variant = Variant("text", (Edit("a", "b", 2),), (("GROUP", 4),), "runtime", True, ("maxrregcount=128",))
    for made in (candidate("k11", PAD=0), candidate("k04", variant, BM=16, BN=16, BK=16)):
        assert Candidate.from_json(json.loads(json.dumps(made.to_json()))) == made
    assert set(candidate("k11").to_json()) == {"rung", "config"}


# --- causes


def test_a_parameter_is_one_cause_and_what_follows_from_it_none():
    got = found(candidate("k11"), candidate("k11", PAD=0))
    assert [str(cause) for cause in got.causes] == ["parameter PAD: 2 → 0"]
    assert [str(each) for each in got.consequences] == ["derived constant A_STRIDE: 130 → 128"]


def test_another_number_of_threads_brings_its_launch_bounds_along():
    got = found(candidate("k06"), candidate("k06", TN=4))
    assert [cause.what for cause in got.causes] == ["TN"]
    told = [str(each) for each in got.consequences]
    assert told == ["derived constant NUM_THREADS: 256 → 512", "launch bounds __launch_bounds__: (256) → (512)"]


def test_launch_bounds_are_a_cause_by_parameter_or_by_text():
    by_parameter = found(candidate("k12"), candidate("k12", MIN_CTAS=0)).causes
    assert [str(cause) for cause in by_parameter] == ["launch bounds MIN_CTAS: (128, 1) → (128)"]
    edit = edited(("__launch_bounds__(NUM_THREADS, MIN_CTAS)", "__launch_bounds__(NUM_THREADS, 2)"))
    (by_text,) = found(candidate("k12"), candidate("k12", edit)).causes
    assert str(by_text) == "launch bounds __launch_bounds__: (128, 1) → (128, 2)"


def test_the_near_miss_is_two_causes():
    reference = candidate("k12")
    assert causes(reference, candidate("k12", Variant(beta_mode="runtime"))) == [("problem constant", "BETA_MODE")]
    missed = found(reference, candidate("k12", Variant(beta_mode="runtime"), MIN_CTAS=0))
    said = confounded(missed)
    assert said.startswith(
        "2 causes, so none of them can be held responsible: launch bounds MIN_CTAS: (128, 1) → (128);"
    )
    assert "problem constant BETA_MODE: β = 0, C not read → decided by β at run time" in said
    assert confounded(missed, bundle="the whole change") == ""


def test_options_and_guards_are_causes():
    arm = candidate("k04", Variant(guarded=True, options=("maxrregcount=128",)))
    assert causes(candidate("k04"), arm) == [("problem constant", "GUARDED"), ("option", "maxrregcount")]


def test_outcomes_of_the_compiler_are_no_causes():
    names = set(build_record(candidate("k12"), PROBLEM, SM_90A).to_json())
    assert not names & {"registers", "spill_bytes", "occupancy", "smem_bytes"}


@given(st.integers(0, 10**6))
def test_comments_and_spaces_are_no_difference(seed):
    rng = random.Random(seed)
    text = all_rungs().find("k08").source
    other = "\n".join(
        rng.choice(["", "  // a remark\n"]) + line.replace(" = ", "  =  ") + rng.choice(["", "   ", "  // more"])
        for line in text.splitlines()
        if not line.startswith("//")
    )
    got = found(candidate("k08"), candidate("k08", Variant(text=other)))
    assert got.causes == () and other != text
    ours, theirs = (build_record(candidate("k08", Variant(text=t)), PROBLEM, SM_90A).to_json() for t in (text, other))
    assert ours == theirs


def test_each_passage_of_a_text_that_differs_is_a_cause_of_its_own():
    one = edited(("current ^= 1;", "current = 1 - current;"))
    two = edited(("current ^= 1;", "current = 1 - current;"), ("int current = 0;", "int current = 1;"))
    assert causes(candidate("k11"), candidate("k11", one)) == [("source", "source")]
    assert causes(candidate("k11"), candidate("k11", two)) == [("source", "source")] * 2
    (cause,) = found(candidate("k11"), candidate("k11", one)).causes
    assert re.fullmatch(r"line \d+: \^ = 1", cause.reference) and "1 - current" in cause.arm


def test_neighbouring_lines_that_differ_are_one_passage():
    edit = edited(
        (
            "      store_a(next.As, next_a);\n      cp_async_wait<0>();",
            "      cp_async_wait<1>();\n      store_a(next.As, next_a);",
        )
    )
    assert causes(candidate("k11"), candidate("k11", edit)) == [("source", "source")]


def test_a_constant_that_one_text_alone_names_comes_with_the_text():
    edit = (Edit("const int cta_row = blockIdx.y * BM", "const int cta_row = blockIdx.y * BM * GROUP"),)
    arms = [candidate("k08", Variant(edits=edit, constants=(("GROUP", group),))) for group in (1, 2)]
    got = found(candidate("k08"), arms[1])
    assert [cause.kind for cause in got.causes] == ["source"]
    assert [str(each) for each in got.consequences] == ["constant GROUP: – → 2"]
    assert causes(*arms) == [("constant", "GROUP")]


def test_the_way_between_two_rungs_is_its_steps():
    assert causes(candidate("k08"), candidate("k10")) == [("step", "k10_padded")]
    assert causes(candidate("k10"), candidate("k08")) == [("step", "k10_padded")]
    assert causes(candidate("k11"), candidate("k12")) == [("step", "k12_tall_thread_tile")]
    assert causes(candidate("k03"), candidate("k04")) == [("step", "k03_flat_block"), ("step", "k04_shared_tile")]
    assert [what for _, what in causes(candidate("k07"), candidate("k11"))] == [
        "k08_warp_tile",
        "k10_padded",
        "k11_double_buffer",
    ]


def test_a_setting_or_an_edit_beside_the_step_is_a_cause_of_its_own():
    assert causes(candidate("k08"), candidate("k10", BK=8)) == [("step", "k10_padded"), ("parameter", "BK")]
    assert causes(candidate("k08", BK=8), candidate("k10", BK=8)) == [("step", "k10_padded")]
    assert causes(candidate("k08"), candidate("k10", PAD=0)) == [("step", "k10_padded"), ("parameter", "PAD")]
    edit = edited(("a += BK;", "a += BK + 0;"))
    assert causes(candidate("k08"), candidate("k10", edit)) == [("step", "k10_padded"), ("source", "source")]


def test_the_guard_knows_what_was_named():
    got = found(candidate("k11"), candidate("k11", PAD=0))
    assert confounded(got) == confounded(got, named=("PAD",)) == ""
    assert confounded(got, named=("BK",)).startswith("named was BK, and they also differ in parameter PAD")
    assert confounded(got, named=("PAD", "BK"), bundle="both") == "named was BK, in which they do not differ"
    assert confounded(found(candidate("k11"), candidate("k11"))) == ""


# --- measured, on a simulated bench


def sides(first: str = "k12", second: str = "k12", **more: list[str]) -> Sides:
    return Sides(first, second, *(more.get(name, []) for name in ("settings", "beta", "guards", "options", "sources")))


def measured(bench_of, second_us: float, *, bundle: str = "", wrong=(), reasons=(), **more: list[str]) -> Record:
    trial = trial_of(candidates(sides(**more)), PROBLEM, SM_90A, bundle)
    times = dict(zip((e.label for e in trial.entrants), (1000.0, second_us), strict=True))
    bench = bench_of(times, wrong=wrong, reasons=reasons)
    return compared(trial, bench, EFFORT, lambda text: None)


@pytest.mark.parametrize(("second_us", "word"), [(900.0, "faster"), (1100.0, "slower"), (1000.0, "equivalent")])
def test_one_cause_gets_the_measurements_word(simulated_bench, second_us, word):
    record = measured(simulated_bench, second_us, settings=["B.PAD=2"])
    assert [row.outcome for row in record.rows] == [None, word, None]
    arm = record.rows[1]
    assert arm.ratio_to_reference.median == pytest.approx(1000 / second_us, rel=2e-3)
    assert arm.ratio_to_baseline.median == pytest.approx(1000 / second_us, rel=2e-3)
    assert arm.fraction_of_peak == pytest.approx(arm.tflops / 60) and len(arm.samples_us) > 5
    assert record.about["verdict"] == word and word in record.about["finding"]
    assert Record.from_json(json.loads(json.dumps(record.to_json()))).to_json() == record.to_json()


def test_two_causes_are_confounded_however_clear_the_times(simulated_bench):
    record = measured(simulated_bench, 500.0, beta=["B=runtime"], settings=["B.MIN_CTAS=0"])
    assert record.rows[1].outcome == "confounded" and record.rows[1].ratio_to_reference.median > 1.9
    assert [cause["what"] for cause in record.rows[1].causes] == ["MIN_CTAS", "BETA_MODE"]
    bundled = measured(simulated_bench, 500.0, beta=["B=runtime"], settings=["B.MIN_CTAS=0"], bundle="both")
    assert bundled.rows[1].outcome == "faster" and bundled.about["arms"][1]["bundle"] == "both"


def test_a_wrong_kernel_has_no_time_and_its_comparison_no_word(simulated_bench):
    record = measured(simulated_bench, 900.0, settings=["B.PAD=2"], wrong=["k12_tall_thread_tile PAD=2"])
    reference, arm = record.rows[:2]
    assert arm.failure == "WrongResult" and arm.time_us is None and arm.outcome == "invalid"
    assert reference.time_us is not None


def test_a_slowed_card_ends_as_throttled(simulated_bench):
    record = measured(simulated_bench, 900.0, settings=["B.PAD=2"], reasons=("hw_thermal_slowdown",))
    assert record.rows[1].outcome == "throttled" and record.rows[1].time_us is None


def test_arms_of_a_trial_fit_together():
    one = Entrant(label="one", candidate=candidate("k01"))
    for other, error, words in (
        (dataclasses.replace(one), InvalidInput, "the name is taken"),
        (dataclasses.replace(one, label="cuBLAS"), InvalidInput, "the name is taken"),
        (dataclasses.replace(one, label="two", against="three"), UnknownName, "must name an arm before it"),
    ):
        with pytest.raises(error, match=words):
            Trial(PROBLEM, SM_90A, (one, other))


# --- the command


def call(*args: str):
    return RUNNER.invoke(app, ["compare", *args], catch_exceptions=False)


def test_without_a_gpu_causes_and_builds_are_shown_and_no_verdict():
    done = call("k12", "k12", "--set", "B.PAD=2", "--offline")
    assert done.exit_code == 0, done.output
    assert "differs in parameter PAD: 0 → 2" in done.stdout and "A_STRIDE: 128 → 130" in done.stdout
    assert "nothing was timed, so there is no verdict" in done.stdout
    assert not re.search("faster|slower|equivalent", done.stdout)
    assert "main loop, a thread for one K-tile of 16: " in done.stdout or "no instructions" in done.stdout


def test_json_is_one_record_with_both_candidates():
    done = call("k08", "k10", "--offline", "--json")
    record = json.loads(done.stdout)
    assert record["command"] == "compare" and record["about"]["verdict"] == "not measured"
    assert [arm["candidate"]["rung"] for arm in record["about"]["arms"]] == ["k08_warp_tile", "k10_padded"]
    assert all(arm["build"]["cubin"] and arm["build"]["source"] for arm in record["about"]["arms"])
    assert record["rows"][1]["causes"] == [
        {"kind": "step", "what": "k10_padded", "reference": "k08_warp_tile", "arm": "k10_padded"}
    ]


def test_an_edited_copy_of_the_kernel_is_a_side(tmp_path):
    copy = tmp_path / "mine.cu"
    copy.write_text(all_rungs().find("k04").source.replace("__syncthreads();", "__syncthreads(), __syncthreads();", 1))
    done = call("k04", "k04", "--source", f"B={copy}", "--offline")
    assert done.exit_code == 0 and "differs in source source: " in done.stdout
    copy.write_text("nothing to compile")
    broken = call("k04", "k04", "--source", f"B={copy}", "--offline")
    assert broken.exit_code == 1 and "✗ CompileFailed" in broken.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--beta", "runtime"], "--beta runtime: must be A=VALUE for the first or B=VALUE for the second"),
        (["--beta", "B=sometimes"], "--beta sometimes: must be one of specialised, runtime, always_read"),
        (["--guards", "B=maybe"], "must be one of on, off"),
        (["--option", "B=O3"], "option 'O3': must be maxrregcount=COUNT"),
        (["--source", "B=/no/such.cu"], "--source /no/such.cu: cannot be read"),
        (["--set", "B.WM=48"], "BM % WM == 0 must hold"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_status_2(args, words):
    done = call("k12", "k12", "--offline", *args)
    assert done.exit_code == 2, done.output
    assert words in done.stderr and "Traceback" not in done.stderr
