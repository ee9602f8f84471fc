"""Statistics, rounds, clocks and baselines, on a simulated device and with stand-ins for the libraries."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidInput, InvalidProblem, TimedOut, WrongResult
from tilewright.measure import (
    ClockReading,
    find_baseline,
    median_interval,
    open_clocks,
    paired_ratio,
    prove_ieee,
)
from tilewright.measure import timer as timer_module
from tilewright.measure.baseline import prove_tf32
from tilewright.measure.baseline_cublas import CublasApi, CublasBaseline
from tilewright.measure.baseline_torch import TorchBaseline, float32_precision
from tilewright.measure.ring import MAX_SLOTS, ring_slots
from tilewright.measure.stats import independent_samples
from tilewright.measure.timer import DELAY_MIN_US, CudaTimer, Replays, compile_delay
from tilewright.problem import Problem

Floats = npt.NDArray[np.float32]
BAD_TIMES = [0.0, -1.0, math.nan, math.inf, -math.inf]
times = st.floats(1e-3, 1e9)


# --- statistics


def alternating(count: int) -> list[float]:
    """1 to `count`, low and high in turn: neighbours don't resemble each other."""
    return [float(i // 2 + 1 if i % 2 == 0 else count - i // 2) for i in range(count)]


def exact_coverage(count: int, rank: int) -> float:
    return 1 - 2 * sum(math.comb(count, i) for i in range(rank)) / 2**count


@pytest.mark.parametrize(
    ("count", "low", "coverage"),
    [(1, 1.0, 0.0), (5, 1.0, 0.9375), (6, 1.3571, 0.95), (8, 1.9356, 0.95), (20, 6.2352, 0.95), (60, 22.9538, 0.95)],
)
def test_the_interval_is_the_tabulated_one(count: int, low: float, coverage: float) -> None:
    got = median_interval(alternating(count))
    assert (got.low, got.high, got.coverage) == (
        pytest.approx(low, abs=1e-4),
        pytest.approx(count + 1 - low, abs=1e-4),
        coverage,
    )
    assert got.median == (count + 1) / 2


@given(st.integers(1, 400), st.floats(0.5, 0.999))
def test_the_interval_lies_between_the_two_whose_exact_coverages_enclose_the_confidence(
    count: int, confidence: float
) -> None:
    got = median_interval(alternating(count), confidence)
    wider = math.floor(got.low)
    assert got.coverage == min(confidence, exact_coverage(count, 1))
    assert wider == 1 or exact_coverage(count, wider) >= confidence - 1e-9
    assert exact_coverage(count, math.ceil(got.low + 1e-9)) <= confidence + 1e-9


@pytest.mark.parametrize("draw", [lambda r: r.lognormvariate(0, 0.5), lambda r: 1 + r.paretovariate(1.2)])
@pytest.mark.parametrize("count", [7, 30, 101])
def test_the_interval_covers_the_true_median_as_often_as_it_says(
    draw: Callable[[random.Random], float], count: int
) -> None:
    rng = random.Random(count)
    truth = statistics.median(draw(rng) for _ in range(200_001))
    runs = 1000
    intervals = [median_interval([draw(rng) for _ in range(count)]) for _ in range(runs)]
    covered = sum(x.low <= truth <= x.high for x in intervals) / runs
    assert 0.94 <= covered <= 0.97


def test_neighbours_that_resemble_each_other_count_for_less() -> None:
    rng = random.Random(5)
    fresh = [rng.gauss(0, 1) for _ in range(4000)]
    following = list(itertools.accumulate(fresh, lambda before, new: 0.6 * before + new))
    assert independent_samples(fresh) > 3500
    assert independent_samples(following) == pytest.approx(4000 * 0.4 / 1.6, rel=0.15)
    assert independent_samples([1.0, 2.0] * 50) == independent_samples([3.0] * 100) == 100
    assert independent_samples([1.0]) == 1
    ordered, shuffled = ([100.0 + x for x in each] for each in (following, random.Random(6).sample(following, 4000)))
    assert median_interval(ordered).half_width > 1.6 * median_interval(shuffled).half_width


@given(st.lists(st.tuples(times, times), min_size=1, max_size=40))
def test_swapping_the_arms_gives_the_reciprocal_ratio(pairs: list[tuple[float, float]]) -> None:
    first, second = zip(*pairs, strict=True)
    there, back = paired_ratio(first, second), paired_ratio(second, first)
    assert there.median == pytest.approx(1 / back.median, rel=1e-9)
    assert (there.low, there.high) == pytest.approx((1 / back.high, 1 / back.low), rel=1e-9)


def test_a_ratio_above_one_means_that_the_arm_is_faster() -> None:
    assert paired_ratio([200.0] * 6, [100.0] * 6).median == pytest.approx(2.0)


def test_pairing_removes_drift_that_both_arms_share() -> None:
    rng = random.Random(3)
    drift = [math.exp(rng.gauss(0, 0.2)) for _ in range(40)]
    ratio = paired_ratio([110 * d for d in drift], [100 * d for d in drift])
    assert ratio.half_width < 1e-9
    assert median_interval([100 * d for d in drift]).half_width > 0.02


@pytest.mark.parametrize("bad", BAD_TIMES)
def test_a_time_that_is_no_time_is_refused(bad: float) -> None:
    with pytest.raises(InvalidInput, match="sample 1 is"):
        median_interval([1.0, bad])
    with pytest.raises(InvalidInput, match="sample 0 is"):
        paired_ratio([1.0, 1.0], [bad, 1.0])


def test_samples_that_do_not_pair_and_empty_ones_are_refused() -> None:
    with pytest.raises(InvalidInput, match="2 baseline times and 1 arm times"):
        paired_ratio([1.0, 2.0], [1.0])
    with pytest.raises(InvalidInput, match="no samples"):
        median_interval([])
    with pytest.raises(InvalidInput, match="confidence=1"):
        median_interval([1.0], 1.0)


# --- rings


@given(st.integers(1, 10**9), st.integers(1, 10**8))
def test_twice_the_l2_passes_between_two_uses_of_a_buffer_set(set_bytes: int, l2_bytes: int) -> None:
    slots = ring_slots(set_bytes, l2_bytes)
    assert 2 <= slots <= MAX_SLOTS
    assert (slots - 1) * set_bytes >= 2 * l2_bytes or slots == MAX_SLOTS
    assert slots == 2 or (slots - 2) * set_bytes < 2 * l2_bytes


# --- the CUDA timer, on a simulated stream


class FakeStream:
    """Runs queued work at once on a device clock; an event is done when that clock has passed it."""

    def __init__(self) -> None:
        self.host_us = 0.0
        self.device_us = 0.0
        self.device = SimpleNamespace(arch="90")

    def work(self, us: float, queueing_us: float = 2.0) -> None:
        self.host_us += queueing_us
        self.device_us = max(self.device_us, self.host_us) + us

    def record(self, event: Any = None, options: Any = None) -> Any:
        event = event or FakeEvent(self)
        event.at_us = max(self.device_us, self.host_us)
        return event

    def sync(self) -> None:
        self.host_us = max(self.host_us, self.device_us)


class FakeEvent:
    def __init__(self, stream: FakeStream) -> None:
        self.stream, self.at_us = stream, 0.0

    @property
    def is_done(self) -> bool:
        return self.stream.host_us >= self.at_us

    def __sub__(self, other: FakeEvent) -> float:
        return (self.at_us - other.at_us) / 1000.0


@pytest.fixture
def cuda_stream(monkeypatch: pytest.MonkeyPatch) -> FakeStream:
    def launch(stream: FakeStream, config: Any, kernel: Any, duration_ns: np.uint64) -> None:
        stream.work(float(duration_ns) / 1000.0)

    fake = SimpleNamespace(launch=launch, EventOptions=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "cuda.core", fake)
    monkeypatch.setattr(timer_module, "_build_delay", lambda arch: (None, None))
    monkeypatch.setattr(timer_module, "_device_current", contextlib.nullcontext)
    return FakeStream()


def test_host_time_to_queue_a_batch_is_not_in_its_figure(cuda_stream: FakeStream) -> None:
    def slow_host(stream: FakeStream) -> None:
        for _ in range(100):
            stream.work(3.0, queueing_us=10.0)

    timer = CudaTimer(cuda_stream)
    got = timer.time_us([slow_host, slow_host], lambda: None)
    assert got == pytest.approx([300.0, 300.0], abs=1e-6)
    assert timer.delay_us > DELAY_MIN_US


def test_each_of_several_graphs_must_be_queued_before_the_device_comes_to_it(cuda_stream: FakeStream) -> None:
    """The second takes longer to queue than the first runs: with little delay the device would wait for it."""

    def graph(queueing_us: float) -> Callable[[FakeStream], None]:
        return lambda stream: stream.work(50.0, queueing_us=queueing_us)

    timer = CudaTimer(cuda_stream)
    assert timer.time_us([Replays([graph(2.0), graph(300.0)])], lambda: None) == pytest.approx([100.0], abs=1e-6)
    assert timer.delay_us > DELAY_MIN_US


def test_the_clock_is_read_while_the_device_is_busy(cuda_stream: FakeStream) -> None:
    busy = []
    timer = CudaTimer(cuda_stream)
    timer.time_us([lambda stream: stream.work(500.0)], lambda: busy.append(cuda_stream.device_us > cuda_stream.host_us))
    assert busy == [True]


def test_the_delay_shrinks_again_while_rounds_are_clean(cuda_stream: FakeStream) -> None:
    timer = CudaTimer(cuda_stream)
    timer.delay_us = 1000.0
    for _ in range(200):
        timer.time_us([lambda stream: stream.work(5.0)], lambda: None)
    assert timer.delay_us == DELAY_MIN_US


def test_a_launch_that_waits_for_the_device_cannot_be_timed(cuda_stream: FakeStream) -> None:
    def waits(stream: FakeStream) -> None:
        stream.work(5.0)
        stream.sync()

    with pytest.raises(TimedOut, match=r"batches \[1\] of 2.*asynchronous"):
        CudaTimer(cuda_stream).time_us([lambda stream: stream.work(5.0), waits], lambda: None)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_the_delay_kernel_compiles(target: str) -> None:
    assert b"tilewright_delay" in compile_delay(target).code


# --- clocks


def fake_bindings(**changes: Any) -> SimpleNamespace:
    def by_uuid(uuid: str) -> str:
        if uuid != "GPU-1234":
            raise RuntimeError("Not Found")
        return "handle"

    functions = {
        "init_v2": lambda: None,
        "device_get_handle_by_uuid": by_uuid,
        "device_get_handle_by_pci_bus_id_v2": lambda bus: f"handle at {bus}",
        "device_get_clock_info": lambda handle, kind: {1: 1980, 2: 3201}[kind],
        "device_get_power_usage": lambda handle: 684_250,
        "device_get_current_clocks_event_reasons": lambda handle: 0x4 | 0x40,
        "device_get_temperature_v": lambda handle, sensor: 41 + sensor,
        "device_get_enforced_power_limit": lambda handle: 700_000,
        "device_get_compute_running_processes_v3": lambda handle: ["this", "another"],
    }
    return SimpleNamespace(**{**functions, **changes})


def use_nvml(monkeypatch: pytest.MonkeyPatch, bindings: Any, ml_py: Any) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvml", bindings)
    monkeypatch.setitem(sys.modules, "pynvml", ml_py)


@pytest.mark.parametrize("uuid", ["1234", "GPU-1234"])
def test_clocks_power_and_reasons_are_read(monkeypatch: pytest.MonkeyPatch, uuid: str) -> None:
    use_nvml(monkeypatch, fake_bindings(), None)
    clocks = open_clocks(uuid=uuid)
    assert clocks.read() == ClockReading(1980, 3201, 684.25, 41, ("sw_power_cap", "hw_thermal_slowdown"))
    assert (clocks.power_limit_w(), clocks.processes()) == (700.0, 2)
    assert (clocks.source, clocks.reason) == ("cuda.bindings.nvml", "")


def test_a_question_the_gpu_refuses_reads_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(handle: Any) -> int:
        raise RuntimeError("Not Supported")

    changes = {"device_get_power_usage": refuse, "device_get_current_clocks_event_reasons": refuse}
    bindings = fake_bindings(**changes)
    del bindings.device_get_temperature_v, bindings.device_get_enforced_power_limit
    use_nvml(monkeypatch, bindings, None)
    clocks = open_clocks(pci_bus_id="0000:1A:00.0")
    assert clocks.read() == ClockReading(1980, 3201, None, None, ())
    assert (clocks.power_limit_w(), clocks.processes()) == (None, 2)


def test_nvidia_ml_py_serves_where_the_bindings_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    ml_py = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetHandleByPciBusId=lambda bus: bus,
        nvmlDeviceGetClockInfo=lambda handle, kind: 1500 + kind,
        nvmlDeviceGetPowerUsage=lambda handle: 1000,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: 0x8,
    )
    use_nvml(monkeypatch, None, ml_py)
    clocks = open_clocks(uuid="1234")
    reading = clocks.read()
    assert reading == ClockReading(1501, 1502, 1.0, None, ("hw_slowdown",))
    assert reading is not None and reading.slowed
    assert clocks.source == "nvidia-ml-py"


def test_without_nvml_there_is_a_reason_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    use_nvml(monkeypatch, None, None)
    clocks = open_clocks(uuid="1234")
    assert (clocks.read(), clocks.power_limit_w(), clocks.processes()) == (None, None, None)
    assert 'pip install "tilewright[lab]"' in clocks.reason
    assert "\n" not in clocks.reason


def test_a_device_that_nvml_does_not_know_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    use_nvml(monkeypatch, fake_bindings(), None)
    assert "Not Found" in open_clocks(uuid="9999").reason
    assert "neither a UUID nor a PCI bus id" in open_clocks().reason


# --- baselines, with host memory in place of the device's


def matrix(address: int, shape: Sequence[int], strides: Sequence[int]) -> Floats:
    """A float32 view of host memory; strides in elements."""
    interface = {
        "shape": tuple(shape),
        "strides": tuple(4 * s for s in strides),
        "typestr": "<f4",
        "data": (address, False),
        "version": 3,
    }
    return np.asarray(SimpleNamespace(__array_interface__=interface))


def value(address: int) -> np.float32:
    return np.float32(ctypes.c_float.from_address(address).value)


def truncated(x: Floats) -> Floats:
    """The numbers as a TF32 product takes them."""
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


class FakeCublas:
    """Column-major sgemm, its strided batch and sgeam, as the cuBLAS manual defines them, on host memory."""

    copies = 0
    tf32 = False

    def set_math_mode(self, handle: int, mode: int) -> None:
        self.tf32 = mode == 3

    def sgemm(self, handle: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, *rest: int) -> None:
        a, lda, b, ldb, beta, c, ldc = rest
        op_a = matrix(a, (m, k), (lda, 1) if ta else (1, lda))
        op_b = matrix(b, (k, n), (ldb, 1) if tb else (1, ldb))
        out = matrix(c, (m, n), (1, ldc))
        if self.tf32:
            op_a, op_b = truncated(op_a), truncated(op_b)
        out[:] = value(alpha) * (op_a @ op_b) + (value(beta) * out if value(beta) else np.float32(0))

    def sgemm_strided_batched(
        self, handle: int, ta: int, tb: int, m: int, n: int, k: int, alpha: int, *rest: int
    ) -> None:
        a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, count = rest
        for i in range(count):
            addresses = (a + 4 * i * stride_a, lda, b + 4 * i * stride_b, ldb, beta, c + 4 * i * stride_c, ldc)
            self.sgemm(handle, ta, tb, m, n, k, alpha, *addresses)

    def sgeam(self, handle: int, ta: int, tb: int, m: int, n: int, alpha: int, *rest: int) -> None:
        self.copies += 1
        a, lda, beta, b, ldb, c, ldc = rest
        out = value(alpha) * matrix(a, (m, n), (1, lda))
        if value(beta):
            out = out + value(beta) * matrix(b, (m, n), (1, ldb))
        matrix(c, (m, n), (1, ldc))[:] = out


class FakeMatmulFlags:
    """PyTorch's two float32 switches: reading the older fails once the newer alone allowed TF32."""

    def __init__(self, legacy: bool = False, newer: str = "none", general: str = "none") -> None:
        self.legacy, self.own, self.general = legacy, newer, general

    @property
    def fp32_precision(self) -> str:
        return self.own if self.own != "none" else self.general

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        self.own = precision

    @property
    def tf32(self) -> bool:
        return self.fp32_precision == "tf32"

    @property
    def allow_tf32(self) -> bool:
        if self.legacy != self.tf32:
            raise RuntimeError("mix of the legacy and new APIs")
        return self.legacy

    @allow_tf32.setter
    def allow_tf32(self, allow: bool) -> None:
        self.legacy, self.own = allow, "tf32" if allow else "ieee"


class FakeTorch:
    """The part of torch the baseline uses, by NumPy on host memory; honours the TF32 switches."""

    __version__ = "2.11.0"

    def __init__(self, flags: FakeMatmulFlags | None = None) -> None:
        self.flags = flags or FakeMatmulFlags()
        self.general = "highest" if not self.flags.legacy else "high"
        self.views = 0
        self.streams: list[int] = []
        self.version = SimpleNamespace(cuda="13.0")
        self.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=self.flags))
        self.cuda = SimpleNamespace(ExternalStream=lambda handle: handle, stream=self._on_stream)
        self.mm = self.bmm = self._product
        self.addmm = self.baddbmm = self._fused

    @contextlib.contextmanager
    def _on_stream(self, stream: int) -> Iterator[None]:
        self.streams.append(stream)
        yield

    def as_tensor(self, data: Any, device: str) -> Any:
        self.views += 1
        array: Any = np.asarray(SimpleNamespace(__array_interface__=data.__cuda_array_interface__)).view(Tensor)
        return array

    def get_float32_matmul_precision(self) -> str:
        return self.general

    def set_float32_matmul_precision(self, precision: str) -> None:
        self.general = precision

    def _product(self, a: Floats, b: Floats, out: Floats) -> None:
        out[...] = np.matmul(self._rounded(a), self._rounded(b))

    def _fused(self, c: Floats, a: Floats, b: Floats, *, beta: float, alpha: float, out: Floats) -> None:
        addend = np.float32(beta) * c if beta else np.float32(0)
        out[...] = np.float32(alpha) * np.matmul(self._rounded(a), self._rounded(b)) + addend

    def _rounded(self, x: Floats) -> Floats:
        return truncated(x) if self.flags.tf32 else np.asarray(x)


