"""`Gemm`: one product looked at, tuned and repeated."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tilewright.api import running
from tilewright.api.frameworks import framework_of
from tilewright.api.host import host_target
from tilewright.api.plan import Plan
from tilewright.api.ready import Ready
from tilewright.api.running import Options
from tilewright.api.streams import stream_handle
from tilewright.errors import InvalidProblem, NoDevice


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
        backend: str | None = None,
    ) -> None:
        self._framework = framework_of(a)
        self._arrays = {"A": a, "B": b, "C": c, "out": out, "bias": bias}
        self._options = Options(alpha, beta, epilogue, compute_type, kernels, backend)
        self._stream = stream
        self._ready: Ready | None = None
        self._at: tuple[int, ...] = ()
        self._pinned: list[tuple[Any, int]] = []
        self._launch: Callable[..., None]
        self._device: int
        self._require_own(tuple(self._arrays.values()))

    def plan(self) -> Plan:
        """What `execute` will do; its text says it.

        On a GPU every kernel is loaded then, so that a graph may be captured. Raises as `gemm` does.
        """
        if self._framework.on_host:
            with host_target(self._options.backend) as target:
                return running.get_host_ready(self._framework, self._arrays, target, self._options).plan
        if self._ready is None:
            self._ready = running.get_ready(self._framework, self._arrays, self._stream, self._options)
            self._pin(self._ready)
        return self._ready.plan

    def autotune(self, *, effort: str = "quick", budget_seconds: float | None = None) -> Plan:
        """Search the chosen rung's configs for this problem, keep the best for every later call, and plan with it.

        Takes seconds to minutes. `effort` is 'quick' or 'full'. Raises NoDevice for arrays of the host.
        """
        from tilewright.tune import Machine, Request, tune

        if self._framework.on_host:
            raise NoDevice("autotune times kernels on arrays that lie on a GPU: pass torch, CuPy or JAX arrays")
        for part in self.plan().parts:
            assert self._ready is not None
            request = Request(effort=effort, budget_s=budget_seconds)
            machine = Machine(devices=(self._ready.device,))
            tune(part.choice.config.rung, part.problem, request, machine=machine)
        running.forget()
        self._ready, self._pinned = None, []
        return self.plan()

    def execute(self, a: Any = None, b: Any = None, c: Any = None, *, out: Any = None, stream: Any = None) -> Any:
        """The product of its operands, or of others of the same shapes and types in their place; returns it as `gemm`.

        Raises InvalidProblem for another shape or type.
        """
        if a is None and b is None and c is None and out is None:
            if self._ready is None and not self._framework.on_host:
                self.plan()
            if not self._is_pinned():
                return self._run(self._arrays, stream)
            chosen = self._stream if stream is None else stream
            handle = self._framework.current_stream(self._device) if chosen is None else stream_handle(chosen)
            self._launch(*self._at, handle)
            return self._arrays["out"]
        given = {"A": a, "B": b, "C": c, "out": out}
        used = {**self._arrays, **{name: self._same_kind(name, x) for name, x in given.items() if x is not None}}
        return self._run(used, stream)

    def _run(self, arrays: dict[str, Any], stream: Any) -> Any:
        operands = (arrays["A"], arrays["B"], arrays["C"], arrays["out"], arrays["bias"])
        return running.run(self._framework, *operands, self._stream if stream is None else stream, self._options)

    def close(self) -> None:
        """Let go of the operands."""
        self._arrays, self._ready, self._pinned = dict.fromkeys(self._arrays), None, []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _is_pinned(self) -> bool:
        """Whether launching at the planned addresses is all there is to do."""
        address = self._framework.address
        for array, at in self._pinned:
            if address(array) != at:
                return False
        return bool(self._pinned)

    def _pin(self, ready: Ready) -> None:
        """Note what a repeated launch needs, where every array is used as it lies and there is an `out`."""
        address, out = self._framework.address, self._arrays["out"]
        if ready.direct and out is not None:
            arrays = [self._arrays[name] for name in ("A", "B", "C", "out", "bias")]
            self._at = tuple(0 if array is None else address(array) for array in arrays)
            self._pinned = [(x, at) for x, at in zip(arrays, self._at, strict=True) if x is not None]
            self._launch, self._device = ready.launch, ready.device

    def _same_kind(self, name: str, array: Any) -> Any:
        """The array, if it has the shape and type of the one in its place."""
        self._require_own((array,))
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

    def _require_own(self, arrays: tuple[Any, ...]) -> None:
        if self._framework.takes_over(arrays):
            raise InvalidProblem(
                f"{self._framework.name} would trace, differentiate or cast this product, and Gemm launches kernels "
                f"alone; use matmul or gemm, or detach the operands"
            )
