"""Rung 21's way out: results through outboxes and TMA, beside the next tile's FMAs, at edges and with tiles in turn."""

from dataclasses import replace

import pytest

from tilewright.compile.host import compile_host, host_source
from tilewright.compile.traced import compile_traced
from tilewright.declare import all_rungs, rung_config
from tilewright.emulator.tracing import Watch
from tilewright.errors import LaunchFailed
from tilewright.problem import Problem
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.tracing import TracingBackend
from tilewright.verify import verify
from tilewright.verify.device import DeviceRuns
from tilewright.verify.operands import make_operands

SMALL = {"BM": 64, "BN": 64, "WM": 32, "WN": 32, "TM": 8, "TN": 4, "STAGES": 4, "MATH_REGISTERS": 256}
CONFIG = rung_config(all_rungs().find("k21"), SMALL)
SETTINGS = [("default", "latest"), ("reverse", "earliest"), ("random", "random")]
PROBLEMS = [
    Problem(m=200, n=196, k=40),  # twelve tiles, the last of each way cut, for two CTAs
    Problem(m=130, n=68, k=16, beta=1.0),  # one step along k, C read inside D alone
    Problem(m=65, n=132, k=24, alpha=0.5, beta=2.0, batch=3, layout="NT"),
    Problem(m=128, n=192, k=64),  # whole tiles
    Problem(m=70, n=100, k=0, beta=1.0),  # no step along k
]


def run_of(backend, compiled=compile_host, edit=lambda text: text):
    """CONFIG on the emulator, its kernel's text edited."""

    def binary(source):
        return compiled(host_source(replace(source, text=edit(source.text))))

    return DeviceRuns(backend).of(CONFIG, compiled=binary, sm_count=2)


@pytest.mark.parametrize("setting", SETTINGS, ids=" ".join)
def test_results_that_leave_by_tma_are_exact(setting):
    schedule, completion = setting
    assert all(CONFIG.problem_constants(problem)["TMA_OUTPUT"] for problem in PROBLEMS)
    with EmulatorBackend(schedule=schedule, async_completion=completion, seed=4, workers=2) as backend:
        verify(run_of(backend), PROBLEMS, layers=("integer",)).raise_if_wrong()


@pytest.mark.parametrize("n", [66, 67])
def test_rows_that_tma_does_not_take_are_written_as_before(n):
    problem = Problem(m=70, n=n, k=20)
    assert not CONFIG.problem_constants(problem)["TMA_OUTPUT"]
    with EmulatorBackend(workers=2) as backend:
        verify(run_of(backend), [problem], layers=("integer",)).raise_if_wrong()


REMOVALS = {
    "the outbox is filled again while TMA reads it": "if (lane == 0) tma_wait_read<0>();",
    "TMA reads what no fence has shown it": "fence_proxy_async();",
    "the outbox ends with the CTA while TMA reads it": "if (TMA_OUTPUT && threadIdx.x % 32 == 0) tma_wait_read<0>();",
    "TMA reads the outbox before all lanes have filled it": """\
  __syncwarp();
  if (lane == 0) {
    for""",
}


def findings(edit):
    """What the checks find of the first problem, in all settings."""
    found = []
    for schedule, completion in SETTINGS:
        with TracingBackend(Watch(checks=True), schedule=schedule, async_completion=completion, seed=4) as backend:
            try:
                run_of(backend, compile_traced, edit)(PROBLEMS[0], make_operands(PROBLEMS[0], "integer"))
            except LaunchFailed as error:
                found.append(error)
            found += [finding for trace in backend.traces for finding in trace.findings]
    return found


def test_the_checks_find_nothing():
    assert not findings(lambda text: text)


@pytest.mark.parametrize("line", REMOVALS.values(), ids=REMOVALS)
def test_an_outbox_without_one_of_its_waits_or_fences_is_found(line):
    def without(text):
        assert text.count(line) == 1
        return text.replace(line, line.replace("__syncwarp();", "") if "__syncwarp" in line else "")

    assert findings(without)
