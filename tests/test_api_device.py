"""The library call on arrays that lie on a device, through a driver that multiplies by NumPy."""

import ctypes
import logging
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import device_double
import tilewright as tw
from device_double import DoubleArray, DoubleArrays, MemoryDriver
from tilewright.api import devices, execution, frameworks
from tilewright.api.operands import Operand, product_of
from tilewright.api.plan import make_plan
from tilewright.arch import get_arch
from tilewright.compile.nvrtc import compile_cubin
from tilewright.errors import InvalidInput, InvalidProblem, LaunchFailed, NoDevice
from tilewright.run.cuda_launch import CudaLaunch
from tilewright.run.scratch import StreamScratch

RNG = np.random.default_rng(1)


@pytest.fixture
def target(monkeypatch):
    return device_double.install(monkeypatch)


@pytest.fixture
def driver(target):
    return target.driver


def aligned(*shape, at_bytes=0, dtype="float32"):
    """Integers on the device, whose address is so many bytes past a multiple of 256."""
    count = int(np.prod(shape))
    raw = DoubleArrays().allocate((count + at_bytes,), dtype, 0)
    view = raw.view(np.uint8)[at_bytes : at_bytes + count * raw.itemsize].view(raw.dtype).reshape(shape)
    view[...] = RNG.integers(-8, 9, shape)
    return view


def test_arrays_are_used_where_they_lie(target, driver):
    wide = aligned(8, 16)
    a, b, out = wide[:, :5], aligned(5, 12)[:, :6], aligned(8, 10)[:, 2:8]
    assert tw.matmul(a, b, out=out) is out
    assert np.array_equal(out, a @ b)
    (problem, stream) = driver.launches[0]
    assert (problem.lda, problem.ldb, problem.ldd, problem.alignment_bytes) == (16, 12, 10, 8)
    assert stream == DoubleArrays.stream and not target.loaded[0].choice.config.require_problem(problem)


def test_a_result_without_out_is_a_new_array_of_the_framework(driver):
    a, b = aligned(3, 4), aligned(4, 5)
    first, second = tw.matmul(a, b), tw.matmul(a, b)
    assert isinstance(first, DoubleArray) and not np.shares_memory(first, second)
    assert np.array_equal(first, a @ b) and np.array_equal(second, a @ b)


def test_a_call_like_an_earlier_one_is_not_planned_again(target, driver):
    for _ in range(3):
        a, b, out = aligned(8, 5), aligned(5, 6), aligned(8, 6)
        tw.matmul(a, b, out=out)
        assert np.array_equal(out, a @ b)
    assert len(target.loaded) == 1 and len(driver.kernels) == 1 and len(driver.launches) == 3


def test_d4_an_unaligned_call_after_an_aligned_one_is_planned_for_its_alignment(target, driver):
    b = aligned(16, 8)
    for at_bytes in (0, 4, 16, 0, 1):
        a = aligned(8, 16, at_bytes=at_bytes)
        assert np.array_equal(tw.matmul(a, b), a @ b)
    assert [problem.alignment_bytes for problem, _ in driver.launches] == [256, 4, 16, 256, 256]
    assert len(target.loaded) == 4, "the fourth call is like the first"


def test_a_plan_relies_on_no_alignment_that_a_call_like_it_may_lack(target):
    b, copied = aligned(8, 8), [aligned(8, 16, at_bytes=at)[:, ::2] for at in (4, 0)]
    for left, right in ((copied[0], b), (copied[1], aligned(8, 8, at_bytes=4))):
        assert np.array_equal(tw.matmul(left, right), left @ right)
    for at_c, at_a in ((4, 0), (0, 4)):
        a, c = aligned(8, 8, at_bytes=at_a), aligned(8, 8, at_bytes=at_c)
        assert np.array_equal(tw.gemm(a, b, c, beta=0.0), a @ b)
    half = [aligned(8, 8, at_bytes=at, dtype="float16") for at in (2, 4)]
    for a, at_out in ((half[0], 4), (half[1], 2)):
        out = aligned(8, 8, at_bytes=at_out)
        assert np.array_equal(tw.matmul(a, half[1], out=out), a.astype(np.float32) @ half[1].astype(np.float32))


def test_an_overlap_is_seen_in_a_call_like_an_earlier_one(target):
    b = aligned(8, 8)
    for place in ("apart", "input", "half", "apart"):
        buffer = aligned(32, 8)
        a = buffer[:8]
        wanted = np.array(a) @ b
        out = {"apart": buffer[16:24], "input": a, "half": buffer[4:12]}[place]
        tw.matmul(a, b, out=out)
        assert np.array_equal(out, wanted)


