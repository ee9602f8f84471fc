"""Which config a problem gets, and what is said of it."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import tilewright.tune
from tilewright.arch import get_arch
from tilewright.cli import app
from tilewright.declare import all_rungs, rung_config
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidInput, InvalidProblem, LaunchFailed
from tilewright.facts.roofline import get_card
from tilewright.problem import Problem
from tilewright.select import candidates, choice, choose, first_use, is_first_use, tune_first_use
from tilewright.select.calibration import calibration_for, shape_class
from tilewright.select.candidates import written_down
from tilewright.select.model import Constants, compute_us, memory_us, predict
from tilewright.select.rates import card_like, nominal_rates
from tilewright.select.traits import Pieces, Traits, names_of, pieces_of, traits_of
from tilewright.tune import Machine, Store
from tilewright.tune.context import context_of

RUNNER = CliRunner()
H200, SMS = get_arch("sm_90a"), 132


def test_every_choice_takes_its_problem_and_says_why():
    for sizes in (
        (1, 1, 1),
        (33, 7, 65),
        (128, 64, 16),
        (1024, 1024, 1024),
        (4096, 4096, 4096),
        (1, 4096, 4096),
        (4, 4, 0),
    ):
        problem = Problem(**dict(zip("mnk", sizes, strict=True)))
        choice = choose(problem, H200, SMS)
        choice.config.require_problem(problem)
        choice.config.require_arch(H200)
        assert "CTA tiles of" in choice.why and 1.0 < choice.expected_us < 1e5 and not choice.tuned
        assert choice.runner_up is not None and choice.runner_up != choice.config


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_large_products_get_larger_tiles_than_small_ones(dtype):
    def area(size):
        rows, columns, _ = choose(Problem(m=size, n=size, k=size, dtype=dtype, out_dtype=dtype), H200, SMS).config.tile
        return rows * columns

    assert area(4096) >= area(512) >= area(64) and area(4096) > area(64)


def test_a_card_that_lacks_a_feature_gets_a_rung_that_needs_none():
    problem = Problem(m=4096, n=4096, k=4096, dtype="bfloat16", out_dtype="bfloat16", layout="NT")
    assert "wgmma" in choose(problem, H200, SMS).config.rung.requires.features
    assert "wgmma" not in choose(problem, get_arch("sm_80"), 108).config.rung.requires.features


def test_what_no_rung_takes_is_refused_with_each_rungs_reason():
    problem = Problem(m=4, n=4, k=4, dtype="tfloat32", out_dtype="float32", layout="TN")
    with pytest.raises(InvalidProblem, match=r"no rung takes it on sm_90a:\n  t05_wgmma: .*besides NT tfloat32 only"):
        choose(problem, H200, SMS)


def test_rungs_that_leave_sums_in_a_workspace_are_chosen_while_it_is_small():
    few_rows = choose(Problem(m=8, n=4096, k=4096), H200, SMS)
    assert few_rows.config.rung.scratch is not None
    large = Problem(m=16384, n=16384, k=16384)
    sums, _ = choose(large, H200, SMS).config.scratch(large, sm_count=SMS) or (0, 0)
    assert 4 * sums <= 2**28
    slices = rung_config(all_rungs().find("k15"), {"SPLIT_K": 4})
    assert "needs a workspace of 4096 MiB: at most 256 are set aside for each stream" in candidates.refusal(
        slices, large, SMS
    )


def test_a_problem_beyond_any_launch_is_refused_in_words():
    with pytest.raises(InvalidProblem, match="no rung takes it"):
        choose(Problem(m=2**31 - 1, n=2**31 - 1, k=4, batch=2**31 - 1), H200, SMS)


@pytest.mark.parametrize("layout", ["NN", "TN"])
@pytest.mark.parametrize("size", [1, 64, 100, 4096])
def test_the_quick_rules_never_stop_what_is_taken(layout, size):
    for dtype in ("float32", "bfloat16"):
        problem = Problem(m=size, n=size, k=size, dtype=dtype, out_dtype=dtype, layout=layout)
        calibration = calibration_for(H200, SMS)
        known = names_of(problem, SMS)
        for candidate in candidates.candidates_for(H200, dtype, calibration):
            taken = not candidates.refusal(candidate.config, problem, SMS)
            assert candidate.may_take(problem, known) or not taken


@pytest.fixture
def stored(cold_cache):
    """Keep a choice for k08 as a tuning run would, on a device that is named."""
    problem, rung = Problem(m=512, n=512, k=512), all_rungs().find("k08")

    def keep(settings, time_us, *, sm_count=SMS, source=None, ratio=None):
        device = {"name": "H200", "compute_capability": [9, 0], "sm_count": sm_count, "smem_optin_bytes": 232448}
        context = context_of(rung, problem, device)
        if source is not None:
            context.fields["source"] = source
        data = {"best": rung_config(rung, settings).values, "time_us": time_us, "ratio_to_baseline": ratio}
        with Store() as store:
            store.add_choice(context, data)
        return problem

    return keep


def test_what_tuning_found_for_this_problem_and_card_comes_first(stored):
    problem = stored({"BK": 8}, 10.0)
    choice = choose(problem, H200, SMS)
    assert choice.config == rung_config(all_rungs().find("k08"), {"BK": 8})
    assert choice.why == "tuned for this problem on this card" and choice.runner_up is not None
    assert choice.tuned and choice.expected_us == 10.0
    assert choose(Problem(m=512, n=512, k=256), H200, SMS).why != choice.why
    assert choose(problem, H200, 78).why != choice.why
    assert choose(problem, get_arch("sm_80"), SMS).why != choice.why


def test_a_newer_choice_is_seen_at_once_and_an_older_kernels_is_not_used(stored):
    problem = stored({"BK": 8}, 10.0)
    assert choose(problem, H200, SMS).config.values["BK"] == 8
    stored({"BK": 32}, 9.0)
    assert choose(problem, H200, SMS).config.values["BK"] == 32
    stored({"BK": 16}, 1.0, source="another kernel's")
    assert choose(problem, H200, SMS).config.values["BK"] == 32


def test_without_a_store_none_is_made(cold_cache):
    choose(Problem(m=64, n=64, k=64), H200, SMS)
    assert not cold_cache.exists()


@pytest.mark.parametrize(("mode", "uses_store"), [("off", False), ("readonly", True), ("on", True), ("", True)])
def test_the_environment_says_whether_what_tuning_stored_is_used(stored, monkeypatch, mode, uses_store):
    problem = stored({"BK": 8}, 10.0)
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", mode)
    assert choose(problem, H200, SMS).tuned == uses_store


def test_another_word_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", "yes")
    with pytest.raises(InvalidInput, match="TILEWRIGHT_AUTOTUNE=yes: must be one of off, readonly, on"):
        choose(Problem(m=4, n=4, k=4), H200, SMS)


def test_a_first_use_asks_for_a_search_where_the_environment_does_and_nothing_is_known(stored, monkeypatch):
    problem, known = Problem(m=64, n=64, k=64), stored({"BK": 8}, 10.0)
    for mode, asks in (("off", False), ("readonly", False), ("on", True)):
        monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", mode)
        chosen = choose(problem, H200, SMS)
        assert is_first_use(chosen) == asks
    assert not is_first_use(choose(known, H200, SMS)) and not is_first_use(replace(chosen, library="faster"))


def test_a_first_use_is_searched_once_in_a_process_and_a_failure_is_a_warning(monkeypatch, caplog):
    asked = []

    def search(rung, problem, request, *, machine):
        asked.append((rung, problem, request.effort, machine))
        raise LaunchFailed("no worker starts")

    monkeypatch.setattr(tilewright.tune, "tune", search)
    monkeypatch.setattr(first_use, "_searched", set())
    problem, machines = Problem(m=64, n=64, k=64), [Machine(devices=(device,)) for device in (0, 1, 0)]
    chosen = choose(problem, H200, SMS)
    for device in (0, 1, 0):
        tune_first_use(problem, chosen, device)
    assert asked == [(chosen.config.rung, problem, "quick", machine) for machine in machines[:2]]
    assert "64×64×64 NN float32: not tuned at its first use: no worker starts" in caplog.text


FIRST_CHOICE = """
import sys
import tilewright
from tilewright.arch import get_arch
from tilewright.problem import Problem
from tilewright.select import Choice, choose

