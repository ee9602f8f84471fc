import dataclasses
import itertools
import os
import shutil
import subprocess
import sys

import pytest

from tilewright.arch import ARCHS, get_arch
from tilewright.compile import cache as binary_cache
from tilewright.compile import headers, nvrtc
from tilewright.compile.binary import KernelSource
from tilewright.compile.losses import require_as_written
from tilewright.compile.nvrtc import compile_cubin, cubin_key
from tilewright.compile.source import kernel_source
from tilewright.compile.variant import Variant
from tilewright.declare import all_rungs, rung_config
from tilewright.epilogue import Epilogue
from tilewright.errors import CompileFailed
from tilewright.facts.static import static_row
from tilewright.problem import Problem

SM_90A = get_arch("sm_90a")
PROBLEM = Problem(m=256, n=256, k=256)
FULL = Problem(m=250, n=254, k=258, beta=0.5, epilogue=Epilogue(("bias", "relu")))


@pytest.mark.parametrize(
    ("rung", "arch"),
    [
        pytest.param(rung, arch, id=f"{rung.name}-{arch.name}")
        for rung, arch in itertools.product(all_rungs().values(), ARCHS.values())
        if rung.requires.features <= arch.features
        and rung_config(rung).fits(arch)
        and (rung.track == "tensor" or rung.number <= 12 or arch.name in ("sm_80", "sm_90a", "sm_120a"))
    ],
)
def test_every_shipped_config_compiles_without_warnings_or_spills(rung, arch):
    config = rung_config(rung)
    config.require_arch(arch)
    problem = Problem(m=256, n=256, k=256, **rung.requires.usual._asdict())
    binary = compile_cubin(kernel_source(config, problem), arch)
    row = static_row(config, problem, arch, binary)
    assert "warning" not in binary.log
    assert (row.spill_bytes, row.stack_bytes) == (0, 0)
    assert binary.resources.smem_bytes == config.scope["static_smem_bytes"]


@pytest.mark.parametrize("rung", all_rungs().values(), ids=lambda r: r.name)
def test_every_specialisation_compiles_without_warnings(rung):
    config = rung_config(rung)
    full = dataclasses.replace(FULL, lda=0, ldb=0, **rung.requires.usual._asdict())
    for mode in ("specialised", "runtime", "always_read"):
        assert "warning" not in compile_cubin(kernel_source(config, full, Variant(beta_mode=mode)), SM_90A).log


def registers_of(query, arch=SM_90A, **settings):
    config = rung_config(all_rungs().find(query), settings)
    return compile_cubin(kernel_source(config, PROBLEM), arch).resources.registers


@pytest.mark.parametrize(
    ("query", "least", "most"),
    [
        *((query, 16, 48) for query in ("k01", "k02", "k03", "k04")),
        ("k05", 24, 64),
        ("k06", 80, 200),
        ("k07", 80, 128),  # two CTAs of 256 threads an SM
        ("k08", 80, 128),  # four CTAs of 128 threads an SM
        ("k10", 80, 128),
        ("k11", 96, 168),  # three CTAs of 128 threads an SM
        ("k12", 168, 255),  # two
    ],
)
def test_registers_are_in_the_range_that_occupancy_rests_on(query, least, most):
    assert least <= registers_of(query) <= most


def test_the_second_launch_bound_is_absent_at_zero_and_moves_registers_on_some_architectures_only():
    k11 = all_rungs().find("k11")
    one_argument = k11.source.replace("__launch_bounds__(NUM_THREADS, MIN_CTAS)", "__launch_bounds__(NUM_THREADS)")
    assert one_argument != k11.source
    config = rung_config(k11)
    plain = compile_cubin(kernel_source(rung_config(dataclasses.replace(k11, source=one_argument)), PROBLEM), SM_90A)
    assert plain.resources == compile_cubin(kernel_source(config, PROBLEM), SM_90A).resources
    assert registers_of("k12", MIN_CTAS=0) == registers_of("k12")
    sm_120a = get_arch("sm_120a")
    assert registers_of("k12", sm_120a, MIN_CTAS=0) < registers_of("k12", sm_120a)


@pytest.mark.parametrize("query", ["k06", "k07"])
def test_a_thread_tile_of_16_by_16_spills_and_is_refused_with_the_number(query):
    config = rung_config(all_rungs().find(query), {"TM": 16, "TN": 16})
    binary = compile_cubin(kernel_source(config, PROBLEM), SM_90A)
    assert binary.resources.spill_bytes > 1000
    row = static_row(config, PROBLEM, SM_90A, binary)
    assert (row.verified, row.failure) == (False, "InvalidConfig")
    assert f"spill_bytes={binary.resources.spill_bytes}: " in row.verdict and "may not spill" in row.verdict


