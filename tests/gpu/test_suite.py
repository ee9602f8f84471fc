"""What only a GPU can show of suites: the check of large products, and a bench from the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli import app
from tilewright.lab.suite_gpu import GpuSuite
from tilewright.measure import find_baseline
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.select import choose

pytestmark = pytest.mark.gpu
RUNNER = CliRunner()
PROBLEMS = [
    Problem(m=4096, n=4096, k=4096),
    Problem(m=1000, n=777, k=1234, layout="TN"),
    Problem(m=512, n=16, k=500_000),
    Problem(m=2048, n=2048, k=2048, dtype="bfloat16", out_dtype="bfloat16", layout="NT"),
    Problem(m=1024, n=1536, k=9000, dtype="float16", out_dtype="float16", layout="NT"),
    Problem(m=1024, n=1024, k=512, dtype="tfloat32", layout="NT"),
]


def test_large_products_pass_and_one_that_is_shifted_by_an_element_does_not():
    with CudaBackend() as gpu:
        baseline, _ = find_baseline()
        suite = GpuSuite(gpu, baseline, PROBLEMS)
        for problem in PROBLEMS:
            try:
                config = choose(problem, gpu.arch, gpu.sm_count, kernels="own").config
            except ValueError:
                continue
            suite.open(problem)
            assert suite.complaint(problem, config) == "", str(problem)
            if suite.has_baseline(problem):
                assert suite.complaint(problem, None) == "", str(problem)
            ring = suite._ring(problem)
            assert ring.slots >= 2
            placed = suite._placed(problem)
            assert suite._check.complaint(problem, placed, lambda: None).startswith(f"{problem.m} of {problem.m} rows")


@pytest.mark.parametrize("launch", ["stream", "graph"])
@pytest.mark.parametrize("dtype", ["float32", "tfloat32", "bfloat16"])
@pytest.mark.parametrize("own", [[], ["--own"]])
def test_library_calls_are_timed_beside_torch_in_both_launch_modes(tmp_path, launch, dtype, own):
    suite, out = tmp_path / "mine.csv", tmp_path / "record.json"
    suite.write_text("class,m,n,k,layout\nsquare,1024,1024,1024,NT\nskinny,8,4096,4096,NT\nsmall,64,64,64,NT\n")
    asked = ["bench", str(suite), "--call", "--launch", launch, "--dtype", dtype, *own, "--out", str(out)]
    done = RUNNER.invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    record = json.loads(out.read_text())
    assert [row["arm"] for row in record["rows"]] == ["chosen", "cuBLAS"] * 3
    assert all(row["verified"] and row["launch"] == launch and row["host_us"] > 0 for row in record["rows"])


@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_a_bench_of_a_few_shapes_has_ratios_floors_and_means(tmp_path, launch):
    suite, out = tmp_path / "mine.csv", tmp_path / "record.json"
    suite.write_text("class,m,n,k\nsquare,1024,1024,1024\nragged,1000,1000,1000\nskinny,8,4096,4096\n")
    done = RUNNER.invoke(
        app, ["bench", str(suite), "--own", "--every", "--launch", launch, "--out", str(out)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    record = json.loads(out.read_text())
    chosen = [row for row in record["rows"] if row["arm"] == "chosen"]
    assert len(chosen) == 3 and all(row["verified"] and row["time_us"] > row["floor_us"]["both"] for row in chosen)
    assert all("ratio_to_baseline" in row for row in chosen) and len(record["about"]["means"]) == 4
    done = RUNNER.invoke(app, ["calibrate", str(out)], catch_exceptions=False)
    assert done.exit_code == 0 and "float32" in done.stdout
