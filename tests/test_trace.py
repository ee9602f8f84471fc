"""The emulator as a microscope: banks, sectors and findings of kernels whose answer is known beforehand."""

import contextlib
import ctypes
import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.host import compile_host, host_source
from tilewright.compile.source import kernel_source
from tilewright.compile.traced import compile_traced
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.emulator.banks import wavefronts
from tilewright.emulator.elf import shared_arrays
from tilewright.emulator.trace import Trace
from tilewright.emulator.tracing import Matrix, Watch
from tilewright.errors import InvalidInput, LaunchFailed
from tilewright.lab.tracing import declared_matrices
from tilewright.problem import Problem
from tilewright.run.args import gemm_args
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.kernel import grid_of
from tilewright.run.protocol import Grid
from tilewright.run.tracing import TracingBackend

KERNELS = Path(__file__).parent / "kernels"
SCHEDULES = ("default", "reverse", "random")
COUNTS, CHECKS = Watch(), Watch(counts=False, checks=True)


FAST = '#include "tilewright/platform.cuh"\nstruct Args { int n; };\nextern "C" __global__ void f(const Args args) {}'


class ProbeArgs(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint64), ("y", ctypes.c_uint64), ("n", ctypes.c_int32))


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
    return compile_traced(host_source(source, args_type="Args"))


def trace_probe(
    body: str, watch: Watch, *, threads: int = 32, grid: int = 1, smem_bytes: int = 0, x_values=(), **options
) -> Trace:
    """X and Y are 1024 elements; X starts with `x_values` and holds zeros beyond."""
    with TracingBackend(watch, **options) as device:
        x = device.alloc(4096, label="X", read_only=True)
        y = device.alloc(4096, label="Y")
        device.upload(x, np.pad(np.array(x_values, np.float32), (0, 1024 - len(x_values))).view(np.uint8))
        args = ProbeArgs(x=x.address, y=y.address, n=1024)
        device.launch(probe(body), Grid((grid, 1, 1), (threads, 1, 1), smem_bytes), args)
        return device.traces[0]


def failing_probe(body: str, watch: Watch, **options) -> Trace:
    """The trace of a launch that may fail as well."""
    with TracingBackend(watch, **options) as device, contextlib.suppress(LaunchFailed):
        y = device.alloc(4096, label="Y")
        device.launch(probe(body), Grid((1, 1, 1), (32, 1, 1)), ProbeArgs(x=y.address, y=y.address, n=0))
    return device.traces[0]


def config_of(query: str) -> Config:
    return rung_config(all_rungs().find(query))


def trace_gemm(binary: Binary, problem: Problem, grid: Grid, watch: Watch, **options) -> Trace:
    """One launch on zeros."""
    with TracingBackend(watch, **options) as device:
        arrays = {
            name: device.alloc(4 * problem.extent(name), label=name.upper(), read_only=name in "ab") for name in "abd"
        }
        for array in arrays.values():
            device.upload(array, np.zeros(array.nbytes, np.uint8))
        addresses = {name: array.address for name, array in arrays.items()}
        device.launch(binary, grid, gemm_args(problem, **addresses, c=0))
        return device.traces[0]


def rung_binary(config: Config, problem: Problem, *, without: str = "", occurrence: int = 0) -> Binary:
    """The rung traced, with one occurrence of `without` taken out."""
    source = kernel_source(config, problem)
    if without:
        before, after = source.text.split(without)[: occurrence + 1], source.text.split(without)[occurrence + 1 :]
        assert after
        source = dataclasses.replace(source, text=without.join(before) + without.join(after))
    return compile_traced(host_source(source))


def trace_rung(query: str, size: int, watch: Watch, *, without: str = "", occurrence: int = 0, **options) -> Trace:
    config, problem = config_of(query), Problem(m=size, n=size, k=size)
    binary = rung_binary(config, problem, without=without, occurrence=occurrence)
    return trace_gemm(binary, problem, grid_of(config, problem, sm_count=1), watch, **options)