def test_the_key_follows_everything_that_could_change_the_code(monkeypatch, tmp_path):
    source = kernel_source(rung_config(all_rungs().find("k08")), PROBLEM)
    keys = {
        cubin_key(source, SM_90A),
        cubin_key(source, get_arch("sm_80")),
        cubin_key(dataclasses.replace(source, text=source.text + "\n"), SM_90A),
        cubin_key(dataclasses.replace(source, entry="other"), SM_90A),
    }
    monkeypatch.setattr(nvrtc, "nvrtc_version", lambda: "13.99")
    keys.add(cubin_key(source, SM_90A))
    monkeypatch.undo()
    shutil.copytree(headers.INCLUDE_DIR, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(nvrtc, "INCLUDE_DIR", tmp_path)
    assert cubin_key(source, SM_90A) in keys
    (tmp_path / "tilewright" / "epilogue.cuh").write_text("// changed")
    headers.read_again(tmp_path)
    keys.add(cubin_key(source, SM_90A))
    assert len(keys) == 6


def test_the_key_is_computed_once(monkeypatch):
    source = kernel_source(rung_config(all_rungs().find("k08")), PROBLEM)
    first = cubin_key(source, SM_90A)
    monkeypatch.setattr(binary_cache, "content_key", lambda parts: pytest.fail("hashed again"))
    monkeypatch.setattr(headers.Path, "read_text", lambda *_, **__: pytest.fail("read again"))
    assert cubin_key(dataclasses.replace(source), SM_90A) == first


def test_what_was_compiled_is_not_read_from_the_disk_again(cold_cache, monkeypatch):
    source = kernel_source(rung_config(all_rungs().find("k02")), PROBLEM)
    first = compile_cubin(source, SM_90A)
    monkeypatch.setattr(binary_cache, "load", lambda key: pytest.fail("read again"))
    assert compile_cubin(source, SM_90A) is first


PROBE = KernelSource("k", "k", '#include "probe.cuh"\nextern "C" __global__ void k(int* d) { d[0] = X; }', "k.cu")
OTHER = dataclasses.replace(PROBE, text=PROBE.text.replace("d[0]", "d[1]"))


def test_a_header_replaced_while_the_process_runs_is_what_the_next_compile_is_keyed_by(
    cold_cache, monkeypatch, tmp_path
):
    """As by an upgrade of the package: NVRTC reads the files as they are then."""
    folder = tmp_path / "include"
    folder.mkdir()
    monkeypatch.setattr(nvrtc, "INCLUDE_DIR", folder)
    keys = []
    for value in (1111, 2222):
        (folder / "probe.cuh").write_text(f"#define X {value}\n")
        keys.append(compile_cubin(PROBE if value == 1111 else OTHER, SM_90A).key)
    payloads = {}
    for value in (1111, 2222):
        (folder / "probe.cuh").write_text(f"#define X {value}\n")
        headers.read_again(folder)
        payloads[value] = compile_cubin(OTHER, SM_90A)
    assert payloads[2222].key == keys[1]
    assert payloads[1111].payload != payloads[2222].payload


def test_a_header_with_its_old_time_and_size_is_another_key_in_the_next_process(tmp_path):
    code = (
        "import pathlib, sys\n"
        "from tilewright.arch import get_arch\n"
        "from tilewright.compile import nvrtc\n"
        "from tilewright.compile.binary import KernelSource\n"
        "nvrtc.INCLUDE_DIR = pathlib.Path(sys.argv[1])\n"
        f"print(nvrtc.cubin_key(KernelSource('k', 'k', {PROBE.text!r}, 'k.cu'), get_arch('sm_90a')))\n"
    )
    header, keys = tmp_path / "probe.cuh", []
    for value in (1, 2):
        header.write_text(f"#define X {value}\n")
        os.utime(header, (1e9, 1e9))
        keys.append(subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, check=True).stdout)
    assert keys[0] != keys[1]


IMPORT_WHILE_FORKING = """
import os, sys, threading, time
from tilewright.compile import nvrtc
package, core = sys.argv[1], "cuda.core"
sys.path.insert(0, package)
import cuda
cuda.__path__ = [package + "/cuda"]
thread = threading.Thread(target=nvrtc._cuda_core)
thread.start()
while core not in sys.modules:
    time.sleep(0.001)
child = os.fork()
if child == 0:
    os._exit(17 if nvrtc._cuda_core().DONE else 1)
for _ in range(500):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        break
    time.sleep(0.01)
else:
    os.kill(child, 9)
    os.waitpid(child, 0)
    sys.exit("the child hangs")
thread.join()
sys.exit(status != 17 << 8)
"""


def test_a_child_forked_while_a_thread_imports_the_compiler_can_compile(tmp_path):
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "core.py").write_text("import time\ntime.sleep(0.5)\nDONE = True\n")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_WHILE_FORKING, tmp_path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_broken_kernel_gives_the_compilers_message_with_its_own_line():
    source = kernel_source(rung_config(all_rungs().find("k02")), PROBLEM)
    line = next(i for i, text in enumerate(source.text.split("#line 1")[1].splitlines()) if "write_result" in text)
    broken = dataclasses.replace(source, text=source.text.replace("write_result<", "write_nothing<"))
    with pytest.raises(CompileFailed, match=rf"k02_coalesced.cu\({line}\): error.*write_nothing"):
        compile_cubin(broken, SM_90A)


