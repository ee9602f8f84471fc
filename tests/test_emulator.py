"""The emulator against NumPy on right kernels, and what it says of wrong ones."""

import ctypes
import importlib.util
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compile import host
from tilewright.compile.binary import Binary, KernelSource
from tilewright.emulator import symbols
from tilewright.errors import Deadlock, InvalidInput, LaunchFailed, OutOfBounds, TimedOut
from tilewright.problem import Problem
from tilewright.run.args import gemm_args
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Grid

KERNELS = Path(__file__).parent / "kernels"
SCHEDULES = ("default", "reverse", "random")
TILES = {"naive": (16, 16), "shared_tile": (16, 16), "warp_tile": (128, 64), "pipeline": (32, 32)}
PIPELINE_SMEM_BYTES = 3 * 2 * 32 * 32 * 4


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


class ProbeArgs(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint64), ("y", ctypes.c_uint64), ("n", ctypes.c_int32))


def gemm_kernel(name: str, *, without: str = "", instead: str = "") -> Binary:
    text = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
    assert without in text
    text = text.replace(without, instead, 1) if without else text
    source = KernelSource(name=name, entry=name, text=f'#line 1 "{name}.cu"\n{text}', file=f"{name}.cu")
    return host.compile_host(host.host_source(source))


def probe(body: str) -> Binary:
    """A kernel on `const float* x, float* y, int n`, whose body starts at line 1 of probe.cu."""
    text = (
        '#include "tilewright/memory.cuh"\n'
        "struct Args { const float* x; float* y; int n; };\n"
        'extern "C" __global__ void probe(const __grid_constant__ Args args) {\n'
        "  [[maybe_unused]] const int t = threadIdx.x;\n"
        f'#line 1 "probe.cu"\n{body}\n}}\n'
    )
    source = KernelSource(name="probe", entry="probe", text=text, file="probe.cu")
    return host.compile_host(host.host_source(source, args_type="Args"))


def run_probe(
    body: str, *, threads: int = 32, grid: int = 1, smem_bytes: int = 0, elements: int = 64, **options
) -> np.ndarray:
    """Y after the launch; X holds 0, 1, 2, …"""
    with EmulatorBackend(**options) as device:
        x = device.alloc(elements * 4, label="X", read_only=True)
        y = device.alloc(elements * 4, label="Y")
        device.upload(x, np.arange(elements, dtype=np.float32).view(np.uint8))
        args = ProbeArgs(x=x.address, y=y.address, n=elements)
        device.launch(probe(body), Grid((grid, 1, 1), (threads, 1, 1), smem_bytes), args)
        return device.download(y).view(np.float32)


