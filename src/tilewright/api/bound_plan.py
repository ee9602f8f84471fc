"""A plan bound to a device: its kernels loaded, where each launch's matrices are relative to the arrays' addresses."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.api.operands import Product
from tilewright.api.plan import Plan
from tilewright.run.kernel import Kernel
from tilewright.run.protocol import Launch

NOWHERE = (1 << 62, 0)
"""The reach of an array that overlaps nothing, wherever it is."""


class BoundPlan:
    """What a call repeats. Addresses are of the arrays' first elements, in the caller's order.

    `launch(a, b, c, d, bias, stream)` launches everything; `c` is `d` where C isn't read. `direct` is the same where
    that is all there is to do, else None. `is_repeatable`: the plan is right for all addresses of the same alignment
    that do not overlap. `kernels` are those of the plan's parts; a plan for arrays of the host has none of its own, and
    one that takes the framework's product none before that is refused.
    """

    __slots__ = (
        *("device", "direct", "is_repeatable", "launch", "plan", "reads_c"),
        *("_groups", "_ignores_operands", "_reach", "_swapped"),
    )

    def __init__(self, plan: Plan, product: Product, kernels: Sequence[Kernel] = ()) -> None:
        self.plan, self.device, self.reads_c = plan, product.a.device, product.c is not None
        self.is_repeatable = product.is_aligned and product.overlap is None
        self._ignores_operands, self._swapped = not product.reads_operands, plan.swapped
        self._reach = _reach(product, plan)
        self.launch: Launch = self._launch_all
        self.take(kernels)
        is_direct = not plan.copies and plan.temporary is None and plan.library is None
        self.direct: Launch | None = self.launch if is_direct and self.is_bound else None

    def take(self, kernels: Sequence[Kernel]) -> None:
        """Launch these kernels, one for each of the plan's parts."""
        self._groups = [(kernel.launch, part.offsets) for part, kernel in zip(self.plan.parts, kernels, strict=False)]
        is_one = len(self._groups) == 1 and self._groups[0][1] == ((0, 0, 0, 0),)
        if is_one and not self._swapped and not self._ignores_operands:
            self.launch = self._groups[0][0]

    @property
    def is_bound(self) -> bool:
        """Whether it has its kernels."""
        return bool(self._groups)

    def overlaps(self, a: int, b: int, c: int, d: int, bias: int) -> bool:
        """Whether `out` at `d` is in one stretch of memory with an input that is read where it is stored."""
        low, high, a_low, a_high, b_low, b_high, c_low, c_high, bias_low, bias_high = self._reach
        low, high = d + low, d + high
        return (
            (a + a_low < high and low < a + a_high)
            or (b + b_low < high and low < b + b_high)
            or (c + c_low < high and low < c + c_high)
            or (bias + bias_low < high and low < bias + bias_high)
        )

    def _launch_all(self, a: int, b: int, c: int, d: int, bias: int, stream: int) -> None:
        if self._swapped:
            a, b = b, a
        if self._ignores_operands:
            a = b = d
        for launch, offsets in self._groups:
            for on_a, on_b, on_c, on_d in offsets:
                launch(a + on_a, b + on_b, c + on_c, d + on_d, bias, stream)


def _reach(product: Product, plan: Plan) -> tuple[int, ...]:
    """First byte and the one past the last of out, A, B, C and bias; NOWHERE for those that are copied or not read."""
    reach, copied = list(product.reaches.get("out", NOWHERE)), {copy.name for copy in plan.copies}
    for name in ("A", "B", "C", "bias"):
        reach += NOWHERE if name in copied else product.reaches.get(name, NOWHERE)
    return tuple(reach)
