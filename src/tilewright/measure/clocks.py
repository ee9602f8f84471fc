"""What the GPU's clocks, power and slowdowns were, read through NVML.

Reads only; it never sets a clock. A machine without NVML, or a GPU that refuses a question, gives None and a
reason, never an error: a measurement without clocks is still a measurement, and says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

CLOCK_SM, CLOCK_MEMORY = 1, 2
GPU_TEMPERATURE = 0
EVENT_REASONS = {
    0x004: "sw_power_cap",
    0x008: "hw_slowdown",
    0x010: "sync_boost",
    0x020: "sw_thermal_slowdown",
    0x040: "hw_thermal_slowdown",
    0x080: "hw_power_brake",
}
SLOWDOWNS = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"})


@dataclass(frozen=True, slots=True)
class ClockReading:
    """One reading. None where the GPU doesn't answer; `reasons` are what holds the clock down just now."""

    sm_mhz: int | None
    memory_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    reasons: tuple[str, ...] = ()

    @property
    def slowed(self) -> bool:
        """Whether heat or hardware slows the GPU. A software power cap is normal under load and doesn't count."""
        return not SLOWDOWNS.isdisjoint(self.reasons)


@dataclass(frozen=True, slots=True)
class _Nvml:
    """The questions, as one Python binding of NVML spells them."""

    name: str
    by_uuid: Callable[[str], Any]
    by_pci: Callable[[str], Any]
    clock_mhz: Callable[[Any, int], int]
    power_mw: Callable[[Any], int]
    event_reasons: Callable[[Any], int]
    temperature_c: Callable[[Any, int], int]
    power_limit_mw: Callable[[Any], int]
    processes: Callable[[Any], Sequence[Any]]


class Clocks:
    """A reader for one device. `reason` says in one line why `read` gives None, and is empty where it doesn't."""

    def __init__(self, nvml: _Nvml | None, handle: Any, reason: str) -> None:
        self._nvml = nvml
        self._handle = handle
        self.reason = reason
        self.source = nvml.name if nvml else ""

    def read(self) -> ClockReading | None:
        """The reading now: microseconds to about a millisecond of host time, none of the GPU's."""
        nvml = self._nvml
        if nvml is None:
            return None
        power_mw = _ask(nvml.power_mw, self._handle)
        bits = _ask(nvml.event_reasons, self._handle) or 0
        return ClockReading(
            sm_mhz=_ask(nvml.clock_mhz, self._handle, CLOCK_SM),
            memory_mhz=_ask(nvml.clock_mhz, self._handle, CLOCK_MEMORY),
            power_w=None if power_mw is None else power_mw / 1000.0,
            temperature_c=_ask(nvml.temperature_c, self._handle, GPU_TEMPERATURE),
            reasons=tuple(name for bit, name in EVENT_REASONS.items() if bits & bit),
        )

    def power_limit_w(self) -> float | None:
        """The power limit that the driver enforces."""
        limit_mw = _ask(self._nvml.power_limit_mw, self._handle) if self._nvml else None
        return None if limit_mw is None else limit_mw / 1000.0

    def processes(self) -> int | None:
        """How many processes have a CUDA context on the device, this one among them; a container may hide some."""
        nvml = self._nvml
        return None if nvml is None else _ask(lambda: len(nvml.processes(self._handle)))


def open_clocks(*, uuid: str = "", pci_bus_id: str = "") -> Clocks:
    """A reader for the device with this UUID (with or without 'GPU-') or PCI bus id. Never raises."""
    reasons = []
    for bind in (_bind_cuda_bindings, _bind_nvidia_ml_py):
        try:
            nvml = bind()
            return Clocks(nvml, _find_device(nvml, uuid, pci_bus_id), "")
        except Exception as error:  # each binding has an exception tree of its own
            reasons.append(f"{bind.__name__.removeprefix('_bind_')}: {_first_line(error)}")
    return Clocks(None, None, f'no clock readings ({"; ".join(reasons)}); pip install "tilewright[lab]"')


def _find_device(nvml: _Nvml, uuid: str, pci_bus_id: str) -> Any:
    bare = uuid.removeprefix("GPU-").removeprefix("MIG-")
    tries = [(nvml.by_uuid, prefix + bare) for prefix in ("GPU-", "MIG-") if bare]
    tries += [(nvml.by_pci, pci_bus_id)] if pci_bus_id else []
    failure: Exception = ValueError("neither a UUID nor a PCI bus id was given")
    for find, key in tries:
        try:
            return find(key)
        except Exception as error:
            failure = error
    raise failure


def _bind_cuda_bindings() -> _Nvml:
    nvml = importlib.import_module("cuda.bindings.nvml")
    nvml.init_v2()
    return _Nvml(
        name="cuda.bindings.nvml",
        by_uuid=nvml.device_get_handle_by_uuid,
        by_pci=nvml.device_get_handle_by_pci_bus_id_v2,
        clock_mhz=nvml.device_get_clock_info,
        power_mw=nvml.device_get_power_usage,
        event_reasons=nvml.device_get_current_clocks_event_reasons,
        temperature_c=_optional(nvml, "device_get_temperature_v"),
        power_limit_mw=_optional(nvml, "device_get_enforced_power_limit"),
        processes=_optional(nvml, "device_get_compute_running_processes_v3"),
    )


def _bind_nvidia_ml_py() -> _Nvml:
    nvml = importlib.import_module("pynvml")
    nvml.nvmlInit()
    older = "nvmlDeviceGetCurrentClocksThrottleReasons"
    event_reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or getattr(nvml, older)
    return _Nvml(
        name="nvidia-ml-py",
        by_uuid=nvml.nvmlDeviceGetHandleByUUID,
        by_pci=nvml.nvmlDeviceGetHandleByPciBusId,
        clock_mhz=nvml.nvmlDeviceGetClockInfo,
        power_mw=nvml.nvmlDeviceGetPowerUsage,
        event_reasons=event_reasons,
        temperature_c=_optional(nvml, "nvmlDeviceGetTemperature"),
        power_limit_mw=_optional(nvml, "nvmlDeviceGetEnforcedPowerLimit"),
        processes=_optional(nvml, "nvmlDeviceGetComputeRunningProcesses"),
    )


def _optional(binding: Any, name: str) -> Callable[..., Any]:
    """The binding's function, or one that raises as a GPU does that refuses the question."""

    def refused(*_: Any) -> Any:
        raise NotImplementedError(f"{name}: this binding of NVML doesn't have it")

    return getattr(binding, name, refused)


def _ask(question: Callable[..., int], *args: Any) -> int | None:
    try:
        return int(question(*args))
    except Exception:  # 'not supported' on this GPU; each binding has its own class for it
        return None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__
