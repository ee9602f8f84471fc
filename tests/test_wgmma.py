"""wgmma, setmaxnreg and stmatrix in the emulator: products of every layout, and what orders them."""

from itertools import product

import numpy as np
import pytest

from hopper_probe import (
    PRODUCT_CASES,
    STORED_MATRICES,
    check_product,
    check_stored_matrices,
    hopper_kernel,
    hopper_source,
    launch_hopper,
    pipeline_result,
)
from tilewright.compile.host import compile_host, host_source
from tilewright.errors import Deadlock, LaunchFailed
from tilewright.run.emulator import EmulatorBackend

SCHEDULES = ("default", "reverse", "random")
COMPLETIONS = ("latest", "earliest", "random")
SETTINGS = tuple(product(SCHEDULES, COMPLETIONS))


@pytest.mark.parametrize("case", PRODUCT_CASES)
def test_a_product_is_exact_in_every_layout_and_swizzle(case):
    schedule, completion = SETTINGS[case % len(SETTINGS)]
    with EmulatorBackend(schedule=schedule, async_completion=completion, seed=case) as device:
        check_product(device, compile_host(host_source(hopper_kernel("product"))), case)


@pytest.mark.parametrize(("schedule", "completion"), SETTINGS)
def test_a_producer_feeds_two_consumers_and_results_leave_by_tma(schedule, completion):
    binary = compile_host(host_source(hopper_kernel("warp_specialised")))
    with EmulatorBackend(schedule=schedule, async_completion=completion, seed=2) as device:
        np.testing.assert_array_equal(*pipeline_result(device, binary))


@pytest.mark.parametrize("left_out", [1, 2, 4, 8], ids=["full_wait", "empty_wait", "product_wait", "read_wait"])
def test_a_wait_that_is_gone_shows_under_some_completion(left_out):
    def right(completion: str) -> bool:
        with EmulatorBackend(async_completion=completion) as device:
            try:
                return np.array_equal(*pipeline_result(device, binary, left_out))
            except LaunchFailed:
                return False

    binary = compile_host(host_source(hopper_kernel("warp_specialised")))
    assert not all(right(completion) for completion in COMPLETIONS)


def test_stmatrix_puts_fragments_where_lanes_point():
    with EmulatorBackend() as device:
        check_stored_matrices(device, compile_host(host_source(hopper_source(STORED_MATRICES, 32))))


# Each line breaks one rule of a product, or leaves out what orders it.
PRODUCT_LINES = (
    "wgmma<8, BF16, false, false>(d, a, b, true);",
    "wgmma_fence(); if (warp < 3) wgmma<8, BF16, false, false>(d, a, b, true);",
    """wgmma_fence(); if (warp == 0) wgmma<8, BF16, false, false>(d, a, b, true); else
        wgmma<8, BF16, false, false>(d, a, b, true);""",
    "wgmma_fence(); wgmma<8, BF16, false, false>(d, descriptor_at(a, 1024 * (warp == 2)), b, true);",
    """wgmma_fence(); for (int i = 0; i < 2; ++i) {
        wgmma<8, BF16, false, false>(d, a, b, true); wgmma_commit(); wgmma_wait<0>(); d[1] += t == 77; }""",
    "wgmma_fence(); wgmma<8, BF16, false, false>(d, a, b, true); d[1] += t == 77; wgmma_commit(); wgmma_wait<0>();",
    "wgmma_fence(); wgmma<8, BF16, false, false>(d, a, b, true); wgmma_wait<0>();",
    "wgmma_fence(); wgmma<8, BF16, false, false>(d, a, b, true); wgmma_commit(); wgmma_wait<1>();",
    "wgmma_fence(); wgmma<8, BF16, false, false>(d, descriptor_at(a, 64 * 128), b, true);",
    "wgmma_fence(); wgmma<8, BF16, false, false>(d, descriptor_at(a, 128), b, true);",
    "wgmma_fence(); wgmma<8, BF16, false, false>(d, a | 1ull << 49, b, true);",
    "wgmma_fence(); args.y[0] = smem_descriptor(args.y, 0, 1024, 128);",
    "if (lane < 31) wgmma_fence();",
    """wgmma_fence(); if (warp == 0) wgmma_commit();
        wgmma<8, BF16, false, false>(d, a, b, true); wgmma_commit(); wgmma_wait<0>();""",
    "if (lane < 31) wgmma_fence(); __syncthreads();",
)
SETUP = """float d[4] = {};
const auto a = smem_descriptor(smem, 0, 1024, 128), b = a;
if (t < 64) for (int i = 0; i < 32; ++i) reinterpret_cast<int*>(smem)[t * 32 + i] = 0;
fence_proxy_async();
__syncthreads();
"""
"""Five lines, so that case 1 stands at line 6."""
PRODUCT_RULES = {
    1: "wgmma without a wgmma_fence before it",
    2: r"96 threads wait at wgmma of .*: 32 threads of warpgroup 0 are missing",
    3: "threads of one warpgroup meet at different products: wgmma here and at line",
    4: "threads of one warpgroup bring different operands: A 0x40",
    5: r"accumulators that threads have changed since the last wgmma_fence, thread \(77,0,0\)",
    6: r"accumulators are changed while it may still run: wgmma_wait first, thread \(77,0,0\)",
    7: "wgmma whose end is never waited for: .*close its group with wgmma_commit, then wgmma_wait<0>",
    8: "wgmma whose end is never waited for: .*; wgmma_wait<0> first",
    9: "wgmma: A ends at byte 16384 of dynamic shared memory, which has 8192",
    10: "wgmma: A starts at shared offset 128, inside the pattern of its swizzle",
    11: "A's descriptor 0x40020040.* has bits outside its fields, or a base offset",
    12: "smem_address of what is not in dynamic shared memory",
    13: "wgmma_fence: 1 lanes of the warp have ended; all 32 must come",
    14: "wgmma_commit: the threads of a warpgroup close different groups: 0 products .*, 1 at another's",
    15: "threads wait at wgmma_fence of .*: lanes 31 of warp",
}


