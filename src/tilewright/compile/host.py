"""Compiling kernels for this machine's CPU, and the emulator's runner with them.

Owns finding a C++ compiler, its flags and the cache keys. It runs nothing that it compiled: that is the
emulator's. The text it compiles is the text NVRTC gets, with `host_epilogue` after it.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.compile import cache
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.headers import EMULATOR_DIR, INCLUDE_DIR, included, included_digest
from tilewright.compile.own_folder import temporary_place
from tilewright.errors import CompileFailed, NoCompiler

ENVIRONMENT = "TILEWRIGHT_CXX"
V3_FEATURES = {
    "avx2": "-mavx2",
    "fma": "-mfma",
    "bmi1": "-mbmi",
    "bmi2": "-mbmi2",
    "f16c": "-mf16c",
    "movbe": "-mmovbe",
    "abm": "-mlzcnt",
}
KERNEL_FLAGS = (
    # A kernel is compiled for a handful of small launches, so compiling it is what takes time.
    *("-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"),
    # Version 4: addr2line up to binutils 2.40 names the wrong file for version 5 lines.
    *("-gdwarf-4", "-g1"),
    # One rounding for each operation, as the kernel says; no fused multiply-add that it did not ask for.
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    # A store to null is a fault to report, not a path that cannot be.
    "-fno-delete-null-pointer-checks",
    # A frame larger than the stack's guard touches the guard instead of stepping over it.
    *("-fstack-clash-protection", "-Wno-unknown-pragmas"),
)
RUNNER_FLAGS = ("-std=c++17", "-O2", "-rdynamic", "-pthread", "-ldl")
UNROLL = r"^([ \t]*)#pragma unroll\b[ \t(]*(\d*)[ \t)]*$"
GCC_UNROLL = 16
"""How often GCC repeats a loop under a bare `#pragma unroll`: enough for a thread tile's side."""
INSTALLERS = {
    "apt-get install g++": ("debian", "ubuntu"),
    "dnf install gcc-c++": ("fedora", "rhel", "centos"),
    "pacman -S gcc": ("arch",),
    "apk add g++": ("alpine",),
    "zypper install gcc-c++": ("suse", "opensuse"),
}


@dataclass(frozen=True, slots=True)
class HostCompiler:
    """A C++ compiler that answers: its command, the first line of its version, 'gcc', 'clang' or 'zig'."""

    command: tuple[str, ...]
    version: str
    family: str


def host_epilogue(entry: str, args_type: str) -> str:
    """The text after a kernel that lets the runner call `entry` with the bytes of one `args_type`."""
    export = 'extern "C" __attribute__((visibility("default")))'
    return (
        f"\n{export} const unsigned tilewright_args_bytes = sizeof({args_type});\n"
        f"{export} void tilewright_entry(const void* args) {{ {entry}(*static_cast<const {args_type}*>(args)); }}\n"
    )


def host_source(source: KernelSource, *, args_type: str | None = None) -> KernelSource:
    """`source` as `compile_host` takes it: with `host_epilogue` at its end, for its own struct or the one named."""
    return replace(source, text=source.text + host_epilogue(source.entry, args_type or source.args_type))


def rolled(source: KernelSource) -> KernelSource:
    """`source` with its loops left as loops: many times quicker to compile, where nothing is gained by unrolling."""
    return replace(source, text=re.sub(UNROLL, "", source.text, flags=re.MULTILINE))


def find_compiler() -> HostCompiler:
    """The C++ compiler to use: $TILEWRIGHT_CXX, else g++, clang++, c++, or ziglang's.

    Raises NoCompiler, with the command that installs one here, when there is none or the named one does not run.
    """
    return _find_compiler(os.environ.get(ENVIRONMENT, ""), os.environ.get("PATH", ""))


@functools.cache
def _find_compiler(named: str, path: str) -> HostCompiler:
    if named:
        compiler = _probe(tuple(shlex.split(named)))
        if compiler is None:
            raise NoCompiler(f"{ENVIRONMENT}={named!r}: does not run as a C++ compiler; name another, or unset it")
        return compiler
    for command in _candidates(path):
        if (compiler := _probe(command)) is not None:
            return compiler
    raise NoCompiler(
        f"no C++ compiler, which the emulator needs to run kernels on the CPU: {_install_command()}, "
        f"or pip install 'tilewright[cc]', or name one in {ENVIRONMENT}"
    )


def _candidates(path: str) -> Iterator[tuple[str, ...]]:
    for name in ("g++", "clang++", "c++"):
        if (found := shutil.which(name, path=path)) is not None:
            yield (found,)
    if importlib.util.find_spec("ziglang") is not None:
        yield (sys.executable, "-m", "ziglang", "c++")


def _probe(command: tuple[str, ...]) -> HostCompiler | None:
    try:
        answer = _run((*command, "--version"), timeout_s=60)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.strip().splitlines()
    if answer.returncode != 0 or not lines:
        return None
    is_zig = any("zig" in Path(word).name for word in command)
    family = "zig" if is_zig else "clang" if "clang" in answer.stdout else "gcc"
    return HostCompiler(command, lines[0], family)


def _install_command() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    names = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    for command, distributions in INSTALLERS.items():
        if names.intersection(distributions):
            return f"run `{command}`"
    return "install g++ or clang++"


