"""The library call on a GPU: frameworks, streams, capture, threads, devices. torch's own side is in test_torch.py."""

import functools
import os
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
import tilewright.tune
from tilewright.api import execution, plan
from tilewright.errors import InvalidInput, InvalidProblem
from tilewright.lab.overhead import overhead_record
from tilewright.run.cuda import probe
from tilewright.select import choose

pytestmark = pytest.mark.gpu


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def integers(torch, *shape, dtype="float32", most=8, device="cuda"):
    return torch.randint(-most, most + 1, shape, device=device).to(getattr(torch, dtype))


def require_product(torch, got, a, b):
    torch.cuda.synchronize()
    assert got.device == a.device and torch.equal(got.double(), a.double() @ b.double())


PATTERNS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.mT.contiguous().mT,
    "padded": lambda x: x.new_full((x.shape[0], x.shape[1] + 3), float("nan"))[:, :-3].copy_(x),
    "every other row": lambda x: x.repeat_interleave(2, 0)[::2],
    "every other column": lambda x: x.repeat_interleave(2, 1)[:, ::2],
    "one row repeated": lambda x: x[:1].expand(x.shape),
    "one column repeated": lambda x: x[:, :1].expand(x.shape),
    "one element on": lambda x: x.new_zeros(x.numel() + 1)[1:].view(x.shape).copy_(x),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_torch_operands_and_results_of_any_strides(pattern, dtype, torch):
    lie = PATTERNS[pattern]
    for m, n, k in ((128, 128, 64), (67, 45, 31), (1, 33, 8)):
        a, b = integers(torch, m, k, dtype=dtype, most=2), integers(torch, k, n, dtype=dtype, most=2)
        for left, right in ((lie(a), b), (a, lie(b)), (lie(a), lie(b))):
            require_product(torch, tw.matmul(left, right), left, right)
        if "repeated" not in pattern:
            out = lie(a.new_zeros(m, n))
            assert tw.matmul(a, b, out=out) is out
            require_product(torch, out, a, b)


def test_what_can_be_used_as_it_lies_is_not_copied(torch):
    wide = integers(torch, 64, 80)
    assert not tw.Gemm(wide[:, :64], wide[:, :64]).plan().copies
    half = integers(torch, 64, 80, dtype="bfloat16")
    assert not tw.Gemm(half[:, :64], half[:, :64].mT).plan().copies


def test_cupy_arrays_of_any_strides(cupy):
    a, b = cupy.arange(33 * 7, dtype=cupy.float32).reshape(33, 7) % 5, cupy.ones((7, 65), cupy.float32)
    for view in (a, a[::-1], a[:, ::-1], a[::2], cupy.asfortranarray(a), cupy.broadcast_to(a[:1], a.shape)):
        assert bool((tw.matmul(view, b) == cupy.matmul(view.astype("f8"), b.astype("f8"))).all())
    with cupy.cuda.Stream(non_blocking=True) as stream:
        got = tw.matmul(a, b)
        stream.synchronize()
        assert isinstance(got, cupy.ndarray) and bool((got == a.astype("f8") @ b.astype("f8")).all())


def test_jax_arrays_give_jax_arrays_and_are_never_written():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no GPU")
    a, b = jax.numpy.arange(6, dtype="float32").reshape(2, 3), jax.numpy.ones((3, 4), "float32")
    got = tw.matmul(a, b)
    assert isinstance(got, jax.Array) and np.array_equal(np.asarray(got), np.asarray(a) @ np.asarray(b))
    with pytest.raises(InvalidProblem, match="out: read-only"):
        tw.matmul(a, b, out=jax.numpy.zeros((2, 4), "float32"))
    with pytest.raises(InvalidProblem, match="a tracer"):
        jax.jit(tw.matmul)(a, b)


