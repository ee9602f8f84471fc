"""torch's side of a call: operators that it can trace, differentiate and capture, and the way from a call to them.

`torch.ops.tilewright.matmul` and `gemm` give a new tensor and have gradients; `matmul_out` and `gemm_out` write to one
and have none. Autocast is followed as `torch.mm` does, by the calls: operands become the type it names. An operator
that is called itself takes its operands as they are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from tilewright.api.calls import run
from tilewright.api.frameworks.torch_tensors import PLAIN, _transform
from tilewright.api.options import USUAL, Options, beta_of, epilogue_of
from tilewright.api.torch.gradients import gradient_of_a, gradient_of_b, summed_to
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem

CAST = (torch.float32, torch.float16, torch.bfloat16)
"""What autocast converts."""
DIFFERENTIATED = {
    "gelu": partial(torch.nn.functional.gelu, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}
"""Activations of which torch makes the gradient, from a product that stops before them."""
OUT_WITH_GRADIENTS = "out= with operands that require gradients: leave out out, or detach them"
_is_grad_enabled = torch.is_grad_enabled
_below_autograd = torch._C._AutoDispatchBelowAutograd
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
"""How many of torch's dispatch modes are at work."""
_KINDS = 'str? compute_type=None, str kernels="all"'
_SCALARS = f"float alpha=1.0, float? beta=None, str? epilogue=None, {_KINDS}"
_INPUTS = "Tensor a, Tensor b, Tensor? c=None, Tensor? bias=None"


def _options(compute_type: str | None, kernels: str) -> Options:
    if compute_type is None and kernels in USUAL:
        return USUAL[kernels]
    return Options(compute_type=compute_type, kernels=kernels)


def _matmul(a: Any, b: Any, compute_type: str | None = None, kernels: str = "all") -> Any:
    return run(a, b, None, None, None, None, _options(compute_type, kernels), whole=True)


def _matmul_out(a: Any, b: Any, out: Any, compute_type: str | None = None, kernels: str = "all") -> None:
    run(a, b, None, out, None, None, _options(compute_type, kernels), whole=True)


def _gemm(
    a: Any,
    b: Any,
    c: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    epilogue: str | None = None,
    compute_type: str | None = None,
    kernels: str = "all",
) -> Any:
    return run(a, b, c, None, bias, None, Options(alpha, beta, epilogue, compute_type, kernels), whole=True)


def _gemm_out(
    a: Any,
    b: Any,
    out: Any,
    c: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    epilogue: str | None = None,
    compute_type: str | None = None,
    kernels: str = "all",
) -> None:
    run(a, b, c, out, bias, None, Options(alpha, beta, epilogue, compute_type, kernels), whole=True)


def _fake(a: Any, b: Any, c: Any = None, *_: Any) -> Any:
    """A tensor like the result: of C's type where there is one, without gaps."""
    shape = torch.matmul(a, b.to(a.dtype)).shape
    return a.new_empty(shape, dtype=a.dtype if c is None else c.dtype)


def _fake_matmul(a: Any, b: Any, *_: Any) -> Any:
    return _fake(a, b)


def _fake_out(*_: Any) -> None:
    return None


def _is_eager(*tensors: Any) -> bool:
    """Whether nothing but the kernel is left to run: plain tensors, no mode of torch's and no transform at work."""
    if _modes() or _transform() is not None:
        return False
    return all([tensor is None or type(tensor) in PLAIN for tensor in tensors])


def _differentiates(*tensors: Any) -> bool:
    return _is_grad_enabled() and any([tensor is not None and tensor.requires_grad for tensor in tensors])