def only(lines):
    (line,) = lines
    return line


# Banks and sectors


def test_the_warp_tiled_rung_stores_its_transposed_tile_to_8_banks_4_ways():
    store = only(trace_rung("k08", 128, COUNTS).select(space="shared", kind="store", array="As"))
    assert (store.width_bytes, store.banks, store.ways, store.wavefronts_per_access) == (4, 8, 4, 4)


def test_the_warp_tiled_rung_reads_fragments_without_conflicts():
    trace = trace_rung("k08", 128, COUNTS)
    # 8 neighbouring addresses, four lanes each; 4 neighbouring addresses, repeated by every fourth lane.
    assert only(trace.select(space="shared", kind="load", array="As")).wavefronts_per_access == 2
    assert only(trace.select(space="shared", kind="load", array="Bs")).wavefronts_per_access == 4
    assert all(line.conflicts == 0 for line in trace.select(space="shared", kind="load"))


def test_the_warp_tiled_rung_issues_what_its_tile_says():
    trace = trace_rung("k08", 128, COUNTS)
    warps_times_tiles = 2 * 4 * (128 // 16)
    counts = {
        (x.kind, x.array, x.width_bytes): x.instructions / warps_times_tiles for x in trace.select(space="shared")
    }
    assert counts == {
        ("load", "As", 16): 16 * 2,
        ("load", "Bs", 16): 16 * 2,
        ("store", "As", 4): 16,
        ("store", "Bs", 16): 2,
    }


@pytest.mark.parametrize(("rung", "sectors"), [("k01", {"A": 32, "B": 1}), ("k02", {"A": 1, "B": 4})])
def test_the_first_rungs_ask_for_32_sectors_or_for_4(rung, sectors):
    trace = trace_rung(rung, 64, COUNTS)
    assert {x.array: x.sectors_per_request for x in trace.select(space="global", kind="load")} == sectors
    assert only(trace.select(kind="store")).sectors_per_request == (32 if rung == "k01" else 4)


def test_every_access_of_a_shared_tile_is_counted_once():
    size, tile = 64, 32
    trace = trace_rung("k04", size, COUNTS)
    warps = (size // tile) ** 2 * tile
    tiles = size // tile
    counted = {(x.space, x.kind, x.array): x.instructions for x in trace.lines}
    assert counted == {
        ("global", "load", "A"): warps * tiles,
        ("global", "load", "B"): warps * tiles,
        ("global", "store", "D"): warps,
        ("shared", "store", "As"): warps * tiles,
        ("shared", "store", "Bs"): warps * tiles,
        ("shared", "load", "As"): warps * size,
        ("shared", "load", "Bs"): warps * size,
    }
    assert all(x.lanes == 32 * x.instructions for x in trace.lines)


def shared_probe(index: str, width: int = 4, condition: str = "true") -> str:
    """A store of `width` bytes a lane to the element that `index` gives, on line 2."""
    values = {4: "1.0f", 8: "make_float2(1, 1)", 16: "make_float4(1, 1, 1, 1)"}
    kind = {4: "float", 8: "float2", 16: "float4"}[width]
    return f"""__shared__ __align__(16) float s[8192];
    if ({condition}) *reinterpret_cast<{kind}*>(&s[{index}]) = {values[width]};
    __syncthreads();
    if (args.n == 0) args.y[t] = s[t];"""


@pytest.mark.parametrize(
    ("index", "width", "wavefronts", "banks"),
    [
        ("t", 4, 1, 32),
        ("0", 4, 1, 1),
        ("t * 2", 4, 2, 16),
        ("t * 32", 4, 32, 1),
        ("t * 33", 4, 1, 32),
        ("t % 16", 4, 1, 16),
        ("t * 2", 8, 2, 32),
        ("t / 2 * 2", 8, 2, 32),
        ("t * 4", 8, 4, 16),
        ("t * 4", 16, 4, 32),
        ("t / 2 * 4", 16, 4, 32),
        ("t * 8", 16, 8, 16),
        ("t % 4 * 4 + t / 4 * 128", 16, 8, 16),
        # The transposed store: four k rows by eight groups of rows, with and without padding.
        ("(t % 4 * 4) * 128 + t / 4", 4, 4, 8),
        ("(t % 4 * 4) * 130 + t / 4", 4, 1, 32),
        ("(t % 4 * 4) * 132 + t / 4", 4, 2, 16),
    ],
)
def test_wavefronts_follow_the_bank_rule(index, width, wavefronts, banks):
    line = only(trace_probe(shared_probe(index, width), COUNTS).select(kind="store"))
    assert (line.wavefronts_per_access, line.banks, line.line) == (wavefronts, banks, 2)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 4]), st.lists(st.integers(0, 63), min_size=32, max_size=32), st.integers(1, 2**32 - 1))
