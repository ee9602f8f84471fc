"""What a measurement on a GPU says of itself: the device, its clocks and power, how the rounds went."""

from __future__ import annotations

from typing import Any

from tilewright.compile.nvrtc import nvrtc_version
from tilewright.measure import Clocks, Samples, open_clocks
from tilewright.record import environment
from tilewright.run.cuda import CudaBackend


def device_clocks(gpu: CudaBackend) -> Clocks:
    """The reader of this GPU's clocks, power and slowdowns."""
    return open_clocks(uuid=str(gpu.device.uuid), pci_bus_id=str(gpu.device.pci_bus_id))


def gpu_environment(
    gpu: CudaBackend, samples: Samples | None, no_clocks: str, *, data: str, cache: str | None = None, **more: Any
) -> dict[str, Any]:
    """The environment of a record; without `samples` nothing is said of a measurement.

    `no_clocks` is the reason where clocks could not be read, `data` what the operands held, `cache` whether they came
    from a ring that outlasts the L2 ('cold') or from the L2 ('warm').
    """
    measured = {} if samples is None else {"measurement": _measurement(samples, no_clocks, data, cache)}
    return environment(
        backend="cuda", arch=gpu.arch.name, nvrtc=nvrtc_version(), device=_device(gpu), **more, **measured
    )


def _device(gpu: CudaBackend) -> dict[str, Any]:
    clocks = device_clocks(gpu)
    return {
        "name": str(gpu.device.name),
        "uuid": str(gpu.device.uuid),
        "sm_count": gpu.sm_count,
        "l2_bytes": int(gpu.device.properties.l2_cache_size),
        "driver_cuda": gpu.driver_version,
        "power_limit_w": clocks.power_limit_w(),
        "compute_processes": clocks.processes(),
    }


def _measurement(samples: Samples, no_clocks: str, data: str, cache: str | None) -> dict[str, Any]:
    readings = [reading for reading in samples.clocks if reading is not None]
    aa = samples.aa
    return {
        "mode": samples.mode,
        "launch": samples.launch,
        "cache": cache,
        "rounds": samples.rounds,
        "rejected_rounds": samples.rejected_rounds,
        "stop": samples.stop,
        "warm": samples.warm,
        "idle_s": samples.idle_s,
        "aa": None if aa is None else {"low": aa.low, "median": aa.median, "high": aa.high},
        "aa_floor": samples.aa_floor,
        "reference": samples.baseline,
        "buffer_sets": samples.slots,
        "seed": samples.seed,
        "data": data,
        "median_sm_mhz": samples.median_sm_mhz,
        "median_memory_mhz": samples.median_memory_mhz,
        "sm_mhz": samples.sm_mhz,
        "power_w": [reading.power_w for reading in readings],
        "temperature_c": [reading.temperature_c for reading in readings],
        "clock_reasons": sorted({reason for reading in readings for reason in reading.reasons}),
        "no_clocks": no_clocks or None,
    }
