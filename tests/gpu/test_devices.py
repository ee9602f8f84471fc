"""More than one GPU: a launch goes where the arrays are, and leaves the caller's device alone."""

import pytest

from tilewright import gemm
from tilewright.errors import InvalidProblem, NoDevice
from tilewright.run.cuda import CudaBackend, probe

pytestmark = pytest.mark.gpu


@pytest.fixture
def torch():
    if len(probe()) < 2:
        pytest.skip("needs two GPUs")
    return pytest.importorskip("torch")


def on(torch, device: int):
    a = torch.ones((128, 32), device=f"cuda:{device}")
    b = torch.full((32, 64), 2.0, device=f"cuda:{device}")
    return a, b, torch.full((128, 64), float("nan"), device=f"cuda:{device}")


def test_arrays_on_another_device_run_there_and_the_current_one_stays(torch):
    torch.cuda.set_device(0)
    for device in (0, 1, 0, 1):
        a, b, out = on(torch, device)
        gemm(a, b, out=out, rung="k08")
        torch.cuda.synchronize(device)
        assert bool((out == 64).all())
        assert torch.cuda.current_device() == 0


def test_operands_on_two_devices_are_refused(torch):
    a, _, out = on(torch, 0)
    _, b, _ = on(torch, 1)
    with pytest.raises(InvalidProblem, match="different devices"):
        gemm(a, b, out=out, rung="k08")


def test_the_opt_in_above_48_kb_is_made_on_each_device(torch):
    from tilewright.compile.binary import KernelSource
    from tilewright.compile.nvrtc import compile_cubin
    from tilewright.run.args import GemmArgs
    from tilewright.run.protocol import Grid

    text = (
        '#include "tilewright/memory.cuh"\n#include "tilewright/scalar.cuh"\nusing Scalar = tilewright::F32;\n'
        '#include "tilewright/args.cuh"\n'
        'extern "C" __global__ void last(const __grid_constant__ tilewright::GemmArgs args) {\n'
        "  auto* all = reinterpret_cast<float*>(tilewright::dynamic_smem());\n"
        "  all[16383] = 7.0f;\n  args.d[0] = all[16383];\n}\n"
    )
    for device in (0, 1):
        with CudaBackend(device) as gpu:
            binary = compile_cubin(KernelSource("last", "last", text, "last.cu"), gpu.arch)
            d = gpu.alloc(4, label="D")
            gpu.launch(binary, Grid((1, 1, 1), (1, 1, 1), 65536), GemmArgs(d=d.address))
            assert gpu.download(d).view("float32")[0] == 7.0


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(NoDevice, match="device 99: this machine has"):
        CudaBackend(99)


@pytest.mark.parametrize("device", [0, 1])
def test_the_ladder_measures_every_arm_on_the_device_named(device, capsys):
    import json

    from tilewright.lab.ladder_command import LadderRequest, run_ladder

    if device >= len(probe()):
        pytest.skip("needs two GPUs")
    request = LadderRequest(512, 512, 512, ["k02", "k08"], [], "sm_90a", "cuda", device, 20, 10.0)
    assert run_ladder(request, as_json=True) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["rung"] for row in record["rows"]] == ["k02_coalesced", "k08_warp_tile", "cuBLAS"]
    for row in record["rows"]:
        assert row["verified"] and row["time_us"] > 0 and len(row["samples_us"]) >= 20
    ratio = record["rows"][1]["ratio_to_baseline"]
    assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"] < 2
    assert record["environment"]["measurement"]["median_sm_mhz"] > 0