class Exported:
    """A tensor that is known by DLPack alone."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**{name: given for name, given in options.items() if name == "stream"})

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def test_arrays_of_an_unknown_library_need_an_out(torch):
    a, b, out = integers(torch, 33, 7), integers(torch, 7, 65), integers(torch, 33, 65)
    torch.cuda.synchronize()
    tw.matmul(Exported(a), Exported(b), out=Exported(out))
    require_product(torch, out, a, b)
    with pytest.raises(InvalidProblem, match="pass out="):
        tw.matmul(Exported(a), Exported(b))


def test_numpy_arrays_are_copied_to_the_gpu_and_back():
    a, b = np.arange(33 * 7, dtype=np.float32).reshape(33, 7) % 5, np.ones((7, 65), np.float32)
    for view in (a, a[::-1], a.astype(">f4"), np.broadcast_to(a[:1], a.shape)):
        assert np.array_equal(tw.matmul(view, b), np.matmul(view, b))
    out = np.zeros((33, 130), np.float32)
    tw.matmul(a, b, out=out[:, ::2])
    assert np.array_equal(out[:, ::2], a @ b) and not out[:, 1::2].any()


def test_f1_float32_is_not_tf32_unless_asked(torch):
    a, b = torch.full((64, 64), 1024.5, device="cuda"), torch.eye(64, device="cuda")
    assert bool((tw.matmul(a, b) == 1024.5).all())
    assert set(tw.matmul(a, b, compute_type="tf32").unique().tolist()) <= {1024.0, 1025.0}


def test_d4_unaligned_and_aligned_calls_take_turns(torch):
    buffer, b = integers(torch, 128 * 64 + 8), integers(torch, 64, 128)
    for offset in (0, 1, 4, 0, 2, 1):
        a = buffer[offset : offset + 128 * 64].view(128, 64)
        require_product(torch, tw.matmul(a, b), a, b)


def test_the_current_stream_orders_copies_launches_and_results(torch):
    big = torch.empty(1 << 28, device="cuda")
    b = integers(torch, 512, 512)
    for given in ("current", "handle", "object"):
        stream = torch.cuda.Stream()
        a = torch.zeros(512, 512, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(20):
                big.fill_(1.0)
            a.fill_(1.0)
            if given == "current":
                got = tw.matmul(a[:, torch.arange(511, -1, -1, device="cuda")], b)
        if given != "current":
            got = tw.matmul(a.mT[::1], b, stream=stream.cuda_stream if given == "handle" else stream)
        stream.synchronize()
        require_product(torch, got, torch.ones_like(a), b)


def test_a_warm_call_is_captured_and_replayed(torch):
    a, b, out = integers(torch, 96, 64), integers(torch, 64, 96), torch.zeros(96, 96, device="cuda")
    tw.matmul(a, b, out=out)
    tw.matmul(a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tw.matmul(a, b, out=out)
        inner = tw.matmul(a, b)
        last = tw.matmul(inner[:, :64].contiguous(), b)
    a.copy_(integers(torch, 96, 64, most=2))
    graph.replay()
    require_product(torch, out, a, b)
    require_product(torch, last, inner[:, :64], b)


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")  # as it is, once the call is refused
def test_a_cold_shape_is_captured_if_its_kernel_is_loaded_and_refused_if_not(torch):
    warm = integers(torch, 33, 7), integers(torch, 7, 65)
    tw.matmul(*warm)
    a, b, out = integers(torch, 35, 9), integers(torch, 9, 63), torch.zeros(35, 63, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tw.matmul(a, b, out=out)
    graph.replay()
    require_product(torch, out, a, b)
    cold = integers(torch, 48, 16, dtype="float16").mT
    into = torch.zeros(16, 16, device="cuda")
    with pytest.raises(InvalidInput, match="call once before the capture"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        tw.gemm(cold, cold.mT, epilogue="relu", out=into)
    tw.gemm(cold, cold.mT, epilogue="relu", out=into)
    torch.cuda.synchronize()
    assert torch.equal(into.double(), (cold.double() @ cold.double().mT).relu())


@pytest.fixture
def few_rows(torch):
    """Operands for eight rows, which k is sliced for, and a result."""
    a, b, out = integers(torch, 8, 4096, most=2), integers(torch, 4096, 4096, most=2), torch.zeros(8, 4096).cuda()
    assert tw.Gemm(a, b, out=out).plan().parts[0].choice.config.rung.scratch is not None
    return a, b, out


def test_slices_of_two_streams_do_not_meet(torch, few_rows):
    a, b, _ = few_rows
    wanted, streams = a.double() @ b.double(), [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    results = []
    for _ in range(50):
        for stream in streams:
            with torch.cuda.stream(stream):
                results.append(tw.matmul(a, b))
    torch.cuda.synchronize()
    assert all(torch.equal(got.double(), wanted) for got in results)


def test_slices_of_graphs_do_not_meet_those_of_others_or_of_calls(torch, few_rows):
    a, b, _ = few_rows
    inputs = [integers(torch, 8, 4096, most=2) for _ in range(3)]
    outs = [torch.zeros(8, 4096, device="cuda") for _ in inputs]
    graphs, streams = [torch.cuda.CUDAGraph() for _ in inputs], [torch.cuda.Stream() for _ in inputs]
    for graph, left, out in zip(graphs, inputs, outs, strict=True):
        with torch.cuda.graph(graph):
            tw.matmul(left, b, out=out)
            tw.matmul(left, b, out=out)
    torch.cuda.synchronize()
    for _ in range(30):
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
        got = tw.matmul(a, b)
    require_product(torch, got, a, b)
    for left, out in zip(inputs, outs, strict=True):
        require_product(torch, out, left, b)


@pytest.fixture
def faster_library(monkeypatch):
    """torch's own product counts as measured to be faster whatever is multiplied."""

    def faster(problem, *card, kernels, **more):
        found = choose(problem, *card, kernels=kernels, **more)
        return replace(found, library="half the time" if kernels == "all" else "")

    monkeypatch.setattr(plan, "choose", faster)
    monkeypatch.setattr(execution, "kept", {})


