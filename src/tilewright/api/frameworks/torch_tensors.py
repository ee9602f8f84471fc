"""torch tensors, used where they lie, on torch's current stream. Gradients, tracing and autocast are `torch_ops`'."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from tilewright.api.frameworks import remember
from tilewright.api.frameworks.base import Framework, once, require_dtype, unaligned
from tilewright.api.plan import Copy
from tilewright.api.shapes import Shape
from tilewright.api.view import HOST, View, times
from tilewright.errors import InvalidProblem
from tilewright.measure.baseline_torch import multiplies_as

PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Tensors that are nothing but memory; subclasses have rules of their own."""
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
"""The current stream's handle without a Stream object around it, where this torch has that."""
_transform = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)
"""The innermost of torch.func's transforms that is at work, or None."""


class TorchTensors(Framework):
    """torch's dense tensors."""

    name = "torch"
    multiplies = True

    def signature(self, array: Any) -> Any:
        """See `Framework.signature`."""
        return array.shape, array.stride(), array.dtype, array.get_device(), array.is_neg()

    def address(self, array: Any) -> int:
        """See `Framework.address`."""
        return array.data_ptr()  # type: ignore[no-any-return]

    def view(self, name: str, array: Any) -> View:
        """See `Framework.view`."""
        if array.layout != torch.strided or array.is_quantized:
            kind = "quantized" if array.is_quantized else str(array.layout).removeprefix("torch.")
            raise InvalidProblem(f"{name}: a {kind} tensor: takes dense ones; use its .to_dense() or .dequantize()")
        dtype = require_dtype(name, str(array.dtype).removeprefix("torch."))
        address, itemsize = self.address(array), array.element_size()
        unusable = "its elements are negated when read" if array.is_neg() else unaligned(address, (), itemsize)
        device = array.get_device() if array.is_cuda else HOST
        return View(
            name, address, tuple(array.shape), times(array.stride(), itemsize), dtype, device, unusable=unusable
        )

    def broadcast(self, array: Any, shape: Shape) -> Any:
        """See `Framework.broadcast`."""
        return array.expand(shape)

    def copy(self, array: Any, copy: Copy) -> Any:
        """See `Framework.copy`."""
        taken = once(array, copy)
        if copy.by_columns:
            return taken.mT.clone(memory_format=torch.contiguous_format).mT
        return taken.clone(memory_format=torch.contiguous_format)

    def allocate(self, shape: Shape, dtype: str, device: int) -> Any:
        """See `Framework.allocate`."""
        return torch.empty(shape, dtype=getattr(torch, dtype), device=f"cuda:{device}")

    def assign(self, out: Any, value: Any) -> None:
        """See `Framework.assign`."""
        out.copy_(value)

    def current_stream(self, device: int) -> int:
        """See `Framework.current_stream`."""
        if _raw_stream is not None:
            return _raw_stream(device)  # type: ignore[no-any-return]
        return int(torch.cuda.current_stream(device).cuda_stream)

    @contextlib.contextmanager
    def using(self, device: int, stream: int) -> Iterator[None]:
        """See `Framework.using`."""
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=f"cuda:{device}")):
            yield

    def product(self, a: Any, b: Any, out: Any, dtype: str) -> Any:
        """See `Framework.product`."""
        casts = torch.is_autocast_enabled("cuda") and a.dtype != torch.get_autocast_dtype("cuda")
        if casts or torch.are_deterministic_algorithms_enabled() or not multiplies_as(dtype, torch):
            return None
        return torch.matmul(a, b, out=out)

    def takes_over(self, arrays: tuple[Any, ...]) -> bool:
        """See `Framework.takes_over`."""
        if torch.compiler.is_compiling() or torch.is_autocast_enabled("cuda") or _transform() is not None:
            return True
        differentiates = torch.is_grad_enabled()
        for array in arrays:
            if array is not None and (type(array) not in PLAIN or (differentiates and array.requires_grad)):
                return True
        return False

    def call(self, **arguments: Any) -> Any:
        """See `Framework.call`."""
        from tilewright.api.torch_ops import call

        return call(**arguments)


FRAMEWORK = TorchTensors()
remember(PLAIN, FRAMEWORK)
