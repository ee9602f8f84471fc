"""The microscope on what runs beside the threads: TMA, wgmma, and the proxy through which they see memory."""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from tilewright.compile.binary import KernelSource
from tilewright.compile.host import host_source
from tilewright.compile.traced import compile_traced
from tilewright.declare.tensor_map import TensorMap
from tilewright.emulator.tracing import Watch
from tilewright.errors import LaunchFailed
from tilewright.run.protocol import Grid
from tilewright.run.tensor_map import EncodedMap, encode_for_emulator
from tilewright.run.tracing import TracingBackend

TEXT = (Path(__file__).parent / "kernels" / "async_ring.cu").read_text(encoding="utf-8")
BUGS = re.findall(r"[A-Z_]+", re.search(r"enum Bug \{(.*?)\}", TEXT, re.DOTALL)[1])
SCHEDULES = [("default", "latest"), ("reverse", "earliest"), ("random", "random")]
COUNTS, CHECKS = Watch(), Watch(counts=False, checks=True)
SIDE, K = 64, 256
OPERAND_MAP = TensorMap(dtype="bfloat16", rows=SIDE, cols=K, ld=K, box_rows=SIDE, box_cols=64, span_bytes=128)
D_MAP = TensorMap(dtype="float32", rows=2 * SIDE, cols=SIDE, ld=SIDE, box_rows=SIDE, box_cols=SIDE)
SMEM_BYTES = 5 * SIDE * 128 + SIDE * SIDE * 4 + 32

INIT, OPERAND, RESULT = "mbarrier_init(&full[stage]", "(operand)[i] = 0", "(result)[t * N / 2 + i] = d[i]"
LOAD_A, LOAD_B, STORE = "tma_load(a,", "tma_load(b,", "tma_store("
PRODUCT, FIRST_PRODUCT = "wgmma<N, BF16, false, false>(d, descriptor_at", "if (tile == 0) wgmma<"


class Args(ctypes.Structure):
    _fields_ = (("maps", EncodedMap * 3), ("d", ctypes.c_uint64), ("bug", ctypes.c_int32), ("_", ctypes.c_uint8 * 52))


def ring(bug, watch=CHECKS, schedule="default", completion="latest", seed=0):
    """The trace of the ring with a bug, and whether the launch failed besides."""
    source = KernelSource("async_ring", "async_ring", f'#line 1 "async_ring.cu"\n{TEXT}', "async_ring.cu")
    binary = compile_traced(host_source(source, args_type="Args"))
    options = {"schedule": schedule, "async_completion": completion, "seed": seed, "timeout_s": 20.0}
    with TracingBackend(watch, **options) as device:
        a, b = (device.alloc(SIDE * K * 2, label=name, read_only=True) for name in "AB")
        d = device.alloc(2 * SIDE * SIDE * 4, label="D")
        for operand in (a, b):
            device.upload(operand, np.zeros(operand.nbytes, np.uint8))
        mapped = ((OPERAND_MAP, a), (OPERAND_MAP, b), (D_MAP, d))
        maps = (encode_for_emulator(made, array.address) for made, array in mapped)
        args = Args(maps=(EncodedMap * 3)(*maps), d=d.address, bug=BUGS.index(bug))
        try:
            device.launch(binary, Grid((1, 1, 1), (160, 1, 1), SMEM_BYTES), args)
        except LaunchFailed:
            return device.traces[0], True
        return device.traces[0], False


def line_of(code):
    (number,) = (i for i, line in enumerate(TEXT.splitlines(), 1) if code in line)
    return f"async_ring.cu:{number}"


@pytest.mark.parametrize("schedule", ["default", "reverse", "random"])
@pytest.mark.parametrize("completion", ["latest", "earliest", "random"])
def test_nothing_is_found_where_every_stage_is_awaited_and_every_store_fenced(schedule, completion):
    trace, failed = ring("RIGHT", schedule=schedule, completion=completion)
    assert (trace.findings, failed) == ((), False)


@pytest.mark.parametrize(("schedule", "completion"), SCHEDULES)
@pytest.mark.parametrize(
    ("bug", "flaw", "code"),
    [
        ("INIT_UNFENCED", "proxy", {INIT, LOAD_A}),
        ("OPERAND_UNFENCED", "proxy", {OPERAND, FIRST_PRODUCT}),
        ("OPERAND_FENCED_BY_ONE", "proxy", {OPERAND, FIRST_PRODUCT}),
        ("RESULT_UNFENCED", "proxy", {RESULT, STORE}),
        ("RESULT_FENCED_BY_ANOTHER", "proxy", {RESULT, STORE}),
        ("RESULT_STORED_BEFORE", "proxy", {"args.d[0] = 0", STORE}),
        ("FULL_NOT_AWAITED", "race", {PRODUCT, LOAD_A}),
        ("RELEASED_BEFORE_WAIT", "race", {PRODUCT, LOAD_B}),
        ("WAITS_ONE_BEHIND", "race", {PRODUCT, LOAD_A}),
        ("RESULT_NOT_AWAITED", "race", {RESULT, STORE}),
        ("RESULT_AWAITED_BY_ONE", "race", {RESULT, STORE}),
        ("RESULT_READ_TOO_SOON", "race", {"args.d[0] != 0", STORE}),
    ],
)
def test_what_is_missing_is_found_whichever_side_came_first(bug, flaw, code, schedule, completion):
    trace, _ = ring(bug, schedule=schedule, completion=completion)
    found = {(finding.flaw, frozenset(finding.lines)) for finding in trace.findings}
    assert (flaw, frozenset(line_of(each) for each in code)) in found
    assert {finding.flaw for finding in trace.findings} <= {flaw, "uninitialised"}


