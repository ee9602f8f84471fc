"""Counters of a rung beside cuBLAS's, through a stand-in for ncu.

`data/ncu-made-up.csv` has the shape of what ncu writes; its numbers were never counted.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.cli import app
from tilewright.errors import LaunchFailed, Missing, NoDevice
from tilewright.lab.ncu import find_ncu, profiled
from tilewright.lab.ncu_metrics import METRICS, NAMES, STALLS, count, size

RUNNER = CliRunner()
OUTPUT = Path(__file__).parent / "data" / "ncu-made-up.csv"
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STAND_IN = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
option = lambda name: arguments[arguments.index(name) + 1]
calls = pathlib.Path({folder!r}) / "calls"
calls.write_text((calls.read_text() if calls.exists() else "") + json.dumps(arguments) + "\\n")
log, metrics = pathlib.Path(option("--log-file")), option("--metrics").split(",")
{script}
"""
ANSWERS = """
if arguments[-2] == "tilewright.lab.ncu_launch":
    environment = {"arch": "sm_90a", "device": {"name": "NVIDIA Made Up"}, "baseline": "cuBLAS (torch), made up"}
    pathlib.Path(json.loads(arguments[-1])["found"]).write_text(json.dumps(environment))
log.write_text(pathlib.Path(OUTPUT).read_text())
"""
UNKNOWN = r"""
missing = [m for m in ("smsp__warps_eligible.avg.per_cycle_active", "lts__t_sector_hit_rate.pct") if m in metrics]
if missing:
    name = missing[0] if missing[0].startswith("lts") else r"regex:^smsp__warps_eligible\.(avg|max|min|sum)$"
    log.write_text(f"==ERROR== Failed to find metric {name}\n")
    sys.exit(1)
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Put a program in ncu's place; gives the file of its calls."""

    def place(script: str) -> Path:
        program = tmp_path / "ncu"
        script = script.replace("OUTPUT", repr(str(OUTPUT)))
        program.write_text(STAND_IN.format(python=sys.executable, folder=str(tmp_path), script=script))
        program.chmod(0o755)
        monkeypatch.setenv("TILEWRIGHT_NCU", str(program))
        monkeypatch.setattr("tilewright.lab.ncu_command.probe", lambda: ("NVIDIA Made Up",))
        return tmp_path / "calls"

    return place


def call(*args: str):
    return RUNNER.invoke(app, ["inspect", *args, "--ncu"], catch_exceptions=False)


def test_the_rung_and_cublas_stand_side_by_side(stand_in):
    stand_in(ANSWERS)
    done = call("k12")
    assert done.exit_code == 0, done.output
    counters = done.stdout.partition("kernels")[0].splitlines()
    lines = {re.split(r"  +", line.strip())[0]: re.split(r"  +", line.strip())[1:] for line in counters}
    assert "k12_tall_thread_tile under Nsight Compute on NVIDIA Made Up, 4096×4096×4096" in lines
    assert lines["k12"] == ["cuBLAS"]
    assert lines["time, caches flushed before"] == ["2.91 ms", "2.75 ms"]
    assert lines["issue slots used"] == ["84.6%", "92.9%"]
    assert lines["shared wavefronts"] == ["287 M", "176 M"]
    assert lines["L2 hit rate"] == ["86.1%", "79.0%"]
    assert lines["DRAM read"] == ["201 MB", "342 MB"]
    assert lines["shared memory (short_scoreboard)"] == ["0.25", "0.05"]
    assert any("cutlass_80_simt_sgemm_256x128" in line for line in done.stdout.splitlines())


def test_stalls_are_in_the_rungs_order_and_those_that_never_happen_are_left_out(stand_in):
    stand_in(ANSWERS)
    reasons = re.findall(r"\((\w+)\) +[\d.]+ +[\d.]+$", call("k12").stdout, re.MULTILINE)
    assert reasons[:3] == ["not_selected", "dispatch_stall", "wait"]
    assert "sleeping" not in reasons and "gmma" not in reasons


def test_a_metric_that_the_card_lacks_is_absent_by_its_name(stand_in):
    stand_in(UNKNOWN + ANSWERS)
    done = call("k12")
    assert done.exit_code == 0, done.output
    absent = done.stdout.partition("not counted here")[2].split()
    for name in ("imc_miss", "warpgroup_arrive"):
        assert STALLED.format(name) in absent
    assert "dram__bytes_read.sum" not in absent


