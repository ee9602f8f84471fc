"""A plan bound to a device: its kernels loaded, its launches prepared, what lies where relative to each address."""

from __future__ import annotations

from typing import Any

from tilewright.api.asked import Asked
from tilewright.api.drafts import overlap
from tilewright.api.frameworks.base import Framework
from tilewright.api.pieces import Steps
from tilewright.api.plan import Plan
from tilewright.api.target import GpuTarget
from tilewright.api.view import View
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.run.prepared import PreparedLaunch

NOWHERE = (1 << 62, 0)
"""The reach of an array that overlaps nothing, wherever it is."""
Offsets = tuple[tuple[int, int, int, int], ...]


class Ready:
    """What is repeated. `target` is None where there is nothing to launch on a GPU of its own.

    `direct` says that launching at the arrays' addresses is all there is to do, `is_repeatable` that the plan is right
    for all addresses of the same alignment that do not overlap. Addresses are of the first elements, in the caller's
    order.
    """

    __slots__ = (
        *("device", "direct", "is_repeatable", "plan", "reads_c", "target"),
        *("_ignores_operands", "_launches", "_only", "_reach", "_swapped"),
    )

    def __init__(self, plan: Plan, asked: Asked, target: GpuTarget | None) -> None:
        self.plan, self.target, self.device = plan, target, asked.a.device
        self.direct = not plan.copies and not plan.temporary and not plan.library
        self.reads_c = asked.c is not None
        self.is_repeatable = asked.is_aligned and not overlap(asked)
        self._ignores_operands = not asked.reads_operands
        self._swapped = plan.swapped
        self._reach = _reach(asked, plan)
        self._launches: tuple[tuple[PreparedLaunch, Offsets], ...] = ()
        self._only: PreparedLaunch | None = None

    def overlaps(self, a: int, b: int, c: int, d: int, bias: int) -> bool:
        """Whether `out` at `d` lies in one stretch of memory with an input that is read where it lies."""
        low, high, a_low, a_high, b_low, b_high, c_low, c_high, bias_low, bias_high = self._reach
        low, high = d + low, d + high
        return (
            (a + a_low < high and low < a + a_high)
            or (b + b_low < high and low < b + b_high)
            or (c + c_low < high and low < c + c_high)
            or (bias + bias_low < high and low < bias + bias_high)
        )

    def load(self, stream: int) -> None:
        """Compile and load every kernel. Raises InvalidInput where that can't be: `stream` is captured in a graph."""
        if self.target is not None:
            for part in self.plan.parts:
                self.target.load(part, stream)

    def launch(self, a: int, b: int, c: int, d: int, bias: int, stream: int) -> None:
        """Launch everything on `stream`, with these addresses. Raises LaunchFailed."""
        if self._swapped:
            a, b = b, a
        if self._ignores_operands:
            a = b = d
        if not self.reads_c:
            c = d  # its offsets are those of D
        if self._only is not None:
            self._only(a, b, c, d, bias, stream)
            return
        for prepared, offsets in self._launches or self._prepare(a, b, c, d, bias, stream):
            for on_a, on_b, on_c, on_d in offsets:
                prepared(a + on_a, b + on_b, c + on_c, d + on_d, bias, stream)

    def _prepare(
        self, a: int, b: int, c: int, d: int, bias: int, stream: int
    ) -> tuple[tuple[PreparedLaunch, Offsets], ...]:
        launches = []
        for part in self.plan.parts:
            assert self.target is not None
            problem = part.problem
            offsets = tuple(_bytes(step, problem) for step in part.offsets)
            first = {name: at + by for name, at, by in zip("abcd", (a, b, c, d), offsets[0], strict=True)}
            launches.append((self.target.prepared(part, {**first, "bias": bias}, stream), offsets))
        self._launches = tuple(launches)
        if len(launches) == 1 and launches[0][1] == ((0, 0, 0, 0),):
            self._only = launches[0][0]
        return self._launches

    def inputs(self, framework: Framework, arrays: dict[str, Any]) -> dict[str, Any]:
        """A, B, C and bias, with the plan's copies made; C repeated to the result's shape, None if it isn't read."""
        used = {name: arrays[name] for name in ("A", "B", "C", "bias")}
        used["C"] = framework.broadcast(used["C"], self.plan.result_shape) if self.reads_c else None
        for copy in self.plan.copies:
            used[copy.name] = framework.copy(used[copy.name], copy)
        return used

    def run(self, framework: Framework, arrays: dict[str, Any], stream: int) -> Any:
        """Copies, launches and what follows, on the framework's current stream, of which `stream` is the handle.

        `arrays` are by the plan's names: A, B, C, bias and out. Returns what the caller gets.
        """
        plan, out = self.plan, arrays["out"]
        if plan.library:
            product = framework.product(arrays["A"], arrays["B"], out, plan.parts[0].problem.dtype)
            if product is not None:
                return product
        used = self.inputs(framework, arrays)
        result = out
        if out is None or plan.temporary:
            result = framework.allocate(plan.result_shape, plan.out_dtype, self.device)
        if plan.parts:
            at = {name: 0 if array is None else framework.address(array) for name, array in used.items()}
            self.launch(at["A"], at["B"], at["C"], framework.address(result), at["bias"], stream)
        return given_back(plan, framework, out, result)


def _bytes(steps: Steps, problem: Problem) -> tuple[int, int, int, int]:
    inputs, outputs = ITEMSIZE_BYTES[problem.dtype], ITEMSIZE_BYTES[problem.out_dtype]
    return steps.a * inputs, steps.b * inputs, steps.c * outputs, steps.d * outputs


def given_back(plan: Plan, framework: Framework, out: Any, result: Any) -> Any:
    """What the caller gets: `out`, with the result in it, or a result of its own."""
    if out is None:
        return framework.finished(result)
    if plan.temporary:
        framework.assign(out, result)
    return out


def _reach(asked: Asked, plan: Plan) -> tuple[int, ...]:
    """First byte and the one past the last of out, A, B, C and bias; NOWHERE for those not read where they lie."""
    operands: tuple[View | None, ...] = (asked.a, asked.b) if asked.reads_operands else (None, None)
    out = asked.out
    c = None if asked.c is not None and out is not None and asked.c.is_same_memory(out) else asked.c
    reach = list(NOWHERE if out is None else out.reach_bytes)
    for view in (*operands, c, asked.bias):
        reach += NOWHERE if view is None or view.name in plan.copied else view.reach_bytes
    return tuple(reach)
