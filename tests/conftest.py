from __future__ import annotations

import ctypes
import math
import random
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest

from tilewright.arch import get_arch
from tilewright.compile import cache as binary_cache
from tilewright.compile.binary import KernelSource
from tilewright.compile.host import compile_host, host_source
from tilewright.compile.nvrtc import nvrtc_version
from tilewright.errors import Missing
from tilewright.facts.disassemble import nvdisasm
from tilewright.facts.static import problem_fields
from tilewright.measure import Arm, ClockReading, measure
from tilewright.record import Row, environment
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Grid
from tilewright.verify.layers import Check, Verdict

binary_cache.LOCK_S = 120.0  # a busy machine's compiler is no lock that is never released
HEADERS = ("memory", "warp", "matrix", "barriers", "mbarrier")


class DeviceProbeArgs(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint64), ("y", ctypes.c_uint64), ("flags", ctypes.c_uint64), ("n", ctypes.c_int32))


def device_probe_source(body: str, *more_headers: str) -> KernelSource:
    """A kernel on `const float* x, float* y, unsigned* flags, int n`, whose body starts at line 1 of probe.cu."""
    text = "".join(f'#include "tilewright/{name}.cuh"\n' for name in (*HEADERS, *more_headers))
    text += (
        "using namespace tilewright;\n"
        "struct Args { const float* x; float* y; unsigned* flags; int n; };\n"
        'extern "C" __global__ void probe(const __grid_constant__ Args args) {\n'
        "  [[maybe_unused]] const int t = threadIdx.x, lane = t % 32, warp = t / 32;\n"
        f'#line 1 "probe.cu"\n{body}\n}}\n'
    )
    return KernelSource(name="probe", entry="probe", text=text, file="probe.cu")


@pytest.fixture
def device_probe():
    """The source of a probe kernel, for a compiler."""
    return device_probe_source


def launch_device_probe(device, binary, *, threads=32, grid=1, smem_bytes=0, elements=1024):
    """Launch a probe kernel. X holds 0, 1, 2, …, Y NaN, flags zero; gives y and flags as they are then."""
    hosts = {"X": np.arange(elements, dtype=np.float32), "Y": np.full(elements, np.nan, np.float32)}
    hosts["flags"] = np.zeros(64, np.uint32)
    memory = {label: device.alloc(x.nbytes, label=label, read_only=label == "X") for label, x in hosts.items()}
    for label, host in hosts.items():
        device.upload(memory[label], host.view(np.uint8))
    x, y, flags = memory.values()
    args = DeviceProbeArgs(x=x.address, y=y.address, flags=flags.address, n=elements)
    device.launch(binary, Grid((grid, 1, 1), (threads, 1, 1), smem_bytes), args)
    device.synchronize()
    return SimpleNamespace(y=device.download(y).view(np.float32), flags=device.download(flags).view(np.uint32))


@pytest.fixture
def emulate():
    """Run a probe kernel's body in the emulator, under the options given."""

    def run(body, *more_headers, threads=32, grid=1, smem_bytes=0, elements=1024, **options):
        binary = compile_host(host_source(device_probe_source(body, *more_headers), args_type="Args"))
        with EmulatorBackend(**{"timeout_s": 20.0, **options}) as device:
            geometry = {"threads": threads, "grid": grid, "smem_bytes": smem_bytes, "elements": elements}
            return launch_device_probe(device, binary, **geometry)

    return run


@pytest.fixture
def on_gpu():
    """Run a probe kernel's body on the GPU."""
    from tilewright.compile.nvrtc import compile_cubin
    from tilewright.run.cuda import CudaBackend

    def run(body, *more_headers, **geometry):
        with CudaBackend() as device:
            binary = compile_cubin(device_probe_source(body, *more_headers), device.arch)
            return launch_device_probe(device, binary, **geometry)

    return run