@pytest.mark.parametrize("number", PRODUCT_RULES)
def test_a_product_against_the_rules_is_refused_under_every_completion(number):
    body = SETUP + "\n".join(f"if (args.n == {n}) {{ {line} }}" for n, line in enumerate(PRODUCT_LINES, 1))
    binary = compile_host(host_source(hopper_source(body, 128)))
    line = 6 + body.splitlines()[5:].index(next(x for x in body.splitlines() if f"args.n == {number})" in x))
    for completion in COMPLETIONS:
        with EmulatorBackend(async_completion=completion) as device, pytest.raises(LaunchFailed) as refused:
            launch_hopper(device, binary, threads=128, smem_bytes=8192, n=number, elements=1)
        assert refused.match(PRODUCT_RULES[number])
        assert refused.match(rf"probe.cu:({line}|{line + 1})\b")


def test_a_product_needs_a_whole_warpgroup():
    body = f"{SETUP} wgmma_fence(); wgmma<8, BF16, false, false>(d, a, b, true);"
    binary = compile_host(host_source(hopper_source(body, 96)))
    with EmulatorBackend() as device, pytest.raises(LaunchFailed, match=r"128 threads .*; thread \d+'s has only 96"):
        launch_hopper(device, binary, threads=96, smem_bytes=8192, elements=1)


REGISTER_LINES = (
    "if (t < 128) release_registers<24>(); else acquire_registers<248>();",
    "release_registers<176>();",
    "acquire_registers<160>();",
    "release_registers<20>();",
    "if (t < 32) release_registers<24>();",
)
REGISTER_RULES = {
    1: "32 threads wait at acquire_registers<248> of .*: the warp lacks 2560 registers, 512 are free; warps hold 24, ",
    2: "release_registers<176>: the warp has 168 registers a thread, which is fewer: acquire them",
    3: "acquire_registers<160>: the warp has 168 registers a thread, which is more: release them",
    4: "release_registers<20>: must be a multiple of 8 from 24 to 256",
    5: "some warps of a warpgroup only: warp 0 ends with 24 a thread and warp 1 with 168; all four must come",
}


@pytest.mark.parametrize("number", REGISTER_RULES)
def test_register_bookkeeping_that_does_not_add_up_is_reported(number):
    body = "\n".join(f"if (args.n == {n}) {{ {line} }}" for n, line in enumerate(REGISTER_LINES, 1))
    binary = compile_host(host_source(hopper_source(body, 384)))
    for schedule in SCHEDULES:
        with EmulatorBackend(schedule=schedule) as device, pytest.raises(LaunchFailed) as refused:
            launch_hopper(device, binary, threads=384, smem_bytes=0, n=number, elements=1)
        assert refused.match(REGISTER_RULES[number])
        assert refused.match(rf"probe.cu:{number}\b")
        assert isinstance(refused.value, Deadlock) == (number == 1)
