"""TMA in the emulator: which bytes a box has, when it is copied, and what is refused."""

from itertools import cycle, product

import numpy as np
import pytest

from hopper_probe import (
    BOX_DTYPES,
    BOX_PLACES,
    STORE_PLACES,
    Operand,
    check_box,
    check_rounding,
    hopper_kernel,
    hopper_source,
    launch_hopper,
)
from tilewright.compile.host import compile_host, host_source
from tilewright.errors import Deadlock, LaunchFailed, OutOfBounds
from tilewright.run.emulator import EmulatorBackend

SCHEDULES = ("default", "reverse", "random")
COMPLETIONS = ("latest", "earliest", "random")


@pytest.mark.parametrize("span_bytes", BOX_DTYPES)
def test_a_box_is_swizzled_filled_with_zeros_and_clipped(span_bytes):
    binary = compile_host(host_source(hopper_kernel("box")))
    settings = cycle(product(SCHEDULES, COMPLETIONS))
    for load_at, store_at in zip(BOX_PLACES.values(), cycle(STORE_PLACES.values()), strict=False):
        schedule, completion = next(settings)
        with EmulatorBackend(schedule=schedule, async_completion=completion) as device:
            check_box(device, binary, span_bytes, load_at, store_at)


def test_elements_of_a_tf32_map_are_rounded_as_they_come():
    with EmulatorBackend() as device:
        check_rounding(device, compile_host(host_source(hopper_kernel("box"))))


# Each line breaks one rule, or leaves out a wait; A is not swizzled, B is, and both their boxes have 1024 bytes.
LINES = (
    "tma_load(args.y, &args.a, full, 0, 0, 0);",
    "tma_load(smem + 64, &args.a, full, 0, 0, 0);",
    "tma_load(smem + 128, &args.b, full, 0, 0, 0);",
    "tma_load(smem, &args.d, full, 0, 0, 0);",
    "tma_load(smem, reinterpret_cast<const TensorMap*>(&args.a.words[2]), full, 0, 0, 0);",
    "tma_load(smem + 3072, &args.b, full, 0, 0, 0);",
    "tma_load(smem, &args.a, full + 1, 0, 0, 0);",
    "mbarrier_arrive_expect_tx(full, 1024); tma_load(smem, &args.a, full, 0, 0, 0);",
    "tma_store(&args.d, smem, 0, 0, 0); tma_wait<0>();",
    "tma_store(&args.d, smem, 0, 0, 0); tma_commit();",
    "tma_store(&args.d, smem, 0, 0, 0); tma_commit(); tma_wait_read<1>();",
    "tma_store(&args.a, smem, 0, 0, 0); tma_commit(); tma_wait<0>();",
    "mbarrier_arrive_expect_tx(full, 1000); tma_load(smem, &args.a, full, 0, 0, 0); mbarrier_wait(full, 0);",
    "mbarrier_arrive_expect_tx(full, 1040); tma_load(smem, &args.a, full, 0, 0, 0); mbarrier_wait(full, 0);",
    "tma_store(&args.d, smem + 128, 0, 0, 0);",
    "tma_load(smem, &args.a, full, -7, 0, 0);",
    "tma_store(&args.a, smem, 0, -1, 0);",
)
SETUP = "auto* full = reinterpret_cast<Mbarrier*>(smem + 3072); if (t == 0) mbarrier_init(full, 1); if (t == 0) "
REFUSED = {
    1: "tma_load: the box's place is not in shared memory, thread",
    2: "tma_load: the box's place is 64 bytes off a multiple of 128, TMA's alignment",
    3: "tma_load: the box's place is 128 bytes off a multiple of 1024, eight rows of the swizzle",
    4: "tma_load: its tensor map is not encoded",
    5: "tma_load: its tensor map is 16 bytes off a multiple of 64: pass it by value, as a __grid_constant__",
    6: "a box of 1024 bytes at shared offset 3072 does not fit into 3088 bytes",
    7: "a TMA load at an mbarrier that is not initialised",
    8: "tma_load that nobody waits for: it may still be on its way when its CTA ends",
    9: "tma_store that its thread never waits for: .*end with tma_commit and tma_wait_read, thread",
    10: "tma_store that its thread never waits for: .*end with tma_wait_read, thread",
    11: "tma_store that its thread never waits for: .*end with tma_wait_read, thread",
    12: r"writes to A, which is read-only: byte offset 0 .*",
    13: r"parity 0, of .*\): 0 of 1 arrivals pending, 24 bytes more have come than were announced",
    14: r"parity 0, of .*\): 0 of 1 arrivals pending, 16 bytes to come and no TMA load under way",
    15: "a box's row of 64 bytes under a swizzle of 128: the emulator takes only rows as long as the swizzle's span",
    16: "tma_load: the box's first column -7 is 2 bytes off a multiple of 16: an illegal instruction",
    17: r"tma_store: the box starts at \(0, -1, 0\): a store may end outside the matrix but not start before it",
}


