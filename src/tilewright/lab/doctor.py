"""`tilewright doctor`: what this machine has, what it lacks, and how to get it."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rich.text import Text

from tilewright.compile.cache import ENVIRONMENT, cache_dir, make_private
from tilewright.compile.host import find_compiler, instruction_set
from tilewright.compile.nvrtc import nvrtc_version
from tilewright.errors import Missing
from tilewright.facts.disassemble import nvdisasm
from tilewright.lab.output import print_json, standard_output
from tilewright.measure import find_baseline
from tilewright.record import SCHEMA
from tilewright.run.cuda import CudaBackend, probe


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `needed_for` says what goes without it; `fix` is how to get it."""

    name: str
    found: bool
    detail: str
    needed_for: str
    fix: str = ""


def _looked_for(name: str, needed_for: str, look: Callable[[], str]) -> Finding:
    """Found with what `look` returns, or missing with what its Missing error says."""
    try:
        return Finding(name, True, look(), needed_for)
    except Missing as error:
        return Finding(name, False, "missing", needed_for, str(error))


def _compiler() -> str:
    return f"{find_compiler().version}, for {instruction_set()}"


def _gpu() -> str:
    names = probe()
    with CudaBackend(0) as gpu:
        return f"{', '.join(names)}; the driver supports CUDA {gpu.driver_version}; {gpu.arch.name}"


def _cache() -> str:
    folder = cache_dir()
    try:
        make_private(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Missing(
            f"{folder}: {error.strerror or error}; set {ENVIRONMENT} to a folder that can be written"
        ) from None
    return str(folder)


def _baseline() -> str:
    baseline, why_none = find_baseline()
    if baseline is None:
        raise Missing(why_none)
    return f"{baseline.name}, {baseline.version}"


def findings() -> list[Finding]:
    """Everything looked for, in the order a person needs it."""
    return [
        Finding(
            "Python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}", "everything"
        ),
        _looked_for("NVRTC", "compiling, inspect", lambda: f"{nvrtc_version()}, no CUDA toolkit needed"),
        _looked_for("C++ compiler", "the emulator", _compiler),
        _looked_for("cache", "keeping compiled kernels", _cache),
        _looked_for("GPU and driver", "running and measuring on a GPU", _gpu),
        _looked_for("cuBLAS baseline", "the % of cuBLAS column", _baseline),
        _looked_for("nvdisasm", "the instructions that inspect shows", lambda: nvdisasm()[1]),
    ]


def run_doctor(*, as_json: bool) -> int:
    """Print the findings. Returns 0 when kernels can be compiled and run somewhere, else 3."""
    found = findings()
    have = {finding.name for finding in found if finding.found}
    able = "NVRTC" in have and ("C++ compiler" in have or "GPU and driver" in have)
    if as_json:
        print_json({"schema": SCHEMA, "command": "doctor", "able": able, "rows": [asdict(f) for f in found]})
        return 0 if able else 3
    console = standard_output()
    for finding in found:
        mark = ("✓ ", "green") if finding.found else ("✗ ", "yellow")
        console.print(Text.assemble(mark, (f"{finding.name:<16} ", "bold"), finding.detail), soft_wrap=True)
        if not finding.found:
            console.print(Text(f"    for {finding.needed_for}: {finding.fix}", style="dim"), soft_wrap=True)
    return 0 if able else 3