@pytest.mark.parametrize(("schedule", "completion"), SCHEDULES)
@pytest.mark.parametrize(
    ("bug", "code"), [("EMPTY_NOT_AWAITED", {LOAD_A}), ("INIT_UNORDERED", {INIT, "mbarrier_wait(&full[stage]"})]
)
def test_an_mbarrier_used_out_of_turn_is_a_race_unless_it_objects_itself(bug, code, schedule, completion):
    trace, failed = ring(bug, schedule=schedule, completion=completion)
    found = {frozenset(finding.lines) for finding in trace.findings if finding.flaw == "race"}
    assert frozenset(map(line_of, code)) in found or (failed and schedule == "default")


@pytest.mark.parametrize("seed", range(3))
def test_of_a_phase_that_ends_after_half_its_bytes_no_load_counts_as_awaited(seed):
    trace, _ = ring("EXPECTS_HALF", completion="random", seed=seed)
    found = {frozenset(finding.lines) for finding in trace.findings}
    assert {frozenset(map(line_of, (PRODUCT, load))) for load in (LOAD_A, LOAD_B)} <= found


@pytest.mark.parametrize(
    ("bug", "first", "second", "text"),
    [
        (
            "OPERAND_UNFENCED",
            OPERAND,
            FIRST_PRODUCT,
            "unfenced store on byte 32768 of SMEM: thread (0,0,0) writes it at {}, wgmma of warpgroup 0 reads it at "
            "{}, and no fence_proxy_async on the way: call it after the store and before the barrier",
        ),
        (
            "INIT_UNFENCED",
            INIT,
            LOAD_A,
            "unfenced store on byte 57344 of SMEM: thread (128,0,0) initialises it at {}, a TMA load of thread "
            "(128,0,0) counts its bytes in it at {}, and no fence_mbarrier_init on the way: call it after "
            "mbarrier_init and before the barrier",
        ),
        (
            "RESULT_STORED_BEFORE",
            "args.d[0] = 0",
            STORE,
            "unfenced store on byte 0 of D in CTA (0,0,0): thread (0,0,0) writes it at {}, a TMA store of thread "
            "(0,0,0) writes it at {}, and fence_proxy_async covers shared memory only: TMA takes what was stored "
            "before the launch",
        ),
        (
            "FULL_NOT_AWAITED",
            LOAD_A,
            PRODUCT,
            "race on byte 0 of SMEM: a TMA load of thread (128,0,0) writes it at {}, wgmma of warpgroup 0 reads it at "
            "{}, and no mbarrier_wait for the load between",
        ),
        (
            "WAITS_ONE_BEHIND",
            PRODUCT,
            LOAD_B,
            "race on byte 16384 of SMEM: wgmma of warpgroup 0 reads it at {}, a TMA load of thread (128,0,0) writes it "
            "at {}, and no wgmma_wait for the product between",
        ),
        (
            "RELEASED_BEFORE_WAIT",
            PRODUCT,
            LOAD_B,
            "race on byte 16384 of SMEM: wgmma of warpgroup 0 reads it at {}, a TMA load of thread (128,0,0) writes it "
            "at {}, and no barrier or mbarrier_wait between the product's wgmma_wait and this",
        ),
    ],
)
def test_a_finding_names_both_sides_and_what_is_missing(bug, first, second, text):
    trace, _ = ring(bug)
    expected = text.replace("SMEM", "dynamic shared memory in CTA (0,0,0)").format(line_of(first), line_of(second))
    assert expected in [finding.text for finding in trace.findings]


def test_rows_that_tma_moves_are_counted_apart_from_what_warps_ask_for():
    trace, _ = ring("RIGHT", COUNTS)
    counted = {(x.kind, x.array, x.width_bytes): (x.instructions, x.sectors) for x in trace.lines if not x.by_warps}
    rows = SIDE * K * 2 // 128
    assert counted == {
        ("TMA load", "A", 128): (rows, 4 * rows),
        ("TMA load", "B", 128): (rows, 4 * rows),
        ("TMA store", "D", 256): (2 * SIDE, 8 * 2 * SIDE),
    }
    assert trace.per_access("global") == 1
    assert all(x.by_warps for x in trace.select(space="shared"))


@pytest.mark.parametrize(("pitch_halves", "wavefronts"), [(64, 8), (72, 1)])
def test_stmatrix_is_one_store_with_a_wavefront_for_each_matrix(device_probe, launch_probe, pitch_halves, wavefronts):
    body = (
        "__shared__ __align__(16) unsigned short s[32 * 72]; const unsigned registers[4] = {};\n"
        f"stmatrix<4>(&s[lane * {pitch_halves}], registers);\n"
        "args.y[t] = s[lane * 72];"
    )
    binary = compile_traced(host_source(device_probe(body), args_type="Args"))
    with TracingBackend(Watch(checks=True), timeout_s=20.0) as device:
        launch_probe(device, binary)
        trace = device.traces[0]
    (store,) = trace.select(space="shared", kind="matrix store")
    assert (store.line, store.width_bytes, store.instructions, store.lanes) == (2, 16, 1, 32)
    assert (store.wavefronts, store.conflict_free_wavefronts) == (4 * wavefronts, 4)


def test_a_copy_still_reading_behind_a_barrier_races_with_a_store(device_probe, launch_probe):
    body = """__shared__ float s[32];
    args.y[t] = 0; __syncthreads();
    cp_async<4>(&s[t], &args.y[t]); __syncthreads();
    args.y[t] = 1;"""
    binary = compile_traced(host_source(device_probe(body), args_type="Args"))
    with TracingBackend(CHECKS, timeout_s=20.0) as device:
        launch_probe(device, binary)
        (finding,) = device.traces[0].findings
    assert (finding.flaw, finding.array, finding.lines) == ("race", "Y", ("probe.cu:3", "probe.cu:4"))
