"""A call that isn't a mere repetition: planned and bound where it is the first of its kind, then executed.

Owns the table of bound plans.
"""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any

from tilewright.api.bound_plan import BoundPlan
from tilewright.api.devices import GpuTarget, HostTarget, gpu_target, host_target
from tilewright.api.frameworks import KNOWN, framework_of
from tilewright.api.frameworks.base import Framework
from tilewright.api.on_device import run_on_gpu, run_on_host
from tilewright.api.operands import HOST, MOST_ALIGNMENT_BYTES, Product, product_of, require_broadcast
from tilewright.api.options import Checked, Options, check_options
from tilewright.api.plan import make_plan
from tilewright.errors import InvalidInput, InvalidProblem
from tilewright.select import is_first_use, tune_first_use

MOST_KEPT = 4096
PACKED_FOR_GPU = "NumPy's arrays are in the host's memory"
"""Why inputs are copied without gaps on the way to a GPU."""
_log = logging.getLogger("tilewright")
kept: dict[Any, BoundPlan] = {}
"""What was planned before, by the key that a call is looked up by."""
os.register_at_fork(after_in_child=kept.clear)


def execute(
    framework: Framework, arrays: dict[str, Any], stream: Any, options: Options, bound: BoundPlan | None, key: Any
) -> Any:
    """The product of `arrays`: A, B, C, out and bias by name, None for those that aren't there.

    `bound` is the plan where there is one already; else it is made, and kept under `key` unless that is None. Returns
    and raises as `calls.run` does.
    """
    if bound is None:
        bound, target, handle = bind_plan(framework, arrays, stream, options)
        if key is not None and bound.is_repeatable:
            if len(kept) >= MOST_KEPT:
                kept.clear()
            kept[key] = bound
    else:
        target = host_target(options.backend) if framework.on_host else gpu_target(bound.device)
        handle = framework.current_stream(bound.device) if stream is None else stream_handle(stream)
    out = arrays["out"]
    is_own = stream is None or (bound.direct is not None and out is not None)
    with contextlib.nullcontext() if is_own else framework.using(bound.device, handle):
        if isinstance(target, HostTarget):
            result = run_on_host(bound, framework, arrays, target)
        else:
            result = run_on_gpu(bound, framework, arrays, target, handle)
        if out is None:
            return framework.finished(result)
        if result is not out:
            framework.assign(out, result)
        return out


def bind_plan(
    framework: Framework, arrays: dict[str, Any], stream: Any, options: Options
) -> tuple[BoundPlan, GpuTarget | HostTarget, int]:
    """The plan, the device that it was made for and the stream's handle; on a GPU what it launches is loaded.

    Where the environment asks for it a problem is tuned first, outside of a capture. Raises as `calls.run` does.
    """
    product, checked, handle = _posed(framework, arrays, stream, options)
    target = host_target(options.backend) if framework.on_host else gpu_target(product.a.device)
    own, config = checked.own or not framework.multiplies, checked.config
    plan = make_plan(product, target, own=own, config=config)
    kernels, postponed = [], False
    if not isinstance(target, HostTarget):
        first_uses = [] if config is not None else [part for part in plan.parts if is_first_use(part.choice)]
        postponed = bool(first_uses) and target.is_capturing(handle)
        if first_uses and not postponed:
            for part in first_uses:
                tune_first_use(part.problem, part.choice, product.a.device)
            plan = make_plan(product, target, own=own, config=config)
        kernels = [] if plan.library is not None else [target.bind(part, handle) for part in plan.parts]
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("%s", plan)
    bound = BoundPlan(plan, product, kernels)
    bound.is_repeatable = bound.is_repeatable and not postponed
    return bound, target, handle


def _posed(framework: Framework, arrays: dict[str, Any], stream: Any, options: Options) -> tuple[Product, Checked, int]:
    """The product that the call poses, its options and its stream, all checked. Raises InvalidInput."""
    given = {name: array for name, array in arrays.items() if array is not None}
    for name, array in given.items():
        if KNOWN.get(type(array)) is not framework and (other := framework_of(array)) is not framework:
            raise InvalidProblem(f"A is {framework.name}'s and {name} is {other.name}'s: convert one of them")
    operands = {name: framework.describe(name, x) for name, x in given.items() if name != "C"}
    c, bits, device = given.get("C"), MOST_ALIGNMENT_BYTES, operands["A"].device
    for operand in operands.values():
        bits |= operand.address
    if c is not None:
        bits |= framework.address(c)
    if device == HOST and not framework.on_host:
        raise InvalidProblem(
            f"arrays of {framework.name} are on the host: move them to a GPU, or pass NumPy's with backend='emulator'"
        )
    if device != HOST and options.backend == "emulator":
        raise InvalidProblem("backend='emulator' with arrays on a GPU: it takes NumPy arrays; leave backend out")
    handle = framework.current_stream(device) if stream is None else stream_handle(stream)
    checked = check_options(options, operands["A"].dtype, has_c=c is not None, has_bias="bias" in given)
    if c is not None:
        result = require_broadcast(tuple(c.shape), operands["A"].shape, operands["B"].shape)
        if checked.beta != 0.0:  # where beta leaves C out, only its shape is looked at
            operands["C"] = framework.describe("C", framework.broadcast(c, result))
    product = product_of(
        a=operands["A"],
        b=operands["B"],
        c=operands.get("C"),
        out=operands.get("out"),
        bias=operands.get("bias"),
        alpha=checked.alpha,
        beta=checked.beta,
        dtype=checked.dtype,
        epilogue=checked.epilogue,
        alignment_bytes=bits & -bits,
        packed=PACKED_FOR_GPU if framework.on_host and options.backend != "emulator" else None,
    )
    return product, checked, handle


def stream_handle(stream: Any) -> int:
    """The raw handle of one, of an object with `__cuda_stream__`, or of a torch or CuPy stream. Raises InvalidInput."""
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    raise InvalidInput(
        f"stream={stream!r}: must be a raw handle, an object with __cuda_stream__, or a torch or CuPy stream; leave it "
        f"out for the framework's current one"
    )


def forget() -> None:
    """Plan every call anew, since what tuning knows has changed."""
    kept.clear()