def test_pictures_follow_the_rule_that_counts_follow(elements, places, active):
    body = shared_probe(f"{elements} * int(args.x[t])", 4 * elements, "args.x[t] >= 0")
    chosen = [place if active >> lane & 1 else -1 for lane, place in enumerate(places)]
    line = only(trace_probe(body, COUNTS, x_values=chosen).select(kind="store", space="shared"))
    offsets = {lane: 4 * elements * place for lane, place in enumerate(chosen) if place >= 0}
    served = wavefronts(offsets, 4 * elements, is_plain_load=False)
    assert line.wavefronts == len(served)
    assert line.banks == len({bank for wavefront in served for bank in wavefront})


def test_idle_lanes_ask_for_nothing():
    line = only(trace_probe(shared_probe("t * 32", condition="t < 5"), COUNTS).select(kind="store"))
    assert (line.wavefronts, line.lanes, line.instructions) == (5, 5, 1)


def test_a_stride_of_130_leaves_16_byte_reads_8_bytes_off():
    body = """__shared__ __align__(16) float s[16 * 130];
    for (int i = t; i < 16 * 130; i += 32) s[i] = 0;
    __syncthreads();
    const float* row = s + 130;
    args.y[t] = tilewright::load4(row + 4 * t)[0];"""
    # Where a GPU faults the emulator may too, and what was found before it still stands.
    trace = failing_probe(body, CHECKS)
    (finding,) = trace.findings
    assert finding.flaw == "misaligned"
    assert (
        "misaligned 16-byte access, reads s at byte offset 520: thread (0,0,0) of CTA (0,0,0) at probe.cu:5"
        in finding.text
    )