class Tensor(np.ndarray[Any, Any]):
    def data_ptr(self) -> int:
        return int(self.__array_interface__["data"][0])


class HostBackend:
    """The device interface on host memory."""

    def __init__(self) -> None:
        self.kept: list[npt.NDArray[np.uint8]] = []

    def alloc(self, nbytes: int, *, label: str, alignment_bytes: int = 256, read_only: bool = False) -> Any:
        self.kept.append(np.zeros(nbytes, np.uint8))
        return SimpleNamespace(address=self.kept[-1].ctypes.data, nbytes=nbytes, data=self.kept[-1])

    def upload(self, memory: Any, host: npt.NDArray[np.uint8]) -> None:
        memory.data[: host.size] = host

    def download(self, memory: Any) -> npt.NDArray[np.uint8]:
        return np.array(memory.data)

    def synchronize(self) -> None:
        pass


STREAM = SimpleNamespace(handle=77, sync=lambda: None)


def cublas_baseline(fake: FakeCublas | None = None) -> CublasBaseline:
    fake = fake or FakeCublas()
    calls = (fake.sgemm, fake.sgemm_strided_batched, fake.sgeam, fake.set_math_mode)
    return CublasBaseline(CublasApi("fake", "1", 1, lambda stream: contextlib.nullcontext(), *calls))


