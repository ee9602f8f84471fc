"""The examples as far as they go without torch, CuPy and a GPU: arguments, what is missing, bounds, the record."""

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.measure import Samples
from tilewright.record import read_record

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = {"gpt2_forward": "torch", "subspace_iteration": "cupy"}
"""By name, the framework of each."""
RUN = (
    "import runpy, sys; sys.argv = sys.argv[1:]; sys.path.insert(0, {folder!r}); "
    "sys.modules[{framework!r}] = {module}; runpy.run_path(sys.argv[0], run_name='__main__')"
)
ABSENT, EMPTY = "None", "type(sys)('stand_in')"


def run(script: str, *arguments: str, module: str = ABSENT, **more: str) -> subprocess.CompletedProcess[str]:
    """The script's run where importing its framework fails, or gives an empty module."""
    code = RUN.format(folder=str(EXAMPLES), framework=SCRIPTS[script], module=module)
    environment = {name: value for name, value in os.environ.items() if name != "NVIDIA_TF32_OVERRIDE"}
    command = [sys.executable, "-c", code, str(EXAMPLES / f"{script}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**environment, **more}, check=False)


@pytest.fixture
def example(monkeypatch):
    """An example as a module, by name."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_compiles(path):
    compile(path.read_text(encoding="utf-8"), str(path), "exec")


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_needs_no_framework(script):
    done = run(script, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith(f"usage: {script}.py") and "--json" in done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_missing_framework_a_missing_gpu_and_a_switch_in_the_way_are_one_line_each(script):
    framework = SCRIPTS[script]
    for done, status, words in (
        (run(script), 3, f"{framework} cannot be imported"),
        (run(script, module=EMPTY, CUDA_VISIBLE_DEVICES=""), 3, "no usable GPU"),
        (run(script, NVIDIA_TF32_OVERRIDE="1"), 2, "NVIDIA_TF32_OVERRIDE is set"),
    ):
        assert done.returncode == status, done.stderr
        assert done.stdout == "" and len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith(f"error: {words}")


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("gpt2_forward", ["--tokens", "1025"]),
        ("gpt2_forward", ["--batch", "0"]),
        ("subspace_iteration", ["-m", "100", "-n", "200"]),
        ("subspace_iteration", ["--columns", "16", "--wanted", "15"]),
    ],
)
def test_sizes_that_cannot_be_are_refused_before_anything_is_imported(script, arguments):
    done = run(script, *arguments)
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith(f"{script}.py: error: ")


class NumpyAsCupy:
    asnumpy = staticmethod(np.asarray)

    def __getattr__(self, name):
        return getattr(np, name)


def one_chain(a, b):
    """The product with each sum as one chain in float32, the order that errs most."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for column, row in zip(np.ascontiguousarray(a.T), np.ascontiguousarray(b), strict=True):
        total += column[:, None] * row
    return total


def in_tf32(a, b):
    """The product of operands rounded to TF32's 11 bits."""
    rounded = (
        ((np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
        for x in (a, b)
    )
    return np.matmul(*rounded)


def test_the_bounds_of_the_subspace_iteration_take_any_order_of_summation_and_no_other_arithmetic(example):
    subspace, cupy = example("subspace_iteration"), NumpyAsCupy()
    asked = argparse.Namespace(m=2000, n=300, columns=16, wanted=8, steps=8)
    a = subspace.matrix(cupy, asked.m, asked.n, seed=0)
    start = np.random.default_rng(1).standard_normal((asked.n, asked.columns)).astype(np.float32)
    for product in (np.matmul, one_chain):
        off = subspace.check(cupy, product, a, start, asked)
        assert 0 < off["product"] < 0.6 and 0 < off["values"] < 0.6
    off = subspace.check(cupy, in_tf32, a, start, asked)
    assert off["product"] > 2 and off["values"] > 2
    asked.steps = 2
    off = subspace.check(cupy, one_chain, a, start, asked)
    assert off["product"] < 1 and off["values"] < 1 and off["relative"] > 1e-4, "an iteration that is not done is known"


class Stream:
    """Queued work runs at once on a device clock that never is behind the host's."""

    def __init__(self):
        self.host_ms = self.device_ms = 0.0
        self.device = SimpleNamespace(arch="90")

    def work(self, ms, queueing_ms):
        self.host_ms += queueing_ms
        self.device_ms = max(self.device_ms, self.host_ms) + ms

    def record(self, options):
        assert options.timing_enabled
        return max(self.device_ms, self.host_ms)

    def sync(self):
        self.host_ms = max(self.host_ms, self.device_ms)


def test_the_time_of_a_call_holds_what_the_gpu_waits_for_the_host(example, monkeypatch):
    paired = example("paired")
    monkeypatch.setattr("tilewright.measure.timer._build_delay", lambda arch: (None, None))
    monkeypatch.setattr("tilewright.measure.timer._device_current", contextlib.nullcontext)
    monkeypatch.setitem(sys.modules, "cuda.core", SimpleNamespace(EventOptions=SimpleNamespace))
    stream, read = Stream(), []
    timer = paired.CallTimer(stream)
    calls = [lambda on: on.work(1.0, 5.0), lambda on: [on.work(2.0, 0.5) for _ in range(2)]]
    assert timer.time_us(calls, lambda: read.append(stream.device_ms > stream.host_ms)) == [6000.0, 4500.0]
    assert read == [True]


def made(baseline, stop="rounds"):
    """Samples in which tilewright takes half of the baseline's time."""
    times = {baseline: (2000.0,) * 20, f"{baseline} (A/A control)": (2002.0,) * 20, "tilewright": (1000.0,) * 20}
    counts = {"order": (tuple(times),) * 20, "clocks": (None,) * 20, "inner": dict.fromkeys(times, 1)}
    ended = {"slots": 1, "seed": 0, "stop": stop, "warm": True, "rejected_rounds": 0}
    return Samples(times_us=times, baseline=baseline, **counts, **ended)


def test_the_table_and_the_record_say_what_was_measured(example, monkeypatch, tmp_path, capsys):
    paired = example("paired")
    monkeypatch.setattr(paired, "device_clocks", lambda gpu: SimpleNamespace(reason="none here"))
    monkeypatch.setattr(
        paired,
        "gpu_environment",
        lambda gpu, samples, clocks, data: {"measurement": {"rounds": samples.rounds}} if samples else {"commit": "c"},
    )
    measured = {"eager": made("torch"), "CUDA graph": made("torch", stop="throttled")}
    paired.show(measured)
    heading, eager = capsys.readouterr().out.splitlines()[1:3]
    assert heading.split()[:2] == ["torch", "tilewright"] and "torch / tilewright [95%]" in heading
    assert eager.split()[:6] == ["eager", "2", "ms", "1", "ms", "2.000"] and "[2.000, 2.000]" in eager
    assert "0.10%" in eager and eager.endswith("20 (rounds)")
    path = tmp_path / "new" / "record.json"
    asked = argparse.Namespace(json=path)
    paired.write_record(asked, None, measured, problem={"tokens": 8}, data="random", about={"example": "made"})
    record = read_record(path)
    assert [row.arm for row in record.rows] == [
        f"{label}: {name}" for label in measured for name in ("torch", "tilewright")
    ]
    torch, ours, throttled, _ = record.rows
    assert torch.time_us == 2000.0 and torch.ratio_to_baseline is None and ours.ratio_to_baseline.median == 2.0
    assert throttled.time_us is None and throttled.outcome == "throttled" and len(throttled.samples_us) == 20
    assert [each["of"] for each in record.about["measurements"]] == list(measured)
    assert json.loads(path.read_text())["environment"] == {"commit": "c"}
