"""A suite's GPU, with the emulator in its place: one memory for all shapes, checks and times on the right operands."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from tilewright.arch import get_arch
from tilewright.compile.host import compile_host, host_source
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidInput, InvalidProblem
from tilewright.lab import suite_gpu
from tilewright.lab.measuring import Effort
from tilewright.lab.suite_gpu import GpuSuite, layout_of
from tilewright.lab.suite_machine import Call
from tilewright.lab.verifying import rolled_binary
from tilewright.measure import Arm
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.kernel import bind
from tilewright.verify.freivalds import GUARD

K02, K04 = (rung_config(all_rungs().find(name)) for name in ("k02", "k04"))
FREE_BYTES = 1 << 20
SMALL, LARGE = Problem(m=33, n=20, k=17), Problem(m=64, n=40, k=24)


class EmulatedGpu(EmulatorBackend):
    """The emulator with what a suite asks of a GPU beside a backend. Remembers where launches found their operands."""

    arch, stream = get_arch("sm_90a"), "a stream"

    def __init__(self):
        super().__init__()
        properties = SimpleNamespace(l2_cache_size=4096)
        self.device = SimpleNamespace(name="NVIDIA H200", uuid="1", pci_bus_id="0", properties=properties)
        self.launched = []

    def current(self):
        return contextlib.nullcontext()

    def free_bytes(self):
        return FREE_BYTES

    def launch(self, binary, grid, args, *, stream=None):
        if hasattr(args, "lda"):
            self.launched.append((binary.entry, args.a, args.d))
        super().launch(binary, grid, args)

    def stream_handle(self, stream=None):
        return stream


class Baseline:
    """Multiplies by k02; `off` puts its result so many bytes too far."""

    name, version = "cuBLAS (made up)", "1"

    def __init__(self, gpu):
        self.gpu, self.off = gpu, 0

    def gemm(self, problem, a, b, c, d, stream):
        assert stream == "a stream"
        bind(K02, problem, self.gpu, compiled=rolled_binary)(a=a, b=b, c=c, d=d + self.off)


class PlainTimer:
    """Runs batches at once; each takes 2 ms, so that one launch is a sample."""

    captured: ClassVar[list] = []

    def __init__(self, stream):
        self.s = 0.0

    def now_s(self):
        self.s += 0.02
        return self.s

    def time_us(self, batches, during):
        for batch in batches:
            batch("a stream")
        during()
        return [2000.0] * len(batches)

    def idle(self, seconds):
        self.s += seconds

    def capture(self, batch):
        self.captured.append(batch)
        return batch


@pytest.fixture
def suite(monkeypatch):
    monkeypatch.setattr(suite_gpu, "compile_cubin", lambda source, arch: compile_host(host_source(source)))
    monkeypatch.setattr(suite_gpu, "device_clocks", lambda gpu: SimpleNamespace(read=lambda: None, reason=""))
    monkeypatch.setattr(suite_gpu, "CudaTimer", PlainTimer)
    monkeypatch.setattr(PlainTimer, "captured", [])
    proved = []
    monkeypatch.setattr(suite_gpu, "prove_ieee", lambda baseline, gpu, stream: proved.append("float32"))
    with EmulatedGpu() as gpu:
        baseline = Baseline(gpu)
        made = GpuSuite(gpu, baseline, [SMALL, LARGE])
        yield SimpleNamespace(machine=made, gpu=gpu, baseline=baseline, proved=proved, captured=PlainTimer.captured)


def test_one_memory_serves_every_shape_and_what_is_larger_is_refused(suite):
    assert suite.machine.card == "H200"
    for problem in (SMALL, LARGE):
        suite.machine.open(problem)
    with pytest.raises(InvalidProblem, match="of NVIDIA H200 memory"):
        suite.machine.open(Problem(m=300, n=300, k=300))


def test_right_products_pass_ours_and_the_baselines_which_is_proved_once(suite):
    for problem in (SMALL, LARGE):
        suite.machine.open(problem)
        assert [suite.machine.complaint(problem, config) for config in (K02, K04, None)] == ["", "", ""]
    assert suite.proved == ["float32"]


def test_a_product_in_the_wrong_place_does_not_pass(suite):
    suite.machine.open(SMALL)
    suite.baseline.off = 4
    assert suite.machine.complaint(SMALL, None) == "wrote outside D: after"
    suite.baseline.off = -4 * SMALL.n
    assert suite.machine.complaint(SMALL, None) == "wrote outside D: before"


@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_times_are_taken_over_every_set_on_numbers_that_are_no_integers_and_checks_find_theirs_again(suite, launch):
    suite.machine.open(LARGE)
    suite.gpu.launched.clear()
    screened = suite.machine.screen(LARGE, K04, None, launch)
    assert screened.time_us > 0 and bool(suite.captured) == (launch == "graph")
    starts = {a for _, a, _ in suite.gpu.launched}
    assert len(starts) == 2  # twice the small L2 passes between two uses
    a = suite.gpu.download(suite.machine._memory).view(np.float32)[: LARGE.m * LARGE.k]
    assert -1.0 <= a.min() < -0.9 and 0.9 < a.max() <= 1.0 and len(np.unique(a)) > 0.99 * a.size
    assert suite.machine.complaint(LARGE, K04) == ""


def test_arms_and_the_baseline_are_timed_on_the_same_sets(suite):
    suite.machine.open(SMALL)
    suite.gpu.launched.clear()
    samples = suite.machine.time(SMALL, {"chosen": K04}, Effort(2, 0.1), with_baseline=True)
    assert set(samples.times_us) == {"chosen", BASELINE, f"{BASELINE} (A/A control)"} and samples.slots >= 2
    places = {a for a, *_ in suite.machine._sets(SMALL)}
    assert {name for name, _, _ in suite.gpu.launched} == {K02.rung.name, K04.rung.name}
    assert {a for _, a, _ in suite.gpu.launched} <= places


class Calls:
    """Library calls and torch's product by k04 and k02; launched only while they are current."""

    def __init__(self, suite):
        self.suite, self.inside, self.called = suite, False, []

    @contextlib.contextmanager
    def current(self, problem, stream):
        assert stream == "a stream"
        self.inside = True
        yield
        self.inside = False

    def arm(self, label, call, problem, sets):
        return self._arm(label, K04, call, problem, sets)

    def baseline_arm(self, problem, sets):
        return self._arm(BASELINE, K02, "torch.mm", problem, sets)

    def plan(self, call, problem, addresses):
        assert self.inside
        return f"{call} at {addresses[0]}"

    def _arm(self, label, config, called, problem, sets):
        gpu = self.suite.gpu

        def launch(slot, stream):
            assert self.inside
            self.called.append((called, slot))
            a, b, c, d = sets[slot]
            bind(config, problem, gpu, compiled=rolled_binary)(a=a, b=b, c=c, d=d)

        return Arm(label, launch)


