"""Named barriers and mbarriers in the emulator: what they order, and what is said when an arrival is missing."""

import numpy as np
import pytest

from tilewright.errors import Deadlock, LaunchFailed

SCHEDULES = ("default", "reverse", "random")
COMPLETIONS = ("latest", "earliest", "random")

HANDED_OVER = """__shared__ float s[2][32];
for (int i = 0; i < 6; ++i) {
  if (warp == 0) {
    if (i >= 2) barrier_sync(3 + i % 2, 64);  // stage i % 2 has been read
    s[i % 2][lane] = float(100 * i + lane);
    barrier_arrive(1 + i % 2, 64);            // and is filled
  } else {
    barrier_sync(1 + i % 2, 64);
    args.y[32 * i + lane] = s[i % 2][31 - lane];
    if (i < 4) barrier_arrive(3 + i % 2, 64);
  }
}"""

PIPELINE = """__shared__ __align__(16) float s[2][32];
__shared__ Mbarrier full[2], empty[2];
if (t == 0) for (int i = 0; i < 2; ++i) { mbarrier_init(&full[i], 32); mbarrier_init(&empty[i], 32); }
__syncthreads();
for (int i = 0; i < 8; ++i) {
  const int stage = i % 2, round = i / 2;
  if (warp == 0) {
    if (round > 0) mbarrier_wait(&empty[stage], (round - 1) % 2);
    cp_async<4>(&s[stage][lane], args.x + 32 * i + lane);
    cp_async_mbarrier_arrive_noinc(&full[stage]);
  } else {
    mbarrier_wait(&full[stage], round % 2);
    args.y[32 * i + lane] = s[stage][31 - lane];
    mbarrier_arrive(&empty[stage]);
  }
}"""
REVERSED_ROWS = np.arange(256.0).reshape(8, 32)[:, ::-1].reshape(-1)


def right(emulate, body: str, expected, **options) -> bool:
    """Whether two warps end, and with this result."""
    try:
        return np.array_equal(emulate(body, threads=64, **options).y[: len(expected)], expected)
    except LaunchFailed:
        return False


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_warps_hand_stages_over_by_named_barriers(emulate, schedule):
    expected = [100 * i + 31 - lane for i in range(6) for lane in range(32)]
    np.testing.assert_array_equal(emulate(HANDED_OVER, threads=64, schedule=schedule).y[:192], expected)


@pytest.mark.parametrize("gone", ["if (i >= 2) barrier_sync(3 + i % 2, 64);", "barrier_sync(1 + i % 2, 64);\n    args"])
def test_a_named_barrier_that_is_gone_shows_under_some_schedule(emulate, gone):
    kept = gone.split("\n")[1].strip() if "\n" in gone else ""
    body = HANDED_OVER.replace(gone, kept)
    assert body != HANDED_OVER
    expected = [100 * i + 31 - lane for i in range(6) for lane in range(32)]
    assert not all(right(emulate, body, expected, schedule=schedule) for schedule in SCHEDULES)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "if (warp < 3)\n  barrier_sync(1, 128);",
            r"deadlock in CTA \(0,0,0\): 96 threads wait at barrier 1 of probe.cu:2 \(first: thread \(0,0,0\)\): "
            r"96 of 128 arrivals, 32 threads have exited",
        ),
        (
            "if (t == 0)\n  barrier_arrive(2, 128);\nelse if (warp > 0)\n  barrier_sync(2, 128);",
            r"96 threads wait at barrier 2 of probe.cu:4 \(first: thread \(32,0,0\)\): 97 of 128 arrivals",
        ),
    ],
)
def test_missing_arrivals_at_a_named_barrier_are_counted(emulate, body, words):
    for schedule in SCHEDULES:
        with pytest.raises(Deadlock, match=words):
            emulate(body, threads=128, schedule=schedule)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("barrier_sync(0, 32);", "barrier 0: must be 1 to 15; barrier 0 is __syncthreads, thread"),
        ("barrier_sync(16, 32);", "barrier 16: must be 1 to 15"),
        ("barrier_sync(1, 33);", "barrier 1 for 33 threads: must be whole warps, a multiple of 32"),
        (
            "if (warp == 0) barrier_arrive(1, 64);\nelse barrier_sync(1, 96);",
            "barrier 1 is joined for 96 threads here and for 64 at line 1, thread .* probe.cu:2",
        ),
    ],
)
def test_a_named_barrier_against_the_rules_is_refused(emulate, body, words):
    with pytest.raises(LaunchFailed, match=words):
        emulate(body, threads=64)


