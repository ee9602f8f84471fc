"""What a measurement leaves in records: its conditions, the A/A floor, and nothing where the card was throttled."""

from __future__ import annotations

import json
from types import SimpleNamespace

import cuda.bindings
import numpy as np
import pytest
from typer.testing import CliRunner

from tilewright.arch import get_arch
from tilewright.cli import app
from tilewright.errors import InvalidInput, LaunchFailed
from tilewright.lab import gpu_environment as environment_module
from tilewright.lab.gpu_environment import gpu_environment
from tilewright.lab.measuring import fill_times
from tilewright.lab.notes import measurement_notes
from tilewright.measure import ClockReading, Samples
from tilewright.measure import ring as ring_module
from tilewright.measure.baseline import BASELINE
from tilewright.measure.graph import Replay
from tilewright.measure.ring import OperandRing
from tilewright.problem import Problem
from tilewright.record import Record, Row

SIZES = Problem(m=16, n=16, k=16)
CLOCKS = SimpleNamespace(reason="", power_limit_w=lambda: 700.0, processes=lambda: 1)


class Gpu:
    """What rings and environments ask of a GPU."""

    arch, sm_count, driver_version = get_arch("sm_90a"), 132, "13.0"

    def __init__(self, l2_bytes: int = 10_000) -> None:
        properties = SimpleNamespace(l2_cache_size=l2_bytes)
        self.device = SimpleNamespace(name="a card", uuid="1234", pci_bus_id="0000:01:00.0", properties=properties)
        self.allocated = 0

    def alloc(self, nbytes: int, *, label: str) -> SimpleNamespace:
        self.allocated += nbytes
        return SimpleNamespace(address=self.allocated, nbytes=nbytes)

    def upload(self, memory: SimpleNamespace, host: np.ndarray) -> None:
        assert host.nbytes == memory.nbytes


def samples(**changes) -> Samples:
    times = {"k08": (50.0,) * 20, BASELINE: (40.0,) * 20, f"{BASELINE} (A/A control)": (40.1,) * 20}
    settings = {"times_us": times, "order": (tuple(times),) * 20, "inner": dict.fromkeys(times, 8), "slots": 8}
    settings |= {"seed": 1, "stop": "precision", "warm": True, "rejected_rounds": 0, "baseline": BASELINE}
    settings |= {"clocks": (ClockReading(1980, 3201, 600.0, 55),) * 20, "host_us": dict.fromkeys(times, 4.5)}
    return Samples(**{**settings, **changes})


@pytest.fixture
def measured(monkeypatch):
    """A record's environment and the lines printed under its table."""
    monkeypatch.setattr(environment_module, "open_clocks", lambda **_: CLOCKS)

    def environment(taken: Samples | None, no_clocks: str = "") -> tuple[dict, str]:
        found = gpu_environment(Gpu(), taken, no_clocks, data="uniform", cache="cold")
        return json.loads(json.dumps(found)), "\n".join(measurement_notes(Record(command="ladder", environment=found)))

    return environment


def test_every_figure_has_its_conditions_beside_it(measured):
    environment, printed = measured(samples(mode="burst", idle_s=0.1, launch="graph"))
    taken = environment["measurement"]
    assert {name: taken[name] for name in ("mode", "cache", "idle_s", "launch")} == {
        **{"mode": "burst", "cache": "cold", "idle_s": 0.1, "launch": "graph"},
    }
    assert taken["temperature_c"] == [55] * 20 and taken["power_w"] == [600.0] * 20
    assert (environment["device"]["power_limit_w"], environment["device"]["compute_processes"]) == (700.0, 1)
    assert "20 rounds of CUDA graph replays, burst, operands cold over 8 buffer sets" in printed


def test_the_aa_floor_is_recorded_and_printed(measured):
    environment, printed = measured(samples())
    aa = 40.0 / 40.1
    assert environment["measurement"]["aa"] == {"low": pytest.approx(aa), "median": pytest.approx(aa), "high": aa}
    assert "A/A floor 0.25%: cuBLAS ran twice a round and came out at 99.75 [99.75, 99.75] % of itself" in printed


def test_without_a_baseline_there_is_no_floor_to_print(measured):
    environment, printed = measured(samples(baseline=None))
    assert environment["measurement"]["aa"] is None and "A/A" not in printed
    assert measured(None)[1] == ""


