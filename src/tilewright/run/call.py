"""One product by one rung on the caller's own arrays, on the caller's stream.

Arrays on a GPU are used where they lie; NumPy arrays are multiplied by the emulator, and only when it is named.
Owns the translation from arrays to a Problem. Every mismatch is refused before anything is launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Config, Rung, all_rungs, rung_config
from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem, storage_dtype
from tilewright.run.args import launch_args
from tilewright.run.protocol import Backend, Grid, Memory

DTYPES = tuple(dict.fromkeys(storage_dtype(dtype) for dtype in ITEMSIZE_BYTES))


@dataclass(frozen=True, slots=True)
class View:
    """A caller's matrix: address, shape and strides in elements, dtype, device (-1: host)."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device_id: int
    read_only: bool

    @property
    def ld(self) -> int:
        """Leading dimension in elements: the row stride, or the width where one row leaves it free."""
        return max(self.strides[-2], self.shape[-1]) if self.shape[-2] == 1 else self.strides[-2]

    @property
    def span_bytes(self) -> tuple[int, int]:
        """First address and the one past the last, of a matrix with positive strides."""
        elements = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)) + 1
        return self.address, self.address + elements * ITEMSIZE_BYTES[self.dtype]


def view_of(name: str, array: Any) -> View:
    """View a NumPy array, or anything with DLPack or `__cuda_array_interface__`, without copying.

    Raises InvalidProblem unless it is a 2-D float32 matrix with unit stride along the row.
    """
    if isinstance(array, np.ndarray):
        if array.dtype.byteorder == ">" or array.dtype.name not in DTYPES:
            raise InvalidProblem(f"{name}: dtype={array.dtype}: takes native {', '.join(DTYPES)}")
        strides = tuple(s // array.itemsize for s in array.strides)
        view = View(name, array.ctypes.data, array.shape, strides, array.dtype.name, -1, not array.flags.writeable)
    else:
        view = _device_view(name, array)
    if len(view.shape) != 2:
        raise InvalidProblem(f"{name}: shape {view.shape}: must be a matrix, with two dimensions")
    if 0 in view.shape:
        raise InvalidProblem(f"{name}: shape {view.shape}: nothing to multiply; every size must be at least 1")
    if (view.shape[1] > 1 and view.strides[1] != 1) or (view.shape[0] > 1 and view.strides[0] < view.shape[1]):
        raise InvalidProblem(f"{name}: strides {view.strides}: rows must be contiguous and not overlap; pass a copy")
    return view


def _device_view(name: str, array: Any) -> View:
    from cuda.core.utils import StridedMemoryView

    detached = array.detach() if hasattr(array, "detach") else array
    try:
        # -1: the caller's stream orders the launch, so no further ordering is asked of the exporter.
        seen = StridedMemoryView.from_any_interface(detached, stream_ptr=-1)
    except (BufferError, RuntimeError, TypeError, AttributeError) as error:
        raise InvalidProblem(
            f"{name}: {type(array).__name__} exports neither DLPack nor a CUDA array: {error}"
        ) from error
    if seen.dtype is None or seen.dtype.name not in DTYPES:
        raise InvalidProblem(f"{name}: dtype={seen.dtype}: takes {', '.join(DTYPES)}")
    shape = tuple(seen.shape)
    strides = tuple(seen.strides) if seen.strides is not None else (shape[-1], 1)
    return View(name, int(seen.ptr), shape, strides, seen.dtype.name, int(seen.device_id), bool(seen.readonly))


def problem_of(a: View, b: View, c: View | None, out: View, *, alpha: float, beta: float) -> Problem:
    """The problem these matrices pose. Raises InvalidProblem for shapes, devices or overlaps that cannot be."""
    if a.shape[1] != b.shape[0]:
        raise InvalidProblem(f"A is {a.shape} and B is {b.shape}: A's columns must equal B's rows")
    expected = (a.shape[0], b.shape[1])
    views = [v for v in (a, b, c, out) if v is not None]
    for view in (c, out):
        if view is not None and view.shape != expected:
            raise InvalidProblem(f"{view.name} is {view.shape}: must be {expected}, the shape of A·B")
    if len({v.device_id for v in views}) > 1:
        places = ", ".join(f"{v.name} on {v.device_id}" for v in views)
        raise InvalidProblem(f"operands on different devices ({places}): move them to one")
    if out.read_only:
        raise InvalidProblem("out: read-only: pass an array that may be written")
    for view in views[:-1]:
        same = view is c and (view.address, view.strides) == (out.address, out.strides)
        if not same and view.span_bytes[0] < out.span_bytes[1] and out.span_bytes[0] < view.span_bytes[1]:
            raise InvalidProblem(f"out overlaps {view.name}: only C itself may be overwritten; pass another out")
    addresses = 256
    for view in views:
        addresses |= view.address
    return Problem(
        m=expected[0],
        n=expected[1],
        k=a.shape[1],
        lda=a.ld,
        ldb=b.ld,
        ldc=c.ld if c is not None else 0,
        ldd=out.ld,
        alpha=alpha,
        beta=beta,
        alignment_bytes=addresses & -addresses,
    )


def grid_of(config: Config, problem: Problem, *, sm_count: int = 1) -> Grid:
    """The launch geometry of `config` for `problem`."""
    return Grid(
        grid=config.grid(problem, sm_count=sm_count),
        block=config.block,
        dynamic_smem_bytes=config.scope["dynamic_smem_bytes"],
        cluster=config.cluster,
        dependent=config.rung.launch.dependent,
    )


def gemm_with(
    rung: Rung | str,
    a: Any,
    b: Any,
    c: Any = None,
    *,
    out: Any,
    alpha: float = 1.0,
    beta: float = 0.0,
    settings: Mapping[str, int] | None = None,
    stream: Any = None,
    backend: str | None = None,
) -> Any:
    """Out = alpha · a @ b + beta · c by one rung; returns `out`.

    `a` (m, k), `b` (k, n), `c` and `out` (m, n) are row-major float32 matrices, rows possibly padded: CUDA arrays
    (torch, CuPy, DLPack), which stay where they are, or NumPy arrays with `backend="emulator"`. `out` may be `c`.
    `stream` is a raw handle, a cuda.core Stream or an object with `__cuda_stream__`; by default the arrays'
    framework's current stream. The call returns once the kernel is launched (GPU) or done (emulator).

    Raises InvalidProblem or InvalidConfig before any launch, CompileFailed, LaunchFailed, NoDevice, NoCompiler.
    """
    if beta != 0.0 and c is None:
        raise InvalidProblem(f"beta={beta}: needs c; pass c, or leave beta at 0")
    view_a, view_b, view_out = view_of("A", a), view_of("B", b), view_of("out", out)
    view_c = view_of("C", c) if c is not None else None
    problem = problem_of(view_a, view_b, view_c, view_out, alpha=alpha, beta=beta)
    config = rung_config(all_rungs().find(rung) if isinstance(rung, str) else rung, settings)
    config.require_problem(problem)
    if view_out.device_id >= 0 and backend in (None, "cuda"):
        _on_device(config, problem, [view_a, view_b, view_c, view_out], stream, out)
    elif view_out.device_id < 0 and backend == "emulator":
        _emulated(config, problem, [a, b, c if problem.reads_c else None], out)
    else:
        where = "a GPU" if view_out.device_id >= 0 else "the host"
        raise InvalidProblem(f"backend={backend!r} with arrays on {where}: NumPy arrays need backend='emulator'")
    return out


def _on_device(config: Config, problem: Problem, views: list[View | None], stream: Any, out: Any) -> None:
    from tilewright.run.cuda import CudaBackend

    device_id = next(v.device_id for v in views if v is not None)
    gpu = CudaBackend(device_id, stream=_current_stream(out, device_id) if stream is None else stream)
    config.require_arch(gpu.arch)
    binary = compile_cubin(kernel_source(config, problem), gpu.arch)
    a, b, c, d = (view.address if view is not None else 0 for view in views)
    args = launch_args(config, problem, gpu, a=a, b=b, c=c, d=d)
    gpu.launch(binary, grid_of(config, problem, sm_count=gpu.sm_count), args)


def _current_stream(array: Any, device_id: int) -> int:
    """The current stream of the array's framework; the legacy default stream where it has no such notion."""
    package = type(array).__module__.split(".")[0]
    if package == "torch":
        import torch

        return int(torch.cuda.current_stream(device_id).cuda_stream)
    if package == "cupy":
        import cupy

        return int(cupy.cuda.get_current_stream().ptr)
    return 0


def _emulated(config: Config, problem: Problem, inputs: list[Any], out: Any) -> None:
    from tilewright.compile.host import compile_host, host_source
    from tilewright.run.emulator import EmulatorBackend

    binary = compile_host(host_source(kernel_source(config, problem)))
    with EmulatorBackend() as device:
        memory = [_copied_in(device, label, x) for label, x in zip("ABC", inputs, strict=True)]
        d = device.alloc(problem.extent("d") * 4, label="D")
        a, b, c = (m.address if m is not None else 0 for m in memory)
        args = launch_args(config, problem, device, a=a, b=b, c=c, d=d.address)
        device.launch(binary, grid_of(config, problem), args)
        flat = device.download(d).view(np.float32)
        rows = np.lib.stride_tricks.as_strided(flat, (problem.m, problem.n), (problem.ldd * 4, 4))
        out[...] = rows


def _copied_in(device: Backend, label: str, array: Any) -> Memory | None:
    if array is None:
        return None
    rows, cols = array.shape
    ld = max(array.strides[0] // 4, cols) if rows > 1 else cols
    flat = np.zeros((rows - 1) * ld + cols, np.float32)
    np.lib.stride_tricks.as_strided(flat, (rows, cols), (ld * 4, 4))[...] = array
    memory = device.alloc(flat.nbytes, label=label, read_only=True)
    device.upload(memory, flat.view(np.uint8))
    return memory
