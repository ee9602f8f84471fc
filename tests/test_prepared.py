"""The driver's launch structures as ctypes has them, against the bindings' own."""

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from device_double import CONTEXT, MemoryDriver
from tilewright.declare import all_rungs, rung_config
from tilewright.problem import Problem
from tilewright.run.args import GemmArgs, TmaArgs, gemm_args
from tilewright.run.cuda import _launch_config
from tilewright.run.prepared import LaunchAttribute, PreparedLaunch, launch_config
from tilewright.run.protocol import Grid
from tilewright.run.stream_scratch import PER_THREAD_STREAM, Need, StreamScratch, need_of


@pytest.mark.parametrize(
    "grid",
    [
        Grid((1, 2, 3), (32, 4, 1)),
        Grid((7, 5, 1), (384, 1, 1), dynamic_smem_bytes=196_608, cluster=(2, 1, 1)),
        Grid((8, 1, 1), (128, 1, 1), cluster=(4, 2, 1), dependent=True),
    ],
)
def test_the_launch_structure_is_the_bindings(grid):
    ours, theirs = launch_config(grid), _launch_config(grid, 0x1234)
    ours.stream = 0x1234
    fields = [name for name, _ in type(ours)._fields_]
    assert ctypes.sizeof(ours) == 56 and ctypes.sizeof(LaunchAttribute) == 72
    seen = type(ours).from_buffer_copy(ctypes.string_at(int(theirs.getPtr()), 56))
    assert [getattr(seen, x) for x in fields if x != "attributes"] == [
        getattr(ours, x) for x in fields if x != "attributes"
    ]
    for index in range(seen.attribute_count):
        assert seen.attributes[index].id == ours.attributes[index].id
        used = 3 if seen.attributes[index].id == 4 else 1
        assert seen.attributes[index].value[:used] == ours.attributes[index].value[:used]


class Driver:
    """Records what a launch was given."""

    def __init__(self):
        self.seen, self.moved = [], []

    def cuCtxGetCurrent(self, pointer):
        pointer._obj.value = CONTEXT
        return 0

    def cuLaunchKernelEx(self, config, function, pointers, extra):
        args = TmaArgs.from_address(pointers._obj[0])
        self.seen.append((args.a, args.b, args.c, args.d, args.bias, args.alpha, config._obj.stream or 0))
        return 0

    def cuTensorMapReplaceAddress(self, encoded, address):
        assert ctypes.addressof(encoded._obj) % 64 == 0, "the driver wants its maps aligned"
        self.moved.append((encoded._obj.words[0], address.value))
        return 0


def test_addresses_are_patched_and_the_rest_stays():
    driver = Driver()
    args = gemm_args(Problem(m=4, n=4, k=4, alpha=2.0), a=1, b=2, c=3, d=4)
    launch = PreparedLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), args, driver=driver)
    launch(16, 32, 48, 64, 80, 0)
    launch(17, 33, 49, 65, 81, 7)
    assert driver.seen == [(16, 32, 48, 64, 80, 2.0, 0), (17, 33, 49, 65, 81, 2.0, 7)]
    assert (args.a, args.b) == (1, 2), "the caller's struct is not the launch's"


def test_tensor_maps_follow_their_operands():
    driver, args = Driver(), TmaArgs(a=256, b=512, d=768)
    args.map_a.words[0], args.map_d.words[0] = 256, 768
    launch = PreparedLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), args, maps=("a", "d"), driver=driver)
    launch(256, 512, 0, 768, 0, 0)
    assert not driver.moved
    launch(1024, 512, 0, 768, 0, 0)
    launch(1024, 2048, 0, 4096, 0, 0)
    assert driver.moved == [(256, 1024), (768, 4096)]


def test_both_structs_fit():
    for kind in (GemmArgs, TmaArgs):
        launch = PreparedLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), kind(m=5), driver=Driver())
        assert launch._args.m == 5


# Workspace and flags.


@pytest.fixture
def memory_driver():
    return MemoryDriver()


