"""Running a call: a plan made once for its shapes, strides, types and alignment, then looked up and repeated.

Owns the table of what was planned and the check, made at every call, that `out` overlaps no input.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any, NamedTuple

from tilewright.api.asked import Asked
from tilewright.api.frameworks import framework_of
from tilewright.api.frameworks.base import Framework
from tilewright.api.host import HostTarget, host_target, launch_on
from tilewright.api.planning import make_plan
from tilewright.api.ready import Ready, given_back
from tilewright.api.scalars import beta_of, epilogue_of, operand_dtype, scale
from tilewright.api.shapes import broadcast_shape, product_sizes
from tilewright.api.streams import stream_handle
from tilewright.api.target import gpu_target
from tilewright.api.view import HOST, View, alignment_of
from tilewright.errors import InvalidInput, InvalidProblem
from tilewright.select import is_first_use, tune_first_use
from tilewright.tune import Machine

MOST_KEPT = 4096
BACKENDS, KERNELS = (None, "cuda", "emulator"), ("all", "own")
_log = logging.getLogger("tilewright")
_kept: dict[Any, Ready] = {}
os.register_at_fork(after_in_child=_kept.clear)


class Options(NamedTuple):
    """What of a call is no array, as given."""

    alpha: Any = 1.0
    beta: Any = None
    epilogue: Any = None
    compute_type: Any = None
    kernels: Any = "all"
    backend: Any = None


PLAIN = Options()
"""Those of a call that names none."""


def run(framework: Framework, a: Any, b: Any, c: Any, out: Any, bias: Any, stream: Any, options: Options) -> Any:
    """The product; returns `out`, or a new array of the framework's. `c`, `out`, `bias` and `stream` may be None.

    Raises InvalidInput before anything is launched, CompileFailed, LaunchFailed, Missing.
    """
    ready = key = None
    if framework.repeats:
        address, signature = framework.address, framework.signature
        try:
            at_a, at_b = address(a), address(b)
            at_c = 0 if c is None else address(c)
            at_d = 0 if out is None else address(out)
            at_bias = 0 if bias is None else address(bias)
            bits = 256 | at_a | at_b | at_c | at_d | at_bias
            key = (
                *(framework, signature(a), signature(b), c if c is None else signature(c)),
                *(out if out is None else signature(out), bias if bias is None else signature(bias)),
                *(bits & -bits, at_c == at_d, options),
            )
            ready = _kept.get(key)
        except (AttributeError, TypeError):  # another framework's array, or no array, which is told below
            key = None
        if ready is not None and out is not None and ready.overlaps(at_a, at_b, at_c, at_d, at_bias):
            ready = key = None
    if ready is None:
        return _run_first(framework, {"A": a, "B": b, "C": c, "out": out, "bias": bias}, stream, options, key)
    if ready.direct and ready.target is not None and (out is not None or stream is None):
        handle = framework.current_stream(ready.device) if stream is None else stream_handle(stream)
        if out is not None:
            ready.launch(at_a, at_b, at_c, at_d, at_bias, handle)
            return out
        result = framework.allocate(ready.plan.result_shape, ready.plan.out_dtype, ready.device)
        ready.launch(at_a, at_b, at_c, framework.address(result), at_bias, handle)
        return framework.finished(result)
    return _run_again(ready, framework, {"A": a, "B": b, "C": c, "out": out, "bias": bias}, stream, options)


def get_ready(framework: Framework, arrays: dict[str, Any], stream: Any, options: Options) -> Ready:
    """The plan for arrays on a GPU, its kernels loaded. Raises as `run` does."""
    asked = ask(framework, arrays, options, packed="")
    if asked.a.device == HOST:
        raise InvalidProblem(
            f"arrays of {framework.name} lie on the host: move them to a GPU, or pass NumPy's with backend='emulator'"
        )
    if options.backend == "emulator":
        raise InvalidProblem("backend='emulator' with arrays on a GPU: it takes NumPy arrays; leave backend out")
    target = gpu_target(asked.a.device)
    handle = framework.current_stream(asked.a.device) if stream is None else stream_handle(stream)
    plan = make_plan(asked, target)
    first_uses = [part for part in plan.parts if is_first_use(part.choice)]
    postponed = bool(first_uses) and target.is_capturing(handle)
    if first_uses and not postponed:
        for part in first_uses:
            tune_first_use(part.problem, part.choice, Machine(devices=(asked.a.device,)))
        plan = make_plan(asked, target)
    ready = Ready(plan, asked, target)
    ready.is_repeatable = ready.is_repeatable and not postponed
    _log.debug("%s", plan)
    ready.load(handle)
    return ready


def get_host_ready(framework: Framework, arrays: dict[str, Any], target: HostTarget, options: Options) -> Ready:
    """The plan for arrays of the host on `target`. Raises as `run` does."""
    asked = ask(framework, arrays, options, packed=target.packed)
    ready = Ready(make_plan(asked, target), asked, None)
    _log.debug("%s", ready.plan)
    return ready


def ask(framework: Framework, arrays: dict[str, Any], options: Options, *, packed: str) -> Asked:
    """The arrays as views, with the scalars, all checked. Raises InvalidInput."""
    if options.kernels not in KERNELS:
        raise InvalidInput(f"kernels={options.kernels!r}: must be 'all' or 'own'")
    for name, array in arrays.items():
        if array is not None and (other := framework_of(array)) is not framework:
            raise InvalidProblem(f"A is {framework.name}'s and {name} is {other.name}'s: convert one of them")
    views = {name: framework.view(name, x) for name, x in arrays.items() if name != "C" and x is not None}
    beta = beta_of(options.beta, has_c=arrays["C"] is not None)
    epilogue = epilogue_of(options.epilogue, has_bias=arrays["bias"] is not None)
    return Asked(
        a=views["A"],
        b=views["B"],
        c=_view_of_c(framework, arrays["C"], views, beta),
        out=views.get("out"),
        bias=views.get("bias"),
        alpha=scale("alpha", options.alpha),
        beta=beta,
        dtype=operand_dtype(views["A"].dtype, options.compute_type),
        epilogue=epilogue,
        alignment_bytes=alignment_of(*(framework.address(array) for array in arrays.values() if array is not None)),
        packed=packed,
        kernels=options.kernels if framework.multiplies else "own",
    )


def _view_of_c(framework: Framework, c: Any, views: dict[str, View], beta: float) -> View | None:
    """C repeated to the result's shape; None where beta leaves it out, of which only the shape is looked at then."""
    if c is None:
        return None
    result, shape = product_sizes(views["A"].shape, views["B"].shape).result_shape, tuple(c.shape)
    if broadcast_shape(shape, result, f"C is {shape} and A·B is {result}") != result:
        raise InvalidProblem(f"C is {shape}: must broadcast to {result}, the shape of A·B")
    return framework.view("C", framework.broadcast(c, result)) if beta != 0.0 else None


