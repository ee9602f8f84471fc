"""torch tensors, used where they are stored, on torch's current stream.

Gradients, tracing and autocast are `api.torch.operators`'.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch

from tilewright.api import operands
from tilewright.api.frameworks import remember
from tilewright.api.frameworks.base import Framework, once
from tilewright.api.operands import HOST, Operand, Shape
from tilewright.api.plan import Copy
from tilewright.api.torch.settings import may_replace_kernel
from tilewright.errors import InvalidProblem

PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
"""Tensors that are nothing but memory; subclasses have rules of their own."""
DTYPES = {name: getattr(torch, name) for name in operands.DTYPES}
_is_compiling = torch.compiler.is_compiling
_is_autocast = torch.is_autocast_enabled
_is_grad = torch.is_grad_enabled
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)
"""The current stream's handle without a Stream object around it, where this torch has that."""
_transform = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", lambda: None)
"""The innermost of torch.func's transforms that is at work, or None."""


class TorchTensors(Framework):
    """torch's dense tensors."""

    name = "torch"
    multiplies = True

    def look_up(self, a: Any, b: Any, c: Any, out: Any, bias: Any, options: Any) -> tuple[Any, int, int, int, int, int]:
        """See `Framework.look_up`."""
        at_a, at_b = a.data_ptr(), b.data_ptr()
        of_a = a.dtype, a.shape, a.stride(), a.get_device(), a.is_neg()
        of_b = b.dtype, b.shape, b.stride(), b.get_device(), b.is_neg()
        if out is None:
            at_d, of_out = 0, None
        else:
            at_d, of_out = out.data_ptr(), (out.dtype, out.shape, out.stride(), out.get_device(), out.is_neg())
        if c is None and bias is None:
            bits = 256 | at_a | at_b | at_d
            return (bits & -bits, options, of_a, of_b, of_out), at_a, at_b, 0, at_d, 0
        (at_c, of_c), (at_bias, of_bias) = ((0, None) if x is None else self.identity(x) for x in (c, bias))
        bits = 256 | at_a | at_b | at_c | at_d | at_bias
        key = bits & -bits, at_c == at_d, options, of_a, of_b, of_out, of_c, of_bias
        return key, at_a, at_b, at_c, at_d, at_bias

    def identity(self, array: Any) -> tuple[int, Any]:
        """See `Framework.identity`."""
        return array.data_ptr(), (array.dtype, array.shape, array.stride(), array.get_device(), array.is_neg())

    def address(self, array: Any) -> int:
        """See `Framework.address`."""
        return array.data_ptr()  # type: ignore[no-any-return]

    def address_of(self, array: Any) -> Callable[[], int]:
        """See `Framework.address_of`."""
        return array.data_ptr  # type: ignore[no-any-return]

    def describe(self, name: str, array: Any) -> Operand:
        """See `Framework.describe`."""
        if array.layout != torch.strided or array.is_quantized:
            kind = "quantized" if array.is_quantized else str(array.layout).removeprefix("torch.")
            raise InvalidProblem(f"{name}: a {kind} tensor: supports dense ones; use its .to_dense() or .dequantize()")
        itemsize = array.element_size()
        return Operand(
            name,
            array.data_ptr(),
            tuple(array.shape),
            tuple(step * itemsize for step in array.stride()),
            str(array.dtype).removeprefix("torch."),
            array.get_device() if array.is_cuda else HOST,
            unusable="its elements are negated when read" if array.is_neg() else None,
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
        return torch.empty(shape, dtype=DTYPES[dtype], device=_device(device))

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

    def product(self, a: Any, b: Any, bias: Any, out: Any, dtype: str) -> Any:
        """See `Framework.product`.

        In float32 where torch's settings say the same arithmetic. In 16 bits as the user has set torch, whose sums may
        then be less exact than a kernel's.
        """
        casts = torch.is_autocast_enabled("cuda") and a.dtype != torch.get_autocast_dtype("cuda")
        if casts or torch.are_deterministic_algorithms_enabled() or not may_replace_kernel(dtype, torch):
            return None
        if bias is None:
            result = torch.matmul(a, b, out=out)
        elif a.dim() == b.dim() == 2:
            result = torch.addmm(bias, a, b, out=out)
        elif out is None and b.dim() == 2:
            result = torch.nn.functional.linear(a, b.t(), bias)
        else:
            return None
        return result if out is not None else result.contiguous()  # as a result of ours always is

    def takes_over(self, a: Any, b: Any, c: Any, out: Any, bias: Any) -> bool:
        """See `Framework.takes_over`."""
        if _is_compiling() or _is_autocast("cuda") or _transform() is not None:
            return True
        grad = _is_grad()
        if type(a) not in PLAIN or type(b) not in PLAIN or (grad and (a.requires_grad or b.requires_grad)):
            return True
        if out is not None and (type(out) not in PLAIN or (grad and out.requires_grad)):
            return True
        if c is None and bias is None:
            return False
        more = [array for array in (c, bias) if array is not None]
        return any(type(array) not in PLAIN or (grad and array.requires_grad) for array in more)

    def call(self, **arguments: Any) -> Any:
        """See `Framework.call`."""
        from tilewright.api.torch.operators import call

        return call(**arguments)


@cache
def _device(number: int) -> Any:
    return torch.device("cuda", number)


FRAMEWORK = TorchTensors()
remember(PLAIN, FRAMEWORK)
