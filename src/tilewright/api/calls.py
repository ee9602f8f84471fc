"""`matmul` and `gemm`: one product of any framework's arrays."""

from __future__ import annotations

from typing import Any

from tilewright.api.frameworks import framework_of, known_framework
from tilewright.api.running import PLAIN, Options, run


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
    framework = known_framework(type(a)) or framework_of(a)
    is_plain = compute_type is None and kernels == "all" and backend is None
    options = PLAIN if is_plain else Options(compute_type=compute_type, kernels=kernels, backend=backend)
    if framework.takes_over((a, b, out)):
        return framework.call(a=a, b=b, c=None, out=out, bias=None, stream=stream, options=options)
    return run(framework, a, b, None, out, None, stream, options)


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
    backend: str | None = None,
) -> Any:
    """Epilogue(alpha · A·B + beta · C); returns `out`, or a new array of the operands' framework on their device.

    `a` (…, m, k) and `b` (…, k, n) are float32, bfloat16 or float16 arrays of one type and framework, of any strides:
    torch and CuPy tensors on a GPU and JAX arrays are used where they lie, NumPy's are copied to the GPU and back, or
    multiplied on this CPU with `backend="emulator"`. What can't be used as it lies is copied; `Gemm(...).plan()` and
    the log at DEBUG say what and why. `c` broadcasts to the result, needs `beta`, and isn't read where that is 0; it
    may be `out`. `out` has the result's shape and may overlap an input, but then costs a copy. `bias` has one element
    for each column. `epilogue` is cuBLASLt's name: 'bias', 'relu', 'gelu' (by tanh), or 'silu', each
    activation also as 'relu_bias' and so on. Sums are in float32.

    `compute_type` is 'ieee' (the default: float32 is float32) or 'tf32', by cuBLAS's names too. `stream` is a raw
    handle or a stream object, by default the framework's current stream, and the call returns once all is launched on
    it. `kernels` is 'all' or 'own'. 'all' takes torch's or CuPy's own product where that was measured to be faster for
    such shapes on this card, if it means the same by the framework's settings; 'own' never does.

    Raises InvalidInput, a ValueError, before anything is launched; CompileFailed, LaunchFailed; NoDevice, NoCompiler.
    """
    framework = known_framework(type(a)) or framework_of(a)
    options = Options(alpha, beta, epilogue, compute_type, kernels, backend)
    if framework.takes_over((a, b, c, out, bias)):
        return framework.call(a=a, b=b, c=c, out=out, bias=bias, stream=stream, options=options)
    return run(framework, a, b, c, out, bias, stream, options)
