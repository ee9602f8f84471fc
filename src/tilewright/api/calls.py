"""`matmul` and `gemm`: one product of any framework's arrays, looked up among those planned before.

Owns the public functions and the shortest way to a launch: what holds for every call of a kind is planned once, by
`execution`, and looked up by the arrays' shapes, strides, types and alignment from then on.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from tilewright.api import execution
from tilewright.api.frameworks import KNOWN, framework_of
from tilewright.api.operands import MOST_ALIGNMENT_BYTES
from tilewright.api.options import USUAL, Options, given_settings


def matmul(
    a: Any,
    b: Any,
    /,
    *,
    out: Any = None,
    compute_type: str | None = None,
    stream: Any = None,
    kernels: str = "all",
    backend: str | None = None,
) -> Any:
    """A·B by NumPy's shape rules: vectors, matrices, batches that broadcast. See `gemm` for everything else.

    Returns `out`, or a new array of the operands' framework on their device.
    """
    if compute_type is None and backend is None and kernels in USUAL:
        options = USUAL[kernels]
    else:
        options = Options(compute_type=compute_type, kernels=kernels, backend=backend)
    return run(a, b, None, out, None, stream, options)


def gemm(
    a: Any,
    b: Any,
    /,
    c: Any = None,
    *,
    alpha: float = 1.0,
    beta: float | None = None,
    out: Any = None,
    bias: Any = None,
    epilogue: Any = None,
    compute_type: str | None = None,
    stream: Any = None,
    kernels: str = "all",
    rung: Any = None,
    settings: Mapping[str, int] | None = None,
    backend: str | None = None,
) -> Any:
    """Epilogue(alpha · A·B + beta · C); returns `out`, or a new array of the operands' framework on their device.

    `a` (…, m, k) and `b` (…, k, n) are float32, bfloat16 or float16 arrays of one type and framework, of any strides:
    torch and CuPy tensors on a GPU and JAX arrays are used where they are, NumPy's are copied to the GPU and back or
    multiplied on this CPU with `backend="emulator"`. What can't be used as it is stored is copied; `Gemm(...).plan()`
    and the log at DEBUG say what and why. `c` broadcasts to the result, needs `beta`, and isn't read where that is 0.
    It may be `out`, which has the result's shape and may overlap an input, but then costs a copy. `bias` has an element
    for each column. `epilogue` is cuBLASLt's name: 'bias', 'relu', 'gelu' (by tanh), or 'silu', each
    activation also as 'relu_bias' and so on. Sums are in float32.

    `compute_type` is 'ieee' (the default: float32 is float32) or 'tf32', by cuBLAS's names too. `stream` is a raw
    handle or a stream object, by default the framework's current stream, and the call returns once all is launched on
    it. `kernels` is 'all' or 'own'. 'all' takes the faster of a kernel and torch's or CuPy's own product, as the user
    has set the framework: the latter where it was measured to be faster for such shapes on this card, and in 16 bits
    where nothing says that a kernel is; 'own' never does.

    `rung` names the kernel instead of having one chosen, as in 'k12' or 't08_deferred_epilogue', and `settings` its
    parameters, as in {'BM': 128}; those left out have their defaults. It must support the problem.

    Raises InvalidInput, a ValueError, before anything is launched; CompileFailed, LaunchFailed; NoDevice, NoCompiler.
    """
    options = Options(alpha, beta, epilogue, compute_type, kernels, backend, rung, given_settings(settings))
    return run(a, b, c, out, bias, stream, options)


def run(a: Any, b: Any, c: Any, out: Any, bias: Any, stream: Any, options: Options, *, whole: bool = False) -> Any:
    """The product; returns `out`, or a new array of the framework's. `c`, `out`, `bias` and `stream` may be None.

    `whole` keeps the framework from taking the call over, for those that it makes itself. Raises InvalidInput before
    anything is launched, CompileFailed, LaunchFailed, Missing.
    """
    framework = KNOWN.get(type(a)) or framework_of(a)
    if not whole and framework.takes_over is not None and framework.takes_over(a, b, c, out, bias):
        return framework.call(a=a, b=b, c=c, out=out, bias=bias, stream=stream, options=options)
    bound = key = None
    if framework.repeats:
        try:
            if framework.look_up is not None:
                key, at_a, at_b, at_c, at_d, at_bias = framework.look_up(a, b, c, out, bias, options)
            else:
                addresses, kinds = [], []
                for array in (a, b, c, out, bias):
                    address, kind = (0, None) if array is None else framework.identity(array)
                    addresses.append(address)
                    kinds.append(kind)
                at_a, at_b, at_c, at_d, at_bias = addresses
                bits = MOST_ALIGNMENT_BYTES | at_a | at_b | at_c | at_d | at_bias
                key = framework, bits & -bits, at_c == at_d, options, *kinds
            bound = execution.kept.get(key)
        except (AttributeError, TypeError, RuntimeError):  # another framework's array, or no array: said by `execution`
            key = None
        if bound is not None and out is not None and bound.overlaps(at_a, at_b, at_c, at_d, at_bias):
            bound = key = None
    if bound is not None and bound.direct is not None and (out is not None or stream is None):
        handle = framework.current_stream(bound.device) if stream is None else execution.stream_handle(stream)
        if out is not None:
            bound.direct(at_a, at_b, at_c if bound.reads_c else at_d, at_d, at_bias, handle)
            return out
        result = framework.allocate(bound.plan.result_shape, bound.plan.out_dtype, bound.device)
        at_d = framework.address(result)
        bound.direct(at_a, at_b, at_c if bound.reads_c else at_d, at_d, at_bias, handle)
        return framework.finished(result)
    arrays = {"A": a, "B": b, "C": c, "out": out, "bias": bias}
    return execution.execute(framework, arrays, stream, options, bound, key)


def gemm_with(
    rung: Any,
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
    """Deprecated: `gemm(a, b, c, rung=..., settings=...)` does the same for every type, layout and stride."""
    warnings.warn(
        "gemm_with is deprecated: write gemm(a, b, c, rung=..., settings=..., out=...) instead",
        DeprecationWarning,
        stacklevel=2,
    )
    given = None if c is None and beta == 0.0 else beta
    return gemm(a, b, c, out=out, alpha=alpha, beta=given, rung=rung, settings=settings, stream=stream, backend=backend)
