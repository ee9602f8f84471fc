"""Warp collectives, barriers and flags on a GPU: the emulator says the same of the same text."""

import numpy as np
import pytest

pytestmark = pytest.mark.gpu

SHUFFLES = "".join(
    f"args.y[{i} * 32 + t] = {kind}(FULL_WARP, args.x[t], {argument}, {width});\n"
    for i, (kind, argument, width) in enumerate(
        (kind, argument, width)
        for kind in ("__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync")
        for argument in (0, 1, 9, 31, 33)
        for width in (4, 32)
    )
    if not (kind == "__shfl_xor_sync" and argument == 33)
)
VOTES = """const unsigned mine = lane < 20 ? 0xFFFFF : 0xFFF00000;
int alike = 0;
unsigned sum = 0;
if (lane < 20) sum = __ballot_sync(mine, lane % 3) + __all_sync(mine, lane < 19) + 2 * __any_sync(mine, lane == 4);
else sum = __ballot_sync(mine, lane % 5) + __match_any_sync(mine, lane / 4);
args.flags[t] = sum;
args.flags[32 + t] = __match_all_sync(FULL_WARP, t / 32, &alike) + 2 * alike;"""
MATRICES = """__shared__ __align__(16) unsigned short s[32][24];
for (int i = 0; i < 8; ++i) s[lane][i] = static_cast<unsigned short>(lane * 8 + i);
__syncwarp();
unsigned plain[4], turned[4];
ldmatrix<4>(plain, s[lane]);
ldmatrix<4, true>(turned, s[lane]);
for (int i = 0; i < 4; ++i) {
  reinterpret_cast<unsigned*>(args.y)[i * 32 + lane] = plain[i];
  reinterpret_cast<unsigned*>(args.y)[128 + i * 32 + lane] = turned[i];
}"""
ELECTED = """args.y[t] = 0;
if (lane >= 4) {
  const unsigned elected = __ballot_sync(0xFFFFFFF0, elect_one(0xFFFFFFF0));
  const unsigned again = __ballot_sync(0xFFFFFFF0, elect_one(0xFFFFFFF0));
  args.y[t] = elected == again && elected >= 16 && (elected & (elected - 1)) == 0;
}"""
NAMED = """__shared__ float s[2][32];
for (int i = 0; i < 16; ++i) {
  if (warp == 0) {
    if (i >= 2) barrier_sync(3 + i % 2, 64);
    s[i % 2][lane] = float(100 * i + lane);
    barrier_arrive(1 + i % 2, 64);
  } else {
    barrier_sync(1 + i % 2, 64);
    args.y[32 * i + lane] = s[i % 2][31 - lane];
    if (i < 14) barrier_arrive(3 + i % 2, 64);
  }
}"""
PIPELINE = """__shared__ __align__(16) float s[2][32];
__shared__ Mbarrier full[2], empty[2];
if (t == 0) for (int i = 0; i < 2; ++i) { mbarrier_init(&full[i], FULL_COUNT); mbarrier_init(&empty[i], 32); }
__syncthreads();
for (int i = 0; i < 16; ++i) {
  const int stage = i % 2, round = i / 2;
  if (warp == 0) {
    if (round > 0) mbarrier_wait(&empty[stage], (round - 1) % 2);
    cp_async<4>(&s[stage][lane], args.x + 32 * i + lane);
    COPIED
  } else {
    mbarrier_wait(&full[stage], round % 2);
    args.y[32 * i + lane] = s[stage][31 - lane];
    mbarrier_arrive(&empty[stage]);
  }
}"""
COUNTED = PIPELINE.replace("FULL_COUNT", "32").replace("COPIED", "cp_async_mbarrier_arrive_noinc(&full[stage]);")
ADDED = PIPELINE.replace("FULL_COUNT", "32").replace(
    "COPIED", "cp_async_mbarrier_arrive(&full[stage]); mbarrier_arrive(&full[stage]);"
)
BYTES = """__shared__ Mbarrier full;
if (t == 0) mbarrier_init(&full, 1);
__syncthreads();
if (t == 0) {
  mbarrier_arrive_expect_tx(&full, 64);
  args.y[0] = mbarrier_test_wait(&full, 0);
  mbarrier_complete_tx(&full, 48);
  mbarrier_expect_tx(&full, 32);
  args.y[1] = mbarrier_test_wait(&full, 0);
  mbarrier_complete_tx(&full, 48);
  mbarrier_wait(&full, 0);
  args.y[2] = mbarrier_try_wait(&full, 0);
  args.y[3] = mbarrier_test_wait(&full, 1);
}"""
TURNSTILE = """float sum = 0;
for (int k = 0; k < 8; ++k) sum = __fmaf_rn(sum, 3.0f, args.x[blockIdx.x * 8 + k + t]);
if (t == 0) wait_until(args.flags, blockIdx.x);
__syncthreads();
args.y[t] = blockIdx.x == 0 ? sum : __fmaf_rn(args.y[t], 0.5f, sum);
__syncthreads();
if (t == 0) { atomic_add(args.flags + 1, 3u); store_release(args.flags, blockIdx.x + 1); }"""
SUMS = """if (blockIdx.x == 0 && t == 0) { args.y[0] = 0; args.y[1] = 1e-39f; store_release(args.flags, 1); }
wait_until(args.flags, 1);
atomic_add(args.y, args.x[t]);
if (blockIdx.x == 0 && t == 0) atomic_add(args.y + 1, -1e-39f);"""


@pytest.mark.parametrize("body", [SHUFFLES, VOTES, MATRICES, ELECTED], ids=["shuffles", "votes", "ldmatrix", "elect"])
def test_lanes_get_the_same_on_both_machines(emulate, on_gpu, body):
    emulated, real = emulate(body, elements=2048), on_gpu(body, elements=2048)
    np.testing.assert_array_equal(emulated.y.view(np.uint32), real.y.view(np.uint32))
    np.testing.assert_array_equal(emulated.flags, real.flags)


@pytest.mark.parametrize("body", [NAMED, COUNTED, ADDED, BYTES], ids=["named", "counted", "added", "bytes"])
def test_warps_hand_over_the_same_on_both_machines(emulate, on_gpu, body):
    emulated, real = emulate(body, threads=64), on_gpu(body, threads=64)
    np.testing.assert_array_equal(emulated.y.view(np.uint32), real.y.view(np.uint32))


@pytest.mark.parametrize("body", [TURNSTILE, SUMS], ids=["turnstile", "sums"])
def test_ctas_wait_for_each_other_the_same_on_both_machines(emulate, on_gpu, body):
    emulated = emulate(body, "grid", grid=24, workers=24, schedule="random")
    real = on_gpu(body, "grid", grid=24)
    np.testing.assert_array_equal(emulated.y.view(np.uint32), real.y.view(np.uint32))
    np.testing.assert_array_equal(emulated.flags, real.flags)
