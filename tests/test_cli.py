"""The program as a person or a script meets it: what is printed where, and the exit status."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from tilewright.arch import ARCHS
from tilewright.cli import app
from tilewright.compile import host
from tilewright.declare import all_rungs, enumerate_configs, rung_config
from tilewright.errors import Missing
from tilewright.record import Row
from tilewright.run import kernel

RUNNER = CliRunner()
SMALL = ["-m", "128", "-n", "128", "-k", "32"]
FLOAT32 = {name: rung for name, rung in all_rungs().items() if "float32" in rung.requires.dtypes}


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def call(*args: str):
    return RUNNER.invoke(app, list(args), catch_exceptions=False)


def test_the_ladder_without_a_gpu_verifies_every_rung_and_claims_no_time():
    done = call("ladder", "--backend", "emulator")
    assert done.exit_code == 0, done.output
    for rung in FLOAT32.values():
        line = next(line for line in done.stdout.splitlines() if line.startswith(rung.name))
        assert "✓ exact" in line
        assert rung.summary in done.stdout
    assert "256×256×256" in done.stdout
    header = done.stdout.splitlines()[:6]
    assert any("recorded elsewhere" in line for line in header) and not any("TFLOP/s" in line for line in header)


def test_json_is_one_object_on_standard_output_and_nothing_else():
    done = call("ladder", "--backend", "emulator", "--json", *SMALL)
    record = json.loads(done.stdout)
    assert record["schema"] == "tilewright/1" and record["command"] == "ladder"
    assert [row["rung"] for row in record["rows"]] == list(FLOAT32)
    for row in record["rows"]:
        assert row["verified"] is True and row["backend"] == "emulator"
        assert row["problem"]["m"] == 128 and row["arch"] == "sm_90a"
        assert row["registers"] > 0 and row["spill_bytes"] == 0 and 0 < row["occupancy"] <= 1
        assert not {"time_us", "tflops", "ratio_to_baseline"} & set(row), "the emulator claims no time"
    assert "tilewright ladder" in done.stderr


def test_counts_of_the_warp_tile_are_the_declarations():
    row = json.loads(call("ladder", "--backend", "emulator", "--json", "--rung", "8", *SMALL).stdout)["rows"][0]
    assert row["shared_loads_per_result"] == 32 / 4
    assert row["global_load_bytes_per_flop"] == pytest.approx(4 * (1 / 128 + 1 / 64) / 2)


def test_settings_reach_the_rung_they_name():
    both = call("ladder", "--backend", "emulator", "--json", "--set", "k08.BK=8", "--set", "k02.BM=8", *SMALL)
    rows = {row["number"]: row["config"] for row in json.loads(both.stdout)["rows"]}
    assert rows[8]["BK"] == 8 and rows[2]["BM"] == 8 and rows[1]["BM"] == 32
    one = call("ladder", "--backend", "emulator", "--json", "--rung", "k08", "--set", "BK=32", *SMALL)
    assert json.loads(one.stdout)["rows"][0]["config"]["BK"] == 32


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["ladder", "--rung", "k99"], "error: rung 'k99': no such rung; try"),
        (["rungs", "warp"], "k08_warp_tile"),
        (["ladder", "--rung", "k09"], "k09_search: searches k08_warp_tile's parameters and has no kernel of its own"),
        (["inspect", "9"], "run k08_warp_tile, with --set"),
        (["verify", "k09"], "or read `tilewright rungs k09`"),
        (["inspect", "k10", "--set", "PAD=1"], "A_STRIDE=129: A_STRIDE % 2 == 0 must hold"),
        (["inspect", "k10", "--set", "PAD=-1"], "PAD=-1: must be an integer from 0 to"),
        (["ladder", "--set", "k08.WM=48"], "WM=48: BM % WM == 0 must hold, so that warps tile"),
        (["ladder", "--set", "k08.WM"], "--set k08.WM: must be NAME=INTEGER"),
        (["ladder", "--set", "k08.WM=big"], "must be NAME=INTEGER"),
        (["ladder", "--set", "WM=64"], f"{len(FLOAT32)} rungs are meant; write --set RUNG.WM=64"),
        (["ladder", "--rung", "k02", "--set", "k08.BK=8"], "k08_warp_tile is not among the rungs that run"),
        (["inspect", "k08", "--set", "BMM=64"], "BMM: no such parameter; there are BM, BN"),
        (["inspect", "k08", "--set", "BM=0"], "BM=0: must be an integer from 1"),
        (["ladder", "-m", "0"], "m=0: must be between 1 and 2147483647"),
        (["ladder", "-n", "-5"], "n=-5: must be between 1"),
        (["ladder", "-k", "0"], "k=0: leaves nothing to multiply"),
        (["ladder", "-m", "400000", "-n", "400000", "-k", "400000"], "GiB of host memory"),
        (["inspect", "k08", "-m", "130"], "m % BM == 0"),
        (["inspect", "k08", "--arch", "sm_77"], "sm_77"),
        (["inspect", "k08", "--card", "GTX 480"], "card 'GTX 480': not listed; there are H200"),
        (["inspect", "k08", "--card", "A100", "--arch", "sm_90a"], "--arch sm_90a: A100 is sm_80; leave --arch out"),
        (["inspect", "all", "--card", "A100"], "--card A100: a roofline is shown for one rung on one architecture"),
        (["ladder", "--arch", "volta"], "volta"),
        (["ladder", "--backend", "tpu"], "--backend tpu: must be auto, cuda or emulator"),
        (["verify", "k08", "--schedule", "sideways"], "--schedule sideways: must be one of default, reverse, random"),
    ],
)
def test_what_cannot_be_is_one_line_and_status_2(args, words):
    if args[0] in ("ladder", "verify") and "--backend" not in args:
        args = [*args, "--backend", "emulator"]
    done = call(*args)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rung_that_refuses_the_size_is_a_row_and_the_others_still_run():
    done = call("ladder", "--backend", "emulator", "-m", "33", "-n", "31", "-k", "29")
    assert done.exit_code == 2
    assert done.stdout.count("✓ exact") == sum(rung.unguarded_when is not None for rung in FLOAT32.values())
    assert "✗ InvalidProblem" in done.stdout and "m=33, BM=128: m % BM == 0 must hold" in done.stdout


def ends_early(text):
    """A kernel's text with its loop along k one step short, where it is written in the usual way."""
    return text.replace("k < args.k", "k < args.k - 1").replace("k0 < args.k", "k0 < args.k - BK")


