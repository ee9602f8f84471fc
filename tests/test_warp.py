"""Warp collectives and ldmatrix in the emulator: what every lane gets, and what is said of lanes that don't come."""

import numpy as np
import pytest

from tilewright.errors import Deadlock, LaunchFailed

SCHEDULES = ("default", "reverse", "random")
LANES = np.arange(32)


def shuffled(kind: str, lane: int, argument: int, width: int) -> int:
    """The lane that `lane` reads, by the rules of the shuffle instruction."""
    first, last = lane & -width, (lane & -width) + width - 1
    match kind:
        case "__shfl_sync":
            return first + argument % width
        case "__shfl_up_sync":
            return lane - argument if lane - argument >= first else lane
        case "__shfl_down_sync":
            return lane + argument if lane + argument <= last else lane
    return lane ^ argument if lane ^ argument <= last else lane


@pytest.mark.parametrize("kind", ["__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"])
def test_every_shuffle_reads_the_lane_its_rules_say(emulate, kind):
    cases = [(argument, width) for argument in (0, 1, 5, 17, 31) for width in (1, 2, 8, 32)]
    body = "".join(
        f"args.y[{i} * 32 + lane] = {kind}(FULL_WARP, args.x[100 + lane], {argument}, {width});\n"
        for i, (argument, width) in enumerate(cases)
    )
    got = emulate(body, schedule="reverse").y.reshape(-1, 32)
    for row, (argument, width) in zip(got, cases, strict=False):
        assert [int(x) - 100 for x in row] == [shuffled(kind, lane, argument, width) for lane in range(32)]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_butterfly_of_shuffles_sums_each_warp(emulate, schedule):
    body = """float sum = args.x[t];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, offset);
    args.y[t] = sum;"""
    got = emulate(body, threads=128, schedule=schedule).y[:128]
    np.testing.assert_array_equal(got, np.repeat(np.arange(128).reshape(4, 32).sum(axis=1), 32))


def test_eight_byte_values_are_shuffled_whole(emulate):
    body = """const unsigned long long mine = (1ull << 40) + lane, other = __shfl_down_sync(FULL_WARP, mine, 1);
    args.y[lane] = float(other - mine);"""
    np.testing.assert_array_equal(emulate(body).y[:32], [1.0] * 31 + [0.0])


