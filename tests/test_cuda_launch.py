"""The driver's launch structures as ctypes has them, against the bindings' own."""

import ctypes
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from device_double import CONTEXT, MemoryDriver
from tilewright.declare import all_rungs, rung_config
from tilewright.problem import Problem
from tilewright.run import cuda_launch
from tilewright.run.args import GemmArgs, TmaArgs, gemm_args
from tilewright.run.cuda_launch import CudaLaunch, LaunchAttribute, launch_config
from tilewright.run.protocol import Grid
from tilewright.run.scratch import MOST_STREAMS, Need, StreamScratch, need_of
from tilewright.run.tensor_map import EncodedMap


def bindings_config(grid, stream):
    """The same launch as the bindings make it."""
    from cuda.bindings import driver

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = grid.block
    config.sharedMemBytes, config.hStream = grid.dynamic_smem_bytes, stream
    attributes = []
    if grid.cluster != (1, 1, 1):
        cluster = driver.CUlaunchAttribute()
        cluster.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster.value.clusterDim.x, cluster.value.clusterDim.y, cluster.value.clusterDim.z = grid.cluster
        attributes.append(cluster)
    if grid.dependent:
        dependent = driver.CUlaunchAttribute()
        dependent.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        dependent.value.programmaticStreamSerializationAllowed = 1
        attributes.append(dependent)
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


@pytest.mark.parametrize(
    "grid",
    [
        Grid((1, 2, 3), (32, 4, 1)),
        Grid((7, 5, 1), (384, 1, 1), dynamic_smem_bytes=196_608, cluster=(2, 1, 1)),
        Grid((8, 1, 1), (128, 1, 1), cluster=(4, 2, 1), dependent=True),
    ],
)
def test_the_launch_structure_is_the_bindings(grid):
    ours, theirs = launch_config(grid), bindings_config(grid, 0x1234)
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


GRID = Grid((1, 1, 1), (32, 1, 1))


class Driver:
    """Records what a launch was given."""

    def __init__(self):
        self.seen, self.moved, self.pushed, self.context = [], [], 0, CONTEXT

    def cuCtxGetCurrent(self, pointer):
        pointer._obj.value = self.context
        return 0

    def cuCtxPushCurrent_v2(self, context):
        self.pushed += 1
        return 0

    def cuCtxPopCurrent_v2(self, pointer):
        self.pushed -= 1
        return 0

    def cuLaunchKernelEx(self, config, function, pointers, extra):
        args = TmaArgs.from_address(pointers._obj[0])
        self.seen.append((args.a, args.b, args.c, args.d, args.bias, args.alpha, config._obj.stream or 0))
        return 0

    def cuTensorMapReplaceAddress(self, encoded, address):
        assert ctypes.addressof(encoded._obj) % 64 == 0, "the driver wants its maps aligned"
        assert self.pushed == 1 or self.context == CONTEXT, "the driver moves maps only while a context is current"
        self.moved.append((encoded._obj.words[0], address.value))
        return 0


def test_addresses_are_patched_and_the_rest_stays():
    driver = Driver()
    args = gemm_args(Problem(m=4, n=4, k=4, alpha=2.0), a=1, b=2, c=3, d=4)
    launch = CudaLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), args, driver=driver)
    launch(16, 32, 48, 64, 80, 0)
    launch(17, 33, 49, 65, 81, 7)
    assert driver.seen == [(16, 32, 48, 64, 80, 2.0, 0), (17, 33, 49, 65, 81, 2.0, 7)]
    assert (args.a, args.b) == (1, 2), "the caller's struct is not the launch's"


@pytest.mark.parametrize("context", [CONTEXT, 0, CONTEXT + 1])
def test_tensor_maps_are_encoded_at_the_first_launch_and_follow_their_operands(monkeypatch, context):
    def encode(tensor_map, address):
        assert driver.pushed == 1 or driver.context == CONTEXT, "the driver encodes only while a context is current"
        encoded = EncodedMap()
        encoded.words[0], encoded.words[1] = address, tensor_map
        return encoded

    monkeypatch.setattr(cuda_launch, "encode_for_driver", encode)
    driver = Driver()
    driver.context = context
    launch = CudaLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), TmaArgs(), maps={"a": 7, "d": 9}, driver=driver)
    launch(256, 512, 0, 768, 0, 0)
    assert not driver.moved and list(launch._args.map_a.words)[:2] == [256, 7]
    assert list(launch._args.map_d.words)[:2] == [768, 9]
    launch(1024, 512, 0, 768, 0, 0)
    launch(1024, 2048, 0, 4096, 0, 0)
    assert driver.moved == [(256, 1024), (768, 4096)]


def test_both_structs_fit():
    for kind in (GemmArgs, TmaArgs):
        launch = CudaLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), kind(m=5), driver=Driver())
        assert launch._args.m == 5


# Workspace and flags.


@pytest.fixture
def memory_driver():
    return MemoryDriver()


def launch_with(need, scratch, driver):
    args = gemm_args(Problem(m=4, n=4, k=4), a=1, b=2, c=3, d=4)
    return CudaLaunch(1, CONTEXT, Grid((1, 1, 1), (32, 1, 1)), args, need=need, scratch=scratch, driver=driver)


def launched(launch, stream):
    """Launch on a stream; the address of the flags that it had."""
    launch(16, 32, 48, 64, 0, stream)
    return launch._args.flags