choose(Problem(m=4096, n=4096, k=4096), get_arch("sm_90a"), 132, card="H200")
print(*sorted(sys.modules))
"""
NOT_LOADED = (
    "measure",
    "verify",
    "record",
    "run",
    "tune.sweep",
    "tune.tuning",
    "tune.process",
    "tune.store",
    "emulator",
)


def test_a_first_choice_loads_nothing_that_tunes_measures_or_verifies(cold_cache):
    done = subprocess.run([sys.executable, "-c", FIRST_CHOICE], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "tilewright.select.choice" in loaded
    unwanted = {*(f"tilewright.{name}" for name in NOT_LOADED), "numpy", "sqlite3", "importlib.metadata", "subprocess"}
    assert not {name for name in loaded if any(name == x or name.startswith(f"{x}.") for x in unwanted)}


# --- the framework's own product


@pytest.mark.parametrize(("ratio", "is_library"), [(None, False), ([0.9, 0.95, 0.99], True), ([0.9, 1.0, 1.1], False)])
def test_the_librarys_product_is_taken_where_tuning_surely_found_it_faster(stored, ratio, is_library):
    problem = stored({"BK": 8}, 10.0, ratio=ratio)
    assert bool(choose(problem, H200, SMS).library) == is_library
    assert choose(problem, H200, SMS, kernels="own").library == ""


@pytest.fixture
def slow_for_a_row(monkeypatch):
    """A calibration by which the framework's own product is twice as fast for one row; gives such a problem."""
    problem, known = Problem(m=1, n=4096, k=4096), calibration_for(H200, SMS)
    learned = {dtype: found._replace(library={shape_class(problem): 0.5}) for dtype, found in known.learned.items()}
    monkeypatch.setattr(choice, "calibration_for", lambda *_: replace(known, learned=learned))
    choice._chosen.cache_clear()
    yield problem
    choice._chosen.cache_clear()