@pytest.mark.filterwarnings("ignore:Please use the new API")
@pytest.mark.usefixtures("faster_library")
def test_torchs_own_product_means_the_same_where_it_is_taken(torch, monkeypatch):
    a, b, out = integers(torch, 96, 64), integers(torch, 64, 96), torch.zeros(96, 96, device="cuda")
    for left, right in ((a, b), (a.mT.contiguous().mT, b), (a[0], b), (a, b[:, 0]), (a[None], b), (a[0], b[:, 0])):
        require_product(torch, tw.matmul(left, right), left, right)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    require_product(torch, tw.matmul(a, b, out=out, stream=stream), a, b)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tw.matmul(a, b, out=out)
    a.copy_(integers(torch, 96, 64))
    graph.replay()
    require_product(torch, out, a, b)
    halves, one = torch.full((64, 64), 1024.5, device="cuda"), torch.eye(64, device="cuda")
    for allowed in (True, False):
        monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", allowed)
        assert bool((tw.matmul(halves, one) == 1024.5).all())
    import tilewright.torch as ours

    with torch.autocast("cuda", dtype=torch.bfloat16):
        got = ours.MATMUL(halves, one)
    assert got.dtype == torch.float32 and bool((got == 1024.5).all())


def test_cupys_own_product_means_the_same_where_it_is_taken(cupy, faster_library):
    a, b = cupy.arange(96 * 64, dtype=cupy.float32).reshape(96, 64) % 5, cupy.ones((64, 96), cupy.float32)
    for left in (a, cupy.asfortranarray(a), a[::2]):
        assert bool((tw.matmul(left, b) == cupy.matmul(left.astype("f8"), b.astype("f8"))).all())


def test_a_first_use_is_tuned_where_the_environment_asks_for_it(torch, monkeypatch, cold_cache):
    monkeypatch.setenv("TILEWRIGHT_AUTOTUNE", "on")
    monkeypatch.setattr(tilewright.tune, "Request", functools.partial(tilewright.tune.Request, budget_s=60.0))
    a, b = integers(torch, 192, 320), integers(torch, 320, 256)
    require_product(torch, tw.matmul(a, b), a, b)
    assert tw.Gemm(a, b).plan().parts[0].choice.tuned


def test_threads_with_streams_of_their_own(torch):
    start, wrong = threading.Barrier(4), []

    def call(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            start.wait()
            for index in range(40):
                a, b = integers(torch, 40 + seed, 33 + index % 3), integers(torch, 33 + index % 3, 50)
                got = tw.matmul(a, b)
                torch.cuda.current_stream().synchronize()
                wrong.extend([] if torch.equal(got.double(), a.double() @ b.double()) else [(seed, index)])

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_thread_that_never_used_cuda_may_call(torch):
    a, b, results = integers(torch, 33, 7), integers(torch, 7, 65), []
    out = torch.zeros(33, 65, device="cuda")
    torch.cuda.synchronize()
    thread = threading.Thread(target=lambda: results.append(tw.matmul(a, b, out=out, stream=0)))
    thread.start()
    thread.join()
    require_product(torch, results[0], a, b)


def test_j2_arrays_run_where_they_are_and_the_current_device_stays(torch):
    if len(probe()) < 2:
        pytest.skip("needs two GPUs")
    for device in (0, 1, 0, 1):
        a, b = integers(torch, 33, 7, device=f"cuda:{device}"), integers(torch, 7, 65, device=f"cuda:{device}")
        require_product(torch, tw.matmul(a, b), a, b)
        assert torch.cuda.current_device() == 0
    with pytest.raises(InvalidProblem, match="different devices"):
        tw.matmul(integers(torch, 3, 3, device="cuda:0"), integers(torch, 3, 3, device="cuda:1"))


def test_j3_a_fork_after_import_may_use_the_gpu():
    code = (
        "import os, sys, numpy as np, tilewright as tw\n"
        "tw.matmul, tw.Gemm\n"
        "child = os.fork()\n"
        "x = np.ones((3, 3), np.float32)\n"
        "ok = bool((tw.matmul(x, x) == 3).all())\n"
        "if child == 0: os._exit(0 if ok else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not ok)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_planned_product_is_repeated_and_tuned(torch):
    a, b, out = integers(torch, 256, 128), integers(torch, 128, 256), torch.zeros(256, 256, device="cuda")
    with tw.Gemm(a, b, out=out) as product:
        product.plan()
        for _ in range(3):
            a.copy_(integers(torch, 256, 128))
            require_product(torch, product.execute(), a, b)
        plan = product.autotune(budget_seconds=20.0)
        assert plan.parts[0].choice.why == "tuned for this problem on this card"
        require_product(torch, product.execute(), a, b)


def test_the_hosts_overhead_is_measured_for_every_form(torch):
    record = overhead_record()
    assert len(record.rows) == 7 and all(row.host_us > 0 for row in record.rows)
    assert record.about["ratios_to_baseline"]["torch.mm(out=)"] == 1.0