def test_how_launches_were_queued_and_why_there_are_no_clocks_is_said(measured):
    _, printed = measured(samples(clocks=(None,) * 20), "no NVML here")
    assert "20 rounds of launches on a stream, steady" in printed and "no % of peak: no NVML here" in printed


def test_a_row_has_its_time_ratio_and_host_time():
    row = Row(rung="k08", problem={})
    fill_times(row, samples(), SIZES, 60.0)
    assert (row.time_us, row.host_us, row.inner, row.launch, row.outcome) == (50.0, 4.5, 8, "stream", None)
    assert row.ratio_to_baseline is not None and row.ratio_to_baseline.median == pytest.approx(0.8)


def test_a_throttled_row_keeps_its_samples_and_claims_no_time(measured):
    row = Row(rung="k08", problem={})
    taken = samples(stop="throttled", rejected_rounds=20)
    fill_times(row, taken, SIZES, 60.0)
    assert (row.outcome, row.time_us, row.tflops, row.ratio_to_baseline) == ("throttled", None, None, None)
    assert row.samples_us == [50.0] * 20
    assert "no times: 20 rounds fell to thermal or hardware slowdown" in measured(taken)[1]


@pytest.mark.parametrize(("cache", "slots"), [("cold", 8), ("warm", 1)])
def test_a_ring_is_as_long_as_the_cache_state_asks(cache, slots):
    ring = OperandRing(SIZES, Gpu(), cache)
    assert (ring.slots, ring.cache) == (slots, cache)


def test_a_ring_that_cannot_outlast_the_l2_says_that_it_is_warm(monkeypatch):
    monkeypatch.setattr(ring_module, "MAX_SLOTS", 3)
    ring = OperandRing(SIZES, Gpu(), "cold")
    assert (ring.slots, ring.cache) == (3, "warm")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (["--mode", "hot"], "steady, burst"),
        (["--cache", "hot"], "cold, warm"),
        (["--launch", "hot"], "launch 'hot': must be one of stream, graph"),
        (["--launch", "stream", "--mode", "sustained"], "launch 'stream' in mode sustained"),
    ],
)
def test_another_mode_launch_mode_or_cache_state_is_refused_before_anything_runs(option, says):
    done = CliRunner().invoke(app, ["ladder", *option])
    assert done.exit_code == 2 and says in done.stderr
    with pytest.raises(InvalidInput, match="cache 'hot'"):
        OperandRing(SIZES, Gpu(), "hot")


# --- graphs, on a stand-in for the driver


class Driver:
    """Records its calls; every one succeeds."""

    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed")

    def __init__(self) -> None:
        self.calls: list[tuple] = []
        self.results = {"cuStreamEndCapture": "graph", "cuGraphInstantiate": "executable"}

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, *args))
            return (0, self.results[name]) if name in self.results else (0,)

        return call


@pytest.fixture
def driver(monkeypatch):
    fake = Driver()
    monkeypatch.setattr(cuda.bindings, "driver", fake)
    return fake


def test_a_batch_is_captured_once_replayed_at_will_and_freed(driver):
    stream = SimpleNamespace(handle=7)
    replay = Replay(stream, lambda s: driver.calls.append(("queued on", s.handle)))
    replay(stream)
    replay(SimpleNamespace(handle=9))
    del replay
    assert driver.calls == [
        ("cuStreamBeginCapture", 7, "relaxed"),
        ("queued on", 7),
        ("cuStreamEndCapture", 7),
        ("cuGraphInstantiate", "graph", 0),
        ("cuGraphDestroy", "graph"),
        ("cuGraphUpload", "executable", 7),
        ("cuGraphLaunch", "executable", 7),
        ("cuGraphLaunch", "executable", 9),
        ("cuGraphExecDestroy", "executable"),
    ]


def test_a_batch_that_cannot_be_captured_ends_the_capture_and_says_why(driver):
    def waits(stream):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    with pytest.raises(LaunchFailed, match=r"graph: operation not permitted when stream is capturing$"):
        Replay(SimpleNamespace(handle=7), waits)
    assert driver.calls[-1] == ("cuStreamEndCapture", 7)