def test_c_is_out_then_apart_then_overlapping(target, driver):
    a, b = aligned(8, 5), aligned(5, 8)
    for start in (0, 16, 4, 0):
        buffer = aligned(32, 8)
        c, out = buffer[:8], buffer[start : start + 8]
        wanted = a @ b + 2 * np.array(c)
        tw.gemm(a, b, c, beta=2.0, out=out)
        assert np.array_equal(out, wanted)
    assert len(target.loaded) == 3, "the last call is like the first"


def test_unread_c_may_lie_anywhere(target):
    a, b, buffer = aligned(8, 5), aligned(5, 8), aligned(16, 8)
    for start in (0, 4, 8):
        out = buffer[start : start + 8]
        tw.gemm(a, b, buffer[:8], beta=0.0, out=out)
        assert np.array_equal(out, a @ b)
    assert not any(part.problem.reads_c for part in target.loaded)


def test_scales_are_part_of_what_is_planned(driver):
    a, b, c = aligned(4, 4), aligned(4, 4), aligned(4, 4)
    for alpha, beta in ((1, 1), (2, 1), (1, 0.5), (0, 1), (True, 0), (np.float32(2), 1)):
        assert np.array_equal(tw.gemm(a, b, c, alpha=alpha, beta=beta), alpha * (a @ b) + beta * c)
    with pytest.raises(InvalidInput, match="must be a real number"):
        tw.gemm(a, b, c, alpha=aligned(1), beta=1.0)


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (7, 7),
        (type("Ours", (), {"__cuda_stream__": lambda self: (0, 8)})(), 8),
        (type("Torchs", (), {"cuda_stream": 9})(), 9),
        (type("Cupys", (), {"ptr": 10})(), 10),
        (None, DoubleArrays.stream),
    ],
)
def test_streams_of_every_kind_are_taken(stream, handle, driver):
    a, b, out = aligned(4, 4), aligned(4, 4), aligned(4, 4)
    for given in (out, None, out[:, ::-1], None):
        tw.matmul(a[:, ::-1], b, out=given, stream=stream)
        tw.matmul(a, b, out=given, stream=stream)
    assert {stream for _, stream in driver.launches} == {handle}


@pytest.mark.parametrize("stream", ["fast", True, -1, 1.5])
def test_what_is_no_stream_is_refused(stream, target):
    with pytest.raises(InvalidInput, match=f"stream={stream!r}: must be"):
        tw.matmul(aligned(4, 4), aligned(4, 4), stream=stream)


def test_another_current_context_stays_as_it_was(driver):
    a, b = aligned(4, 4), aligned(4, 4)
    driver.context = 0x99
    for _ in range(2):
        assert np.array_equal(tw.matmul(a, b), a @ b)
    assert driver.context == 0x99 and not driver.stack


def test_a_launch_that_fails_is_reported(driver, monkeypatch):
    def raise_(status):
        raise LaunchFailed(f"status {status}")

    monkeypatch.setattr("tilewright.run.cuda_launch.require", raise_)
    driver.status = 719
    with pytest.raises(LaunchFailed, match="status 719"):
        tw.matmul(aligned(4, 4), aligned(4, 4))


def test_j2_arrays_on_two_devices_are_refused(target):
    a, b = aligned(4, 4), aligned(4, 4)
    b.device = 1
    with pytest.raises(InvalidProblem, match=r"different devices \(A on GPU 0, B on GPU 1\)"):
        tw.matmul(a, b)


def test_arrays_of_two_frameworks_are_refused(target):
    tw.matmul(aligned(4, 4), aligned(4, 4))
    with pytest.raises(InvalidProblem, match="A is double's and B is NumPy's: convert one of them"):
        tw.matmul(aligned(4, 4), np.zeros((4, 4), np.float32))


def test_the_emulator_takes_no_arrays_of_a_device(target):
    with pytest.raises(InvalidProblem, match="backend='emulator' with arrays on a GPU"):
        tw.matmul(aligned(4, 4), aligned(4, 4), backend="emulator")


def test_an_empty_result_launches_nothing(driver):
    for _ in range(2):
        assert tw.matmul(aligned(0, 4), aligned(4, 5)).shape == (0, 5)
    assert not driver.launches


