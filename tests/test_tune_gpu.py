"""The GPU's side of a search, with the emulator for a GPU: results from real launches, times from a made-up clock."""

import contextlib
import dataclasses
from types import SimpleNamespace

import pytest

from tilewright.arch import get_arch
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import WrongResult
from tilewright.lab.verifying import rolled_binary
from tilewright.measure import ClockReading
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.run import kernel
from tilewright.run.emulator import EmulatorBackend
from tilewright.tune import final_rounds
from tilewright.tune import gpu as tune_gpu
from tilewright.tune.context import problem_fields
from tilewright.tune.final_rounds import measure_on_gpu
from tilewright.tune.gpu import GpuScreen
from tilewright.verify.layers import Check, Verdict

K02 = all_rungs().find("k02")
PROBLEM = Problem(m=64, n=64, k=32)
TIME_US = {8: 100.0, 16: 50.0, 32: 50.1}
"""What a launch takes, by the rows of its CTA tile."""


class EmulatedGpu(EmulatorBackend):
    """The emulator with a GPU's particulars. What a timer launches takes its time of the clock and is not run."""

    sm_count, arch, driver_version, stream = 4, get_arch("sm_90a"), "13.0", SimpleNamespace(busy_us=0.0)

    def __init__(self, device_id=0):
        super().__init__()
        sizes = SimpleNamespace(l2_cache_size=1024, max_shared_memory_per_block_optin=232448)
        self.device = SimpleNamespace(name="NVIDIA Test", uuid="0", pci_bus_id="0", properties=sizes)

    def current(self):
        return contextlib.nullcontext()

    def compile(self, source):
        return rolled_binary(source)

    def stream_handle(self, stream=None):
        return stream

    def prepare(self, binary, grid, args, maps, need):
        run = super().prepare(binary, grid, args, maps, need)

        def launch(a, b, c, d, bias, stream):
            if stream is None:
                run(a, b, c, d, bias, stream)
            else:
                stream.busy_us += TIME_US[grid.block[1]]

        return launch


class FakeTimer:
    """The emulated GPU's clock."""

    def __init__(self, stream):
        self.stream, self.host_s = stream, 0.0

    def now_s(self):
        return self.host_s

    def time_us(self, batches, during):
        taken = []
        for batch in batches:
            self.stream.busy_us = 0.0
            batch(self.stream)
            taken.append(self.stream.busy_us)
        during()
        self.host_s += 0.2
        return taken

    def capture(self, batch):
        return batch


class FakeCublas:
    name, version = "cuBLAS (fake)", "1"

    def gemm(self, problem, a_addr, b_addr, c_addr, d_addr, stream):
        stream.busy_us += 45.0


@pytest.fixture
def emulated(monkeypatch):
    for module in (tune_gpu, final_rounds):
        monkeypatch.setattr(module, "CudaBackend", EmulatedGpu)
        monkeypatch.setattr(module, "CudaTimer", FakeTimer)
    right = Verdict((Check("integer", PROBLEM, "integer", True, "exact"),))
    monkeypatch.setattr(final_rounds, "find_baseline", lambda: (FakeCublas(), ""))
    monkeypatch.setattr(final_rounds, "baseline_verdict", lambda *_: right)
    reading = ClockReading(sm_mhz=1980)
    monkeypatch.setattr(final_rounds, "open_clocks", lambda **_: SimpleNamespace(reason="", read=lambda: reading))


def job(rows, best_us=None):
    return {"config": rung_config(K02, {"BM": rows}).values, "best_us": best_us}


def test_a_config_is_checked_by_real_launches_and_then_timed(emulated):
    screen = GpuScreen({"rung": K02.name, "problem": problem_fields(PROBLEM), "device": 0})
    described = screen.describe()
    assert (described["name"], described["arch"], described["sm_count"]) == ("NVIDIA Test", "sm_90a", 4)
    assert screen.evaluate(job(16)) == {"time_us": 50.0, "samples_us": [50.0] * 3, "slow": False}
    assert screen.evaluate(job(8, best_us=50.0)) == {"time_us": 100.0, "samples_us": [100.0], "slow": True}


def test_a_wrong_config_is_refused_before_it_is_timed(emulated, monkeypatch):
    real = kernel.grid_of

    def too_few(config, problem, *, sm_count):
        grid = real(config, problem, sm_count=sm_count)
        return dataclasses.replace(grid, grid=(1, *grid.grid[1:]))

    monkeypatch.setattr(kernel, "grid_of", too_few)
    monkeypatch.setattr(FakeTimer, "time_us", lambda *_: pytest.fail("it was timed"))
    with pytest.raises(WrongResult, match="not written"):
        GpuScreen({"rung": K02.name, "problem": problem_fields(PROBLEM), "device": 0}).evaluate(job(16))


def finals(configs):
    return measure_on_gpu(PROBLEM, configs, 0, 0, 30.0)


def test_finalists_and_cublas_are_measured_in_the_same_rounds(emulated):
    configs = {f"BM={rows}": rung_config(K02, {"BM": rows}) for rows in (16, 32)}
    found = finals(configs)
    assert found.wrong == {} and found.baseline == "cuBLAS (fake), 1" and found.cache == "cold"
    assert set(found.samples.times_us) == {*configs, BASELINE, "cuBLAS (A/A control)"}
    assert found.samples.ratio("BM=16", BASELINE).median == pytest.approx(0.9)
    assert found.samples.median_sm_mhz == 1980


def test_a_finalist_that_is_wrong_at_full_size_takes_no_part(emulated, monkeypatch):
    real = kernel.kernel_source

    def sabotaged(config, problem, *variant):
        if config.values["BM"] == 32:
            short = dataclasses.replace(K02, source=K02.source.replace("k < args.k", "k < args.k - 1"))
            config = dataclasses.replace(config, rung=short)
        return real(config, problem, *variant)

    monkeypatch.setattr(kernel, "kernel_source", sabotaged)
    found = finals({f"BM={rows}": rung_config(K02, {"BM": rows}) for rows in (16, 32)})
    assert list(found.wrong) == ["BM=32"] and "BM=32" not in found.samples.times_us
    nothing = finals({"BM=32": rung_config(K02, {"BM": 32})})
    assert nothing.samples is None and list(nothing.wrong) == ["BM=32"]


def test_a_baseline_that_is_wrong_is_no_arm(emulated, monkeypatch):
    wrong = Verdict((Check("integer", PROBLEM, "integer", False, "row 0, column 0"),))
    monkeypatch.setattr(final_rounds, "baseline_verdict", lambda *_: wrong)
    found = finals({"BM=16": rung_config(K02, {"BM": 16})})
    assert set(found.samples.times_us) == {"BM=16"} and "cuBLAS (fake) is wrong: integer" in found.no_baseline
