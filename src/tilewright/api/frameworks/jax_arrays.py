"""JAX arrays: immutable, so never an `out`; on streams of JAX's own, so a call waits for them and for its result."""

from __future__ import annotations

from typing import Any, NoReturn

import jax
import jax.dlpack

from tilewright.api.frameworks.base import Framework
from tilewright.api.frameworks.numpy_arrays import dtype_of
from tilewright.api.operands import HOST, Operand, Shape, packed_strides, times
from tilewright.api.plan import Copy
from tilewright.errors import InvalidProblem

LEGACY_DEFAULT_STREAM = 0


class _Result:
    """Device memory for a result that becomes a JAX array once it is computed."""

    def __init__(self, shape: Shape, dtype: str, device: int) -> None:
        from tilewright.run.cuda import CudaBackend

        self.shape, self.dtype = shape, dtype_of(dtype)
        self.gpu = CudaBackend(device, stream=LEGACY_DEFAULT_STREAM)
        elements = 1
        for size in shape:
            elements *= size
        with self.gpu.current():
            self.buffer = self.gpu.device.allocate(max(elements * self.dtype.itemsize, 1), stream=self.gpu.stream)


class JaxArrays(Framework):
    """JAX's concrete arrays on one GPU; tracers and sharded arrays are refused."""

    name = "JAX"
    repeats = False

    def address(self, array: Any) -> int:
        """See `Framework.address`."""
        return int(array.buffer.handle) if isinstance(array, _Result) else int(array.unsafe_buffer_pointer())

    def describe(self, name: str, array: Any) -> Operand:
        """See `Framework.describe`. Waits until the array is computed."""
        if isinstance(array, jax.core.Tracer):
            raise InvalidProblem(f"{name}: a tracer: this cannot be called inside jit, grad or vmap; call it outside")
        devices = list(array.devices())
        if len(devices) != 1:
            raise InvalidProblem(f"{name}: sharded over {len(devices)} devices: gather it on one")
        on_gpu = devices[0].platform in ("gpu", "cuda")
        device = int(devices[0].local_hardware_id) if on_gpu else HOST
        address = self.address(array.block_until_ready()) if on_gpu else 0
        return Operand(
            name,
            address,
            array.shape,
            times(packed_strides(array.shape), array.dtype.itemsize),
            array.dtype.name,
            device,
            writable=False,
        )

    def broadcast(self, array: Any, shape: Shape) -> Any:
        """See `Framework.broadcast`; JAX copies."""
        return jax.numpy.broadcast_to(array, shape)

    def copy(self, array: Any, copy: Copy) -> Any:
        """See `Framework.copy`. JAX's arrays have no gaps, so only layouts that no rung takes come here: refused."""
        self._refuse(f"no copy of {copy.name} by columns", "pass operands that can be multiplied as they are")

    def allocate(self, shape: Shape, dtype: str, device: int) -> Any:
        """See `Framework.allocate`."""
        return _Result(shape, dtype, device)

    def assign(self, out: Any, value: Any) -> None:
        """Refused: nothing is written to a JAX array."""
        self._refuse("out= is refused", "use what the call returns")

    def finished(self, result: Any) -> Any:
        """See `Framework.finished`. Waits for the launches."""
        result.gpu.synchronize()
        count = result.dtype.itemsize
        raw = jax.dlpack.from_dlpack(result.buffer)[: _bytes(result.shape, count)]
        elements = jax.lax.bitcast_convert_type(raw.reshape(-1, count), result.dtype)
        return elements.reshape(result.shape)

    def current_stream(self, device: int) -> int:
        """See `Framework.current_stream`."""
        return LEGACY_DEFAULT_STREAM

    def _refuse(self, what: str, fix: str) -> NoReturn:
        raise InvalidProblem(f"JAX arrays are immutable and without strides: {what}; {fix}")


def _bytes(shape: Shape, itemsize: int) -> int:
    total = itemsize
    for size in shape:
        total *= size
    return total


FRAMEWORK = JaxArrays()