def launch_with(need, scratch, driver):
    args = gemm_args(Problem(m=4, n=4, k=4), a=1, b=2, c=3, d=4)
    return PreparedLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), args, needs=need, scratch=scratch, driver=driver)


def test_what_a_launch_needs_follows_from_its_declaration():
    problem = Problem(m=40, n=33, k=90)
    config = rung_config(all_rungs().find("k15"))
    sums, flags = config.scratch(problem)
    assert need_of(config, problem, sm_count=132) == Need(256, 4 * sums) and 4 * flags <= 256
    assert need_of(rung_config(all_rungs().find("k13")), problem, sm_count=132) is None


def test_launches_on_a_stream_share_a_block_and_two_streams_never_do(memory_driver):
    scratch = StreamScratch(memory_driver)
    first, other = (launch_with(Need(256, 4096), scratch, memory_driver) for _ in range(2))
    for stream in (0, 7, 0, 7):
        first(16, 32, 48, 64, 0, stream)
        other(16, 32, 48, 64, 0, stream)
    assert memory_driver.calls == ["alloc", "zero", *["launch"] * 2] * 2 + ["launch"] * 4
    blocks = {stream: {flags for at, flags, _ in memory_driver.launches if at == stream} for stream in (0, 7)}
    assert len(blocks[0]) == len(blocks[7]) == 1 and blocks[0] != blocks[7]


def test_a_larger_launch_gets_a_larger_block_in_the_streams_order(memory_driver):
    scratch = StreamScratch(memory_driver)
    for need in (Need(256, 4096), Need(512, 1024), Need(256, 8192), Need(512, 8192)):
        launch_with(need, scratch, memory_driver)(16, 32, 48, 64, 0, 7)
    alike = ["alloc", "zero", "launch"]
    assert memory_driver.calls == [*alike, "free", *alike, "free", *alike, "launch"]
    assert [size for *_, size in memory_driver.launches] == [4096, 4096, 8192, 8192] and len(memory_driver.blocks) == 1


def test_the_threads_own_stream_is_another_one_in_each_thread(memory_driver):
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    for _ in range(2):
        thread = threading.Thread(target=launch, args=(16, 32, 48, 64, 0, PER_THREAD_STREAM))
        launch(16, 32, 48, 64, 0, PER_THREAD_STREAM)
        thread.start()
        thread.join()
    assert len({flags for _, flags, _ in memory_driver.launches}) >= 2


def test_in_a_capture_the_scratch_is_the_graphs_own(memory_driver):
    scratch = StreamScratch(memory_driver)
    launch = launch_with(Need(256, 4096), scratch, memory_driver)
    launch(16, 32, 48, 64, 0, 7)
    memory_driver.capturing = {7}
    for _ in range(2):
        memory_driver.calls.clear()
        launch(16, 32, 48, 64, 0, 7)
        assert memory_driver.calls == ["alloc", "zero", "launch", "free"]
    memory_driver.capturing = set()
    launch(16, 32, 48, 64, 0, 7)
    eager, *graphs, again = (flags for _, flags, _ in memory_driver.launches)
    assert eager == again and len({eager, *graphs}) == 3


def test_a_graphs_scratch_is_freed_where_the_launch_fails(memory_driver, monkeypatch):
    def raise_(status):
        raise RuntimeError(f"status {status}")

    monkeypatch.setattr("tilewright.run.prepared.require", raise_)
    memory_driver.capturing, memory_driver.status = {7}, 1
    with pytest.raises(RuntimeError, match="status 1"):
        launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)(16, 32, 48, 64, 0, 7)
    assert memory_driver.calls[-1] == "free" and not memory_driver.blocks


def test_threads_on_one_stream_use_its_block_one_after_the_other(memory_driver):
    scratch = StreamScratch(memory_driver)
    launches = [launch_with(Need(256, 1024 << step), scratch, memory_driver) for step in range(6)]

    def call(launch):
        for _ in range(20):
            launch(16, 32, 48, 64, 0, 7)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(call, launches))
    assert len(memory_driver.launches) == 120 and len(memory_driver.blocks) == 1