def switched(lines: tuple[str, ...]) -> str:
    """A body in which `n` chooses the line that runs."""
    return "\n".join(f"if (args.n == {number}) {{ {line} }}" for number, line in enumerate(lines, 1))


@pytest.mark.parametrize("number", REFUSED)
def test_tma_against_the_rules_is_refused_under_every_completion(number):
    binary = compile_host(host_source(hopper_source(SETUP + "{" + switched(LINES) + "}", 32)))
    values = np.ones((1, 64, 64))
    a, b = (Operand("bfloat16", values, 8, 64, span_bytes=span) for span in (0, 128))
    d = {4: None, 15: Operand("bfloat16", values, 8, 32, span_bytes=128)}.get(number, a)
    for completion in COMPLETIONS:
        with EmulatorBackend(async_completion=completion, seed=4) as device, pytest.raises(LaunchFailed) as refused:
            launch_hopper(device, binary, threads=32, smem_bytes=3088, a=a, b=b, d=d, n=number, elements=1024)
        assert refused.match(REFUSED[number])
        assert refused.match(f"probe.cu:{number}")
        assert isinstance(refused.value, {12: OutOfBounds, 13: Deadlock, 14: Deadlock}.get(number, LaunchFailed))


# Two boxes into one place, one after the other or at once, then D from it.
TWO_BOXES = """auto* full = reinterpret_cast<Mbarrier*>(smem + 1024);
if (t != 0) return;
mbarrier_init(full, 1);
for (int i = 0; i < 2; ++i) {
  if (args.at[0] || i == 0) mbarrier_arrive_expect_tx(full, args.at[0] ? 1024 : 2048);
  tma_load(smem, &args.a, full, 0, 8 * i, 0);
  if (args.at[0]) mbarrier_wait(full, i);
}
if (!args.at[0]) mbarrier_wait(full, 0);
tma_store(&args.d, smem, 0, 0, 0);
tma_commit();
if (args.at[0] < 2) tma_wait_read<0>();
smem[0] = 200;
tma_wait<0>();"""


def two_boxes(mode: int, **options) -> int:
    """The first byte of D."""
    binary = compile_host(host_source(hopper_source(TWO_BOXES, 32)))
    a, d = (Operand("uint8", x, 8, 128) for x in (np.repeat(((1,) * 128, (2,) * 128), 8, axis=0), np.zeros((8, 128))))
    with EmulatorBackend(**options) as device:
        launch = {"threads": 32, "smem_bytes": 1032, "at": (mode,), "elements": 1}
        return int(launch_hopper(device, binary, a=a, d=d, **launch).d[0, 0, 0])


def test_loads_and_stores_land_when_the_schedule_says():
    assert [two_boxes(1, async_completion=completion) for completion in COMPLETIONS] == [2, 2, 2]
    assert two_boxes(2, async_completion="earliest") == 2
    assert two_boxes(2, async_completion="latest") == 200


def test_loads_under_way_together_land_in_any_order():
    assert {two_boxes(0, async_completion="random", seed=seed) for seed in range(8)} == {1, 2}