def test_the_librarys_product_is_taken_for_the_classes_that_the_cards_calibration_names(slow_for_a_row):
    def library(problem, card="H200", **more):
        return choose(problem, H200, SMS, card=card, **more).library

    problem = slow_for_a_row
    assert "it took 0.500 of the chosen kernel's time" in library(problem)
    assert library(problem, kernels="own") == library(problem, card=None) == ""
    assert library(Problem(m=512, n=4096, k=4096)) == ""


@pytest.mark.parametrize(
    "more",
    [{"epilogue": Epilogue(("relu",))}, {"alpha": 2.0}, {"beta": 1.0}, {"dtype": "bfloat16"}],
    ids=lambda more: next(iter(more)),
)
def test_the_librarys_product_is_taken_for_nothing_but_a_plain_one(slow_for_a_row, more):
    assert choose(replace(slow_for_a_row, **more), H200, SMS, card="H200").library == ""


def test_what_was_measured_of_one_type_says_nothing_of_the_librarys_product_of_another(slow_for_a_row):
    def library(dtype):
        return choose(replace(slow_for_a_row, dtype=dtype, out_dtype=dtype), H200, SMS, card="H200").library

    assert "it took 0.500" in library("bfloat16") and "no record says" in library("float16")


def sixteen_bits(m=4096, n=4096, k=4096, dtype="bfloat16", **more):
    return Problem(m=m, n=n, k=k, **{"dtype": dtype, "out_dtype": dtype, **more})


@pytest.mark.parametrize("layout", ["NN", "NT"])
@pytest.mark.parametrize("size", [4096, 8192])
def test_a_16_bit_product_is_ours_where_records_of_the_card_say_that_it_is_faster(layout, size):
    chosen = choose(sixteen_bits(size, size, size, layout=layout), H200, SMS, card="H200")
    assert chosen.library == "" and not chosen.untried and chosen.config.rung.name == "t08_deferred_epilogue"