def test_what_a_launch_needs_follows_from_its_declaration():
    problem = Problem(m=40, n=33, k=90)
    config = rung_config(all_rungs().find("k15"))
    accumulators, flags = config.scratch(problem)
    assert need_of(config, problem, sm_count=132) == Need(4 * flags, 4 * accumulators)
    assert need_of(rung_config(all_rungs().find("k13")), problem, sm_count=132) is None


def test_launches_on_a_stream_share_a_block_and_two_streams_never_do(memory_driver):
    scratch = StreamScratch(memory_driver)
    first, other = (launch_with(Need(4, 4096), scratch, memory_driver) for _ in range(2))
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
    memory_driver.ids = {2: threading.get_ident}
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    launch(16, 32, 48, 64, 0, 2)
    thread = threading.Thread(target=launch, args=(16, 32, 48, 64, 0, 2))
    thread.start()
    thread.join()
    assert len({flags for _, flags, _ in memory_driver.launches}) == 2


def test_a_handle_that_names_another_stream_later_gets_another_block(memory_driver):
    """A handle is used again once its stream is destroyed; the driver's id is not."""
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    memory_driver.ids = {7: 70}
    first = launched(launch, 7)
    memory_driver.ids = {7: 71}
    assert launched(launch, 7) != first


def test_blocks_of_many_streams_that_end_are_given_back(memory_driver):
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    for stream in range(1000):
        memory_driver.ids = {7: stream}
        launch(16, 32, 48, 64, 0, 7)
        assert len(memory_driver.blocks) <= MOST_STREAMS
    assert memory_driver.calls.count("synchronize") <= 1000 // (MOST_STREAMS // 2)


def test_the_block_of_a_stream_in_use_is_kept_while_others_come_and_go(memory_driver):
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    memory_driver.ids = {1: 5000}
    first = launched(launch, 1)
    for stream in range(200):
        memory_driver.ids[7] = stream
        launch(16, 32, 48, 64, 0, 7)
        assert launched(launch, 1) == first


def test_no_block_is_given_back_before_the_device_is_idle(memory_driver):
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    memory_driver.synchronize_status = 900
    for stream in range(2 * MOST_STREAMS):
        memory_driver.ids = {7: stream}
        launch(16, 32, 48, 64, 0, 7)
    assert "free" not in memory_driver.calls
    memory_driver.synchronize_status = 0
    memory_driver.ids = {7: 10**6}
    launch(16, 32, 48, 64, 0, 7)
    assert memory_driver.calls.count("free") == MOST_STREAMS // 2


def test_a_capture_has_a_cleared_block_of_its_own_and_no_other_node_than_the_launch(memory_driver):
    scratch = StreamScratch(memory_driver)
    launch = launch_with(Need(256, 4096), scratch, memory_driver)
    eager = launched(launch, 7)
    memory_driver.capturing = {7: 100}
    memory_driver.calls.clear()
    graph = launched(launch, 7)
    assert memory_driver.calls == ["alloc", "zero", "wait", "launch"] and memory_driver.mode == 0
    assert launched(launch, 7) == graph != eager
    memory_driver.capturing = {7: 101}
    other = launched(launch, 7)
    memory_driver.capturing = {}
    assert other not in (graph, eager) and launched(launch, 7) == eager


def test_streams_that_a_capture_forks_into_have_blocks_of_their_own(memory_driver):
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    memory_driver.capturing = {7: 100, 8: 100}
    assert launched(launch, 7) != launched(launch, 8)
    assert launched(launch, 7) == memory_driver.launches[0][1]


def test_a_graphs_block_is_used_again_once_the_graph_is_gone_and_not_before(memory_driver):
    launch = launch_with(Need(256, 4096), StreamScratch(memory_driver), memory_driver)
    memory_driver.capturing = {7: 100}
    first = launched(launch, 7)
    memory_driver.capturing = {7: 101}
    second = launched(launch, 7)
    assert second != first
    memory_driver.end_capture(100)
    memory_driver.capturing = {7: 102}
    memory_driver.calls.clear()
    assert launched(launch, 7) == first and memory_driver.calls == ["launch"], "its flags are zero already"
    memory_driver.capturing = {7: 103}
    assert launched(launch, 7) not in (first, second)


def test_a_capture_that_needs_more_holds_both_blocks(memory_driver):
    scratch = StreamScratch(memory_driver)
    small, large = (launch_with(Need(256, size), scratch, memory_driver) for size in (1024, 1 << 20))
    memory_driver.capturing = {7: 100}
    blocks = {launched(small, 7), launched(large, 7)}
    assert len(blocks) == 2 and launched(small, 7) in blocks
    memory_driver.capturing = {7: 101}
    assert not blocks & {launched(small, 7), launched(large, 7)}
    memory_driver.end_capture(100)
    memory_driver.capturing = {7: 102}
    assert launched(large, 7) in blocks and launched(small, 7) in blocks


def test_threads_on_one_stream_use_its_block_one_after_the_other(memory_driver):
    scratch = StreamScratch(memory_driver)
    launches = [launch_with(Need(256, 1024 << step), scratch, memory_driver) for step in range(6)]

    def call(launch):
        for _ in range(20):
            launch(16, 32, 48, 64, 0, 7)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(call, launches))
    assert len(memory_driver.launches) == 120 and len(memory_driver.blocks) == 1


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_launches_although_another_thread_was_launching():
    launch, held, done = CudaLaunch(1, CONTEXT, GRID, GemmArgs(), driver=Driver()), threading.Event(), threading.Event()

    def hold():
        with launch._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        launch(16, 32, 48, 64, 0, 0)
        os._exit(17)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 17