def run_gemm(binary: Binary, m: int, n: int, k: int, *, seed: int = 0, **options) -> tuple[np.ndarray, np.ndarray]:
    """(result, expected) of integers, so that both are exact."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    rows, cols = TILES[binary.entry]
    threads = (128, 1, 1) if binary.entry == "warp_tile" else (16, 16, 1)
    smem_bytes = PIPELINE_SMEM_BYTES if binary.entry == "pipeline" else 0
    with EmulatorBackend(**options) as device:
        memory = {label: device.alloc(x.nbytes, label=label, read_only=True) for label, x in (("A", a), ("B", b))}
        device.upload(memory["A"], a.reshape(-1).view(np.uint8))
        device.upload(memory["B"], b.reshape(-1).view(np.uint8))
        d = device.alloc(m * n * 4, label="D")
        args = gemm_args(Problem(m=m, n=n, k=k), a=memory["A"].address, b=memory["B"].address, c=0, d=d.address)
        device.launch(binary, Grid((-(-n // cols), -(-m // rows), 1), threads, smem_bytes), args)
        assert device.last_kernel_ns > 0
        return device.download(d).view(np.float32).reshape(m, n), a @ b


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ["naive", "shared_tile", "pipeline"])
def test_guarded_kernels_are_exact_under_every_schedule(name, schedule):
    for (m, n, k), placement, workers in zip(
        [(1, 1, 1), (17, 33, 31), (64, 48, 65)], ["end", "start", "end"], [1, 2, 2], strict=True
    ):
        got, expected = run_gemm(gemm_kernel(name), m, n, k, schedule=schedule, placement=placement, workers=workers)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_warp_tiled_kernel_is_exact(schedule, workers):
    for m, n, k in [(128, 64, 16), (256, 192, 48)]:
        got, expected = run_gemm(gemm_kernel("warp_tile"), m, n, k, schedule=schedule, workers=workers)
        np.testing.assert_array_equal(got, expected)


@settings(max_examples=15, deadline=None)
@given(
    st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 70)),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["latest", "earliest", "random"]),
)
def test_a_cp_async_pipeline_is_exact_whenever_copies_land(sizes, seed, completion):
    got, expected = run_gemm(gemm_kernel("pipeline"), *sizes, schedule="random", seed=seed, async_completion=completion)
    np.testing.assert_array_equal(got, expected)


def test_the_portable_context_switch_gives_the_same_bits(monkeypatch):
    binary = gemm_kernel("shared_tile")
    native, expected = run_gemm(binary, 40, 40, 40, schedule="random", seed=5)
    monkeypatch.setattr(host, "RUNNER_FLAGS", (*host.RUNNER_FLAGS, "-DTILEWRIGHT_UCONTEXT"))
    portable, _ = run_gemm(binary, 40, 40, 40, schedule="random", seed=5)
    np.testing.assert_array_equal(native, expected)
    np.testing.assert_array_equal(portable, expected)


def test_indices_and_dimensions_are_those_of_the_launch():
    body = """
    const unsigned linear = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    args.y[cta * blockDim.x * blockDim.y * blockDim.z + linear] = float(cta * 100 + linear);"""
    with EmulatorBackend(workers=2) as device:
        y = device.alloc(24 * 12 * 4, label="Y")
        device.launch(probe(body), Grid((2, 3, 4), (3, 2, 2)), ProbeArgs(x=0, y=y.address, n=0))
        got = device.download(y).view(np.float32).reshape(24, 12)
    np.testing.assert_array_equal(got, np.arange(24)[:, None] * 100.0 + np.arange(12))


@pytest.mark.parametrize(
    ("body", "placement", "words"),
    [
        ("args.y[t] = args.x[t + 40];", "end", ["reads X", "offset 256 (element 64", "past its end", "probe.cu:1"]),
        ("\nargs.y[t - 1] = 1.0f;", "start", ["writes Y", "element -1", "before its start", "probe.cu:2", "(0,0,0)"]),
        (
            "if (t == 5)\n const_cast<float*>(args.x)[t] = 1;",
            "end",
            ["to X, which is read-only", "ment 5", "probe.cu:2"],
        ),
        ("args.y[0] = *reinterpret_cast<const float*>(t);", "end", ["reads address 0x0", "no array", "probe.cu:1"]),
    ],
)
def test_an_access_outside_its_array_names_array_index_and_line(body, placement, words):
    with pytest.raises(OutOfBounds) as caught:
        run_probe(body, placement=placement)
    for word in [*words, "CTA (0,0,0)"]:
        assert word in str(caught.value)


def test_a_kernel_without_its_guard_is_named_by_its_own_file():
    binary = gemm_kernel(
        "naive", without="if (row >= args.m || col >= args.n) return;", instead="if (col >= args.n) return;"
    )
    with pytest.raises(OutOfBounds, match=r"naive: reads A out of bounds: .* at naive.cu:12"):
        run_gemm(binary, 8, 32, 128)


def test_a_write_into_the_alignment_gap_is_seen_after_the_launch():
    with pytest.raises(OutOfBounds, match=r"writes Y out of bounds: byte offset 20 \(element 5.*alignment gap"):
        run_probe("args.y[args.n + t] = 0;", threads=1, elements=5)


def test_an_asynchronous_copy_outside_its_array_names_the_line_that_issued_it():
    body = "__shared__ float s[64];\ntilewright::cp_async<4>(&s[t], args.x + t + 40);\ntilewright::cp_async_commit();"
    with pytest.raises(OutOfBounds, match=r"reads X out of bounds: byte offset 256.*thread \(24,0,0\).*probe.cu:2"):
        run_probe(body)


def test_static_shared_memory_may_be_48_kb():
    body = """__shared__ float s[48 * 256];
    for (int i = t; i < 48 * 256; i += 32) s[i] = float(i);
    __syncthreads();
    args.y[t] = s[48 * 256 - 1 - t];"""
    for workers in (1, 2):
        np.testing.assert_array_equal(run_probe(body, workers=workers)[:32], 48 * 256 - 1.0 - np.arange(32))


def test_an_asynchronous_copy_past_dynamic_shared_memory_names_its_line():
    body = "\ntilewright::cp_async<4>(tilewright::dynamic_smem() + 1024 + 4 * t, args.x);"
    with pytest.raises(OutOfBounds, match=r"past the end of dynamic shared memory, thread \(0,0,0\).*probe.cu:2"):
        run_probe(body, smem_bytes=1024)


def test_dynamic_shared_memory_has_its_size_and_an_end():
    body = """float* s = reinterpret_cast<float*>(tilewright::dynamic_smem());
    const int last = 100 * 1024 / 4 - 1;
    s[last - t] = float(t);
    __syncthreads();
    args.y[t] = s[last - (31 - t)] + (reinterpret_cast<unsigned long long>(s) % 1024 == 0 ? 0.0f : 1000.0f);
    if (args.n == 65) s[last + 1] = 0;"""
    got = run_probe(body, smem_bytes=100 * 1024)
    np.testing.assert_array_equal(got[:32], 31.0 - np.arange(32))
    with pytest.raises(OutOfBounds, match=r"writes past the end of dynamic shared memory.*probe.cu:6"):
        run_probe(body, smem_bytes=100 * 1024, elements=65)


@pytest.mark.parametrize("barrier", ["__syncthreads();  // the tile is complete", "__syncthreads();  // nobody reads"])
def test_a_missing_barrier_shows_under_some_schedule(barrier):
    binary = gemm_kernel("shared_tile", without=barrier, instead="//")
    results = [run_gemm(binary, 32, 32, 64, schedule=schedule) for schedule in SCHEDULES]
    assert any(not np.array_equal(got, expected) for got, expected in results)


@pytest.mark.parametrize("missing", ["tilewright::cp_async_wait<STAGES - 2>();", "tilewright::cp_async_commit();"])
def test_a_missing_wait_or_commit_shows_when_copies_land_late(missing):
    binary = gemm_kernel("pipeline", without=missing)
    got, expected = run_gemm(binary, 32, 32, 96, async_completion="latest")
    assert not np.array_equal(got, expected)


def test_a_copy_into_a_stage_still_being_read_shows_when_copies_land_early():
    target = "fill(stages[(t + STAGES - 1) % STAGES]"
    binary = gemm_kernel("pipeline", without=target, instead="fill(stages[t % STAGES]")
    got, expected = run_gemm(binary, 32, 32, 96, async_completion="earliest")
    assert not np.array_equal(got, expected)


def test_uncommitted_copies_complete_at_the_threads_end():
    body = """__shared__ float s[32];
    if (t < 16) { tilewright::cp_async<4>(&s[t], args.x + t); return; }
    args.y[t] = s[t - 16];"""
    np.testing.assert_array_equal(run_probe(body)[16:32], np.arange(16.0))


@pytest.mark.parametrize("width", [4, 8, 16])
def test_zero_fill_reads_only_its_source_bytes(width):
    body = f"""__shared__ __align__(16) float s[32];
    const bool inside = t < 16;
    const float* from = inside ? args.x + 48 + t : args.x + 64;
    if (t % {width // 4} == 0) tilewright::cp_async_zfill<{width}>(&s[t], from, inside ? 4 : 0);
    tilewright::cp_async_commit();
    tilewright::cp_async_wait<0>();
    __syncthreads();
    args.y[t] = s[t];"""
    step = width // 4
    expected = np.where((np.arange(32) < 16) & (np.arange(32) % step == 0), 48.0 + np.arange(32), 0.0)
    np.testing.assert_array_equal(run_probe(body)[:32], expected)


def test_a_16_byte_access_moves_four_elements():
    body = """tilewright::Vec4<float> word = tilewright::load4(args.x + 4 * (t % 16));
    const float first = word[0]; word[0] = word[3]; word[3] = first;
    if (t < 16) tilewright::store4(args.y + 4 * t, word);"""
    expected = np.arange(64.0).reshape(16, 4)[:, [3, 1, 2, 0]].reshape(-1)
    np.testing.assert_array_equal(run_probe(body), expected)


@pytest.mark.parametrize(
    "body",
    [
        "tilewright::store4(args.y + 1, tilewright::load4(args.x + 1));",
        "*reinterpret_cast<float4*>(args.y) = *reinterpret_cast<const float4*>(args.x + 2);",
        "__shared__ __align__(16) float s[8]; tilewright::cp_async<8>(s, args.x + 1);",
    ],
)
def test_a_misaligned_vector_access_is_reported(body):
    with pytest.raises(LaunchFailed, match=r"misaligned vector access, thread \(0,0,0\) of CTA .* at probe.cu:1"):
        run_probe(body)


def test_uninitialised_shared_memory_reads_as_nan():
    body = "__shared__ float s[32]; args.y[t] = s[t]; __syncthreads(); s[t] = 1.0f;"
    assert np.isnan(run_probe(body, workers=1, grid=2)[:32]).all()


def test_what_nobody_wrote_is_nan():
    assert np.isnan(run_probe("if (t < 8) args.y[t] = 1.0f;")[8:]).all()


def test_a_thread_that_exits_before_a_barrier_is_a_deadlock():
    body = "if (t < 32) return;\n\n__syncthreads();"
    waits = r"CTA \(0,0,0\): 96 threads wait at __syncthreads of probe.cu:3 \(first: thread \(32,0,0\)\)"
    text = f"{waits}, 32 threads have exited"
    for schedule in SCHEDULES:
        with pytest.raises(Deadlock, match=text):
            run_probe(body, threads=128, schedule=schedule)


def test_threads_at_different_barriers_are_a_divergence_naming_both():
    body = "if (t % 2)\n  __syncthreads();\nelse\n  __syncthreads();"
    with pytest.raises(
        Deadlock, match=r"divergence.*16 threads wait at __sync\w+ of probe.cu:4.*16 threads.*probe.cu:2"
    ):
        run_probe(body)


def test_a_launch_without_end_is_stopped_at_the_limit():
    with pytest.raises(TimedOut, match=r"timeout_s=0\.3"):
        run_probe("while (*static_cast<volatile float*>(args.y) != 0) {}", timeout_s=0.3)


def test_a_stack_overflow_is_told_apart():
    with pytest.raises(LaunchFailed, match="overflows its thread's stack"):
        run_probe("volatile float big[1 << 16]; big[t] = 1; args.y[t] = big[t];")


def test_an_integer_division_by_zero_is_reported():
    with pytest.raises(LaunchFailed, match=r"divides an integer by zero.*probe.cu:2"):
        run_probe("const int zero = args.n - 64;\nargs.y[t] = static_cast<float>(t / zero);")


def test_what_a_kernel_prints_goes_to_standard_error(capfd):
    run_probe('if (t == 3) printf("{\\"ok\\":false} from %d\\n", t);')
    assert '{"ok":false} from 3' in capfd.readouterr().err


def test_arguments_of_the_wrong_size_are_refused():
    with EmulatorBackend() as device, pytest.raises(LaunchFailed, match="takes 24 bytes of arguments, got 4"):
        device.launch(probe("args.y[t] = 0;"), Grid((1, 1, 1), (1, 1, 1)), ctypes.c_int(0))


def test_random_schedules_depend_on_the_seed_and_not_on_workers():
    body = """__shared__ int next; if (t == 0) next = 0;
    __syncthreads();
    args.y[blockIdx.x * 32 + next++] = float(t);"""
    one, two = (run_probe(body, grid=2, schedule="random", seed=7, workers=workers) for workers in (1, 2))
    other = run_probe(body, grid=2, schedule="random", seed=8)
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert sorted(one[:32]) == list(range(32))


def test_released_arrays_give_their_slots_back():
    with EmulatorBackend() as device:
        addresses = {device.alloc(4096, label="X").address for _ in range(600)}
        assert len(addresses) == 1
        kept = [device.alloc(4, label="X") for _ in range(3)]
        assert len({array.address for array in kept}) == 3


@pytest.mark.parametrize(("nbytes", "alignment"), [(1, 4), (4097, 256), (8192, 16), (20, 8192), (0, 4)])
@pytest.mark.parametrize("placement", ["end", "start"])
def test_arrays_lie_where_their_placement_says(nbytes, alignment, placement):
    with EmulatorBackend(placement=placement) as device:
        array = device.alloc(nbytes, label="X", alignment_bytes=alignment)
        assert array.address % alignment == 0
        gap = array.map_address + array.mapped_bytes - (array.address + nbytes)
        assert 0 <= gap < alignment if placement == "end" else array.address == array.map_address


@pytest.mark.parametrize(
    "options",
    [{"placement": "middle"}, {"schedule": "fair"}, {"async_completion": "never"}, {"workers": 0}, {"seed": -1}],
)
def test_options_that_are_none_are_refused(options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        EmulatorBackend(**options)


@pytest.mark.parametrize(
    ("grid", "block"), [((1, 1, 1), (1025, 1, 1)), ((1, 70000, 1), (32, 1, 1)), ((0, 1, 1), (1, 1, 1))]
)
def test_geometry_no_gpu_would_take_is_refused(grid, block):
    with EmulatorBackend() as device, pytest.raises(InvalidInput):
        device.launch(probe("args.y[t] = 0;"), Grid(grid, block), ProbeArgs())


@pytest.mark.parametrize("tool", ["addr2line", "llvm-symbolizer", "elftools", "none"])
def test_lines_come_from_whichever_tool_is_there(tool, monkeypatch):
    if tool != "none" and shutil.which(tool) is None and importlib.util.find_spec(tool) is None:
        pytest.skip(f"no {tool} on this machine")
    only = SimpleNamespace(
        which=lambda name: shutil.which(name) if name == tool else None,
        util=SimpleNamespace(find_spec=lambda name: importlib.util.find_spec(name) if name == tool else None),
    )
    monkeypatch.setattr(symbols, "shutil", only)
    monkeypatch.setattr(symbols, "importlib", only)
    words = "an unknown line \\(none of" if tool == "none" else "probe.cu:2"
    with pytest.raises(OutOfBounds, match=words):
        run_probe("\nargs.y[t] = args.x[1000 + t];")