def test_a_config_no_rule_has_seen_still_fails_to_compile():
    source = kernel_source(rung_config(all_rungs().find("k08")), PROBLEM)
    smuggled = dataclasses.replace(source, text=source.text.replace("constexpr int WM = 64", "constexpr int WM = 48"))
    with pytest.raises(CompileFailed, match="warps tile the CTA tile"):
        compile_cubin(smuggled, SM_90A)


def test_an_architecture_that_nvrtc_lacks_names_the_versions():
    future = dataclasses.replace(SM_90A, name="sm_150a", compute_capability=(15, 0))
    with pytest.raises(CompileFailed, match=r"sm_150a: NVRTC 13\.\d+ compiles for sm_\d+.*install"):
        compile_cubin(KernelSource("x", "x", "", "x.cu"), future)


WGMMA = """
__device__ INLINED void product(float (&d)[4], unsigned long long a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "l"(a), "l"(b));
}
extern "C" __global__ void BOUNDS k(float* out, unsigned long long a, unsigned long long b, int n) {
  float d[4] = {};
  LIMIT
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    product(d, a, b);
    BETWEEN
    product(d, a + 1, b + 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    WAIT
  }
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}
"""
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'
LIMIT = 'asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");'


def wgmma_source(**parts):
    usual = {"INLINED": "__forceinline__", "BOUNDS": "__launch_bounds__(128, 1)", "BETWEEN": "", "WAIT": WAIT}
    text = WGMMA
    for name, part in {**usual, "LIMIT": LIMIT, **parts}.items():
        text = text.replace(name, part)
    return KernelSource("k", "k", text, "k.cu")


@pytest.mark.parametrize(
    ("parts", "message", "fix"),
    [
        ({"INLINED": "__noinline__"}, "serialized due to .*function boundary", "inline every function"),
        ({"BETWEEN": "d[0] *= 2;"}, "serialized due to insufficient register", "leave accumulators alone"),
        ({"WAIT": ""}, "serialized due to non wgmma instructions", "touch accumulators only before"),
        ({"BOUNDS": "__launch_bounds__(128)"}, "'setmaxnreg' ignored; unable to determine", "__launch_bounds__ with"),
        ({"LIMIT": LIMIT.replace("40", "24")}, "'setmaxnreg' ignored to maintain", "release fewer registers"),
    ],
)
def test_a_kernel_that_ptxas_serialised_or_whose_register_limit_it_ignored_is_not_built(parts, message, fix):
    with pytest.raises(CompileFailed, match=rf"k for sm_90a: ptxas says: .*{message}.*: .*; .*{fix}"):
        compile_cubin(wgmma_source(**parts), SM_90A)


def test_the_same_kernel_as_it_should_be_is_built():
    assert "wgmma" not in compile_cubin(wgmma_source(), SM_90A).log


def test_a_reason_for_serialising_that_no_version_gave_yet_counts_too():
    said = "ptxas info    : (C7599) Potential Performance Loss: wgmma.mma_async instructions are serialized due to rain"
    with pytest.raises(CompileFailed, match="rain: each wgmma waits"):
        require_as_written("k", said)


def test_a_report_without_registers_is_an_error():
    with pytest.raises(CompileFailed, match="no register count"):
        nvrtc.read_report("ptxas info : nothing")


def test_every_figure_of_the_report_is_read():
    log = (
        "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
        "ptxas         .    16 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 1 barriers, 16 bytes cumulative stack size, 12288 bytes smem\n"
    )
    made = nvrtc.read_report(log)
    assert (made.registers, made.barriers, made.smem_bytes, made.stack_bytes) == (255, 1, 12288, 16)
    assert made.spill_bytes == 56


def test_many_threads_may_be_the_first_to_compile(cold_cache):
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from tilewright.arch import get_arch\n"
        "from tilewright.compile.binary import KernelSource\n"
        "from tilewright.compile.nvrtc import compile_cubin\n"
        "text = 'extern \"C\" __global__ void k(float* d) { d[0] = %d; }'\n"
        "def work(i): return compile_cubin(KernelSource('k', 'k', text % i, 'k.cu'), get_arch('sm_90a'))\n"
        "with ThreadPoolExecutor(16) as pool: print(len({b.key for b in pool.map(work, range(16))}))\n"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "16", done.stderr


def test_a_kernel_compiled_before_reports_its_resources_again(tmp_path, monkeypatch):
    source = kernel_source(rung_config(all_rungs().find("k02")), PROBLEM)
    resources = []
    for folder in ("once", "again"):
        monkeypatch.setenv(binary_cache.ENVIRONMENT, str(tmp_path / folder))
        resources.append(compile_cubin(source, SM_90A).resources)
    assert resources[0] == resources[1] is not None