def torch_baseline(**flags: Any) -> TorchBaseline:
    return TorchBaseline(FakeTorch(FakeMatmulFlags(**flags)))


PROBLEMS = [
    Problem(m=5, n=3, k=4, layout="NN"),
    Problem(m=5, n=3, k=4, layout="NT", lda=9, ldb=6, ldd=7),
    Problem(m=5, n=3, k=4, layout="TN", lda=8, ldb=5, ldd=4, alpha=-0.5),
    Problem(m=2, n=7, k=3, layout="TT", alpha=2.0, beta=0.5, ldc=9, ldd=8),
    Problem(m=2, n=3, k=5, layout="NT", batch=3, beta=-1.0, batch_stride_a=40, ldd=5),
    Problem(m=4, n=2, k=3, layout="TN", batch=2, batch_stride_b=0),
    Problem(m=1, n=1, k=1),
]


@pytest.mark.parametrize("make", [cublas_baseline, torch_baseline])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_a_baseline_reads_and_writes_exactly_the_problem(make: Callable[[], Any], problem: Problem) -> None:
    rng = np.random.default_rng(5)
    buffers = {x: rng.integers(-8, 9, problem.total_extent(x)).astype(np.float32) for x in "abc"}
    buffers["d"] = np.full(problem.total_extent("d"), np.nan, np.float32)
    before = {x: buffer.copy() for x, buffer in buffers.items()}
    addresses = [buffers[x].ctypes.data for x in "abcd"]
    make().gemm(problem, *addresses, STREAM)

    expected = before["d"].copy()
    for i in range(problem.batch):
        stored = {}
        for x in "abcd":
            buffer = expected if x == "d" else before[x]
            start = i * getattr(problem, f"batch_stride_{x}")
            ld = getattr(problem, f"ld{x}")
            stored[x] = np.lib.stride_tricks.as_strided(buffer[start:], problem.stored_shape(x), (4 * ld, 4))
        a = stored["a"].T if problem.layout[0] == "T" else stored["a"]
        b = stored["b"].T if problem.layout[1] == "T" else stored["b"]
        stored["d"][:] = np.float32(problem.alpha) * (a @ b)
        if problem.reads_c:
            stored["d"][:] += np.float32(problem.beta) * stored["c"]
    np.testing.assert_array_equal(buffers["d"], expected)
    for x in "abc":
        np.testing.assert_array_equal(buffers[x], before[x])