class _Matmul(torch.autograd.Function):  # type: ignore[misc]
    """A·B with its gradients."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, compute_type: str | None, kernels: str) -> Any:
        ctx.compute_type, ctx.kernels = compute_type, kernels
        ctx.save_for_backward(a, b)
        with _below_autograd():
            return MATMUL(a, b, compute_type, kernels)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        a, b = ctx.saved_tensors
        return (*_operand_gradients(ctx, grad, a, b), None, None)


class _Gemm(torch.autograd.Function):  # type: ignore[misc]
    """Everything that the operator computes, with its gradients."""

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, c: Any, bias: Any, *scalars: Any) -> Any:
        ctx.alpha, beta, epilogue, ctx.compute_type, ctx.kernels = scalars
        ctx.beta = beta_of(beta, has_c=c is not None)
        ops = epilogue_of(epilogue, has_bias=bias is not None).ops
        if not DIFFERENTIATED.keys().isdisjoint(ops):
            raise InvalidProblem(
                f"torch.ops.tilewright.gemm: epilogue={epilogue!r} has no gradient in the operator; use tilewright.gemm"
            )
        ctx.is_relu = "relu" in ops
        ctx.shape_of_c = None if c is None else tuple(c.shape)
        ctx.has_bias = bias is not None
        with _below_autograd():
            output = GEMM(a, b, c, bias, *scalars)
        ctx.save_for_backward(a, b, output if ctx.is_relu else None)
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any) -> tuple[Any, ...]:
        a, b, output = ctx.saved_tensors
        grad = grad * (output > 0) if ctx.is_relu else grad
        _, _, needs_c, needs_bias, *_ = ctx.needs_input_grad
        for_c = ctx.beta * summed_to(grad, ctx.shape_of_c) if ctx.shape_of_c is not None and needs_c else None
        for_bias = _bias_gradient(grad, b) if ctx.has_bias and needs_bias else None
        scaled = grad if ctx.alpha == 1.0 else ctx.alpha * grad
        return (*_operand_gradients(ctx, scaled.to(a.dtype), a, b), for_c, for_bias, None, None, None, None, None)


def _bias_gradient(grad: Any, b: Any) -> Any:
    columns = grad.reshape(-1, 1) if b.ndim == 1 else grad
    return summed_to(columns, (columns.shape[-1],)).to(b.dtype)


def _operand_gradients(ctx: Any, grad: Any, a: Any, b: Any) -> tuple[Any, Any]:
    def product(x: Any, y: Any) -> Any:
        return MATMUL(x, y, ctx.compute_type, ctx.kernels)

    needs_a, needs_b, *_ = ctx.needs_input_grad
    for_a = gradient_of_a(product, grad, a, b) if needs_a else None
    return for_a, gradient_of_b(product, grad, a, b) if needs_b else None


# What torch's dispatcher calls first. Where nothing else has to see the call, it goes to the product without a detour.


def _autograd_matmul(a: Any, b: Any, compute_type: str | None = None, kernels: str = "all") -> Any:
    if _is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return _Matmul.apply(a, b, compute_type, kernels)
    if type(a) in PLAIN and type(b) in PLAIN and not _modes() and _transform() is None:
        return _matmul(a, b, compute_type, kernels)
    with _below_autograd():
        return MATMUL(a, b, compute_type, kernels)


def _autograd_gemm(
    a: Any,
    b: Any,
    c: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    epilogue: str | None = None,
    compute_type: str | None = None,
    kernels: str = "all",
) -> Any:
    if _differentiates(a, b, c, bias):
        return _Gemm.apply(a, b, c, bias, alpha, beta, epilogue, compute_type, kernels)
    if _is_eager(a, b, c, bias):
        return _gemm(a, b, c, bias, alpha, beta, epilogue, compute_type, kernels)
    with _below_autograd():
        return GEMM(a, b, c, bias, alpha, beta, epilogue, compute_type, kernels)


def _autograd_out(operator: str, a: Any, b: Any, out: Any, c: Any = None, bias: Any = None, *scalars: Any) -> None:
    """Both operators that write to `out`, which have no gradients."""
    if _differentiates(a, b, out, c, bias):
        raise InvalidProblem(f"torch.ops.tilewright.{operator}: {OUT_WITH_GRADIENTS}")
    torch.autograd.graph.increment_version(out)
    with _below_autograd():
        if operator == "gemm_out":
            GEMM_OUT(a, b, out, c, bias, *scalars)
        else:
            MATMUL_OUT(a, b, out, *scalars)


def _autograd_matmul_out(a: Any, b: Any, out: Any, *kinds: Any) -> None:
    _autograd_out("matmul_out", a, b, out, None, None, *kinds)


def _autograd_gemm_out(a: Any, b: Any, out: Any, c: Any = None, bias: Any = None, *scalars: Any) -> None:
    _autograd_out("gemm_out", a, b, out, c, bias, *scalars)


def _define(name: str, schema: str, kernel: Any, fake: Any, autograd: Any) -> Any:
    """Define `torch.ops.tilewright.<name>`; gives its only overload."""
    _LIBRARY.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(name, kernel, "CUDA")
    _LIBRARY.impl(name, autograd, "Autograd")
    torch.library.register_fake(f"tilewright::{name}", fake, lib=_LIBRARY)
    return getattr(torch.ops.tilewright, name).default


_LIBRARY = torch.library.Library("tilewright", "DEF")
MATMUL = _define("matmul", f"(Tensor a, Tensor b, {_KINDS}) -> Tensor", _matmul, _fake_matmul, _autograd_matmul)
MATMUL_OUT = _define(
    "matmul_out", f"(Tensor a, Tensor b, Tensor(a!) out, {_KINDS}) -> ()", _matmul_out, _fake_out, _autograd_matmul_out
)
GEMM = _define("gemm", f"({_INPUTS}, {_SCALARS}) -> Tensor", _gemm, _fake, _autograd_gemm)
GEMM_OUT = _define(
    "gemm_out",
    f"(Tensor a, Tensor b, Tensor(a!) out, Tensor? c=None, Tensor? bias=None, {_SCALARS}) -> ()",
    _gemm_out,
    _fake_out,
    _autograd_gemm_out,
)


def call(*, a: Any, b: Any, c: Any, out: Any, bias: Any, stream: Any, options: Options) -> Any:
    """A call that torch traces, differentiates or casts. Raises InvalidProblem for what no operator says."""
    if stream is not None:
        raise InvalidProblem(
            "stream= where torch traces, differentiates or casts: use torch.cuda.stream(...) around it"
        )
    operands = (x for x in (a, b, c, out, bias) if x is not None)
    has_gradient = torch.is_grad_enabled() and any(x.requires_grad for x in operands)
    if out is not None and has_gradient:
        raise InvalidProblem(OUT_WITH_GRADIENTS)
    if torch.is_autocast_enabled("cuda"):
        a, b, c, bias = (_cast(x, out) for x in (a, b, c, bias))
    kinds = (options.compute_type, options.kernels)
    if options.rung is not None or options.settings is not None or options.backend is not None:
        raise InvalidProblem(
            "rung=, settings= or backend= where torch traces, differentiates or casts: detach the operands first"
        )
    plain = options == Options(compute_type=kinds[0], kernels=kinds[1]) and c is None and bias is None
    if plain:
        if out is None:
            return MATMUL(a, b, *kinds)
        MATMUL_OUT(a, b, out, *kinds)
        return out
    named, activate = _name(options.epilogue), None
    if has_gradient:
        named, activate = _parted(named, has_bias=bias is not None)
    scalars = (options.alpha, options.beta, named, *kinds)
    if out is None:
        result = GEMM(a, b, c, bias, *scalars)
        return result if activate is None else activate(result)
    GEMM_OUT(a, b, out, c, bias, *scalars)
    return out


def _cast(tensor: Any, out: Any) -> Any:
    """The tensor as autocast has it. With `out` nothing is cast, as for `torch.mm`."""
    if tensor is None or out is not None or tensor.dtype not in CAST:
        return tensor
    return tensor.to(torch.get_autocast_dtype("cuda"))


def _parted(named: Any, *, has_bias: bool) -> tuple[Any, Any]:
    """An epilogue's name without an activation whose gradient needs what was before it, and that activation of torch's.

    The result is then rounded once more, between the two.
    """
    *_, last = ("", *epilogue_of(named, has_bias=has_bias).ops)
    if last not in DIFFERENTIATED:
        return named, None
    return "bias" if has_bias else None, DIFFERENTIATED[last]


def _name(epilogue: Any) -> Any:
    """An Epilogue by the name that an operator takes."""
    if not isinstance(epilogue, Epilogue):
        return epilogue
    return "_".join(reversed(epilogue.ops)) or "default"