def launched(driver):
    """Sizes and batch of every launch, and how many there were of each."""
    sizes = [(p.m, p.n, p.k, p.batch) for p, _ in driver.launches]
    return {size: sizes.count(size) for size in sizes}


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ((2, 5, 4), (4, 6), {(10, 6, 4, 1): 1}),
        ((3, 2, 1, 4), (4, 6), {(6, 6, 4, 1): 1}),
        ((3, 5, 4), (3, 4, 6), {(5, 6, 4, 3): 1}),
        ((2, 3, 5, 4), (2, 3, 4, 6), {(5, 6, 4, 6): 1}),
        ((3, 1, 5, 4), (2, 4, 6), {(5, 6, 4, 3): 2}),
        ((5, 4), (3, 4, 6), {(5, 6, 4, 3): 1}),
        ((4,), (3, 4, 6), {(1, 6, 4, 3): 1}),
    ],
)
def test_a_batch_is_rows_where_it_can_be_and_as_few_launches_as_can_be(a, b, wanted, driver):
    a, b = aligned(*a), aligned(*b)
    assert np.array_equal(tw.matmul(a, b), np.matmul(a, b))
    assert launched(driver) == wanted


def test_more_batches_and_rows_than_a_grid_holds_are_several_launches(driver):
    a, b = aligned(70_000, 2, 1), aligned(70_000, 1, 1)
    assert np.array_equal(tw.matmul(a, b), a * b)
    assert launched(driver) == {(2, 1, 1, 65_535): 1, (2, 1, 1, 4_465): 1}
    driver.launches.clear()
    rows, column = aligned(2**20 + 3, 1), aligned(1, 1)
    assert np.array_equal(tw.matmul(rows, column), rows * column)
    assert launched(driver) == {(2**20, 1, 1, 1): 1, (3, 1, 1, 1): 1}


def test_an_offset_in_a_batch_counts_for_the_alignment(driver):
    a, b = aligned(2, 3, 5, 8)[:, ::2, :, :], aligned(1, 2, 8, 8)
    shifted = np.broadcast_to(aligned(2, 8 * 8 + 1)[:, :64].reshape(2, 1, 8, 8), (2, 2, 8, 8), subok=True)
    assert np.array_equal(tw.matmul(a, shifted), np.matmul(a, shifted))
    assert np.array_equal(tw.matmul(a, b), np.matmul(a, b))


def test_threads_share_what_is_planned(target, driver):
    start, wrong = threading.Barrier(4), []

    def call():
        start.wait()
        for _ in range(20):
            a, b, out = aligned(8, 5), aligned(5, 6), aligned(8, 6)
            tw.matmul(a, b, out=out)
            wrong.extend([] if np.array_equal(out, a @ b) else [out])

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(driver.launches) == 80


def test_what_is_planned_is_kept_within_bounds(target, monkeypatch):
    monkeypatch.setattr(execution, "MOST_KEPT", 3)
    for m in range(1, 8):
        tw.matmul(aligned(m, 4), aligned(4, 4))
    assert 0 < len(execution.kept) <= 3


def test_the_plan_is_logged_once(target, caplog):
    caplog.set_level(logging.DEBUG, "tilewright")
    a, b = aligned(4, 4), aligned(4, 4)
    for _ in range(3):
        tw.matmul(a[::-1], b)
    assert [record.message.splitlines()[-1] for record in caplog.records] == [
        "A: copied: its strides (-4, 1) leave neither rows nor columns contiguous"
    ]


def test_a_framework_may_take_a_call_over(target, monkeypatch):
    class Traced(DoubleArrays):
        def takes_over(self, a, b, c, out, bias):
            return True

        def call(self, **arguments):
            return arguments

    monkeypatch.setitem(frameworks.KNOWN, DoubleArray, Traced())
    a, b = aligned(4, 4), aligned(4, 4)
    got = tw.gemm(a, b, bias=a[0], alpha=2.0)
    assert got["a"] is a and got["options"].alpha == 2.0 and got["stream"] is None
    with pytest.raises(InvalidProblem, match="use matmul or gemm, or detach"):
        tw.Gemm(a, b)


# Gemm.


def test_a_planned_product_is_executed_on_what_its_operands_hold_then(target, driver):
    a, b, out = aligned(6, 4), aligned(4, 5), aligned(6, 5)
    with tw.Gemm(a, b, out=out, alpha=2.0) as product:
        assert str(product.plan()).startswith("6×5×4 NN float32, aligned to 256 bytes: k")
        for _ in range(2):
            a[...] = RNG.integers(-8, 9, a.shape)
            assert product.execute() is out
            assert np.array_equal(out, 2 * (a @ b))
        product.execute(stream=11)
    assert len(target.loaded) == 1 and [stream for _, stream in driver.launches] == [5, 5, 11]