@pytest.mark.parametrize("make", [cublas_baseline, torch_baseline])
def test_a_baseline_accumulates_where_c_is_d(make: Callable[[], Any]) -> None:
    a, b, d = (np.full(4, x, np.float32) for x in (1.0, 2.0, 10.0))
    problem = Problem(m=2, n=2, k=2, beta=0.5)
    make().gemm(problem, a.ctypes.data, b.ctypes.data, d.ctypes.data, d.ctypes.data, STREAM)
    np.testing.assert_array_equal(d, np.full(4, 9.0, np.float32))


@pytest.mark.parametrize(("in_place", "copies"), [(True, 0), (False, 1)])
def test_cublas_copies_c_only_where_it_lies_apart_from_d(in_place: bool, copies: int) -> None:
    fake = FakeCublas()
    a, b, c, d = (np.ones(4, np.float32) for _ in range(4))
    out = c if in_place else d
    addresses = (a.ctypes.data, b.ctypes.data, c.ctypes.data, out.ctypes.data)
    cublas_baseline(fake).gemm(Problem(m=2, n=2, k=2, beta=1.0), *addresses, STREAM)
    assert fake.copies == copies
    assert (out == 3.0).all()


@pytest.mark.parametrize("make", [cublas_baseline, torch_baseline])
@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (Problem(m=2, n=2, k=0), "k=0"),
        (Problem(m=2, n=2, k=2, epilogue=Epilogue(("relu",))), "relu"),
    ],
)
def test_a_baseline_refuses_what_cublas_alone_does_not_do(make: Callable[[], Any], problem: Problem, says: str) -> None:
    with pytest.raises(InvalidProblem, match=says):
        make().gemm(problem, 0, 0, 0, 0, STREAM)


