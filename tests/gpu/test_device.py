"""What only a GPU can show: results, bits, streams, the shared-memory opt-in. Run with `pytest -m gpu`."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from tilewright import gemm
from tilewright.compile.binary import KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.declare import all_rungs, rung_config
from tilewright.declare.tensor_map import ELEMENT_BYTES, TensorMap
from tilewright.errors import InvalidProblem, LaunchFailed
from tilewright.lab.verifying import Setting, emulator_run, sweep
from tilewright.problem import Problem
from tilewright.run.args import gemm_args
from tilewright.run.cuda import CudaBackend
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Grid
from tilewright.run.tensor_map import encode_for_driver
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import Verdict
from tilewright.verify.operands import bits, make_operands

pytestmark = pytest.mark.gpu
KERNELS = Path(__file__).parent.parent / "kernels"
RUNGS = pytest.mark.parametrize("rung", all_rungs().values(), ids=lambda r: r.name)
CUDA = Setting("GPU", CudaBackend)


@RUNGS
def test_every_rung_passes_every_layer(rung):
    Verdict(tuple(sweep(rung_config(rung), CUDA))).raise_if_wrong()


@RUNGS
def test_emulator_and_gpu_give_the_same_bits(rung):
    config = rung_config(rung)
    exact = "float32" not in rung.requires.dtypes  # a tensor core truncates what it adds
    scales = {"alpha": 2.0, "beta": -1.0} if exact else {"alpha": 1.25, "beta": -0.75}
    problem = Problem(m=128, n=128, k=96, **scales, **rung.requires.usual._asdict())
    operands = make_operands(problem, "integer" if exact else "wide_range", seed=5)
    with CudaBackend() as gpu, EmulatorBackend() as emulator:
        on_gpu = DeviceRuns(gpu).of(config)(problem, operands).d
        emulated = emulator_run(config, emulator)(problem, operands).d
    assert np.array_equal(bits(on_gpu), bits(emulated))


@pytest.mark.parametrize("stages", [3, 8])
def test_asynchronous_copies_and_the_opt_in_above_48_kb(stages):
    """Eight stages of two 32×32 tiles are 64 KiB of dynamic shared memory."""
    text = (KERNELS / "pipeline.cu").read_text(encoding="utf-8").replace("STAGES = 3", f"STAGES = {stages}")
    a, b = (
        np.random.default_rng(i).integers(-8, 9, s).astype(np.float32) for i, s in enumerate(((70, 301), (301, 45)))
    )
    with CudaBackend() as gpu:
        binary = compile_cubin(KernelSource("pipeline", "pipeline", text, "pipeline.cu"), gpu.arch)
        memory = [gpu.alloc(x.nbytes, label="AB") for x in (a, b)]
        for device, host in zip(memory, (a, b), strict=True):
            gpu.upload(device, host.reshape(-1).view(np.uint8))
        d = gpu.alloc(70 * 45 * 4, label="D")
        args = gemm_args(Problem(m=70, n=45, k=301), a=memory[0].address, b=memory[1].address, c=0, d=d.address)
        gpu.launch(binary, Grid((2, 3, 1), (16, 16, 1), stages * 8192), args)
        assert np.array_equal(gpu.download(d).view(np.float32).reshape(70, 45), a @ b)


def torch_product(m, n, k, seed=0):
    torch = pytest.importorskip("torch")
    make = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.randint(-8, 9, (m, k), generator=make, device="cuda").float()
    b = torch.randint(-8, 9, (k, n), generator=make, device="cuda").float()
    return torch, a, b, torch.full((m, n), float("nan"), device="cuda")


@pytest.mark.parametrize("rung", [r for r in all_rungs().values() if r.track == "simt"], ids=lambda r: r.name)
def test_torch_tensors_stay_where_they_are(rung):
    torch, a, b, out = torch_product(256, 128, 64)
    assert gemm(a, b, out=out, rung=rung) is out
    torch.cuda.synchronize()
    assert torch.equal(out.double(), a.double() @ b.double())


def test_the_callers_stream_orders_the_launch():
    torch, a, b, out = torch_product(1024, 1024, 1024)
    stream = torch.cuda.Stream()
    big = torch.empty(1 << 28, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(20):
            big.fill_(1.0)
        a.zero_()
        a.add_(1.0)
        gemm(a, b, out=out, rung="k08")
        total = out.sum()
    stream.synchronize()
    assert torch.equal(out.double(), torch.ones_like(a).double() @ b.double())
    assert torch.isfinite(total)


def test_a_raw_handle_and_a_stream_object_are_taken():
    torch, a, b, out = torch_product(128, 64, 32)
    stream = torch.cuda.Stream()
    for given in (stream.cuda_stream, stream):
        out.fill_(float("nan"))
        torch.cuda.synchronize()
        gemm(a, b, out=out, stream=given, rung="k08")
        stream.synchronize()
        assert torch.equal(out.double(), a.double() @ b.double())


def test_padded_rows_and_c_in_place():
    torch, a, b, _ = torch_product(128, 64, 32)
    wide = torch.full((128, 96), -1e10, device="cuda")
    c = wide[:, :64]
    c.fill_(3.0)
    gemm(a, b, c, out=c, alpha=2.0, beta=-1.0, rung="k08")
    torch.cuda.synchronize()
    assert torch.equal(c.double(), 2 * (a.double() @ b.double()) - 3.0)
    assert bool((wide[:, 64:] == -1e10).all())


def test_cupy_arrays_on_cupys_stream():
    cupy = pytest.importorskip("cupy")
    a, b = cupy.ones((33, 7), cupy.float32), cupy.full((7, 65), 2, cupy.float32)
    out = cupy.empty((33, 65), cupy.float32)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        gemm(a, b, out=out, rung="k04")
        stream.synchronize()
    assert bool((out == 14).all())


def test_a_misaligned_operand_is_refused_by_the_vectorised_rung_and_served_by_another():
    torch, a, b, out = torch_product(128, 64, 32)
    shifted = torch.empty(128 * 32 + 1, device="cuda")[1:].view(128, 32).copy_(a)
    with pytest.raises(InvalidProblem, match="alignment_bytes=4"):
        gemm(shifted, b, out=out, rung="k08")
    gemm(shifted, b, out=out, rung="k04")
    torch.cuda.synchronize()
    assert torch.equal(out.double(), a.double() @ b.double())


def test_the_current_context_is_left_as_it_was():
    from cuda.bindings import driver

    with CudaBackend() as gpu:
        driver.cuCtxSetCurrent(driver.CUcontext(0))
        gpu.alloc(1024, label="A")
        assert int(driver.cuCtxGetCurrent()[1]) == 0


def test_host_arrays_are_refused_by_a_gpu_and_named():
    _, a, b, out = torch_product(128, 64, 32)
    with pytest.raises(InvalidProblem, match="A is NumPy's and B is torch's"):
        gemm(a.cpu().numpy(), b, out=out, rung="k08")


def test_more_memory_than_there_is_is_refused_before_allocating():
    with CudaBackend() as gpu, pytest.raises(InvalidProblem, match="GiB"):
        gpu.alloc(1 << 42, label="A")


def test_the_driver_takes_every_tensor_map_that_the_rules_take():
    refused = []
    with CudaBackend() as gpu, gpu.current():
        address = gpu.alloc(1 << 20, label="A").address
        for dtype, element_bytes in ELEMENT_BYTES.items():
            for span_bytes, box_rows, entries in itertools.product((0, 32, 64, 128), (1, 128, 256), (1, 5)):
                widest = (span_bytes or 2048) // element_bytes
                cols = min(widest, 256, 232448 // box_rows // element_bytes // 16 * 16)
                box = {"box_rows": box_rows, "box_cols": cols, "span_bytes": span_bytes}
                for entry_stride in (99 * cols, 16 * 7, 16):  # rows of other entries may lie between
                    batch = {"entries": entries, "entry_stride": entry_stride}
                    made = TensorMap(dtype=dtype, rows=99, cols=cols, ld=cols, **box, **batch)
                    try:
                        assert any(encode_for_driver(made, address).words)
                    except LaunchFailed as error:
                        refused.append((made, str(error)))
    assert refused == []
