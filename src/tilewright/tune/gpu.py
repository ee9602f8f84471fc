"""The device worker's job: one config checked on small problems, then timed on the real one. Needs a GPU.

Owns the device's buffers and what is launched. What is said of a result is `verify`'s, how it is timed `screen.py`'s.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tilewright.compile.nvrtc import nvrtc_version
from tilewright.declare import all_rungs, rung_config
from tilewright.measure.ring import OperandRing
from tilewright.measure.timer import CudaTimer
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.tune.build import check_problems
from tilewright.tune.context import problem_from
from tilewright.tune.screen import screen, warm_up
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import Case, make_case, require_right
from tilewright.verify.operands import make_operands


def describe_device(gpu: CudaBackend) -> dict[str, Any]:
    """What tells two devices apart, and two drivers and compilers."""
    properties = gpu.device.properties
    return {
        "name": str(gpu.device.name),
        "uuid": str(gpu.device.uuid),
        "arch": gpu.arch.name,
        "compute_capability": list(gpu.arch.compute_capability),
        "sm_count": gpu.sm_count,
        "smem_optin_bytes": int(properties.max_shared_memory_per_block_optin),
        "driver": _driver(gpu),
        "nvrtc": nvrtc_version(),
    }


def _driver(gpu: CudaBackend) -> str:
    """The driver's own version, or where NVML doesn't say the newest CUDA it supports."""
    try:
        from cuda.bindings import nvml

        nvml.init_v2()
        return str(nvml.system_get_driver_version())
    except Exception:  # NVML is absent or too old; each cause has a class of its own
        return f"CUDA {gpu.driver_version}"


class GpuScreen:
    """One GPU with the operands of one problem. The setup names rung, problem and device."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._rung = all_rungs()[setup["rung"]]
        self._problem = problem_from(setup["problem"])
        self._gpu = CudaBackend(setup["device"])
        self._ring: OperandRing | None = None
        self._runs = DeviceRuns(self._gpu)

    def describe(self) -> dict[str, Any]:
        """See `describe_device`."""
        return describe_device(self._gpu)

    def evaluate(self, job: dict[str, Any]) -> dict[str, Any]:
        """The screening time of `job["config"]`; `job["best_us"]` is the best so far, or null.

        Raises WrongResult with the first check that failed, and LaunchFailed, after which the device's context is lost.
        """
        config = rung_config(self._rung, job["config"])
        for problem in check_problems(config, self._problem):
            require_right(self._runs.of(config), _case(problem))
        with self._gpu.current():
            is_first = self._ring is None
            if self._ring is None:
                self._ring, self._timer = OperandRing(self._problem, self._gpu), CudaTimer(self._gpu.stream)
            arm = self._ring.config_arm("screened", config)
            if is_first:
                warm_up(arm, self._timer, slots=self._ring.slots)
            screened = screen(arm, self._timer, slots=self._ring.slots, best_us=job["best_us"])
        return {"time_us": screened.time_us, "samples_us": list(screened.samples_us), "slow": screened.slow}


@lru_cache(maxsize=256)
def _case(problem: Problem) -> Case:
    return make_case("integer", make_operands(problem, "integer"))
