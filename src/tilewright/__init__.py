"""tilewright: the ladder of GPU matrix multiplication, declared once.

From one declaration a kernel is validated, compiled, explained, run on a GPU or in an emulator on a plain CPU,
verified and measured. Importing this makes no CUDA call and loads no heavy module: names are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilewright.api.calls import gemm, gemm_with, matmul
    from tilewright.api.gemm import Gemm
    from tilewright.arch import ARCHS, ArchSpec, Occupancy, get_arch, occupancy
    from tilewright.compile.nvrtc import compile_cubin
    from tilewright.compile.source import kernel_source
    from tilewright.declare import Config, Param, Requires, Rung, all_rungs, discover, enumerate_configs, rung_config
    from tilewright.epilogue import Epilogue
    from tilewright.problem import Problem
    from tilewright.run.cuda import CudaBackend
    from tilewright.run.emulator import EmulatorBackend
    from tilewright.verify import Verdict

_HOMES = {
    "tilewright.api.calls": ("gemm", "gemm_with", "matmul"),
    "tilewright.api.gemm": ("Gemm",),
    "tilewright.arch": ("ARCHS", "ArchSpec", "Occupancy", "get_arch", "occupancy"),
    "tilewright.compile.nvrtc": ("compile_cubin",),
    "tilewright.compile.source": ("kernel_source",),
    "tilewright.declare": (
        *("Config", "Param", "Requires", "Rung"),
        *("discover", "enumerate_configs", "rung_config", "all_rungs"),
    ),
    "tilewright.epilogue": ("Epilogue",),
    "tilewright.problem": ("Problem",),
    "tilewright.run.cuda": ("CudaBackend",),
    "tilewright.run.emulator": ("EmulatorBackend",),
    "tilewright.verify": ("Verdict",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ARCHS",
    "ArchSpec",
    "Config",
    "CudaBackend",
    "EmulatorBackend",
    "Epilogue",
    "Gemm",
    "Occupancy",
    "Param",
    "Problem",
    "Requires",
    "Rung",
    "Verdict",
    "all_rungs",
    "compile_cubin",
    "discover",
    "enumerate_configs",
    "gemm",
    "gemm_with",
    "get_arch",
    "kernel_source",
    "matmul",
    "occupancy",
    "rung_config",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("tilewright")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tilewright' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
