"""Products in captured graphs by kernels whose CTAs leave sums for each other: no other node, no flags in common."""

import gc

import pytest

import tilewright as tw
from tilewright.declare import all_rungs, rung_config
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend, scratch_of
from tilewright.run.driver import check
from tilewright.run.kernel import bind
from tilewright.run.scratch import MOST_STREAMS

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")


def integers(*shape, most=2):
    return torch.randint(-most, most + 1, shape, device="cuda").float()


@pytest.fixture
def operands():
    """Operands for eight rows, which k is sliced for, and a result; the kernel is loaded."""
    a, b, out = integers(8, 4096), integers(4096, 4096), torch.zeros(8, 4096, device="cuda")
    with tw.Gemm(a, b, out=out, kernels="own") as product:
        assert product.plan().parts[0].choice.config.rung.scratch is not None
        product.execute()
    torch.cuda.synchronize()
    return a, b, out


def multiply(a, b, out):
    return tw.matmul(a, b, out=out, kernels="own")


def require(out, a, b):
    torch.cuda.synchronize()
    assert torch.equal(out.double(), a.double() @ b.double())


def raw_graph(capture):
    """The driver's graph of what `capture` queues on torch's current stream, and torch's object that holds it."""
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        capture()
    return graph, graph.raw_cuda_graph()


def test_a_captured_product_is_one_node(operands):
    from cuda.bindings import driver

    _, handle = raw_graph(lambda: [multiply(*operands) for _ in range(3)])
    _, count = check(driver.cuGraphGetNodes(driver.CUgraph(handle), 0))
    assert count == 3


def test_a_capture_that_forks_gives_each_stream_flags_of_its_own(operands):
    a, b, _ = operands
    lefts, outs = [integers(8, 4096) for _ in range(3)], [torch.zeros(8, 4096, device="cuda") for _ in range(3)]
    forks, graph = [torch.cuda.Stream() for _ in range(2)], torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        for stream, left, out in zip([main, *forks], lefts, outs, strict=True):
            stream.wait_stream(main) if stream is not main else None
            with torch.cuda.stream(stream):
                for _ in range(4):
                    multiply(left, b, out)
        for stream in forks:
            main.wait_stream(stream)
    for _ in range(30):
        graph.replay()
    for left, out in zip(lefts, outs, strict=True):
        require(out, left, b)
    require(multiply(a, b, outs[0]), a, b)


def test_two_instances_of_a_graph_may_run_one_after_the_other(operands):
    from cuda.bindings import driver

    a, b, out = operands
    graph, handle = raw_graph(lambda: multiply(a, b, out))
    stream = torch.cuda.current_stream()
    instances = [check(driver.cuGraphInstantiate(driver.CUgraph(handle), 0)) for _ in range(2)]
    for turn in range(10):
        a.copy_(integers(8, 4096))
        check(driver.cuGraphLaunch(instances[turn % 2], stream.cuda_stream))
        require(out, a, b)
    for instance in instances:
        check(driver.cuGraphExecDestroy(instance))
    del graph


def test_two_graphs_run_side_by_side_and_beside_calls(operands):
    a, b, _ = operands
    lefts, outs = [integers(8, 4096) for _ in range(3)], [torch.zeros(8, 4096, device="cuda") for _ in range(3)]
    graphs, streams = [torch.cuda.CUDAGraph() for _ in lefts], [torch.cuda.Stream() for _ in lefts]
    for graph, left, out in zip(graphs, lefts, outs, strict=True):
        with torch.cuda.graph(graph):
            multiply(left, b, out)
            multiply(left, b, out)
    for _ in range(50):
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
        got = tw.matmul(a, b, kernels="own")
    require(got, a, b)
    for left, out in zip(lefts, outs, strict=True):
        require(out, left, b)


def test_a_graph_that_is_gone_gives_its_memory_to_the_next_and_one_that_lives_does_not(operands):
    a, b, out = operands
    scratch = scratch_of(torch.cuda.current_device())

    def captured():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            multiply(a, b, out)
        return graph

    lasting = captured()
    for _ in range(20):
        graph = captured()
        graph.replay()
        torch.cuda.synchronize()
        del graph
        gc.collect()
    assert len(scratch._held) + len(scratch._unused) < 15
    a.copy_(integers(8, 4096))
    lasting.replay()
    require(out, a, b)


def test_streams_that_come_and_go_leave_a_bounded_number_of_blocks(operands):
    from cuda.bindings import driver

    a, b, out = operands
    wanted, scratch = a.double() @ b.double(), scratch_of(torch.cuda.current_device())
    torch.cuda.synchronize()
    for turn in range(200):
        stream = check(driver.cuStreamCreate(1))
        out.zero_() if turn % 50 == 0 else None
        torch.cuda.synchronize()
        tw.matmul(a, b, out=out, stream=int(stream), kernels="own")
        check(driver.cuStreamDestroy(stream))
        if turn % 50 == 0:
            torch.cuda.synchronize()
            assert torch.equal(out.double(), wanted)
    assert len(scratch._streams) <= MOST_STREAMS
    require(out, a, b)


@pytest.mark.parametrize("rows", [1, 8, 128])
def test_a_chain_of_products_each_of_which_reads_the_last_ones_result(rows):
    """Eagerly and in a graph: a launch that began before its predecessor ended would read what isn't written yet."""
    a, shift = integers(rows, 4096), torch.eye(4096, device="cuda").roll(1, 0).contiguous()
    wanted = torch.eye(4096, device="cuda").roll(24, 0)

    def chain():
        left = a
        for _ in range(24):
            left = tw.matmul(left, shift, kernels="own")
        return left

    require(chain(), a, wanted)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        last = chain()
    for _ in range(10):
        a.copy_(integers(rows, 4096))
        graph.replay()
        require(last, a, wanted)


def test_a_kernel_stays_loaded_for_a_graph_whose_backend_is_gone():
    a, b, out = integers(128, 64), integers(64, 128), torch.zeros(128, 128, device="cuda")
    problem, graph = Problem(m=128, n=128, k=64), torch.cuda.CUDAGraph()
    gpu = CudaBackend(stream=torch.cuda.current_stream().cuda_stream)
    kernel = bind(rung_config(all_rungs().find("k08"), {"BK": 8}), problem, gpu)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        stream = torch.cuda.current_stream().cuda_stream
        kernel(a=a.data_ptr(), b=b.data_ptr(), d=out.data_ptr(), stream=stream)
    gpu.close()
    del kernel, gpu
    gc.collect()
    for _ in range(3):
        a.copy_(integers(128, 64))
        graph.replay()
        require(out, a, b)