def test_a_wrong_kernel_is_a_row_in_words_and_status_1(monkeypatch):
    import dataclasses

    def sabotaged(config, problem, *variant):
        source = original(config, problem, *variant)
        return dataclasses.replace(source, text=ends_early(source.text))

    original = kernel.kernel_source
    monkeypatch.setattr(kernel, "kernel_source", sabotaged)
    wrong = [all_rungs().find(query) for query in ("k02", "k04", "k08", "k12")]
    assert all(ends_early(rung.source) != rung.source for rung in wrong)
    done = call("ladder", "--backend", "emulator", *(word for rung in wrong for word in ("--rung", rung.name)), *SMALL)
    assert done.exit_code == 1
    assert done.stdout.count("✗ WrongResult") == len(wrong)
    assert "integer: 128×128×32" in done.stdout


def test_a_kernel_that_does_not_compile_is_told_with_its_line(monkeypatch, tmp_path):
    import dataclasses

    k02 = all_rungs().find("k02")
    broken = dataclasses.replace(k02, source=k02.source.replace("auto acc = Scalar::zero();", "auto acc = nothing;"))
    monkeypatch.setattr("tilewright.lab.ladder_command._chosen", lambda *_: [broken])
    done = call("ladder", "--backend", "emulator", *SMALL)
    assert done.exit_code == 1
    assert "✗ CompileFailed" in done.stdout and "k02_coalesced.cu(17): error" in done.stdout


def test_no_compiler_names_the_one_liner_and_status_3(monkeypatch):
    def nothing(*_):
        return iter(())

    host._find_compiler.cache_clear()
    monkeypatch.setattr(host, "_candidates", nothing)
    done = call("ladder", "--backend", "emulator")
    host._find_compiler.cache_clear()
    assert done.exit_code == 3
    assert "no C++ compiler" in done.stderr and "pip install 'tilewright[cc]'" in done.stderr


def test_without_a_compiler_rungs_and_inspect_still_work(monkeypatch):
    monkeypatch.setattr(host, "_candidates", lambda *_: iter(()))
    host._find_compiler.cache_clear()
    assert call("rungs").exit_code == 0
    assert call("inspect", "k08").exit_code == 0
    host._find_compiler.cache_clear()


