"""The examples on a GPU, at small sizes: they end well, and say what they found."""

import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.record import read_record

pytestmark = pytest.mark.gpu
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SHORT = ["--rounds", "5", "--budget", "4"]


def run(script: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / script), *SHORT, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def line(printed: str, start: str) -> str:
    return next(each for each in printed.splitlines() if each.startswith(start))


def test_gpt2_has_the_right_logits_and_is_timed_both_ways(tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "gpt2.json"
    printed = run("gpt2_forward.py", "--batch", "2", "--tokens", "40", "--json", str(path))
    assert "accepted" in line(printed, "  torch ")
    for layers in ("  12 × 80×2304×768: ", "  12 × 80×768×768: ", "  12 × 80×3072×768: ", "  12 × 80×768×3072: "):
        assert line(printed, layers).removeprefix(layers)
    assert line(printed, "  1 × 80×50257×768: ")
    assert line(printed, "eager ") and line(printed, "CUDA graph ")
    record = read_record(path)
    assert len(record.rows) == 4 and record.about["logits"]["error"] <= record.about["logits"]["bound"]
    assert record.environment["device"]["name"] and len(record.about["measurements"]) == 2


def test_gpt2_may_be_timed_one_way():
    pytest.importorskip("torch")
    printed = run("gpt2_forward.py", "--tokens", "16", "--mode", "graph")
    assert line(printed, "CUDA graph ") and "eager" not in printed


def test_the_subspace_iteration_finds_the_known_values_without_copies(tmp_path):
    pytest.importorskip("cupy")
    path = tmp_path / "subspace.json"
    sizes = ["-m", "4000", "-n", "600", "--columns", "16", "--wanted", "8", "--steps", "8"]
    printed = run("subspace_iteration.py", *sizes, "--json", str(path))
    assert line(printed, "  cupy ") and line(printed, "  tilewright ")
    for start in ("A·Q 4000×16×600", "Aᵀ·Y 600×16×4000", "end to end"):
        assert line(printed, start)
    record = read_record(path)
    assert len(record.rows) == 6 and all(row.verified for row in record.rows)
    assert all(off["product"] <= 1 and off["values"] <= 1 for off in record.about["errors"].values())
