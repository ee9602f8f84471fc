"""Kernel text to cubin by NVRTC: no GPU, no driver, no CUDA toolkit.

Owns the options, the reading of ptxas's report and the cache key of GPU code. Handles of loaded kernels are
`run.cuda`'s; without a driver they must never be touched.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import time
from functools import cache
from typing import Any

from tilewright.arch import ArchSpec
from tilewright.compile import cache as binary_cache
from tilewright.compile.binary import Binary, KernelSource, Resources
from tilewright.compile.headers import INCLUDE_DIR, included_digest, read_again
from tilewright.compile.losses import require_as_written
from tilewright.errors import CompileFailed, InvalidConfig, Missing
from tilewright.locks import ForkSafeLock

_IMPORTING = ForkSafeLock()
_import_under_way = False
IMPORT_S = 10.0
"""How long a fork waits for another thread's import."""
OPTIONS = ("std=c++17", "lineinfo", "ptxas -v")

_REPORT = {
    "registers": re.compile(r"Used (\d+) registers"),
    "barriers": re.compile(r"used (\d+) barriers"),
    "smem_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spill_store_bytes": re.compile(r"(\d+) bytes spill stores"),
    "spill_load_bytes": re.compile(r"(\d+) bytes spill loads"),
}


@cache
def nvrtc_version() -> str:
    """NVRTC's own version, 'major.minor'. Raises Missing when it isn't installed."""
    return f"{_nvrtc_query()[0]}.{_nvrtc_query()[1]}"


@cache
def _nvrtc_query() -> tuple[int, int, frozenset[int]]:
    try:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
        _, supported = nvrtc.nvrtcGetSupportedArchs()
    except (ImportError, RuntimeError) as error:
        raise Missing(f"NVRTC cannot be loaded ({error}): pip install nvidia-cuda-nvrtc") from error
    return int(major), int(minor), frozenset(int(x) for x in supported)


def _cuda_core() -> Any:
    """The cuda.core module, imported by one thread at a time: its own first import is not safe from several."""
    global _import_under_way
    with _IMPORTING:
        if "cuda.core" not in sys.modules:
            _import_under_way = True
        try:
            return importlib.import_module("cuda.core")
        finally:
            _import_under_way = False


def _let_the_import_end() -> None:
    """Before a fork: a child that got half a module could neither finish its import nor start it anew."""
    until = time.monotonic() + IMPORT_S
    while _import_under_way and time.monotonic() < until:
        time.sleep(0.01)


os.register_at_fork(before=_let_the_import_end)


def _require_arch(arch: ArchSpec) -> None:
    major, minor, supported = _nvrtc_query()
    number = arch.compute_capability[0] * 10 + arch.compute_capability[1]
    if number not in supported:
        known = ", ".join(f"sm_{x}" for x in sorted(supported))
        raise CompileFailed(
            f"{arch.name}: NVRTC {major}.{minor} compiles for {known}; "
            f"install an nvidia-cuda-nvrtc that knows {arch.name}"
        )


def cubin_key(source: KernelSource, arch: ArchSpec, *, version: str | None = None) -> str:
    """The cache key: text, the headers it includes, options, compiler version, architecture.

    `version` is another NVRTC's, to ask whether it would have been given the same.
    """
    options = (*OPTIONS, *source.options)
    headers = included_digest(source.text, INCLUDE_DIR)
    parts = ("cubin", version or nvrtc_version(), arch.name, *options, source.entry, source.text, headers)
    return binary_cache.repeated_key(parts)


def parse_options(options: tuple[str, ...]) -> dict[str, Any]:
    """A source's own options as the compiler's arguments: 'maxrregcount=128' or 'ptxas=-O1', each at most once.

    Raises InvalidConfig for another name or value.
    """
    made: dict[str, Any] = {}
    for option in options:
        name, _, value = option.partition("=")
        if name == "maxrregcount" and value.isdecimal() and name not in made:
            made[name] = {"max_register_count": int(value)}
        elif name == "ptxas" and value.startswith("-") and name not in made:
            made[name] = {"ptxas_options": ["-v", value]}
        else:
            raise InvalidConfig(f"option {option!r}: must be maxrregcount=COUNT or ptxas=-OPTION, each at most once")
    return {name: value for arguments in made.values() for name, value in arguments.items()}


def read_report(log: str) -> Resources:
    """Resources from ptxas's -v report. A figure it leaves out is 0; no register count is an error."""
    found = {name: pattern.search(log) for name, pattern in _REPORT.items()}
    if found["registers"] is None:
        raise CompileFailed("ptxas gave no register count", log)
    return Resources(**{name: int(match.group(1)) if match else 0 for name, match in found.items()})


def compile_cubin(source: KernelSource, arch: ArchSpec) -> Binary:
    """Compile for `arch`, or take the same from the cache.

    Raises CompileFailed with the compiler's message, also where it compiled to something else than was written, or when
    this NVRTC doesn't know the architecture.
    """
    _require_arch(arch)
    found = binary_cache.find(cubin_key(source, arch))
    if found is not None:
        return found
    # NVRTC reads the headers' files, which may have been replaced since this process read them.
    read_again(INCLUDE_DIR)
    return binary_cache.load_or_build(cubin_key(source, arch), lambda key: _compile(source, arch, key))


def _compile(source: KernelSource, arch: ArchSpec, key: str) -> Binary:
    cuda_core = _cuda_core()
    usual = {
        **{"std": "c++17", "lineinfo": True, "ptxas_options": ["-v"], "include_path": [str(INCLUDE_DIR)]},
        "no_cache": True,  # NVRTC's own gives the code back without the report
    }
    options = cuda_core.ProgramOptions(name=source.file, arch=arch.name, **{**usual, **parse_options(source.options)})
    log = io.StringIO()
    try:
        code = cuda_core.Program(source.text, "c++", options).compile("cubin", logs=log).code
    except Exception as error:
        # cuda.core raises its private NVRTCError; whatever it is, the text is the compiler's own message.
        message = str(error).split("compilation log:")[-1].strip()
        raise CompileFailed(
            f"{source.name} for {arch.name}: NVRTC {nvrtc_version()} says:\n{message}", message
        ) from error
    report = log.getvalue().replace("\0", "").strip()
    require_as_written(f"{source.name} for {arch.name}", report)
    return Binary(
        entry=source.entry,
        target=arch.name,
        payload=bytes(code),
        key=key,
        compiler=f"NVRTC {nvrtc_version()}",
        log=report,
        resources=read_report(report),
    )
