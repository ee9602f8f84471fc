"""One execution of a bound plan: its copies, its launches, where the result goes first.

Arrays of a GPU are launched on where they are. Those of the host are copied to a device with their strides, multiplied
there and copied back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tilewright.api.bound_plan import BoundPlan
from tilewright.api.devices import GpuTarget, HostTarget
from tilewright.api.frameworks.base import Framework
from tilewright.api.operands import HOST
from tilewright.run.protocol import Backend, Memory


def run_on_gpu(bound: BoundPlan, framework: Framework, arrays: dict[str, Any], target: GpuTarget, stream: int) -> Any:
    """The array with the result, `out` unless a temporary is in its place; on `stream`, the framework's current one.

    `arrays` are A, B, C, out and bias by name, None for those that aren't there.
    """
    plan, out = bound.plan, arrays["out"]
    if plan.library is not None:
        result = framework.product(arrays["A"], arrays["B"], arrays["bias"], out, plan.parts[0].problem.dtype)
        if result is not None:
            return result if out is None else out
        if not bound.is_bound:
            bound.take([target.bind(part, stream) for part in plan.parts])
    inputs = _inputs(bound, framework, arrays)
    result = out
    if out is None or plan.temporary is not None:
        result = framework.allocate(plan.result_shape, plan.out_dtype, bound.device)
    if plan.parts:
        at = {name: 0 if array is None else framework.address(array) for name, array in inputs.items()}
        d = framework.address(result)
        bound.launch(at["A"], at["B"], at["C"] if bound.reads_c else d, d, at["bias"], stream)
    return result


def run_on_host(bound: BoundPlan, framework: Framework, arrays: dict[str, Any], target: HostTarget) -> Any:
    """The same for arrays of the host, on a device that is closed then."""
    plan, result = bound.plan, arrays["out"]
    with target.device as device:
        kernels = [target.bind(part) for part in plan.parts]
        inputs = _inputs(bound, framework, arrays)
        if result is None or plan.temporary is not None:
            result = framework.allocate(plan.result_shape, plan.out_dtype, HOST)
        if not kernels:
            return result
        a, b = (inputs["B"], inputs["A"]) if plan.swapped else (inputs["A"], inputs["B"])
        reads_operands = plan.parts[0].problem.k > 0
        read = {"a": a if reads_operands else None, "b": b if reads_operands else None}
        read |= {"c": inputs["C"], "bias": inputs["bias"]}
        alignment = plan.parts[0].problem.alignment_bytes
        memory, d = _placed(device, "d", result, alignment, read_only=False)
        at, held = dict.fromkeys(read, d), []
        for name, array in read.items():
            if array is not None:
                placed, at[name] = _placed(device, name, array, alignment, read_only=True)
                held.append(placed)
        for part, kernel in zip(plan.parts, kernels, strict=True):
            for on_a, on_b, on_c, on_d in part.offsets:
                kernel(a=at["a"] + on_a, b=at["b"] + on_b, c=at["c"] + on_c, d=d + on_d, bias=at["bias"])
        flat = device.download(memory).view(result.dtype)
        result[...] = _strided(flat, result)
    return result


def _inputs(bound: BoundPlan, framework: Framework, arrays: dict[str, Any]) -> dict[str, Any]:
    """A, B, C and bias, with the plan's copies made; C repeated to the result's shape, None if it isn't read."""
    used = {name: arrays[name] for name in ("A", "B", "C", "bias")}
    used["C"] = framework.broadcast(used["C"], bound.plan.result_shape) if bound.reads_c else None
    for copy in bound.plan.copies:
        used[copy.name] = framework.copy(used[copy.name], copy)
    return used


def _placed(device: Backend, name: str, array: Any, alignment_bytes: int, *, read_only: bool) -> tuple[Memory, int]:
    """Device memory for the array with its own strides, filled where it is read, and its first element's address."""
    low, high = _reach(array)
    memory = device.alloc(
        (high - low) * array.itemsize, label=name.upper(), alignment_bytes=alignment_bytes, read_only=read_only
    )
    if read_only:
        flat = np.zeros(high - low, array.dtype)
        _strided(flat, array)[...] = array
        device.upload(memory, flat.view(np.uint8))
    return memory, memory.address - low * array.itemsize


def _strided(flat: Any, like: Any) -> Any:
    """`flat`, the stretch of memory that `like` lies in, with the shape and strides of `like`."""
    return as_strided(flat[-_reach(like)[0] :], like.shape, like.strides)


def _reach(array: Any) -> tuple[int, int]:
    """The first element's place and the one past the last, from the address on, in elements."""
    if array.size == 0:
        return 0, 0
    steps = [(size - 1) * stride // array.itemsize for size, stride in zip(array.shape, array.strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + 1
