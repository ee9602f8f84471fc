from __future__ import annotations

import ctypes
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest

from tilewright.compile import cache as binary_cache
from tilewright.compile.binary import KernelSource
from tilewright.compile.host import compile_host, host_source
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Grid

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


hypothesis.settings.register_profile("untimed", deadline=None)  # speed is not what a test asserts
hypothesis.settings.load_profile("untimed")


@pytest.fixture
def cold_cache(tmp_path, monkeypatch):
    """An empty cache of the test's own, and a process that has not warned yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(binary_cache.ENVIRONMENT, str(folder))
    monkeypatch.setattr(binary_cache, "_warned", False)
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