@pytest.fixture
def one_float32_rung(monkeypatch):
    """Choose k04 for float32, so that the emulator compiles a handful of kernels whatever is multiplied."""
    from tilewright.select import choice

    whole = choice.candidates_for

    def left(arch, dtype, calibration):
        every = whole(arch, dtype, calibration)
        return tuple(each for each in every if dtype != "float32" or each.config.rung.name == "k04_shared_tile")

    monkeypatch.setattr(choice, "candidates_for", left)
    choice._chosen.cache_clear()
    yield
    choice._chosen.cache_clear()


hypothesis.settings.register_profile("untimed", deadline=None)  # speed is not what a test asserts
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def cold_cache(tmp_path, monkeypatch):
    """An empty cache of the test's own, and a process that has not warned yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(binary_cache.ENVIRONMENT, str(folder))
    monkeypatch.setattr(binary_cache, "_warned", set())
    return folder


def pytest_collection_modifyitems(config, items):
    if "slow" not in config.option.markexpr:
        slow = [item for item in items if "slow" in item.keywords]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        if "gpu" in item.keywords and gpu_missing():
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {gpu_missing()}"))


def gpu_missing() -> str:
    from tilewright.errors import NoDevice
    from tilewright.run.cuda import probe

    try:
        probe()
    except NoDevice as error:
        return str(error)
    return ""


@pytest.fixture
def launch_probe():
    """Launch a compiled probe kernel on a device."""
    return launch_device_probe


@pytest.fixture(scope="session")
def with_nvdisasm():
    """Skips a test where nvdisasm is not installed."""
    try:
        nvdisasm()
    except Missing as error:
        pytest.skip(str(error))


class SimulatedTimer:
    """A clock that runs while launches do: each adds its own time, with the noise of a seeded generator."""

    def __init__(self, seed: int = 1) -> None:
        self.rng, self.seconds, self.busy_us = random.Random(seed), 0.0, 0.0

    def now_s(self) -> float:
        return self.seconds

    def time_us(self, batches, during):
        taken = []
        for batch in batches:
            self.busy_us = 0.0
            batch(None)
            taken.append(self.busy_us * math.exp(self.rng.gauss(0, 0.001)))
            self.seconds += taken[-1] * 1e-6
        during()
        return taken

    def idle(self, seconds):
        self.seconds += seconds

    def capture(self, batch):
        return batch


class SimulatedBench:
    """A bench whose arms take the times told, by label; everything is right but the labels in `wrong`."""

    def __init__(self, times_us, *, wrong=(), baseline_us=1000.0, device="NVIDIA H200", reasons=()) -> None:
        self.times_us, self.wrong, self.baseline_us, self.reasons = times_us, wrong, baseline_us, reasons
        self.arch, self.device, self.checked = get_arch("sm_90a"), device, []

    def check(self, candidate, problem):
        self.checked.append((candidate, problem))
        ok = str(candidate) not in self.wrong
        return Verdict((Check("integer", problem, "integer", ok, "" if ok else "D[0, 0] is wrong"),))

    def baseline_row(self, problem):
        return Row(rung="cuBLAS", arm="cuBLAS", problem=problem_fields(problem), verified=True)

    def time(self, problem, arms, effort):
        timer = SimulatedTimer()

        def launch(time_us):
            def add(slot, stream):
                timer.busy_us += time_us

            return add

        made = [Arm(label, launch(self.times_us[label])) for label in arms]
        made.append(Arm("cuBLAS", launch(self.baseline_us)))
        reading = ClockReading(sm_mhz=1980, reasons=self.reasons)
        limits = {"rounds": effort.rounds, "seed": 1, "budget_s": effort.budget_s, "slots": 1}
        reference = made[0].name if len(arms) > 1 else "cuBLAS"
        return measure(made, timer, **limits, baseline=reference, read_clocks=lambda: reading)

    def peak_tflops(self, samples):
        return 60.0

    def environment(self, samples):
        device = {"name": self.device, "sm_count": 132, "driver_cuda": "13.0"}
        return environment(backend="cuda", arch=self.arch.name, nvrtc=nvrtc_version(), device=device, baseline="cuBLAS")


@pytest.fixture
def simulated_bench():
    """A bench without a GPU: times by label, labels of candidates that are wrong."""
    return SimulatedBench