@pytest.mark.parametrize(
    ("problem", "card"),
    [
        (sixteen_bits(1024, 1024, 1024), "H200"),
        (sixteen_bits(1, 4096, 4096), "H200"),
        (sixteen_bits(layout="TN"), "H200"),
        (sixteen_bits(batch=3), "H200"),
        (sixteen_bits(dtype="float16"), "H200"),
        (sixteen_bits(lda=4097), "H200"),
        (sixteen_bits(epilogue=Epilogue(("bias",))), "H200"),
        (sixteen_bits(), "H100 SXM"),
        (sixteen_bits(), None),
    ],
)
def test_any_other_16_bit_product_is_the_frameworks(problem, card):
    chosen = choose(problem, H200, SMS, card=card)
    assert chosen.library == (
        f"no record says that a kernel of ours is faster for such {problem.dtype} shapes on this card"
    )
    assert chosen.untried and choose(problem, H200, SMS, card=card, kernels="own").library == ""


@pytest.mark.parametrize(
    "more", [{"alpha": 2.0}, {"beta": 1.0}, {"epilogue": Epilogue(("relu",))}, {"out_dtype": "float32"}]
)
def test_a_16_bit_product_that_adds_something_is_ours(more):
    assert choose(sixteen_bits(1024, 1024, 1024, **more), H200, SMS, card="H200").library == ""


def test_a_float32_product_needs_no_record_to_be_ours():
    assert choose(Problem(m=777, n=777, k=777), H200, SMS, card="H100 SXM").library == ""