def test_torch_views_are_made_once_for_a_problem_and_its_addresses() -> None:
    torch = FakeTorch()
    baseline = TorchBaseline(torch)
    a, b, d, other = (np.ones(4, np.float32) for _ in range(4))
    for out in (d, d, other, d):
        baseline.gemm(Problem(m=2, n=2, k=2), a.ctypes.data, b.ctypes.data, 0, out.ctypes.data, STREAM)
    assert torch.views == 6
    assert torch.streams == [77] * 4


@pytest.mark.parametrize("make", [cublas_baseline, torch_baseline])
def test_an_ieee_baseline_is_proved(make: Callable[[], Any]) -> None:
    prove_ieee(make(), HostBackend(), STREAM)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "flags",
    [{"legacy": True, "newer": "tf32"}, {"newer": "tf32"}, {"general": "tf32"}, {"newer": "ieee", "general": "tf32"}],
)
def test_torch_multiplies_in_ieee_and_the_users_setting_stays(flags: dict[str, Any]) -> None:
    baseline, untouched = torch_baseline(**flags), vars(FakeMatmulFlags(**flags))
    prove_ieee(baseline, HostBackend(), STREAM)  # type: ignore[arg-type]
    assert vars(baseline._torch.flags) == untouched


@pytest.mark.parametrize("make", [cublas_baseline, torch_baseline])
def test_a_baseline_asked_for_tf32_is_proved_and_the_next_product_is_ieee_again(make: Callable[[], Any]) -> None:
    baseline = make()
    prove_tf32(baseline, HostBackend(), STREAM)  # type: ignore[arg-type]
    prove_ieee(baseline, HostBackend(), STREAM)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "flags",
    [{}, {"newer": "ieee"}, {"legacy": True, "newer": "tf32"}, {"general": "tf32"}],
)
def test_torch_multiplies_in_tf32_and_the_users_setting_stays(flags: dict[str, Any]) -> None:
    baseline, user = torch_baseline(**flags), FakeMatmulFlags(**flags)
    prove_tf32(baseline, HostBackend(), STREAM)  # type: ignore[arg-type]
    assert baseline._torch.flags.fp32_precision in (user.fp32_precision, "ieee")
    assert baseline._torch.flags.tf32 == user.tf32


