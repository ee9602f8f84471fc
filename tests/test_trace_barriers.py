"""The microscope on kernels that wait for less than their CTA: warp collectives, named barriers, mbarriers, flags."""

import pytest

from tilewright.compile.host import host_source
from tilewright.compile.traced import compile_traced
from tilewright.emulator.tracing import Watch
from tilewright.run.tracing import TracingBackend

COUNTS, CHECKS = Watch(), Watch(counts=False, checks=True)
SCHEDULES = ("default", "reverse", "random")
SHARED = "__shared__ float s[64];"
PHASES = """
__shared__ float s[128];
__shared__ Mbarrier full;
if (t == 0) mbarrier_init(&full, COUNT);
__syncthreads();
"""


@pytest.fixture
def trace(device_probe, launch_probe):
    """The trace of a probe kernel's body."""

    def run(body, watch=CHECKS, *more_headers, threads=32, grid=1, **options):
        binary = compile_traced(host_source(device_probe(body, *more_headers), args_type="Args"))
        with TracingBackend(watch, **{"timeout_s": 20.0, **options}) as device:
            launch_probe(device, binary, threads=threads, grid=grid)
            return device.traces[-1]

    return run


def raced(trace):
    """The arrays with a race; that a racing read finds nothing written is a matter of the schedule."""
    return {finding.array for finding in trace.findings if finding.flaw == "race"}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("between", "found"),
    [
        ("__syncwarp();", set()),
        ("__syncwarp(lane < 16 ? 0xFFFF : 0xFFFF0000);", {"s"}),
        ("__shfl_sync(FULL_WARP, t, 0);", {"s"}),
        ("__ballot_sync(FULL_WARP, 1);", {"s"}),
        ("elect_one();", {"s"}),
    ],
)
def test_of_the_warp_collectives_only_syncwarp_orders_memory_among_its_lanes(trace, between, found, schedule):
    body = f"{SHARED} s[lane] = 1; {between} args.y[t] = s[31 - lane];"
    assert raced(trace(body, schedule=schedule)) == found


def test_syncwarp_orders_nothing_between_warps(trace):
    assert raced(trace(f"{SHARED} s[t] = 1; __syncwarp(); args.y[t] = s[63 - t];", threads=64)) == {"s"}


@pytest.mark.parametrize(("told", "found"), [("__syncwarp();", set()), ("", {"s"})])
def test_a_lane_that_arrives_hands_on_what_its_warp_has_told_it(trace, told, found):
    body = PHASES.replace("COUNT", "1")
    body += f"if (warp == 0) {{ s[lane] = 1; {told} if (lane == 0) mbarrier_arrive(&full); }}"
    body += "else { mbarrier_wait(&full, 0); args.y[t] = s[lane]; }"
    assert raced(trace(body, threads=64)) == found


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    ("producer", "consumer", "found"),
    [
        ("barrier_sync(1, 64);", "barrier_sync(1, 64);", set()),
        ("barrier_arrive(1, 64);", "barrier_sync(1, 64);", set()),
        ("barrier_sync(1, 64);", "barrier_arrive(1, 64);", {"s"}),
        ("barrier_sync(1, 32);", "barrier_sync(2, 32);", {"s"}),
    ],
)
def test_a_named_barrier_orders_who_arrives_before_who_waits(trace, producer, consumer, found, schedule):
    body = f"{SHARED} if (warp == 0) {{ s[lane] = 1; {producer} }} else {{ {consumer} args.y[t] = s[lane]; }}"
    assert raced(trace(body, threads=64, schedule=schedule)) == found


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("wait", ["mbarrier_wait(&full, 0);", "while (!mbarrier_test_wait(&full, 0)) {}"])
def test_an_mbarriers_phase_orders_its_arrivals_before_who_has_waited(trace, wait, schedule):
    body = PHASES.replace("COUNT", "32")
    body += f"if (warp == 0) {{ s[lane] = 1; mbarrier_arrive(&full); }} else {{ {wait} args.y[t] = s[lane]; }}"
    assert trace(body, threads=64, schedule=schedule).findings == ()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_written_after_the_arrival_is_not_ordered(trace, schedule):
    body = PHASES.replace("COUNT", "32")
    body += "if (warp == 0) { mbarrier_arrive(&full); s[lane] = 1; }"
    body += "else { s[lane] = 2; mbarrier_wait(&full, 0); args.y[t] = s[64 + lane]; }"
    assert raced(trace(body, threads=64, schedule=schedule)) == {"s"}


