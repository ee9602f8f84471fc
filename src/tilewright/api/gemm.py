"""`Gemm`: one product looked at, tuned and repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from tilewright.api import calls, execution
from tilewright.api.bound_plan import BoundPlan
from tilewright.api.execution import stream_handle
from tilewright.api.frameworks import framework_of
from tilewright.api.options import Options, given_settings
from tilewright.api.plan import Plan
from tilewright.errors import InvalidProblem, NoDevice
from tilewright.run.protocol import Launch


class _Pinned(NamedTuple):
    """A launch that is repeated as long as `addresses_now` of the arrays are `addresses`."""

    launch: Launch
    device: int
    operands: tuple[int, int, int, int, int]
    addresses_now: tuple[Callable[[], int], ...]
    addresses: list[int]
    out: Any


class Gemm:
    """A product that is planned once and executed often; arguments as `gemm` takes them.

    It holds its operands until it is closed. `execute` may be called from several threads.
    """

    def __init__(
        self,
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
    ) -> None:
        self._framework = framework_of(a)
        self._arrays = {"A": a, "B": b, "C": c, "out": out, "bias": bias}
        self._options = Options(alpha, beta, epilogue, compute_type, kernels, backend, rung, given_settings(settings))
        self._stream = stream
        self._bound: BoundPlan | None = None
        self._pinned: _Pinned | None = None
        self._require_own(**self._arrays)

    def plan(self) -> Plan:
        """What `execute` will do; its text says it.

        On a GPU every kernel is loaded then, so that a graph may be captured. Raises as `gemm` does.
        """
        if self._bound is None:
            self._bound, *_ = execution.bind_plan(self._framework, self._arrays, self._stream, self._options)
            self._pinned = self._pin(self._bound)
        return self._bound.plan

    def autotune(self, *, effort: str = "quick", budget_seconds: float | None = None) -> Plan:
        """Search the chosen rung's configs for this problem, keep the best for every later call, and plan with it.

        Takes seconds to minutes. `effort` is 'quick' or 'full'. Raises NoDevice for arrays of the host.
        """
        from tilewright.tune import Machine, Request, tune

        if self._framework.on_host:
            raise NoDevice("autotune times kernels on arrays that are on a GPU: pass torch, CuPy or JAX arrays")
        for part in self.plan().parts:
            assert self._bound is not None
            request = Request(effort=effort, budget_s=budget_seconds)
            machine = Machine(devices=(self._bound.device,))
            tune(part.choice.config.rung, part.problem, request, machine=machine)
        execution.forget()
        self._bound = self._pinned = None
        return self.plan()

    def execute(self, a: Any = None, b: Any = None, c: Any = None, *, out: Any = None, stream: Any = None) -> Any:
        """The product of its operands, or of others of the same shapes and types in their place; returns it as `gemm`.

        Raises InvalidProblem for another shape or type.
        """
        if a is None and b is None and c is None and out is None:
            if self._bound is None and not self._framework.on_host:
                self.plan()
            pinned = self._pinned
            if pinned is None or [address() for address in pinned.addresses_now] != pinned.addresses:
                return self._run(self._arrays, stream)
            chosen = self._stream if stream is None else stream
            handle = self._framework.current_stream(pinned.device) if chosen is None else stream_handle(chosen)
            pinned.launch(*pinned.operands, handle)
            return pinned.out
        given = {"A": a, "B": b, "C": c, "out": out}
        used = {**self._arrays, **{name: self._same_kind(name, x) for name, x in given.items() if x is not None}}
        return self._run(used, stream)

    def _run(self, arrays: dict[str, Any], stream: Any) -> Any:
        operands = (arrays["A"], arrays["B"], arrays["C"], arrays["out"], arrays["bias"])
        return calls.run(*operands, self._stream if stream is None else stream, self._options)

    def close(self) -> None:
        """Let go of the operands."""
        self._arrays, self._bound, self._pinned = dict.fromkeys(self._arrays), None, None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pin(self, bound: BoundPlan) -> _Pinned | None:
        """What a repeated launch needs, where every array is used as it is stored and there is an `out`."""
        address, out = self._framework.address, self._arrays["out"]
        if bound.direct is None or out is None:
            return None
        arrays = {name: array for name, array in self._arrays.items() if array is not None}
        at = {name: address(array) for name, array in arrays.items()}
        d = at["out"]
        operands = (at["A"], at["B"], at["C"] if bound.reads_c else d, d, at.get("bias", 0))
        now = tuple(self._framework.address_of(array) for array in arrays.values())
        return _Pinned(bound.direct, bound.device, operands, now, list(at.values()), out)

    def _same_kind(self, name: str, array: Any) -> Any:
        """The array, if it has the shape and type of the one in its place."""
        self._require_own(A=array, B=array, C=None, out=None, bias=None)
        held = self._arrays[name]
        if held is None:
            if name == "out":
                return array
            raise InvalidProblem(f"{name}: this Gemm was made without it; make another one with it")
        if (tuple(held.shape), held.dtype) != (tuple(array.shape), array.dtype):
            raise InvalidProblem(
                f"{name} is {tuple(array.shape)} {array.dtype}: this Gemm is for {tuple(held.shape)} {held.dtype}; "
                f"make another one"
            )
        return array

    def _require_own(self, **arrays: Any) -> None:
        takes_over = self._framework.takes_over
        if takes_over is not None and takes_over(*(arrays[name] for name in ("A", "B", "C", "out", "bias"))):
            raise InvalidProblem(
                f"{self._framework.name} would trace, differentiate or cast this product, and Gemm launches kernels "
                f"alone; use matmul or gemm, or detach the operands"
            )
