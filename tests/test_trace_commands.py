"""The microscope's commands: what is printed, what is drawn, what is refused, and the exit status."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tilewright.cli import app
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import Missing
from tilewright.facts import disassemble
from tilewright.lab import races_command
from tilewright.lab.races_command import distinct_problems
from tilewright.lab.tracing import declared_matrices, small_problem
from tilewright.problem import Problem
from tilewright.run import kernel

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def call(*args: str):
    return RUNNER.invoke(app, list(args), catch_exceptions=False)


def test_inspect_memory_is_a_table_by_source_line():
    done = call("inspect", "k08", "--memory")
    assert done.exit_code == 0
    counts, each_tile = r" +1024 +4 +4 +1 +8 +4", r" +16 +64 +48"
    assert re.search(rf"As\[k \+ i\]\[row \+ r\] = four\[i\];\n +store As{counts}{each_tile}\b", done.stdout)
    assert re.search(r"load A +256 +16 +16 +16 +100\.0% +4 +64 +64\b", done.stdout)
    assert "a warp, each K-tile of 16" in done.stdout


@pytest.mark.usefixtures("with_nvdisasm")
def test_inspect_memory_shows_the_binarys_instructions_and_widths_beside_the_traced_ones():
    done = call("inspect", "k06", "--memory", "--arch", "sm_90a")
    assert re.search(r"load Bs +4096 +4→16 .* LDS\.128 ×16\n", done.stdout)
    assert re.search(r"store D .* STG\.32 \+64\n", done.stdout)
    assert "4→16: the compiler merged" in done.stdout
    (row,) = json.loads(call("inspect", "k12", "--memory", "--json").stdout)["rows"]
    (load,) = (line for line in row["memory"] if (line["kind"], line["array"]) == ("load", "A"))
    assert (load["main_loop"], load["elsewhere"]) == ({"LDG.128": 4}, {"LDG.128": 4})
    assert (row["arch"], row["sass_unit"]) == ("sm_90a", "K-tile of 16")


def test_without_nvdisasm_the_lines_are_as_traced_and_what_is_missing_is_said(monkeypatch):
    def missing():
        raise Missing("nvdisasm is not here: pip install 'tilewright[sass]'")

    monkeypatch.setattr(disassemble, "nvdisasm", missing)
    done = call("inspect", "k06", "--memory")
    assert re.search(r"load Bs +16384 +4 .* 64 +256 +192\n", done.stdout)
    assert "pip install 'tilewright[sass]'" in done.stdout and "LDS" not in done.stdout
    (row,) = json.loads(call("inspect", "k06", "--memory", "--json").stdout)["rows"]
    assert "nvdisasm" in row["sass_missing"] and not any("main_loop" in line for line in row["memory"])


def test_inspect_memory_as_json_has_the_lines_with_the_fields_of_their_space():
    row = json.loads(call("inspect", "k01", "--memory", "--json").stdout)["rows"][0]
    assert row["sectors_per_request"] == pytest.approx(16.6, abs=0.1) and "wavefronts_per_access" not in row
    load = next(line for line in row["memory"] if line["array"] == "A")
    assert load["sectors"] == 32 * load["instructions"] and "wavefronts" not in load


def test_a_line_is_drawn_as_a_bank_map_in_text_and_svg(tmp_path):
    store = next(
        line["line"]
        for line in json.loads(call("inspect", "k08", "--memory", "--json").stdout)["rows"][0]["memory"]
        if (line["kind"], line["array"]) == ("store", "As")
    )
    picture = tmp_path / "banks.svg"
    done = call("inspect", "k08", "--memory", "--line", str(store), "--svg", str(picture))
    assert "store As, 4 bytes a lane, warp 0: 4 wavefronts, 8 of 32 banks" in done.stdout
    assert re.search(r"wavefront 1 +0 +4 +8 +12 +16 +20 +24 +28 +·", done.stdout)
    rectangles = ElementTree.parse(picture).getroot().findall("{http://www.w3.org/2000/svg}rect")
    assert len(rectangles) == 1 + 4 * 32
    assert sum(bool(list(rectangle)) for rectangle in rectangles) == 32


def test_a_line_without_shared_accesses_is_refused_with_those_that_have_some():
    done = call("inspect", "k08", "--memory", "--line", "1")
    assert done.exit_code == 2
    assert re.search(r"--line 1: no access to shared memory there; lines with one: \[\d+, ", done.stderr)
    assert call("inspect", "k08", "--memory", "--svg", "x.svg").exit_code == 2


def test_a_right_rung_has_no_findings_under_any_schedule():
    done = call("verify", "k04", "--races", "--seed", "7")
    assert done.exit_code == 0
    assert done.stdout.count("✓ no race") == 3 and "random schedule, seed 7" in done.stdout


def test_a_race_is_told_with_its_lines_and_fails(monkeypatch):
    def without_barrier(config, problem, *variant):
        source = original(config, problem, *variant)
        return replace(source, text=source.text.replace("__syncthreads();", "", 1))

    original = kernel.kernel_source
    monkeypatch.setattr(kernel, "kernel_source", without_barrier)
    config = rung_config(all_rungs().find("k04"))
    monkeypatch.setattr(races_command, "distinct_problems", lambda _: [small_problem(config)])
    done = call("verify", "k04", "--races", "--schedule", "reverse", "--json")
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)["rows"]
    assert row["verified"] is False and row["failure"] == "UnsafeMemory"
    assert any(re.search(r"race on As\[\d+\] .* and no barrier between", text) for text in row["findings"])
    assert "✗ race on" in done.stderr


def test_an_unknown_schedule_is_refused():
    assert call("verify", "k04", "--races", "--schedule", "fair").exit_code == 2


def test_the_emulated_ladder_counts_sectors_and_wavefronts():
    done = call("ladder", "--backend", "emulator", "--json", "--rung", "k04", "-m", "64", "-n", "64", "-k", "32")
    (row,) = json.loads(done.stdout)["rows"]
    assert row["sectors_per_request"] == 4 and row["wavefronts_per_access"] == 1


def test_problems_that_differ_in_scale_only_are_traced_once():
    problems = distinct_problems(rung_config(all_rungs().find("k08")))
    assert len({(p.m, p.n, p.k, p.batch, p.beta == 0, p.lda, p.batch_stride_b) for p in problems}) == len(problems)


def test_operands_are_declared_as_matrices_where_their_padding_is_nobodys():
    problem = Problem(m=3, n=5, k=7, lda=9)
    matrix = declared_matrices(problem)["A"]
    assert (matrix.rows, matrix.columns, matrix.row_stride) == (3, 7, 9)
    overlapping = Problem(m=3, n=5, k=7, lda=20, batch=2, batch_stride_a=10)
    assert "A" not in declared_matrices(overlapping)
