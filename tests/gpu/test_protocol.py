"""The measuring protocol on a card: graphs that compute the same, conditions that are named. `pytest -m gpu`."""

import json

import numpy as np
import pytest

from tilewright.declare import all_rungs, rung_config
from tilewright.lab.ladder_command import LadderRequest, run_ladder
from tilewright.lab.verifying import cubin
from tilewright.measure import CudaTimer, find_baseline, measure
from tilewright.measure.ring import OperandRing
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.run.kernel import bind

pytestmark = pytest.mark.gpu
SMALL = Problem(m=256, n=256, k=256)
K08 = rung_config(all_rungs().find("k08"))


@pytest.fixture
def gpu():
    with CudaBackend() as backend:
        yield backend


def baseline():
    found, why = find_baseline()
    return found or pytest.skip(why)


@pytest.mark.parametrize("arm", ["k08", "cuBLAS"])
def test_a_replayed_graph_computes_what_it_captured(gpu, arm):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 9, (256, 256)).astype(np.float32) for _ in "ab")
    memory = [gpu.alloc(x.nbytes, label="AB") for x in (a, b)]
    d = gpu.alloc(a.nbytes, label="D")
    for device, host in zip(memory, (a, b), strict=True):
        gpu.upload(device, host.reshape(-1).view(np.uint8))
    addresses = {"a": memory[0].address, "b": memory[1].address, "c": 0, "d": d.address}
    if arm == "k08":
        kernel = bind(K08, SMALL, gpu)

        def launch(stream):
            kernel(**addresses, stream=stream)
    else:
        library = baseline()

        def launch(stream):
            library.gemm(SMALL, *addresses.values(), stream)

    with gpu.current():
        launch(gpu.stream)
        replay = CudaTimer(gpu.stream).capture(lambda stream: [launch(stream) for _ in range(3)])
        gpu.upload(d, np.full(d.nbytes, 0xFF, np.uint8))
        replay(gpu.stream)
    assert np.array_equal(gpu.download(d).view(np.float32).reshape(256, 256), a @ b)


@pytest.mark.parametrize("mode", ["steady", "burst"])
@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_arms_are_replayed_in_every_mode(gpu, mode, cache):
    ring = OperandRing(SMALL, gpu, cache)
    arms = [ring.config_arm("k08", K08, cubin(K08, SMALL, gpu.arch)), ring.baseline_arm("cuBLAS", baseline())]
    with gpu.current():
        settings = {"slots": ring.slots, "baseline": "cuBLAS", "mode": mode, "launch": "graph"}
        taken = measure(arms, CudaTimer(gpu.stream), rounds=20, seed=1, budget_s=10.0, **settings)
    assert (taken.launch, ring.cache) == ("graph", cache)
    assert all(count % ring.slots == 0 for count in taken.inner.values())
    assert taken.aa is not None and all(us > 0 for us in taken.host_us.values())
    assert (taken.idle_s > 0) == (mode == "burst")


def test_the_ladders_record_names_the_card_its_limit_and_the_floor(capsys):
    request = LadderRequest(1024, 1024, 1024, ["k08"], [], "sm_90a", "cuda", 0, 20, 10.0)
    assert run_ladder(request, as_json=True) == 0
    record = json.loads(capsys.readouterr().out)
    device, taken = (record["environment"][name] for name in ("device", "measurement"))
    assert device["power_limit_w"] > 0 and device["compute_processes"] is not None
    assert (taken["mode"], taken["cache"]) == ("steady", "cold")
    assert taken["aa"]["low"] <= taken["aa"]["median"] <= taken["aa"]["high"] and taken["aa_floor"] > 0
    assert all(reading is not None for reading in taken["temperature_c"])
    assert all(row["host_us"] > 0 for row in record["rows"])