@pytest.mark.parametrize("launch", ["stream", "graph"])
def test_library_calls_are_checked_and_timed_beside_the_frameworks_product_on_the_same_sets(suite, launch):
    calls, call = Calls(suite), Call("own")
    machine = GpuSuite(suite.gpu, suite.baseline, [SMALL], calls=calls)
    machine.open(SMALL)
    assert [machine.complaint(SMALL, launched) for launched in (call, None)] == ["", ""]
    assert [called for called, _ in calls.called] == [call, "torch.mm"] and suite.proved == ["float32"]
    assert machine.plan(SMALL, call).startswith("Call(kernels='own') at")
    samples = machine.time(SMALL, {"chosen": call}, Effort(2, 0.1, launch=launch), with_baseline=True)
    assert (samples.launch, bool(suite.captured)) == (launch, launch == "graph")
    assert len({slot for called, slot in calls.called if called == call}) > 1
    assert set(samples.host_us) == set(samples.times_us) == {"chosen", BASELINE, f"{BASELINE} (A/A control)"}


def test_a_suite_that_was_opened_without_calls_takes_none(suite):
    suite.machine.open(SMALL)
    with pytest.raises(InvalidInput, match="needs torch's tensors"):
        suite.machine.complaint(SMALL, Call("all"))


def test_operands_are_aligned_and_guards_are_nobodys():
    layout = layout_of(Problem(m=3, n=5, k=7, dtype="bfloat16", out_dtype="bfloat16"))
    assert all(offset % 256 == 0 for offset in (layout.a, layout.b, layout.d, layout.stride))
    assert layout.d - layout.b >= 2 * 5 * 7 + 2 * GUARD and layout.stride - layout.d >= 2 * 15 + 2 * GUARD


def test_without_a_baseline_or_for_what_it_cannot_multiply_there_is_none(suite):
    assert suite.machine.has_baseline(SMALL)
    assert not suite.machine.has_baseline(Problem(m=8, n=8, k=8, dtype="bfloat16", out_dtype="float32"))
    assert not GpuSuite(suite.gpu, None, [SMALL]).has_baseline(SMALL)
