"""cuBLAS through PyTorch, on our own device memory.

Owns the tensors that view raw addresses and the local switch to IEEE float32, TF32 or float32 sums; the user's own
precision settings are as before after every call. It allocates no memory but what PyTorch itself keeps for cuBLAS.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

from tilewright.errors import InvalidProblem, Missing
from tilewright.measure.baseline import check_problem
from tilewright.problem import ITEMSIZE_BYTES, Problem

MAX_PREPARED = 4096
VIEWED_AS = {"float32": "<f4", "tfloat32": "<f4", "float16": "<f2", "bfloat16": "<i2"}
"""Element types as the CUDA array interface spells them, or one of the same size where it has no word."""


def open_torch() -> TorchBaseline:
    """PyTorch's cuBLAS. Raises Missing where torch is absent or sees no GPU."""
    return TorchBaseline(torch_with_gpu())


def torch_with_gpu() -> Any:
    """The module. Raises Missing where it is absent or sees no GPU."""
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise Missing(f"torch: {str(error).splitlines()[0]}") from error
    if not torch.cuda.is_available():
        raise Missing("torch: is installed and sees no CUDA device")
    return torch


class TorchBaseline:
    """`torch.mm`, `addmm`, `bmm` and `baddbmm` with `out=`. See `Baseline`.

    Views and stream wrappers are kept for each problem and set of addresses, so a call costs little beyond
    PyTorch's own. With beta other than 0 and C apart from D, PyTorch copies C to D first: part of the figure.
    """

    name = "cuBLAS (torch)"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._prepared: dict[tuple[Any, ...], tuple[Any, Callable[[], Any]]] = {}
        self.version = f"torch {torch.__version__}, CUDA {torch.version.cuda}"

    def gemm(self, problem: Problem, a_addr: int, b_addr: int, c_addr: int, d_addr: int, stream: Any) -> None:
        """See `Baseline.gemm`."""
        key = (a_addr, b_addr, c_addr, d_addr, int(stream.handle), problem)
        prepared = self._prepared.get(key)
        if prepared is None:
            if len(self._prepared) >= MAX_PREPARED:
                self._prepared.clear()
            prepared = self._prepared[key] = self._prepare(*key)
        torch_stream, call = prepared
        with precision_for(problem.dtype, self._torch), self._torch.cuda.stream(torch_stream):
            call()

    def _prepare(
        self, a_addr: int, b_addr: int, c_addr: int, d_addr: int, stream_handle: int, problem: Problem
    ) -> tuple[Any, Callable[[], Any]]:
        check_problem(problem, tuple(VIEWED_AS))
        torch = self._torch
        a, b, d = (tensor_at(torch, problem, x, addr) for x, addr in (("a", a_addr), ("b", b_addr), ("d", d_addr)))
        c = tensor_at(torch, problem, "c", c_addr) if problem.reads_c else d
        product, fused = (torch.mm, torch.addmm) if problem.batch == 1 else (torch.bmm, torch.baddbmm)
        stream = torch.cuda.ExternalStream(stream_handle)
        if problem.alpha == 1.0 and not problem.reads_c:
            return stream, lambda: product(a, b, out=d)
        return stream, lambda: fused(c, a, b, beta=problem.beta, alpha=problem.alpha, out=d)


def tensor_at(torch: Any, problem: Problem, operand: str, address: int) -> Any:
    """The operand as a tensor on our own memory. Raises InvalidProblem where that is not on torch's current device."""
    interface = array_interface(problem, operand, address)
    tensor = torch.as_tensor(SimpleNamespace(__cuda_array_interface__=interface), device="cuda")
    if tensor.data_ptr() != address:
        raise InvalidProblem(f"operand {operand} at {address:#x}: not on torch's current device; make it current")
    element = problem.storage_dtype(operand)
    return tensor if element == "float32" else tensor.view(getattr(torch, element))


def array_interface(problem: Problem, operand: str, address: int) -> dict[str, Any]:
    """The CUDA array interface of op(A), op(B), C or D as multiplied: (m, k), (k, n), (m, n), with a batch in front."""
    itemsize = ITEMSIZE_BYTES[problem.dtype]
    shape: tuple[int, ...] = problem.stored_shape(operand)
    strides: tuple[int, ...] = (getattr(problem, f"ld{operand}") * itemsize, itemsize)
    if operand in "ab" and problem.layout["ab".index(operand)] == "T":
        shape, strides = shape[::-1], strides[::-1]
    if problem.batch > 1:
        batch_stride = getattr(problem, f"batch_stride_{operand}") * itemsize
        shape, strides = (problem.batch, *shape), (batch_stride, *strides)
    return {
        "shape": shape,
        "strides": strides,
        "typestr": VIEWED_AS[problem.dtype],
        "data": (address, False),
        "version": 3,
    }


def precision_for(dtype: str, torch: Any) -> AbstractContextManager[None]:
    """Products of `dtype` as they are meant inside, the user's settings before and after."""
    if dtype in ("float32", "tfloat32"):
        return float32_precision(torch, tf32=dtype == "tfloat32")
    return float32_sums(torch)


@contextmanager
def float32_precision(torch: Any, *, tf32: bool) -> Iterator[None]:
    """float32 products in TF32 or in IEEE float32 inside, the user's settings before and after.

    PyTorch has an older and a newer switch, and refuses to read the older once the newer alone was used; so
    the older is asked first, and the newer is touched only after such a refusal.
    """
    matmul = torch.backends.cuda.matmul
    try:
        allowed = matmul.allow_tf32
    except RuntimeError:
        with _newer_switch(matmul, "tf32" if tf32 else "ieee"):
            yield
        return
    if allowed == tf32:
        yield
        return
    general = torch.get_float32_matmul_precision()
    matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        matmul.allow_tf32 = allowed
        if general == "medium":
            torch.set_float32_matmul_precision(general)


@contextmanager
def float32_sums(torch: Any) -> Iterator[None]:
    """16-bit products with partial sums in float32 inside, the user's settings before and after."""
    matmul = torch.backends.cuda.matmul
    names = ("allow_bf16_reduced_precision_reduction", "allow_fp16_reduced_precision_reduction")
    before = {name: getattr(matmul, name) for name in names}
    for name in names:
        if before[name]:
            setattr(matmul, name, False)
    try:
        yield
    finally:
        for name, value in before.items():
            if value:
                setattr(matmul, name, value)


@contextmanager
def _newer_switch(matmul: Any, precision: str) -> Iterator[None]:
    before = matmul.fp32_precision
    matmul.fp32_precision = precision
    try:
        yield
    finally:
        matmul.fp32_precision = "none"
        if matmul.fp32_precision != before:
            matmul.fp32_precision = before
