"""Compiling for the host: which compiler, what it says, what is cached."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.compile import cache, host
from tilewright.compile.binary import KernelSource
from tilewright.errors import CompileFailed, NoCompiler

BODY = """#include "tilewright/platform.cuh"
struct Args { float* y; };
#line 1 "probe.cu"
extern "C" __global__ void probe(const __grid_constant__ Args args) {
  args.y[threadIdx.x] = 1.0f;
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))


def source(text: str = BODY) -> KernelSource:
    return host.host_source(KernelSource(name="probe", entry="probe", text=text, file="probe.cu"), args_type="Args")


def test_without_a_compiler_the_error_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TILEWRIGHT_CXX", raising=False)
    monkeypatch.setattr(host.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(host.platform, "freedesktop_os_release", lambda: {"ID": "mint", "ID_LIKE": "ubuntu debian"})
    with pytest.raises(NoCompiler, match=r"apt-get install g\+\+.*pip install 'tilewright\[cc\]'"):
        host.compile_host(source())


def test_a_named_compiler_that_does_not_run_is_named(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CXX", "no-such-compiler -x")
    with pytest.raises(NoCompiler, match="no-such-compiler -x"):
        host.find_compiler()


def test_a_named_compiler_may_have_arguments(monkeypatch):
    found = host.find_compiler()
    monkeypatch.setenv("TILEWRIGHT_CXX", f"env {found.command[0]}")
    assert host.find_compiler().command == ("env", *found.command)
    assert host.compile_host(source()).payload.startswith(b"\x7fELF")


def test_a_compile_error_carries_the_kernels_own_line():
    broken = BODY.replace("1.0f;", "unknown_name;")
    with pytest.raises(CompileFailed, match=r"probe.cu:2:.*unknown_name") as caught:
        host.compile_host(source(broken))
    assert "probe.cu:2" in caught.value.log


def test_a_second_compile_comes_from_the_cache(monkeypatch):
    first = host.compile_host(source())
    monkeypatch.setattr(host, "compile_files", lambda *_: pytest.fail("compiled again"))
    assert host.compile_host(source()) == first
    assert cache.load(host.host_key(source())) == first


def test_the_key_follows_text_compiler_and_instruction_set(monkeypatch):
    keys = {host.host_key(source()), host.host_key(source(BODY.replace("1.0f", "2.0f")))}
    other = host.HostCompiler(("g++",), "g++ 99", "gcc")
    monkeypatch.setattr(host, "find_compiler", lambda: other)
    keys.add(host.host_key(source()))
    monkeypatch.setattr(host, "instruction_set", lambda: "x86-64")
    keys.add(host.host_key(source()))
    assert len(keys) == 4


def test_person_written_unroll_pragmas_neither_warn_nor_move_lines():
    body = BODY.replace(
        "  args.y[threadIdx.x] = 1.0f;\n",
        "#pragma unroll\n  for (int i = 0; i < 4; ++i) args.y[i] = 0;\n"
        "#pragma unroll 2\n  for (int i = 0; i < 4; ++i) args.y[i] = 0;\n"
        "  #pragma unroll(4)\n  for (int i = 0; i < 4; ++i) args.y[i] = 0;\n",
    )
    assert host.compile_host(source(body)).log == ""
    with pytest.raises(CompileFailed, match=r"probe.cu:7:"):
        host.compile_host(source(body.replace("args.y[i] = 0;\n}", "args.z[i] = 0;\n}")))


def test_nothing_of_the_machines_paths_enters_a_binary():
    assert b"/tilewright-" not in host.compile_host(source()).payload


def test_a_full_folder_for_the_compilers_files_is_told_with_the_variable_to_set(monkeypatch):
    def full(path, text, encoding):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host.Path, "write_text", full)
    with pytest.raises(CompileFailed, match=r"probe: /.*: No space left on device.*; set TMPDIR to a folder"):
        host.compile_host(source())


def test_the_compiler_sees_the_headers_that_the_key_covers_and_no_other():
    files = host.source_files(source(), host.find_compiler())
    assert {"source.cpp", "tilewright/platform.cuh", "device.hpp"} <= files.keys()
    assert "tilewright/tma.cuh" not in files and "runner.cpp" not in files


def compile_apart(folder: Path, count: int) -> list[bytes]:
    """What `count` processes at once print as their key, in the C locale with `folder` for cache and files."""
    environment = {**os.environ, "LC_ALL": "C", "TILEWRIGHT_CACHE_DIR": str(folder), "TMPDIR": str(folder)}
    code = (
        "from tilewright.compile import host\n"
        "from tilewright.compile.binary import KernelSource\n"
        f"text = {BODY!r} + '// gr\u00f6\u00dfe\\n'\n"
        "source = host.host_source(KernelSource('probe', 'probe', text, 'probe.cu'), args_type='Args')\n"
        "print(host.compile_host(source).key)\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) for _ in range(count)
    ]
    keys = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0] * count
    return keys


def test_compiling_works_under_the_c_locale_and_in_a_folder_that_is_not_ascii(tmp_path):
    folder = tmp_path / "gr\u00f6\u00dfe \u6570"
    folder.mkdir()
    assert len(compile_apart(folder, 1)[0].strip()) == 64
    assert len(list(folder.rglob("*.bin"))) == 1


def test_two_processes_may_compile_the_same_at_once(tmp_path):
    first, second = compile_apart(tmp_path, 2)
    assert first == second
    assert len(list(tmp_path.rglob("*.bin"))) == 1
