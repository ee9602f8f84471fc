"""CTAs that wait for each other in the emulator: turns, residency, and deadlocks between them."""

import numpy as np
import pytest

from tilewright.errors import Deadlock, LaunchFailed, OutOfBounds

SCHEDULES = ("default", "reverse", "random")

# Every CTA adds its slice of k to the one tile of the result, slice after slice, as an ordered stream-K does.
TURNSTILE = """const unsigned slice = SLICE;
float sum = 0;
for (int k = 0; k < 8; ++k) sum = sum * 3 + args.x[slice * 8 + k + t];
if (t == 0) wait_until(args.flags, slice);
__syncthreads();  // the slices before this one are in the tile
args.y[t] = slice == 0 ? sum : args.y[t] * 0.5f + sum;
__syncthreads();  // this one is too
if (t == 0) store_release(args.flags, slice + 1);"""
BY_INDEX = TURNSTILE.replace("SLICE", "blockIdx.x")
BY_TICKET = "__shared__ unsigned ticket; if (t == 0) ticket = atomic_add(args.flags + 1, 1u);\n__syncthreads();\n"
BY_TICKET += TURNSTILE.replace("SLICE", "ticket")


def reduced(slices: int) -> np.ndarray:
    x, tile = np.arange(1024, dtype=np.float32), np.zeros(32, np.float32)
    for i in range(slices):
        part = np.zeros(32, np.float32)
        for k in range(8):
            part = part * np.float32(3) + x[i * 8 + k : i * 8 + k + 32]
        tile = part if i == 0 else tile * np.float32(0.5) + part
    return tile


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_ordered_reduction_over_resident_ctas_is_exact(emulate, schedule, seed):
    got = emulate(BY_INDEX, "grid", grid=4, workers=4, schedule=schedule, seed=seed)
    np.testing.assert_array_equal(got.y[:32], reduced(4))
    assert got.flags[0] == 4


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_slices_by_ticket_need_no_more_residents_than_there_are(emulate, schedule, workers):
    got = emulate(BY_TICKET, "grid", grid=11, workers=workers, schedule=schedule, seed=5)
    np.testing.assert_array_equal(got.y[:32], reduced(11))


def test_waiting_for_a_cta_that_has_no_place_to_start_in_names_it(emulate):
    words = (
        r"deadlock between CTAs: in CTA \(6,0,0\) 1 thread waits at wait_until flags\[0\] of probe.cu:4 "
        r"\(first: thread \(0,0,0\)\): it holds 0, waited for is 6, 31 threads wait at __syncthreads of probe.cu:5 .*; "
        r"in CTA \(7,0,0\) .*waited for is 7.*; 2 CTAs are resident at once, "
        r"so CTA \(5,0,0\), \(4,0,0\), \(3,0,0\), \(2,0,0\) and 2 more cannot start before one ends"
    )
    with pytest.raises(Deadlock, match=words):
        emulate(BY_INDEX, "grid", grid=8, workers=2, schedule="reverse")


def test_two_ctas_that_wait_for_each_other_are_a_deadlock_though_both_run(emulate):
    body = "wait_until(args.flags + blockIdx.x, 1);\nstore_release(args.flags + 1 - blockIdx.x, 1);"
    with pytest.raises(Deadlock, match=r"flags\[0\].*flags\[1\].*2 CTAs are resident at once, and all have started"):
        emulate(body, "grid", grid=2, workers=2)


def test_a_wait_for_a_cta_that_has_ended_without_a_word_is_a_deadlock(emulate):
    body = "if (blockIdx.x == 0) return;\nwait_until(args.flags, 1);"
    for schedule in SCHEDULES:
        with pytest.raises(Deadlock, match=r"in CTA \(1,0,0\) 32 threads wait at wait_until flags\[0\] of probe.cu:2"):
            emulate(body, "grid", grid=2, workers=2, schedule=schedule)


def test_a_flag_set_before_its_data_shows_under_some_schedule(emulate):
    data, flag = (
        "args.y[t] = slice == 0 ? sum : args.y[t] * 0.5f + sum;",
        "if (t == 0) store_release(args.flags, slice + 1);",
    )
    early = BY_INDEX.replace(flag, "").replace(data, f"{flag}\n{data}")
    assert early.index(flag) < early.index(data)
    right = [
        np.array_equal(emulate(early, "grid", grid=4, workers=4, schedule=s, seed=1).y[:32], reduced(4))
        for s in SCHEDULES
    ]
    assert not all(right)


def test_the_order_of_ctas_follows_the_schedule_and_repeats_with_the_seed(emulate):
    body = "if (t == 0) args.y[atomic_add(args.flags, 1u)] = float(blockIdx.x);"

    def order(**options) -> list[float]:
        return list(emulate(body, "grid", grid=12, **options).y[:12])

    assert order(workers=3) == list(range(12))
    assert order(workers=3, schedule="reverse") == list(range(11, -1, -1))
    assert order(workers=3, schedule="random", seed=4) == order(workers=3, schedule="random", seed=4)
    assert order(workers=3, schedule="random", seed=4) != order(workers=3, schedule="random", seed=5)
    assert sorted(order(workers=3, schedule="random", seed=4)) == list(range(12))


def test_sums_of_floats_are_exact_on_integers_and_flush_subnormals(emulate):
    body = """if (blockIdx.x == 0 && t == 0) { args.y[0] = 0; args.y[1] = 1e-39f; store_release(args.flags, 1); }
    wait_until(args.flags, 1);
    atomic_add(args.y, args.x[t]);
    if (blockIdx.x == 0 && t == 0) atomic_add(args.y + 1, -1e-39f);"""
    for schedule in SCHEDULES:
        got = emulate(body, "grid", grid=3, workers=3, schedule=schedule).y
        assert (got[0], got[1]) == (3 * sum(range(32)), 0)


def test_other_threads_of_a_cta_run_while_one_waits_for_a_flag(emulate):
    body = """if (t == 0) wait_until(args.flags, 1);
    if (t == 31) store_release(args.flags, 1);
    args.y[t] = float(load_acquire(args.flags));"""
    for schedule in SCHEDULES:
        got = emulate(body, "grid", workers=1, schedule=schedule).y[:32]
        assert (got[0], got[31]) == (1, 1)


def test_a_flag_outside_its_array_is_reported_at_its_line(emulate):
    with pytest.raises(OutOfBounds, match=r"reads flags out of bounds: .*element 64.* at probe.cu:2"):
        emulate("\nwait_until(args.flags + 64, 1);", "grid")


def test_a_barrier_deadlock_is_told_even_where_ctas_take_turns(emulate):
    body = "if (t < 3) return;\n__syncthreads();\nstore_release(args.flags, 1);"
    with pytest.raises(LaunchFailed, match=r"deadlock in CTA \(0,0,0\): 29 threads wait at __syncthreads"):
        emulate(body, "grid", grid=3, workers=2)
