"""A `Run` on a backend: operands up, one launch, everything back.

Owns the way between host operands and device memory. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tilewright.compile.binary import Binary
from tilewright.compile.variant import PLAIN, Variant
from tilewright.declare import Config
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.run.args import gemm_args
from tilewright.run.kernel import Compile, bind
from tilewright.run.protocol import Backend, Grid, Memory
from tilewright.verify.accept import Array
from tilewright.verify.operands import Operands, Result, Run, front_guard

Geometry = Callable[[Problem], Grid]
Launch = Callable[[Problem, dict[str, int]], None]
"""Starts one product: the problem, and the addresses of a, b, c, d and, where the epilogue needs it, bias."""


class _Arrays:
    """Device arrays of one backend, kept for later launches that need the same ones."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._kept: dict[tuple[str, int, int, bool], Memory] = {}

    def upload(self, name: str, data: Array, *, alignment_bytes: int, read_only: bool) -> Memory:
        label = name if name == "bias" else name.upper()
        alignment_bytes = max(alignment_bytes, data.itemsize)
        key = (label, data.nbytes, alignment_bytes, read_only)
        if key not in self._kept:
            self._kept[key] = self._backend.alloc(
                data.nbytes, label=label, alignment_bytes=alignment_bytes, read_only=read_only
            )
        self._backend.upload(self._kept[key], np.ascontiguousarray(data).view(np.uint8))
        return self._kept[key]


def run_on(backend: Backend, binary: Binary, geometry: Geometry) -> Run:
    """A Run that launches `binary` on `backend` with the grid `geometry` gives for each problem. See `run_with`."""

    def launch(problem: Problem, addresses: dict[str, int]) -> None:
        backend.launch(binary, geometry(problem), gemm_args(problem, **addresses))

    return run_with(backend, launch)


class DeviceRuns:
    """Runs on one device that share its arrays, as when one config after the other is checked."""

    def __init__(self, device: Backend) -> None:
        self._device, self._arrays = device, _Arrays(device)

    def of(
        self,
        config: Config,
        *,
        variant: Variant = PLAIN,
        compiled: Compile | None = None,
        sm_count: int | None = None,
    ) -> Run:
        """A Run of `config`, bound to each problem as it comes, as `run.kernel.bind` does. Raises what that raises."""

        def launch(problem: Problem, addresses: dict[str, int]) -> None:
            bind(config, problem, self._device, variant=variant, compiled=compiled, sm_count=sm_count)(**addresses)

        return self.through(launch)

    def through(self, launch: Launch) -> Run:
        """See `run_with`."""
        return _run_with(self._device, self._arrays, launch)


def run_with(backend: Backend, launch: Launch) -> Run:
    """A Run that takes the operands to `backend`, calls `launch` and brings everything back.

    On the emulator, which reports any access outside an array, the arrays are exactly the operands; elsewhere
    the guard bands go to the device too and come back to be compared. Allocations of the same size are used again
    until the backend is closed, which is the caller's to do. Raises what the backend does.
    """
    return DeviceRuns(backend).through(launch)


def _run_with(backend: Backend, device_arrays: _Arrays, launch: Launch) -> Run:
    with_guards = backend.name != "emulator"

    def run(problem: Problem, operands: Operands) -> Result:
        flat = {"a": operands.a, "b": operands.b, "c": operands.c}
        if not operands.in_place:
            flat["d"] = operands.d
        spans = {name: _span(problem, name, with_guards) for name in flat}
        inputs = "ab" if operands.in_place else "abc"
        alignment_bytes = problem.alignment_bytes * operands.a.itemsize // ITEMSIZE_BYTES[problem.dtype]
        upload = partial(device_arrays.upload, alignment_bytes=alignment_bytes)
        memories = {name: upload(name, array[spans[name]], read_only=name in inputs) for name, array in flat.items()}
        guard = front_guard(problem) if with_guards else 0
        addresses = {name: memories[name].address + guard * array.itemsize for name, array in flat.items()}
        addresses.setdefault("d", addresses["c"])
        if operands.bias is not None:
            addresses["bias"] = upload("bias", operands.bias, read_only=True).address
        launch(problem, addresses)
        backend.synchronize()
        after = {name: _download(backend, memories[name], array, spans[name]) for name, array in flat.items()}
        return Result(after["a"], after["b"], after["c"], after.get("d", after["c"]))

    return run


def _span(problem: Problem, operand: str, with_guards: bool) -> slice:
    """The part of the flat buffer that goes to the device; at least one element, as nothing has no address."""
    if with_guards:
        return slice(None)
    start = front_guard(problem)
    return slice(start, start + max(problem.total_extent(operand), 1))


def _download(backend: Backend, memory: Memory, flat: Array, span: slice) -> Array:
    """A copy of the flat buffer with what the device now holds in its span."""
    after = flat.copy()
    after[span] = backend.download(memory)[: flat[span].nbytes].view(flat.dtype)
    return after