def _run_first(framework: Framework, arrays: dict[str, Any], stream: Any, options: Options, key: Any) -> Any:
    if options.backend not in BACKENDS:
        raise InvalidInput(f"backend={options.backend!r}: must be 'cuda' or 'emulator'; leave it out for the GPU")
    if framework.on_host:
        with host_target(options.backend) as target:
            ready = get_host_ready(framework, arrays, target, options)
            _keep(key, ready, framework, arrays)
            return _run_on_host(ready, framework, arrays, target)
    ready = get_ready(framework, arrays, stream, options)
    _keep(key, ready, framework, arrays)
    return _run_again(ready, framework, arrays, stream, options)


def _keep(key: Any, ready: Ready, framework: Framework, arrays: dict[str, Any]) -> None:
    """Remember what holds for every call of this key."""
    if key is None or not ready.is_repeatable:
        return
    if len(_kept) >= MOST_KEPT:
        _kept.clear()
    _kept[key] = ready


def _run_again(ready: Ready, framework: Framework, arrays: dict[str, Any], stream: Any, options: Options) -> Any:
    if framework.on_host:
        with host_target(options.backend) as target:
            return _run_on_host(ready, framework, arrays, target)
    handle = framework.current_stream(ready.device) if stream is None else stream_handle(stream)
    is_own = stream is None or (ready.direct and arrays["out"] is not None)
    with contextlib.nullcontext() if is_own else framework.using(ready.device, handle):
        return ready.run(framework, arrays, handle)


def _run_on_host(ready: Ready, framework: Framework, arrays: dict[str, Any], target: HostTarget) -> Any:
    plan, out = ready.plan, arrays["out"]
    result = out
    if out is None or plan.temporary:
        result = framework.allocate(plan.result_shape, plan.out_dtype, HOST)
    if plan.parts:
        used = ready.inputs(framework, arrays)
        a, b = (used["B"], used["A"]) if plan.swapped else (used["A"], used["B"])
        launch_on(target, plan, {"a": a, "b": b, "c": used["C"], "bias": used["bias"]}, result)
    return given_back(plan, framework, out, result)


def forget() -> None:
    """Plan every call anew, since what tuning knows has changed."""
    _kept.clear()