def test_a_planned_product_takes_other_operands_of_the_same_kind(target):
    product = tw.Gemm(aligned(6, 4), aligned(4, 5), aligned(6, 5), beta=1.0)
    product.plan()
    a, b, c, out = aligned(6, 4, at_bytes=4), aligned(5, 4).T, aligned(6, 5), aligned(6, 5)
    assert product.execute(a, b, c, out=out) is out
    assert np.array_equal(out, a @ b + c)
    assert product.execute() is not product.execute()
    for wrong, words in (
        ({"a": aligned(5, 4)}, r"A is \(5, 4\) float32"),
        ({"b": aligned(4, 5, dtype="float16")}, "B is"),
    ):
        with pytest.raises(InvalidProblem, match=words):
            product.execute(**wrong)
    with pytest.raises(InvalidProblem, match="C: this Gemm was made without it"):
        tw.Gemm(a, b).execute(c=c)


def test_autotune_needs_arrays_of_a_device():
    x = np.zeros((4, 4), np.float32)
    with pytest.raises(NoDevice, match="autotune times kernels"):
        tw.Gemm(x, x, backend="emulator").autotune()


def test_autotune_searches_the_chosen_rung_and_plans_anew(target, monkeypatch):
    searched = []
    monkeypatch.setattr(
        "tilewright.tune.tune", lambda rung, problem, request, machine: searched.append((rung, problem))
    )
    product = tw.Gemm(aligned(6, 4), aligned(4, 5))
    chosen = product.plan().parts[0]
    product.autotune(budget_seconds=1.0)
    assert searched == [(chosen.choice.config.rung, chosen.problem)]
    assert len(target.loaded) == 2


# The real target, with a card that is a stand-in.


class StandIn:
    """What a GpuTarget asks of a card."""

    def __init__(self, device, stream):
        self.arch, self.sm_count, self.capturing, self.loads = get_arch("sm_90a"), 132, False, set()
        self.device = SimpleNamespace(name="NVIDIA H200")
        self.driver = MemoryDriver()
        self.scratch = StreamScratch(self.driver)

    def is_capturing(self, stream):
        return self.capturing

    def compile(self, source):
        return compile_cubin(source, self.arch)

    def is_loaded(self, binary):
        return binary.key in self.loads

    def prepare(self, binary, grid, args, maps, need):
        self.loads.add(binary.key)
        return CudaLaunch(
            *(len(self.loads), device_double.CONTEXT, grid, args),
            **{"maps": maps, "need": need, "scratch": self.scratch, "driver": self.driver},
        )


@pytest.fixture
def real_target(monkeypatch):
    monkeypatch.setattr("tilewright.run.cuda.CudaBackend", StandIn)
    return devices.GpuTarget(0)


def part_of(m, n=5, k=4):
    a = Operand("A", 256, (m, k), (4 * k, 4), "float32", 0)
    b = Operand("B", 256, (k, n), (4 * n, 4), "float32", 0)
    scalars = {"alpha": 1.0, "beta": 0.0, "dtype": "float32", "epilogue": tw.Epilogue(), "alignment_bytes": 256}
    product = product_of(a=a, b=b, c=None, out=None, bias=None, **scalars)
    return make_plan(product, device_double.DoubleTarget(None)).parts[0]


def test_a_kernel_is_loaded_once_whatever_the_size(real_target):
    for m in (3, 5, 3):
        real_target.bind(part_of(m), 0)
    assert len(real_target._gpu.loads) == 1


def test_a_kernel_is_not_loaded_while_a_graph_is_captured(real_target):
    real_target._gpu.capturing = True
    with pytest.raises(InvalidInput, match="make the same call once before the capture"):
        real_target.bind(part_of(3), 5)
    real_target._gpu.capturing = False
    real_target.bind(part_of(3), 5)
    real_target._gpu.capturing = True
    real_target.bind(part_of(5), 5)
    assert len(real_target._gpu.loads) == 1


def test_a_bound_launch_has_the_parts_arguments(real_target):
    launch = real_target.bind(part_of(3), 0).launch
    assert (launch._args.m, launch._args.lda, launch._args.d) == (3, 4, 0)
    assert ctypes.addressof(launch._args) % 64 == 0


def test_a_bound_launch_of_slices_takes_scratch_as_it_is_launched(real_target):
    part = part_of(8, 4096, 4096)
    assert part.choice.config.rung.scratch is not None
    launch = real_target.bind(part, 0).launch
    assert real_target._gpu.driver.calls == []
    launch(256, 512, 0, 768, 0, 7)
    assert real_target._gpu.driver.calls == ["alloc", "zero", "launch"]