def test_votes_and_matches_count_the_lanes_of_their_mask(emulate):
    body = """unsigned* out = reinterpret_cast<unsigned*>(args.y);
    int alike = -1;
    if (lane < 8) {
      out[lane] = __ballot_sync(0xFF, lane % 3 == 0);
      out[32 + lane] = 10 * __all_sync(0xFF, lane < 8) + __all_sync(0xFF, lane < 7);
    } else {
      out[lane] = __ballot_sync(0xFFFFFF00, lane >= 30);
      out[32 + lane] = 10 * __any_sync(0xFFFFFF00, lane == 9) + __any_sync(0xFFFFFF00, lane < 8);
    }
    out[64 + lane] = __match_any_sync(FULL_WARP, lane / 10);
    out[96 + lane] = __match_all_sync(FULL_WARP, lane / 32, &alike) + alike;
    out[128 + lane] = __match_all_sync(FULL_WARP, lane, &alike) + alike;"""
    got = emulate(body).y.view(np.uint32)[:160].reshape(5, 32)
    np.testing.assert_array_equal(got[0], [0b01001001] * 8 + [0xC0000000] * 24)
    np.testing.assert_array_equal(got[1], [10] * 32)
    np.testing.assert_array_equal(got[2], [sum(1 << j for j in LANES if j // 10 == i // 10) for i in LANES])
    np.testing.assert_array_equal(got[3], [0] * 32)  # all lanes plus one
    np.testing.assert_array_equal(got[4], [0] * 32)


def test_one_lane_of_a_mask_is_elected_and_the_same_one_again(emulate):
    body = """args.y[t] = 0;
    if (lane >= 4) args.y[t] = elect_one(0xFFFFFFF0) + elect_one(0xFFFFFFF0);"""
    got = emulate(body, threads=64).y[:64].reshape(2, 32)
    np.testing.assert_array_equal(got, [[0] * 4 + [2] + [0] * 27] * 2)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_one_lane_wrote_is_there_after_syncwarp(emulate, schedule):
    body = """__shared__ float s[64];
    s[t] = float(t);
    __syncwarp();
    args.y[t] = s[t ^ 1];"""
    np.testing.assert_array_equal(emulate(body, threads=64, schedule=schedule).y[:64], np.arange(64) ^ 1)


def test_without_syncwarp_a_schedule_shows_it(emulate):
    body = "__shared__ float s[32]; s[t] = float(t); args.y[t] = s[t ^ 1];"
    assert any(np.isnan(emulate(body, schedule=schedule).y[:32]).any() for schedule in SCHEDULES)


def test_lanes_that_have_ended_are_not_waited_for_and_give_garbage(emulate):
    body = "if (t >= 24) return;\nargs.y[t] = __shfl_down_sync(FULL_WARP, args.x[t], 4);"
    for schedule in SCHEDULES:
        got = emulate(body, schedule=schedule).y[:24]
        np.testing.assert_array_equal(got[:20], np.arange(4, 24))
        assert np.isnan(got[20:]).all()


def test_a_block_of_part_of_a_warp_is_no_deadlock(emulate):
    body = "reinterpret_cast<unsigned*>(args.y)[t] = __ballot_sync(FULL_WARP, 1);"
    np.testing.assert_array_equal(emulate(body, threads=40).y.view(np.uint32)[:40], [2**32 - 1] * 32 + [255] * 8)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_lanes_that_wait_elsewhere_are_named_as_missing(emulate, schedule):
    body = "if (lane < 16)\n  args.y[t] = __shfl_sync(FULL_WARP, args.x[t], 0);\n__syncthreads();"
    words = (
        r"16 threads wait at __shfl_sync of probe.cu:2 \(first: thread \(32,0,0\)\): lanes 16-31 of warp 1 are missing"
    )
    with pytest.raises(Deadlock, match=words) as caught:
        emulate(body, threads=64, schedule=schedule)
    assert "32 threads wait at __syncthreads of probe.cu:3 (first: thread (16,0,0))" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("__syncwarp(0x2);", r"__syncwarp: lane 0 is not in its own mask 0x00000002, thread .* probe.cu:1"),
        (
            "if (lane == 0) __syncwarp();\nelse __syncwarp();",
            r"lanes of one warp meet at different lines: __syncwarp .* here, __syncwarp .* at line 1.*probe.cu:2",
        ),
        (
            "__syncwarp(lane < 16 ? 0xFFFFu : FULL_WARP);",
            r"lanes of one warp meet with different masks: __syncwarp with mask 0x0000ffff here, .* 0xffffffff",
        ),
        ("__shfl_sync(FULL_WARP, t, 0, 12);", r"__shfl_sync: width=12: must be a power of two up to 32"),
        (
            "__shared__ __align__(16) float s[256]; unsigned r[4];\nldmatrix<4>(r, s + 4 * lane + (lane == 9));",
            r"ldmatrix: lane 9's row is 4 bytes off a multiple of 16, thread \(9,0,0\).*probe.cu:2",
        ),
    ],
)
def test_a_call_against_the_rules_is_named(emulate, body, words):
    with pytest.raises(LaunchFailed, match=words):
        emulate(body, schedule="reverse" if "0xFFFFu" in body else "default")


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_gives_each_lane_its_two_elements_of_every_matrix(emulate, count, transposed):
    body = f"""__shared__ __align__(16) unsigned short s[32][24];  // 16-byte rows of 8, padded to 48 bytes
    for (int i = 0; i < 8; ++i) s[lane][i] = static_cast<unsigned short>(lane * 8 + i);
    __syncwarp();
    unsigned r[{count}];
    ldmatrix<{count}, {str(transposed).lower()}>(r, lane < {8 * count} ? s[lane] : nullptr);
    for (int i = 0; i < {count}; ++i) reinterpret_cast<unsigned*>(args.y)[i * 32 + lane] = r[i];"""
    got = emulate(body, schedule="random").y.view(np.uint16)[: count * 64].reshape(count, 32, 2)
    matrices = np.arange(count * 64).reshape(count, 8, 8)
    if transposed:
        matrices = matrices.swapaxes(1, 2)
    np.testing.assert_array_equal(got, matrices.reshape(count, 32, 2))
