"""The library call as an arm, beside torch's own product on the same tensors.

Both are called as a user calls them, on torch's current stream, so the host's time for a call is the user's as well.
Owns the tensors and that stream; what is timed, and when, is `suite_bench`'s.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.api.calls import matmul
from tilewright.api.gemm import Gemm
from tilewright.api.plan import Plan
from tilewright.lab.suite_machine import Call
from tilewright.measure import Arm
from tilewright.measure.baseline import BASELINE
from tilewright.measure.baseline_torch import float32_precision, tensor_at
from tilewright.measure.ring import Addresses
from tilewright.problem import Problem


class TorchCalls:
    """Arms that call into torch tensors at a ring's addresses. They are launched inside `current`."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    @contextlib.contextmanager
    def current(self, problem: Problem, stream: Any) -> Iterator[None]:
        """Make the `cuda.core.Stream` torch's current one; in float32 its products those that the type means.

        In 16 bits torch is as its user has set it, as for any call.
        """
        torch = self._torch
        is_float32 = problem.dtype in ("float32", "tfloat32")
        precision = (
            float32_precision(torch, tf32=problem.dtype == "tfloat32") if is_float32 else contextlib.nullcontext()
        )
        with precision, torch.cuda.stream(torch.cuda.ExternalStream(int(stream.handle))):
            yield

    def arm(self, label: str, call: Call, problem: Problem, sets: Sequence[Addresses]) -> Arm:
        """The library call."""
        tensors, options = [self._tensors(problem, each) for each in sets], _options(problem, call)

        def launch(slot: int, _stream: Any) -> None:
            a, b, out = tensors[slot]
            matmul(a, b, out=out, **options)

        return Arm(label, launch)

    def baseline_arm(self, problem: Problem, sets: Sequence[Addresses]) -> Arm:
        """`torch.mm`."""
        tensors, product = [self._tensors(problem, each) for each in sets], self._torch.mm

        def launch(slot: int, _stream: Any) -> None:
            a, b, out = tensors[slot]
            product(a, b, out=out)

        return Arm(BASELINE, launch)

    def plan(self, call: Call, problem: Problem, addresses: Addresses) -> Plan:
        """What the call will do, its kernel compiled and loaded."""
        a, b, out = self._tensors(problem, addresses)
        with Gemm(a, b, out=out, **_options(problem, call)) as planned:
            return planned.plan()

    def _tensors(self, problem: Problem, addresses: Addresses) -> tuple[Any, Any, Any]:
        a, b, _, d = addresses
        made = (tensor_at(self._torch, problem, name, at) for name, at in zip("abd", (a, b, d), strict=True))
        return tuple(made)


def _options(problem: Problem, call: Call) -> dict[str, Any]:
    """What the call names beside its operands: nothing for a float32 product by any kernel."""
    named = {} if call.kernels == "all" else {"kernels": call.kernels}
    return {**named, "compute_type": "tf32"} if problem.dtype == "tfloat32" else named