def test_a_baseline_that_stays_in_ieee_is_no_match_for_tf32() -> None:
    class Unmoved(FakeCublas):
        def set_math_mode(self, handle: int, mode: int) -> None:
            pass

    with pytest.raises(WrongResult, match=r"came back exact .* does not multiply in TF32"):
        prove_tf32(cublas_baseline(Unmoved()), HostBackend(), STREAM)  # type: ignore[arg-type]


def test_the_users_setting_comes_back_when_the_product_fails() -> None:
    torch = FakeTorch(FakeMatmulFlags(legacy=True, newer="tf32"))
    torch.general = "medium"
    with pytest.raises(ZeroDivisionError), float32_precision(torch, tf32=False):
        assert not torch.flags.tf32
        raise ZeroDivisionError
    assert torch.flags.allow_tf32
    assert torch.general == "medium"


def test_tf32_that_cannot_be_turned_off_is_found() -> None:
    class Forced(FakeMatmulFlags):
        tf32 = True
        allow_tf32 = False

    baseline = TorchBaseline(FakeTorch(Forced()))
    with pytest.raises(WrongResult, match=r"1024\.5 · 1 came back as 1024\.0.*NVIDIA_TF32_OVERRIDE"):
        prove_ieee(baseline, HostBackend(), STREAM)  # type: ignore[arg-type]


def test_without_any_library_the_reason_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "cupy", "nvmath", "nvmath.bindings.cublas"):
        monkeypatch.setitem(sys.modules, name, None)
    baseline, reason = find_baseline()
    assert baseline is None
    assert "torch: " in reason and "cupy: " in reason and "nvmath: " in reason
    assert 'pip install "tilewright[baseline]"' in reason


def test_a_torch_without_a_gpu_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", blind)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "nvmath.bindings.cublas", None)
    assert "sees no CUDA device" in find_baseline()[1]


def test_torch_comes_first_where_it_has_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = FakeTorch()
    torch.cuda.is_available = lambda: True
    monkeypatch.setitem(sys.modules, "torch", torch)
    baseline, reason = find_baseline()
    assert baseline is not None
    assert (baseline.name, baseline.version, reason) == ("cuBLAS (torch)", "torch 2.11.0, CUDA 13.0", "")