def test_a_first_use_searches_where_the_framework_is_taken_for_want_of_a_measurement(cold_cache, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", "on")
    assert is_first_use(choose(sixteen_bits(1024, 1024, 1024), H200, SMS, card="H200"))


@pytest.mark.parametrize(
    ("ratio", "words"), [(None, "no record says"), ([0.9, 0.95, 0.99], "it took 0.990"), ([0.99, 1.0, 1.01], "")]
)
def test_a_tuned_16_bit_product_is_ours_where_the_final_rounds_held_it_against_the_frameworks(cold_cache, ratio, words):
    problem, rung = sixteen_bits(1024, 1024, 1024), all_rungs().find("t08")
    device = {"name": "H200", "compute_capability": [9, 0], "sm_count": SMS, "smem_optin_bytes": 232448}
    with Store() as store:
        data = {"best": rung_config(rung).values, "time_us": 10.0, "ratio_to_baseline": ratio}
        store.add_choice(context_of(rung, problem, device), data)
    chosen = choose(problem, H200, SMS, card="H200")
    assert chosen.tuned and chosen.library.startswith(words) and bool(chosen.library) == bool(words)


def test_ctas_that_are_counted_by_tiles_are_the_grids():
    arch, problem = get_arch("sm_90a"), Problem(m=1000, n=333, k=700, batch=3)
    counted = [each for each in written_down() if each.fits(arch) and "float32" in each.rung.requires.every_dtype]
    by_tiles = [(config, traits_of(config, arch)) for config in counted]
    by_tiles = [(config, traits) for config, traits in by_tiles if traits.by_tiles and not traits.persistent]
    assert {config.rung.name for config, _ in by_tiles} >= {"k13_multistage", "k15_split_k", "k16_small_m"}
    for config, traits in by_tiles:
        found = pieces_of(config, traits, problem, names_of(problem, SMS))
        assert found.ctas == math.prod(config.grid(problem, sm_count=SMS))


def test_a_choice_rule_keeps_a_rung_from_being_chosen_and_from_nothing_else():
    config = rung_config(all_rungs()["k18_small_k"])
    deep = Problem(m=4096, n=4096, k=17)
    config.require_problem(deep)
    assert candidates.refusal(config, deep, SMS) == (
        "k18_small_k: k=17, BK=16: k <= BK must hold, since else B is loaded again for every few rows"
    )
    assert not candidates.refusal(config, replace(deep, k=16), SMS)
    arch = get_arch("sm_90a")
    calibration = calibration_for(arch, SMS, "H200")
    for problem in (deep, Problem(m=300, n=200, k=100), Problem(m=1, n=70000, k=9, layout="NT")):
        for each in choice.estimates(problem, arch, calibration):
            assert not candidates.refusal(each.candidate.config, problem, SMS)
        offered = {each.candidate.config for each in choice.estimates(problem, arch, calibration)}
        allowed = [c.config for c in candidates.candidates_for(arch, "float32", calibration)]
        assert offered == {config for config in allowed if not candidates.refusal(config, problem, SMS)}


# --- the model


RATES = nominal_rates(get_card("H200"))
GRID = all_rungs().find("k06").launch.grid
TILE = {"BM": 128, "BN": 128}
TRAITS = Traits(128, 128, 8, 2, 128 * 128, 2048, 16384, 2, False, False, False, GRID, TILE, by_problem=False)


def pieces(traits, problem, split=1):
    known = pieces_of(rung_config(all_rungs().find("k06")), traits, problem, names_of(problem, SMS))
    return Pieces(known.ctas * split, split)


def expected(traits=TRAITS, split=1, constants=None, **sizes):
    problem = Problem(**{"m": 4096, "n": 4096, "k": 4096, **sizes})
    return predict(traits, pieces(traits, problem, split), constants or Constants(), problem, RATES)


def test_the_expected_time_is_never_below_either_floor():
    for m, n, k in itertools.product((1, 100, 3000, 20000), repeat=3):
        problem = Problem(m=m, n=n, k=k)
        floor = max(memory_us(problem, RATES), compute_us(problem, RATES))
        assert predict(TRAITS, pieces(TRAITS, problem), Constants(efficiency=1.0), problem, RATES).total_us > floor


def test_more_work_takes_longer_and_a_further_wave_shows():
    assert expected(k=8192).total_us > 1.9 * expected().total_us
    full = 132 * 2 * 128
    assert (expected(m=full, n=128).waves, expected(m=full + 1, n=128).waves) == (1, 2)
    one, two = (expected(m=m, n=128).mainloop_us for m in (full, full + 1))
    assert 1.4 < two / one < 1.7


def test_what_bounds_the_main_loop_is_named():
    assert expected().bound == "compute"
    assert expected(replace(TRAITS, shared_elements=10 * TRAITS.shared_elements)).bound == "shared"
    assert expected(replace(TRAITS, global_elements=100 * TRAITS.global_elements)).bound == "L2"
    assert expected(replace(TRAITS, stages=1), m=128, n=128).bound == "latency"
    assert expected(constants=Constants(alone=2.0, latency_us=0.01), m=128, n=128).bound == "compute, too few warps"


def test_more_stages_hide_latency_and_slices_along_k_fill_the_card_at_the_price_of_adding_them_up():
    few, many = (expected(replace(TRAITS, stages=stages), m=128, n=128) for stages in (1, 4))
    assert many.total_us < few.total_us
    whole, sliced = (expected(split=split, m=128, n=128, k=65536) for split in (1, 8))
    assert sliced.total_us < whole.total_us / 4 and sliced.reduction_us > 0 == whole.reduction_us


def test_a_persistent_kernel_fills_its_pipeline_once():
    once, often = (expected(replace(TRAITS, persistent=persistent)) for persistent in (True, False))
    assert often.fill_us == often.waves * once.fill_us


@pytest.mark.parametrize("query", ["k01", "k08", "k12", "t04", "t07"])
def test_pieces_are_the_launchs_ctas_and_a_persistent_kernels_tiles(query):
    config = rung_config(all_rungs().find(query))
    problem = Problem(m=1000, n=3000, k=64, batch=3)
    rows, cols, _ = config.tile
    tiles = -(-problem.m // rows) * -(-problem.n // cols) * 3
    grid = config.grid(problem, sm_count=SMS)
    traits = traits_of(config, H200)
    found = pieces_of(config, traits, problem, names_of(problem, SMS))
    assert found[:2] == (tiles if traits.persistent else grid[0] * grid[1] * grid[2], 1)


@pytest.mark.parametrize(
    ("layout", "alignment_bytes", "words"),
    [("NN", 256, 128 + 256 // 4), ("TN", 256, 128 // 4 + 256 // 4), ("NT", 256, 128 + 256), ("TN", 4, 128 + 256)],
)
def test_copies_are_of_one_element_where_they_transpose_or_rows_are_not_aligned(layout, alignment_bytes, words):
    config = rung_config(all_rungs().find("k13"))
    problem = Problem(m=1000, n=3000, k=64, layout=layout, alignment_bytes=alignment_bytes)
    traits = traits_of(config, H200)
    for _ in range(2):  # counted, and remembered
        assert pieces_of(config, traits, problem, names_of(problem, SMS)).copies == 8 * words
    dearer = [
        predict(traits, Pieces(10, 1, copies), Constants(), problem, RATES).mainloop_us for copies in (0, 8 * words)
    ]
    assert dearer[0] < dearer[1]


def test_c_is_read_and_a_broadcast_operand_comes_once():
    plain, batched = Problem(m=512, n=512, k=64), Problem(m=512, n=512, k=64, batch=4, batch_stride_b=0)
    assert memory_us(replace(plain, beta=1.0), RATES) > memory_us(plain, RATES)
    assert memory_us(batched, RATES) < 4 * memory_us(plain, RATES)


def test_an_unlisted_card_is_taken_for_a_smaller_or_larger_one_of_its_architecture():
    half, none_listed = card_like(H200, 66), card_like(get_arch("sm_100a"), 148)
    assert half.sms == 66 and half.dram_gb_per_s == 2400 and none_listed.arch == "sm_100a"
    problem = Problem(m=1024, n=1024, k=1024)
    assert choose(problem, H200, 66).expected_us > choose(problem, H200, SMS).expected_us
    assert "not calibrated by any run on sm_100a with 148 SMs" in choose(problem, get_arch("sm_100a"), 148).why


def test_the_datasheet_serves_a_card_of_the_same_size_that_was_never_measured():
    assert calibration_for(H200, SMS, "H200").learned and not calibration_for(H200, SMS, "H100 SXM").learned
    assert calibration_for(H200, SMS).rates.card == "H200"


def test_every_candidate_that_is_written_down_is_valid_and_stands_once():
    configs = written_down()
    assert len(set(configs)) == len(configs) > len(all_rungs())
    assert {config.rung.name for config in configs} == set(all_rungs())


@pytest.mark.parametrize(
    ("text", "says"),
    [('{"k99_none": []}', "k99_none: no such rung"), ('{"k08_warp_tile": [{"WM": 48}]}', "WM=48")],
)
def test_a_candidate_that_cannot_be_is_told_with_its_file(monkeypatch, tmp_path, text, says):
    path = tmp_path / "candidates.json"
    path.write_text(text)
    monkeypatch.setattr(candidates, "FILE", path)
    monkeypatch.setattr(candidates, "_file", candidates._file.__wrapped__)
    monkeypatch.setattr(candidates, "_written_down_of", candidates._written_down_of.__wrapped__)
    with pytest.raises(InvalidInput, match=rf"candidates.json: .*{says}"):
        written_down()


# --- on the command line


def test_select_says_what_why_what_it_expects_and_what_was_refused():
    done = RUNNER.invoke(app, ["select", "1000", "1000", "1000"])
    chosen = choose(Problem(m=1000, n=1000, k=1000), H200, SMS, card="H200")
    assert done.exit_code == 0 and chosen.config.rung.name in done.stdout.splitlines()[1]
    for words in ("fastest by", "expects", "main loop", "floor", "next:", "refused:", "must hold"):
        assert words in done.stdout
    told = json.loads(RUNNER.invoke(app, ["select", "1000", "1000", "1000", "--json"]).stdout)
    assert told["choice"]["rung"] == chosen.config.rung.name and told["rows"][0]["terms"]["waves"] >= 1
    assert told["choice"]["expected_us"] == chosen.expected_us
    assert chosen.expected_us in [row["expected_us"] for row in told["rows"]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["4", "4", "0"], "k=0: leaves nothing"),
        (["4", "4", "4", "--card", "H300"], "card 'H300': not listed"),
        (["4", "4", "4", "--dtype", "tfloat32", "--layout", "TN"], "no rung takes it"),
    ],
)
def test_what_select_cannot_answer_is_refused(arguments, says):
    done = RUNNER.invoke(app, ["select", *arguments])
    assert done.exit_code == 2 and says in done.stderr


def test_warm_compiles_each_kernel_once_and_says_what_is_refused(cold_cache, tmp_path):
    suite = tmp_path / "mine.csv"
    suite.write_text("m,n,k,dtype,layout\n37,41,5,float32,NN\n41,43,7,float32,NN\n4,4,4,tfloat32,TN\n")
    done = RUNNER.invoke(app, ["warm", str(suite)])
    assert done.exit_code == 0 and "compiled for sm_90a: kernels 1, for shapes 2; refused shapes 1" in done.stdout
    assert len(list(cold_cache.rglob("*.bin"))) == 1