@pytest.mark.parametrize("completion", COMPLETIONS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_producer_warp_feeds_a_consumer_warp_through_mbarriers(emulate, schedule, completion):
    got = emulate(PIPELINE, threads=64, schedule=schedule, seed=3, async_completion=completion)
    np.testing.assert_array_equal(got.y[:256], REVERSED_ROWS)


@pytest.mark.parametrize(
    "gone", ["if (round > 0) mbarrier_wait(&empty[stage], (round - 1) % 2);", "mbarrier_wait(&full[stage], round % 2);"]
)
def test_an_mbarrier_wait_that_is_gone_shows_under_some_schedule_or_completion(emulate, gone):
    body = PIPELINE.replace(gone, "")
    assert body != PIPELINE
    settings = [(s, c) for s in SCHEDULES for c in COMPLETIONS]
    assert not all(right(emulate, body, REVERSED_ROWS, schedule=s, async_completion=c) for s, c in settings)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_arrival_that_adds_itself_does_not_use_up_an_expected_one(emulate, schedule):
    body = """__shared__ __align__(16) float s[32];
    __shared__ Mbarrier full;
    if (t == 0) mbarrier_init(&full, 32);
    __syncthreads();
    cp_async<4>(&s[t], args.x + t);
    cp_async_mbarrier_arrive(&full);
    mbarrier_arrive(&full);
    mbarrier_wait(&full, 0);
    args.y[t] = s[31 - t];"""
    for completion in COMPLETIONS:
        got = emulate(body, schedule=schedule, async_completion=completion).y[:32]
        np.testing.assert_array_equal(got, np.arange(32.0)[::-1])


def test_a_phase_also_waits_for_the_bytes_announced(emulate):
    body = """__shared__ Mbarrier full;
    if (t == 0) mbarrier_init(&full, 1);
    __syncthreads();
    if (t == 0) {
      mbarrier_arrive_expect_tx(&full, 64);
      args.y[0] = mbarrier_test_wait(&full, 0);
      mbarrier_complete_tx(&full, 48);
      mbarrier_expect_tx(&full, 32);
      args.y[1] = mbarrier_try_wait(&full, 0);
      mbarrier_complete_tx(&full, 48);
      args.y[2] = mbarrier_test_wait(&full, 0);
      args.y[3] = mbarrier_test_wait(&full, 1);
    }"""
    np.testing.assert_array_equal(emulate(body).y[:4], [0, 0, 1, 0])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_asking_in_a_loop_whether_a_phase_is_over_lets_others_run(emulate, schedule):
    body = """__shared__ Mbarrier full;
    if (t == 0) mbarrier_init(&full, 1);
    __syncthreads();
    if (warp == 0) while (!mbarrier_test_wait(&full, 0)) {}
    else if (t == 32) mbarrier_arrive(&full);
    args.y[t] = 1;"""
    assert (emulate(body, threads=64, schedule=schedule).y[:64] == 1).all()


INIT = "__shared__ float pad[4]; __shared__ Mbarrier full; pad[0] = 0; if (t == 0) mbarrier_init(&full, 128); "


@pytest.mark.parametrize("wait", ["mbarrier_wait(&full, 1);", "while (!mbarrier_test_wait(&full, 1)) {}"])
def test_a_phase_that_never_ends_names_its_mbarrier_and_what_it_lacks(emulate, wait):
    body = f"""{INIT} __syncthreads();
    mbarrier_arrive(&full); mbarrier_wait(&full, 0);
    if (t != 5) mbarrier_arrive(&full);
    {wait}"""
    words = (
        r"deadlock in CTA \(0,0,0\): 128 threads wait at mbarrier at static shared offset \d+, parity 1, of probe.cu:4 "
        r"\(first: thread \(0,0,0\)\): 1 of 128 arrivals pending"
    )
    for schedule in SCHEDULES:
        with pytest.raises(Deadlock, match=words):
            emulate(body, threads=128, schedule=schedule)


def test_bytes_that_never_come_are_counted(emulate):
    body = """Mbarrier* full = reinterpret_cast<Mbarrier*>(dynamic_smem()) + 3;
    if (t == 0) mbarrier_init(full, 1);
    __syncthreads();
    if (t == 0) mbarrier_arrive_expect_tx(full, 2048);
    mbarrier_wait(full, 0);"""
    words = "mbarrier at dynamic shared offset 24, parity 0, .*: 0 of 1 arrivals pending, 2048 bytes to come"
    with pytest.raises(Deadlock, match=words):
        emulate(body, smem_bytes=64)


ONE = "__shared__ Mbarrier full; if (t == 0) mbarrier_init(&full, 1); __syncthreads();"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("__shared__ Mbarrier b; mbarrier_arrive(&b);", "an arrival at an mbarrier that is not initialised"),
        (f"{ONE} full.opaque = 7;\nmbarrier_arrive(&full);", "an mbarrier that a store has overwritten, .*probe.cu:2"),
        (f"{ONE} if (t == 0) mbarrier_inval(&full);\n__syncwarp();\nmbarrier_wait(&full, 0);", "no longer, after"),
        (f"{ONE} mbarrier_init(&full, 1);", "mbarrier_init of an mbarrier in use: invalidate it first"),
        (f"{ONE} mbarrier_wait(&full, 2);", "waits for parity 2: must be 0 or 1"),
        ("__shared__ Mbarrier b; mbarrier_init(&b, 0);", "mbarrier_init for 0 arrivals: must be 1 to 1048575"),
        ("mbarrier_init(reinterpret_cast<Mbarrier*>(args.y), 1);", "of an object that is not in shared memory"),
        ("mbarrier_init(reinterpret_cast<Mbarrier*>(dynamic_smem() + 4), 1);", "address must be a multiple of 8"),
        (
            f"{ONE} mbarrier_expect_tx(&full, 16);\nmbarrier_arrive(&full); mbarrier_arrive(&full);",
            "more than the 1 arrivals that the mbarrier expects: the phase lacks only its bytes, 16, .*probe.cu:2",
        ),
        (f"{ONE} mbarrier_expect_tx(&full, 1u << 20);", "waits for 1048576 bytes: must be within 1048575"),
    ],
)
def test_an_mbarrier_against_the_rules_is_refused(emulate, body, words):
    with pytest.raises(LaunchFailed, match=words):
        emulate(body, smem_bytes=64)


def test_an_invalidated_mbarrier_may_be_initialised_again(emulate):
    body = f"""{ONE}
    if (t == 0) {{ mbarrier_inval(&full); mbarrier_init(&full, 32); }}
    __syncthreads();
    mbarrier_arrive(&full);
    mbarrier_wait(&full, 0);
    args.y[t] = 1;"""
    assert (emulate(body).y[:32] == 1).all()