def test_metrics_that_ncu_does_not_know_are_asked_for_no_more(stand_in):
    calls = stand_in(UNKNOWN + ANSWERS)
    launches = profiled(find_ncu(), NAMES, ["program", "-"])
    asked = [
        set(arguments[arguments.index("--metrics") + 1].split(","))
        for arguments in map(json.loads, calls.read_text().splitlines())
    ]
    assert asked[0] == set(NAMES)
    assert asked[0] - asked[1] == {"smsp__warps_eligible.avg.per_cycle_active"}
    assert asked[1] - asked[2] == {"lts__t_sector_hit_rate.pct"} and len(asked) == 3
    assert "lts__t_sector_hit_rate.pct" not in launches[0].counters
    assert launches[1].counters["dram__bytes_read.sum"] == 342176256


def test_json_has_a_row_for_each_kernel(stand_in):
    stand_in(ANSWERS)
    record = json.loads(call("k12", "-m", "512", "-n", "512", "-k", "512", "--json").stdout)
    ours, theirs = record["rows"]
    assert (ours["rung"], theirs["rung"]) == ("k12_tall_thread_tile", "cuBLAS")
    assert ours["problem"]["m"] == 512 and ours["registers"] > 0 and ours["config"]["BM"] == 128
    assert ours["counters"]["smsp__inst_executed.sum"] == 2361393152
    assert set(ours["counters"]) < set(NAMES) and record["environment"]["arch"] == "sm_90a"


def test_only_what_lies_between_profiler_start_and_stop_is_counted(stand_in):
    calls = stand_in(ANSWERS)
    assert call("k12", "--set", "BK=8").exit_code == 0
    (arguments,) = map(json.loads, calls.read_text().splitlines())
    at = arguments.index("--profile-from-start")
    assert arguments[at + 1] == "off" and arguments[at + 2] == sys.executable
    assert json.loads(arguments[-1])["config"]["BK"] == 8


FORBIDDEN = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"


@pytest.mark.parametrize("status", [0, 1])
def test_counters_that_only_administrators_may_read_are_status_3_with_the_fix(stand_in, status):
    stand_in(f"log.write_text({FORBIDDEN!r})\nsys.exit({status})")
    done = call("k12")
    assert done.exit_code == 3
    assert "NVreg_RestrictProfilingToAdminUsers=0" in done.stderr and done.stdout == ""


def test_without_ncu_it_is_said_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_NCU", raising=False)
    with pytest.raises(Missing, match="no ncu on PATH: install Nsight Compute"):
        find_ncu()
    monkeypatch.setenv("TILEWRIGHT_NCU", "/nowhere/ncu")
    with pytest.raises(Missing, match="TILEWRIGHT_NCU=/nowhere/ncu: no program there"):
        find_ncu()


def test_without_a_gpu_the_absence_is_status_3(monkeypatch):
    def none() -> None:
        raise NoDevice("no usable GPU: none here")

    monkeypatch.setattr("tilewright.lab.ncu_command.probe", none)
    done = call("k12")
    assert done.exit_code == 3 and "no usable GPU" in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("log.write_text('==ERROR== The driver is busy\\n')\nsys.exit(9)", "exit status 9.*The driver is busy"),
        ("print('Traceback: no module')\nsys.exit(1)", "Traceback: no module"),
        ("pass", "exit status 0.*it said nothing"),
    ],
)
def test_what_ncu_says_when_it_counts_nothing_is_passed_on(stand_in, script, words):
    stand_in(script)
    with pytest.raises(LaunchFailed, match=words):
        profiled(find_ncu(), NAMES, ["program", "-"])


def test_counts_of_another_kernel_are_not_the_rungs(stand_in):
    stand_in(ANSWERS)
    done = call("k10")
    assert done.exit_code == 1
    assert "ncu counted k11_double_buffer(GemmArgs) where k10_padded was launched" in done.stderr


def test_options_for_another_kind_of_inspection_are_refused():
    done = call("k12", "--arch", "sm_80")
    assert done.exit_code == 2 and "--ncu with --arch" in done.stderr


def test_no_metric_is_asked_for_twice_and_each_says_what_it_is():
    assert len(set(NAMES)) == len(NAMES) == len(METRICS) + len(STALLS)
    assert len({metric.words for metric in (*METRICS, *STALLS)}) == len(NAMES)
    assert [count(n) for n in (0, 950, 17_301_504, 2.4e9)] == ["0", "950", "17.3 M", "2.4 G"]
    assert [size(n) for n in (12, 342_176_256)] == ["12 B", "342 MB"]
