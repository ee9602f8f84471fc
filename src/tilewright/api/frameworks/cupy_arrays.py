"""CuPy arrays, used where they lie, on CuPy's current stream."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import cupy

from tilewright.api.frameworks.base import Framework, once
from tilewright.api.frameworks.numpy_arrays import dtype_of
from tilewright.api.operands import Operand, Shape
from tilewright.api.plan import Copy

IEEE_COMPUTE_TYPES = (1, 2, 4)
"""CuPy's numbers for the default, pedantic and float32."""
_compute_type = getattr(getattr(cupy._core, "_routines_linalg", None), "get_compute_type", None)


class CupyArrays(Framework):
    """CuPy's arrays."""

    name = "CuPy"
    multiplies = True

    def identity(self, array: Any) -> tuple[int, Any]:
        """See `Framework.identity`."""
        data = array.data
        return int(data.ptr), (type(array), array.shape, array.strides, array.dtype, data.device_id)

    def address(self, array: Any) -> int:
        """See `Framework.address`."""
        return int(array.data.ptr)

    def describe(self, name: str, array: Any) -> Operand:
        """See `Framework.describe`."""
        dtype = array.dtype.newbyteorder("=").name
        return Operand(name, int(array.data.ptr), array.shape, array.strides, dtype, array.data.device_id)

    def broadcast(self, array: Any, shape: Shape) -> Any:
        """See `Framework.broadcast`."""
        return cupy.broadcast_to(array, shape)

    def copy(self, array: Any, copy: Copy) -> Any:
        """See `Framework.copy`."""
        taken = once(array, copy)
        if copy.by_columns:
            return taken.swapaxes(-1, -2).copy(order="C").swapaxes(-1, -2)
        return taken.copy(order="C")

    def allocate(self, shape: Shape, dtype: str, device: int) -> Any:
        """See `Framework.allocate`."""
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype_of(dtype))

    def assign(self, out: Any, value: Any) -> None:
        """See `Framework.assign`."""
        with cupy.cuda.Device(out.data.device_id):
            out[...] = value

    def current_stream(self, device: int) -> int:
        """See `Framework.current_stream`."""
        return int(cupy.cuda.get_current_stream(device).ptr)

    @contextlib.contextmanager
    def using(self, device: int, stream: int) -> Iterator[None]:
        """See `Framework.using`."""
        with cupy.cuda.Device(device), cupy.cuda.ExternalStream(stream, device):
            yield

    def product(self, a: Any, b: Any, bias: Any, out: Any, dtype: str) -> Any:
        """See `Framework.product`. In float32 alone, of arrays that CuPy multiplies without copying them."""
        whole = (x.flags.c_contiguous or x.flags.f_contiguous for x in (a, b))
        as_is = all(whole) and (out is None or out.flags.c_contiguous)
        if dtype != "float32" or bias is not None or not as_is or not _is_ieee():
            return None
        with cupy.cuda.Device(a.data.device_id):
            return cupy.matmul(a, b, out=out)


def _is_ieee() -> bool:
    """Whether CuPy's float32 products are not in TF32, by its own switch and cuBLAS's; not, where it doesn't say."""
    if _compute_type is None or "NVIDIA_TF32_OVERRIDE" in os.environ:
        return False
    return _compute_type("float32") in IEEE_COMPUTE_TYPES


FRAMEWORK = CupyArrays()