@pytest.mark.parametrize("completion", ["latest", "earliest", "random"])
@pytest.mark.parametrize(
    ("after", "found"),
    [("", set()), ("cp_async<4>(&s[64 + lane], &args.x[lane]);", {"s"}), ("s[96 + lane] = 1;", {"s"})],
)
def test_an_arrival_of_copies_orders_the_copies_before_it_and_nothing_else(trace, after, found, completion):
    # The producer's own store before the arrival is not a copy: the arrival says nothing of it.
    body = PHASES.replace("COUNT", "32")
    store, copy = (after, "") if after.startswith("s") else ("", after)
    body += f"if (warp == 0) {{ {store} cp_async<4>(&s[lane], &args.x[lane]);"
    body += f"cp_async_mbarrier_arrive_noinc(&full); {copy} cp_async_commit(); cp_async_wait<0>(); }}"
    body += "else { mbarrier_wait(&full, 0); args.y[t] = s[lane];"
    read = "s[64 + lane]" if copy else "s[96 + lane]" if store else "0"
    body += f"args.y[64 + t] = {read}; }}"
    assert raced(trace(body, threads=64, async_completion=completion)) == found


@pytest.mark.parametrize(("wait", "found"), [("mbarrier_wait(&full, 0);", set()), ("", {"s"})])
def test_copies_that_one_warp_has_waited_for_are_there_for_all_after_a_barrier(trace, wait, found):
    body = PHASES.replace("COUNT", "32")
    body += "if (warp == 0) { cp_async<4>(&s[lane], &args.x[lane]); cp_async_mbarrier_arrive_noinc(&full); }"
    body += f"else {{ {wait} }} __syncthreads(); args.y[t] = s[31 - lane];"
    assert raced(trace(body, threads=64)) == found


def test_groups_are_counted_beside_arrivals_of_copies(trace):
    body = PHASES.replace("COUNT", "32")
    body += "cp_async<4>(&s[lane], &args.x[lane]); cp_async_mbarrier_arrive_noinc(&full); cp_async_commit();"
    body += "cp_async<4>(&s[64 + lane], &args.x[lane]); cp_async_commit();"
    body += "cp_async_wait<1>(); args.y[t] = s[lane];"
    assert trace(body).findings == ()
    assert raced(trace(body + "args.y[t] += s[64 + lane];")) == {"s"}


@pytest.mark.parametrize(("pitch_halves", "wavefronts"), [(64, 8), (72, 1)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_is_one_instruction_with_a_wavefront_for_each_matrix(trace, count, pitch_halves, wavefronts):
    body = (
        "__shared__ __align__(16) unsigned short s[32 * 72];"
        "for (int i = t; i < 32 * 72; i += 32) s[i] = 0;"
        "__syncthreads();"
        f"unsigned registers[{count}];"
        f"ldmatrix<{count}>(registers, &s[lane * {pitch_halves}]); args.y[t] = registers[0];"
    )
    (load,) = trace(body, COUNTS).select(space="shared", kind="matrix load")
    assert (load.width_bytes, load.instructions, load.lanes) == (16, 1, 8 * count)
    assert (load.wavefronts, load.conflict_free_wavefronts) == (wavefronts * count, count)


def test_ldmatrix_reads_what_its_own_lanes_point_to(trace):
    body = (
        "__shared__ __align__(16) unsigned short s[32 * 8];"
        "for (int i = 0; i < 8; ++i) s[lane * 8 + i] = 0;"
        "unsigned registers[4];"
        "SYNC ldmatrix<4>(registers, &s[(31 - lane) * 8]); args.y[t] = registers[0];"
    )
    assert trace(body.replace("SYNC", "__syncwarp();")).findings == ()
    assert raced(trace(body.replace("SYNC", ""))) == {"s"}


def test_lanes_that_meet_in_a_loop_share_its_instructions(trace):
    # What lane 0 does alone at the loop's end does not part it from the others in the next pass.
    body = "__shared__ float s[64]; for (int i = 0; i < 4; ++i) { s[lane] = i;\nif (lane == 0) s[32 + i] = i;\n"
    stores = trace(body + "__syncwarp(); } args.y[t] = s[lane];", COUNTS).select(space="shared", kind="store")
    assert [(line.instructions, line.lanes) for line in stores] == [(4, 128), (4, 4)]


def test_a_flag_seen_in_another_cta_is_an_atomic_load_and_orders(trace):
    body = (
        "if (blockIdx.x == 0) { args.y[0] = 1; store_release(args.flags, 1u); }"
        "else { wait_until(args.flags, 1u); args.y[0] = 2; }"
    )
    unordered = body.replace("wait_until(args.flags, 1u);", "")
    assert trace(body, CHECKS, "grid", threads=1, grid=2).findings == ()
    assert raced(trace(unordered, CHECKS, "grid", threads=1, grid=2)) == {"Y"}
    (load,) = trace(body, COUNTS, "grid", threads=1, grid=2).select(space="global", kind="atomic load")
    assert (load.array, load.instructions, load.sectors) == ("flags", 1, 1)