@pytest.mark.parametrize(
    ("index", "sectors", "wanted"),
    [
        ("t", 4, 128),
        ("t + 1", 5, 128),
        ("t * 8", 32, 128),
        ("t * 2", 8, 128),
        ("0", 1, 4),
        ("31 - t", 4, 128),
        ("t % 4", 1, 16),
    ],
)
def test_sectors_are_those_that_a_request_touches(index, sectors, wanted):
    line = only(trace_probe(f"args.y[t] = args.x[{index}];", COUNTS).select(kind="load"))
    assert (line.sectors, line.wanted_bytes) == (sectors, wanted)
    assert line.fewest_sectors == -(-wanted // 32)
    assert line.efficiency == wanted / (32 * sectors)


def test_asynchronous_copies_are_counted_on_both_sides():
    body = """__shared__ __align__(16) float s[128];
    tilewright::cp_async<16>(&s[4 * t], args.x + 4 * t);
    tilewright::cp_async_commit();
    tilewright::cp_async_wait<0>();
    __syncthreads();
    args.y[t] = s[t];"""
    trace = trace_probe(body, COUNTS)
    assert only(trace.select(kind="copy load")).sectors == 16
    assert only(trace.select(kind="copy store")).wavefronts == 4


def test_lanes_that_skip_a_branch_wait_where_it_ends():
    body = """__shared__ float s[64];
    s[t] = 0; s[t + 32] = 0;
    for (int i = 0; i < 4; ++i) {
      if ((t + i) % 2) s[t] += args.x[t];
      args.y[t + 32 * i] = s[t];
    }"""
    trace = trace_probe(body, COUNTS)
    inside = only(trace.select(kind="load", space="global"))
    assert (inside.instructions, inside.lanes) == (4, 64)
    assert only(trace.select(kind="store", space="global")).instructions == 4


def test_loops_of_different_lengths_are_walked_side_by_side():
    body = "for (int i = 0; i < t; ++i)\n args.y[t + 32 * i] = args.x[i];\nargs.y[t] = args.x[t];"
    trace = trace_probe(body, COUNTS)
    assert [(x.instructions, x.lanes) for x in trace.select(kind="load")] == [(31, 31 * 32 // 2), (1, 32)]


def test_events_are_the_accesses_in_lockstep_order():
    trace = trace_probe(
        "__shared__ float s[32];\ns[31 - t] = 1; __syncthreads();\nargs.y[t] = s[t];", Watch(events=True)
    )
    stored = trace.events[trace.events["kind"] == 1]
    first = stored[stored["instruction"] == stored["instruction"][0]]
    assert list(first["thread"]) == list(range(32))
    assert list(first["offset"]) == [4 * (31 - t) for t in range(32)]
    assert {trace.sites[int(event["site"])] for event in first} == {"probe.cu:2"}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_both_compilers_give_the_same_counts(compiler, monkeypatch):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} on this machine")
    monkeypatch.setenv("TILEWRIGHT_CXX", compiler)
    trace = trace_rung("k08", 128, COUNTS)
    counted = {(x.space, x.kind, x.array): (x.instructions, x.wavefronts, x.sectors) for x in trace.lines}
    assert counted == {
        ("global", "load", "A"): (256, 0, 4096),
        ("global", "load", "B"): (128, 0, 2048),
        ("global", "store", "D"): (128, 0, 2048),
        ("shared", "store", "As"): (1024, 4096, 0),
        ("shared", "store", "Bs"): (128, 512, 0),
        ("shared", "load", "As"): (2048, 4096, 0),
        ("shared", "load", "Bs"): (2048, 8192, 0),
    }
    assert not trace_rung("k08", 128, CHECKS).findings


def test_shared_arrays_are_named_as_in_the_source_and_lie_apart():
    body = """__shared__ float first[32]; __shared__ __align__(16) short second_2[3]; __shared__ int E2As[5];
    first[t] = second_2[t % 3] = E2As[t % 5] = t; __syncthreads();
    args.y[t] = first[31 - t] + second_2[t % 3] + E2As[t % 5];"""
    arrays = shared_arrays(probe(body).payload)
    assert {(array.name, array.nbytes) for array in arrays} == {("first", 128), ("second_2", 6), ("E2As", 20)}
    ends = [0, *(array.offset + array.nbytes for array in arrays)]
    assert all(array.offset >= end + 4096 for array, end in zip(arrays, ends, strict=False))


def test_a_file_that_is_no_kernel_has_no_shared_arrays():
    assert shared_arrays(b"text") == []


def test_a_binary_goes_only_to_the_runner_it_was_made_for():
    args = ProbeArgs(x=0, y=0, n=0)
    fast = compile_host(host_source(KernelSource("f", "f", FAST, "f.cu"), args_type="Args"))
    with TracingBackend() as device, pytest.raises(InvalidInput, match="compile_traced"):
        device.launch(fast, Grid((1, 1, 1), (1, 1, 1)), args)
    with EmulatorBackend() as device, pytest.raises(InvalidInput, match="compile_host"):
        device.launch(probe("args.y[t] = 0;"), Grid((1, 1, 1), (1, 1, 1)), args)


# Findings


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("occurrence", [0, 1])
@pytest.mark.parametrize("rung", ["k04", "k08"])
def test_a_missing_barrier_is_a_race_under_every_schedule(rung, occurrence, schedule):
    size = 128 if rung == "k08" else 64
    trace = trace_rung(
        rung, size, CHECKS, without="__syncthreads();", occurrence=occurrence, schedule=schedule, seed=occurrence
    )
    races = [finding for finding in trace.findings if finding.flaw == "race"]
    assert {finding.array for finding in races} == {"As", "Bs"}
    assert all("no barrier between" in finding.text and len(finding.lines) == 2 for finding in races)


@pytest.mark.parametrize("rung", ["k01", "k02", "k04", "k08"])
def test_no_schedule_finds_anything_in_a_right_kernel(rung):
    size = 128 if rung == "k08" else 64
    for schedule, seed in [("default", 0), ("reverse", 0), *(("random", seed) for seed in range(20))]:
        assert not trace_rung(rung, size, CHECKS, schedule=schedule, seed=seed).findings


def pipeline(without: str = "", instead: str = "", **options) -> Trace:
    text = (KERNELS / "pipeline.cu").read_text(encoding="utf-8")
    assert without in text
    text = f'#line 1 "pipeline.cu"\n{text.replace(without, instead, 1) if without else text}'
    binary = compile_traced(host_source(KernelSource("pipeline", "pipeline", text, "pipeline.cu")))
    problem = Problem(m=32, n=32, k=128)
    return trace_gemm(binary, problem, Grid((1, 1, 1), (16, 16, 1), 3 * 2 * 32 * 32 * 4), CHECKS, **options)


@pytest.mark.parametrize("completion", ["latest", "earliest", "random"])
def test_a_pipeline_of_asynchronous_copies_is_judged_by_order_not_by_when_they_land(completion):
    for schedule in SCHEDULES:
        options = {"schedule": schedule, "async_completion": completion}
        assert not pipeline(**options).findings
        unwaited = pipeline("tilewright::cp_async_wait<STAGES - 2>();", **options)
        assert any("cp_async_wait" in finding.text for finding in unwaited.findings if finding.flaw == "race")
        uncommitted = pipeline("tilewright::cp_async_commit();", **options)
        assert any(finding.flaw == "race" for finding in uncommitted.findings)
        overwritten = pipeline("fill(stages[(t + STAGES - 1) % STAGES]", "fill(stages[t % STAGES]", **options)
        assert any(finding.flaw == "race" for finding in overwritten.findings)
        unordered = pipeline("__syncthreads();", **options)
        assert any("no barrier between" in finding.text for finding in unordered.findings)


def test_reading_a_copys_destination_before_its_wait_says_so():
    body = """__shared__ float s[32];
    tilewright::cp_async<4>(&s[t], args.x + t);
    tilewright::cp_async_commit();
    args.y[t] = s[t];"""
    (finding,) = trace_probe(body, CHECKS).findings
    assert finding.lines == ("probe.cu:2", "probe.cu:4")
    assert finding.text == (
        "race on s[0] in CTA (0,0,0): a copy of thread (0,0,0) copies to it at probe.cu:2, thread (0,0,0) reads it at "
        "probe.cu:4, and no cp_async_wait for the copy between"
    )


def test_a_wait_without_a_barrier_orders_only_the_thread_that_waits():
    body = """__shared__ float s[32];
    if (t == 0) {
      tilewright::cp_async<4>(s, args.x);
      tilewright::cp_async_commit();
      tilewright::cp_async_wait<0>();
    }
    args.y[t] = s[0];"""
    (finding,) = trace_probe(body, CHECKS).findings
    assert finding.text == (
        "race on s[0] in CTA (0,0,0): a copy of thread (0,0,0) copies to it at probe.cu:3, thread (1,0,0) reads it at "
        "probe.cu:7, and no barrier between the copy's cp_async_wait and this"
    )


def test_a_race_names_both_lines_and_threads_and_the_missing_order():
    body = "__shared__ float s[64];\ns[t] = 1;\nargs.y[t] = s[t / 32 * 31];"
    (finding,) = trace_probe(body, CHECKS, threads=64).findings
    assert (finding.flaw, finding.array, finding.lines) == ("race", "s", ("probe.cu:2", "probe.cu:3"))


def test_a_race_between_warps_names_the_missing_barrier():
    body = "__shared__ float s[64];\nif (t == 31) s[0] = 1;\nif (t == 32) args.y[t] = s[0];"
    (finding,) = trace_probe(body, CHECKS, threads=64).findings
    assert finding.text == (
        "race on s[0] in CTA (0,0,0): thread (31,0,0) writes it at probe.cu:2, thread (32,0,0) reads it at probe.cu:3, "
        "and no barrier between"
    )


def test_neighbours_smaller_than_a_word_do_not_race():
    body = """__shared__ short s[64];
    s[2 * t] = 1; s[2 * t + 1] = 2;
    args.y[t] = s[2 * t];
    __syncthreads();
    s[63 - t] = 3;"""
    assert not trace_probe(body, CHECKS).findings


def test_uninitialised_shared_memory_is_found_in_each_cta():
    body = "__shared__ float s[32];\nif (t < 31) s[t] = 1;\n__syncthreads();\nargs.y[t + 32 * blockIdx.x] = s[t];"
    (finding,) = trace_probe(body, CHECKS, grid=2).findings
    assert finding.text == "reads s[31], which nobody has written: thread (31,0,0) of CTA (0,0,0) at probe.cu:4"


@pytest.mark.parametrize("loop", ["", "#pragma unroll 1\n"])
def test_an_overflow_into_the_neighbouring_array_names_the_array_it_left(loop):
    body = f"""__shared__ float first[32], second[32];
    first[t] = 1; second[t] = 2;
    __syncthreads();
    float sum = second[t];
{loop}    for (int i = 0; i <= args.n; ++i) sum += first[i];
    args.y[t] = sum;"""
    with TracingBackend(CHECKS) as device:
        y = device.alloc(4096, label="Y")
        device.launch(probe(body), Grid((1, 1, 1), (32, 1, 1)), ProbeArgs(x=0, y=y.address, n=32))
        (finding,) = device.traces[0].findings
    assert (finding.flaw, finding.array) == ("out_of_bounds", "first")
    assert "reads past the end of first: byte offset 128 (element 32) of 128 bytes: thread (0,0,0)" in finding.text


@pytest.mark.parametrize(
    ("body", "array", "index"),
    [
        ("__shared__ float s[4][8]; s[t / 8][t % 8] = 1; __syncthreads(); args.y[t] = s[0][t];", "float[8]", 8),
        ("float r[4] = {}; for (int i = 0; i < args.n / 204; ++i) r[i] = i + t; args.y[t] = r[t % 4];", "float[4]", 4),
    ],
)
def test_an_index_beyond_its_dimension_is_found_though_it_stays_in_the_array_or_in_registers(body, array, index):
    finding = only(trace_probe(body, CHECKS).findings)
    assert (finding.flaw, finding.array, finding.lines) == ("index", array, ("probe.cu:1",))
    assert f"index {index} is beyond its dimension, of {array}: thread (" in finding.text


def test_an_access_before_the_first_shared_array_is_found():
    (finding,) = trace_probe("__shared__ float s[32]; s[t - args.n / 1024] = 1; args.y[t] = s[0];", CHECKS).findings[:1]
    assert "writes before the start of s: byte offset -4 (element -1)" in finding.text


def test_dynamic_shared_memory_ends_where_the_launch_says():
    body = "float* s = reinterpret_cast<float*>(tilewright::dynamic_smem()); s[t] = 1; s[t + 1] = 2;"
    findings = trace_probe(body, CHECKS, smem_bytes=128).findings
    assert any("past the end of dynamic shared memory: byte offset 128" in finding.text for finding in findings)


def test_the_alignment_gap_beside_a_global_array_is_outside_it():
    with TracingBackend(CHECKS) as device:
        x, y = device.alloc(20, label="X", read_only=True), device.alloc(4096, label="Y")
        device.launch(
            probe("args.y[t] = args.x[t % 6];"), Grid((1, 1, 1), (32, 1, 1)), ProbeArgs(x.address, y.address, 0)
        )
        (finding,) = device.traces[0].findings
    assert "reads past the end of X: byte offset 20 (element 5) of 20 bytes" in finding.text


def test_reading_the_padding_of_declared_rows_is_found():
    watch = Watch(counts=False, checks=True, matrices={"X": Matrix(rows=4, columns=5, row_stride=8, batch_stride=32)})
    assert not trace_probe("args.y[t] = args.x[t / 5 % 4 * 8 + t % 5];", watch).findings
    (finding,) = trace_probe("args.y[t] = args.x[t % 4 * 8 + t / 4 % 6];", watch).findings
    assert finding.text.startswith("reads X[5], which lies in the padding between the rows of X: thread (20,0,0)")


def test_two_ctas_writing_the_same_element_have_no_order():
    (finding,) = trace_probe("args.y[t] = float(blockIdx.x);", CHECKS, grid=2).findings
    assert "in CTA (0,0,0) and CTA (1,0,0), and CTAs have no order" in finding.text


def test_atomic_updates_do_not_race_and_order_what_they_release():
    counted = "__atomic_fetch_add(reinterpret_cast<unsigned*>(args.y), 1u, __ATOMIC_RELAXED);"
    assert not trace_probe(counted, CHECKS, grid=2).findings
    handed = """__shared__ float s; __shared__ unsigned flag;
    if (t == 0) flag = 0;
    __syncthreads();
    if (t == ORDER) { s = 1; __atomic_store_n(&flag, 1u, __ATOMIC_RELEASE); }
    if (t == 1 && __atomic_load_n(&flag, __ATOMIC_ACQUIRE)) args.y[0] = s;"""
    assert not trace_probe(handed.replace("ORDER", "0"), CHECKS).findings
    relaxed = handed.replace("ORDER", "0").replace("__ATOMIC_RELEASE", "__ATOMIC_RELAXED")
    assert [finding.flaw for finding in trace_probe(relaxed, CHECKS).findings] == ["race"]


def test_findings_before_a_failure_are_kept():
    body = """__shared__ float s[32];
    args.y[t] = s[t];
    __syncthreads();
    s[t] = 1;
    *reinterpret_cast<volatile float*>(t) = 1;"""
    assert [finding.flaw for finding in failing_probe(body, CHECKS).findings] == ["uninitialised"]


PRELUDE = """#include "tilewright/scalar.cuh"
using Scalar = tilewright::F32;
using Output = Scalar;
#include "tilewright/args.cuh"
using tilewright::GemmArgs;
"""


@pytest.mark.parametrize(
    ("name", "flaws"),
    [
        ("honest", set()),
        ("honest_tiled", set()),
        ("no_barrier_before_read", {"race", "uninitialised"}),
        ("no_barrier_before_write", {"race"}),
        ("past_its_tile", {"race"}),
        ("uninitialised_shared", {"uninitialised"}),
        ("dense_rows", {"padding"}),
        ("padding_overwritten", {"padding"}),
        ("padding_times_zero", {"padding"}),
        ("row_before_start", {"out_of_bounds"}),
        ("term_past_end", {"out_of_bounds", "padding"}),
    ],
)
def test_of_the_wrong_kernels_those_wrong_in_order_or_place_are_named_on_any_data(name, flaws):
    text = (Path(__file__).parent / "broken" / f"{name}.cu").read_text(encoding="utf-8")
    binary = compile_traced(
        host_source(KernelSource(name, name, f'{PRELUDE}#line 1 "{name}.cu"\n{text}', f"{name}.cu"))
    )
    problem = Problem(m=17, n=33, k=31, lda=36, ldb=40, ldd=35)
    watch = Watch(counts=False, checks=True, matrices=declared_matrices(problem))
    trace = trace_gemm(binary, problem, Grid((3, 2, 1), (16, 16, 1)), watch)
    assert {finding.flaw for finding in trace.findings} == flaws