def test_no_driver_is_said_when_a_gpu_is_named():
    hidden = (
        "import ctypes, sys\n"
        "from cuda.pathfinder import DynamicLibNotFoundError\n"
        "import cuda.core\n"
        "def gone(*_): raise DynamicLibNotFoundError('libcuda.so.1 is not here')\n"
        "cuda.core.Device = gone\n"
        "sys.argv = ['tilewright', 'ladder', '--backend', 'cuda']\n"
        "from tilewright.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "no usable GPU" in done.stderr and "R580" in done.stderr
    assert "Traceback" not in done.stderr


def test_rungs_lists_every_rung_and_explains_one():
    assert all(step.summary in call("rungs").stdout for step in all_rungs().steps)
    whole = call("rungs", "k08").stdout
    assert "WMITER" in whole and "so that warps tile the CTA tile's rows" in whole and "builds on k07" in whole
    listed = json.loads(call("rungs", "--json").stdout)
    assert [row["rung"] for row in listed["rows"] if row["kernel"]] == list(all_rungs())
    assert [row["rung"] for row in listed["rows"] if not row["kernel"]] == ["k09_search"]


def test_a_search_says_what_it_searches_and_how_much_there_is():
    whole = call("rungs", "k09").stdout
    assert "no kernel: searches k08_warp_tile" in whole
    valid = sum(1 for _ in enumerate_configs(all_rungs().find("k08")))
    assert f"82944 combinations of its parameters' values, {valid} of them valid" in whole


def test_inspect_shows_rules_resources_and_the_seeds_counts():
    done = call("inspect", "k08", "--arch", "sm_120a")
    assert done.exit_code == 0
    for words in ("✓ WSUBM % TM == 0  (WSUBM=32, TM=4)", "0 bytes", "96 elements", "1024 elements", "21.3 FLOP a byte"):
        assert words in done.stdout
    row = json.loads(call("inspect", "k08", "--json").stdout)["rows"][0]
    assert row["smem_bytes"] == 12288 and "registers" in row["limiters"]


def test_inspect_explains_a_kernel_by_its_instructions_its_warps_and_its_roofline():
    done = call("inspect", "k08", "--card", "rtx5080")
    assert done.exit_code == 0
    for words in (
        "k08_warp_tile on sm_120a",
        "one trip is one K-tile of 16",
        "As     shared store         4       128      6176   8 banks, 4-way conflict, 4 wavefronts",
        "6.71 ms for 6.44 GB requested",
        "published for such a card, 29.4 TFLOP/s",
        "143.4% of the memory bound, which is no bound here",
        "a row band of A, BM × K or 2 MiB, fits the L2 of 64 MiB",
    ):
        assert words in done.stdout, words
    lines = {
        line.split()[0]: line.split()[1]
        for line in done.stdout.splitlines()
        if line.startswith("  ") and line[2:3].isupper()
    }
    assert (lines["FFMA"], lines["LDS.128"], lines["STS.32"], lines["LDG.128"]) == ("1024", "64", "16", "6")


def test_inspect_puts_all_of_it_in_the_row():
    row = json.loads(call("inspect", "k08", "--arch", "sm_120a", "--json").stdout)["rows"][0]
    assert row["sass"]["FFMA"] == 1024 and row["sass"]["LDS.128"] == 64 and row["sass_unit"] == "K-tile of 16"
    assert row["roofline"]["card"] == "RTX 5080" and row["roofline"]["premise_holds"] is False
    reads = next(f for f in row["footprints"] if (f["name"], f["kind"]) == ("Bs", "shared load"))
    assert reads["span_bytes"] == 64 and "sectors" not in reads
    assert Row.from_json(row).to_json() == row


def test_inspect_holds_a_recorded_time_against_the_roof_of_its_card():
    done = call("inspect", "k02", "--card", "H200")
    assert "recorded on NVIDIA H200" in done.stdout and "of the memory bound, which is no bound here" in done.stdout


def test_inspect_holds_16_bit_products_against_tensor_cores_and_counts_waves():
    done = call("inspect", "t01", "--card", "A100")
    for told in (
        "compute bound  312 TFLOP/s",
        "tiles          1024, one a CTA; 216 at once",
        "4.74; 160 of 216 in the last",
    ):
        assert told in done.stdout
    row = json.loads(call("inspect", "t01", "--card", "A100", "--json").stdout)["rows"][0]
    assert row["waves"]["utilisation"] == pytest.approx(1024 / 1080) and row["roofline"]["peak_source"] == "datasheet"


def test_inspect_without_nvdisasm_says_so_and_shows_the_rest(monkeypatch):
    def gone():
        raise Missing("nvdisasm is not here: pip install 'tilewright[sass]'")

    monkeypatch.setattr("tilewright.facts.disassemble.nvdisasm", gone)
    done = call("inspect", "k08")
    assert done.exit_code == 0
    assert "nvdisasm is not here: pip install 'tilewright[sass]'" in done.stdout
    assert "FFMA  " not in done.stdout and "4-way conflict" in done.stdout and "compute bound" in done.stdout
    row = json.loads(call("inspect", "k08", "--json").stdout)["rows"][0]
    assert "sass" not in row and "pip install" in row["sass_missing"] and row["registers"] > 0


def test_inspect_tabulates_every_rung_on_every_architecture():
    done = call("inspect", "all", "--arch", "all")
    assert done.exit_code == 0
    head, *lines = [line for line in done.stdout.splitlines() if line.startswith(("rung", "k", "t"))]
    assert head.split() == ["rung", "smem", *ARCHS]
    assert [line.split()[0] for line in lines] == list(all_rungs())
    rows = json.loads(call("inspect", "all", "--arch", "all", "--json").stdout)["rows"]
    assert len(rows) == len(all_rungs()) * len(ARCHS)
    for row in rows:
        rung, arch = all_rungs()[row["rung"]], ARCHS[row["arch"]]
        if not rung.requires.features <= arch.features:
            assert row["failure"] == "Unsupported"
        elif not rung_config(rung).fits(arch):
            assert row["failure"] == "InvalidConfig"
        else:
            assert row["registers"] > 0


def test_a_config_that_an_architecture_or_the_registers_refuse_is_a_note_below_the_table():
    fat = ["--set", "BM=128", "--set", "BN=256", "--set", "WM=64", "--set", "WN=128", "--set", "TM=16", "--set", "TN=8"]
    done = call("inspect", "k08", "--arch", "all", *fat, "--set", "WNITER=2")
    assert done.exit_code == 0
    assert "– sm_80: k08_warp_tile on sm_80: " in done.stdout and "may not spill" in done.stdout


def test_verify_tells_every_layer_under_every_schedule():
    done = call("verify", "k02", "--backend", "emulator", "--seed", "7")
    assert done.exit_code == 0
    for words in ("default schedule", "reverse schedule", "random schedule, seed 7"):
        assert words in done.stdout
    assert done.stdout.count("✓ integer") == 3 and "✗" not in done.stdout


def test_doctor_says_what_is_there_and_how_to_get_the_rest():
    done = call("doctor")
    assert done.exit_code == 0
    assert "✓ NVRTC" in done.stdout and "✓ C++ compiler" in done.stdout
    rows = json.loads(call("doctor", "--json").stdout)["rows"]
    assert all(row["fix"] for row in rows if not row["found"])


def test_an_interrupt_ends_with_130_and_breaks_nothing(cold_cache):
    command = [sys.executable, "-m", "tilewright", "ladder", "--backend", "emulator"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(command, text=True, env=environment, start_new_session=True, **pipes)
    running.stdout.readline()
    time.sleep(0.7)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert [p for p in cold_cache.rglob("*") if p.name.startswith(".writing-")] == []
    again = call("ladder", "--backend", "emulator", "--rung", "k01", "--rung", "k02", *SMALL)
    assert again.exit_code == 0


@pytest.mark.parametrize(
    "command", [["ladder", "--rung", "k02"], ["rungs", "k08"], ["inspect", "k08"], ["diff", "k01", "k02"]]
)
def test_the_c_locale_is_no_obstacle(command, tmp_path):
    cache = {"TILEWRIGHT_CACHE_DIR": str(tmp_path / "dépôt")}
    environment = {**os.environ, **cache, "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = [sys.executable, "-m", "tilewright", *command]
    done = subprocess.run(run, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert "Traceback" not in done.stderr.decode(errors="replace")
    assert "×".encode() in done.stdout