@functools.cache
def instruction_set() -> str:
    """What kernels are compiled for: 'x86-64-v3' where this CPU has it, 'x86-64', 'aarch64', or the machine's name."""
    machine = platform.machine().lower()
    if machine not in ("x86_64", "amd64"):
        return "aarch64" if machine == "arm64" else machine
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "x86-64"
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    has_v3 = flags is not None and V3_FEATURES.keys() <= set(flags.group(1).split())
    return "x86-64-v3" if has_v3 else "x86-64"


def instruction_flags() -> tuple[str, ...]:
    """The flags for `instruction_set`."""
    return tuple(V3_FEATURES.values()) if instruction_set() == "x86-64-v3" else ()


def _kernel_flags(compiler: HostCompiler) -> tuple[str, ...]:
    own = () if compiler.family == "gcc" else ("-Wno-pass-failed",)
    return (*KERNEL_FLAGS, *own, *instruction_flags())


def host_key(source: KernelSource) -> str:
    """The cache key of `source` compiled here: text, the headers it includes, flags, compiler, instruction set.

    Raises NoCompiler.
    """
    compiler = find_compiler()
    return content_key(compiler, _kernel_flags(compiler), source)


def content_key(compiler: HostCompiler, flags: tuple[str, ...], source: KernelSource) -> str:
    """The cache key of `source` compiled by `compiler` with `flags` for this machine."""
    made_by = ("host", *compiler.command, compiler.version, *flags, str(GCC_UNROLL), instruction_set())
    headers = included_digest(source.text, INCLUDE_DIR, EMULATOR_DIR)
    return cache.repeated_key((*made_by, source.entry, source.text, headers))


def _spell(text: str, compiler: HostCompiler) -> str:
    """`text` with `#pragma unroll` as this compiler understands it, line for line."""
    if compiler.family != "gcc":
        return text

    def pragma(match: re.Match[str]) -> str:
        return f"{match[1]}#pragma GCC unroll {match[2] or GCC_UNROLL}"

    return re.sub(UNROLL, pragma, text, flags=re.MULTILINE)


def source_files(source: KernelSource, compiler: HostCompiler) -> dict[str, str]:
    """`source` as 'source.cpp' with the headers it includes, by relative name."""
    files = {**included(source.text, INCLUDE_DIR, EMULATOR_DIR), "source.cpp": source.text}
    return {name: _spell(text, compiler) for name, text in files.items()}


def compile_host(source: KernelSource) -> Binary:
    """`source` as a shared object for the runner, from the cache where it is there.

    The text must end with `host_epilogue`. Raises CompileFailed with the compiler's message, and NoCompiler.
    """
    compiler = find_compiler()

    def build(key: str) -> Binary:
        payload, log = compile_files(compiler, _kernel_flags(compiler), source.name, source_files(source, compiler))
        return Binary(source.entry, instruction_set(), payload, key, compiler.version, log)

    return cache.load_or_build(host_key(source), build)


def runner(more_flags: tuple[str, ...] = ()) -> Binary:
    """The emulator's runner as an executable, from the cache where it is there. Raises NoCompiler, CompileFailed."""
    compiler = find_compiler()
    flags = (*RUNNER_FLAGS, *instruction_flags(), *more_flags)
    source = _runner_source()

    def build(key: str) -> Binary:
        payload, log = compile_files(compiler, flags, source.name, source_files(source, compiler))
        return Binary(source.entry, instruction_set(), payload, key, compiler.version, log)

    return cache.load_or_build(content_key(compiler, flags, source), build)


@functools.cache
def _runner_source() -> KernelSource:
    text = (EMULATOR_DIR / "runner.cpp").read_text(encoding="utf-8")
    return KernelSource("runner", "main", text, "runner.cpp")


def compile_files(
    compiler: HostCompiler, flags: tuple[str, ...], name: str, files: dict[str, str], *, main: str = "source.cpp"
) -> tuple[bytes, str]:
    """Output and log of compiling `main` of `files`, which hold all it includes: no path of this machine gets in.

    Raises CompileFailed.
    """
    try:
        return _compile_in_folder(compiler, flags, name, files, main)
    except OSError as error:
        raise CompileFailed(
            f"{name}: {temporary_place()}: {error.strerror or error}, where the compiler's files must go; "
            "set TMPDIR to a folder with space that can be written"
        ) from error


def _compile_in_folder(
    compiler: HostCompiler, flags: tuple[str, ...], name: str, files: dict[str, str], main: str
) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory(prefix="tilewright-", ignore_cleanup_errors=True) as folder:
        for relative, text in files.items():
            path = Path(folder, relative)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        command = (*compiler.command, main, "-I.", f"-ffile-prefix-map={folder}=.", *flags, "-o", "output")
        try:
            answer = _run(command, folder=folder, timeout_s=600)
        except (OSError, subprocess.SubprocessError) as error:
            raise CompileFailed(f"{name}: {compiler.command[0]} could not be run: {error}") from error
        log = answer.stderr.strip()
        output = Path(folder, "output")
        if answer.returncode != 0 or not output.exists():
            first = next((line for line in log.splitlines() if "error" in line), log or "no message")
            raise CompileFailed(f"{name}: the host compiler ({compiler.version}) refused it: {first}", log)
        return output.read_bytes(), log


def _run(command: tuple[str, ...], *, timeout_s: float, folder: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
        check=False,
    )
