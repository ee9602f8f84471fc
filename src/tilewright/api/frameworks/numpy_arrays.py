"""NumPy arrays: in the host's memory, so copied to a device and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tilewright.api.frameworks.base import Framework, once
from tilewright.api.operands import HOST, Operand, Shape
from tilewright.api.plan import Copy
from tilewright.errors import InvalidProblem

PLAIN = (np.ndarray, np.memmap, np.matrix)
"""Arrays that are nothing but elements; other subclasses may have units, labels or masks."""


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's element type of that name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


class NumpyArrays(Framework):
    """NumPy's arrays of any byte order and stride, memory maps and matrices included; other subclasses are refused."""

    name = "NumPy"
    on_host = True

    def identity(self, array: Any) -> tuple[int, Any]:
        """See `Framework.identity`."""
        return int(array.ctypes.data), (type(array), array.shape, array.strides, array.dtype, array.flags.writeable)

    def address(self, array: Any) -> int:
        """See `Framework.address`."""
        return int(array.ctypes.data)

    def describe(self, name: str, array: Any) -> Operand:
        """See `Framework.describe`."""
        if not isinstance(array, np.ndarray):
            raise InvalidProblem(f"{name}: {type(array).__name__}: a scalar: a product needs arrays; multiply by *")
        if isinstance(array, np.ma.MaskedArray):
            raise InvalidProblem(f"{name}: a masked array: its mask would be lost; pass its .filled()")
        if type(array) not in PLAIN:
            raise InvalidProblem(f"{name}: {type(array).__name__}: may mean more than its elements; pass np.asarray(…)")
        native = array.dtype.newbyteorder("=")
        unusable = "its bytes are in the other order" if native != array.dtype else None
        address, writable = int(array.ctypes.data), bool(array.flags.writeable)
        return Operand(name, address, array.shape, array.strides, native.name, HOST, writable, unusable)

    def broadcast(self, array: Any, shape: Shape) -> Any:
        """See `Framework.broadcast`."""
        return np.broadcast_to(array, shape)

    def copy(self, array: Any, copy: Copy) -> Any:
        """See `Framework.copy`."""
        taken = once(np.asarray(array), copy)
        native = taken.dtype.newbyteorder("=")
        if copy.by_columns:
            return np.array(taken.swapaxes(-1, -2), native, order="C").swapaxes(-1, -2)
        return np.array(taken, native, order="C")

    def allocate(self, shape: Shape, dtype: str, device: int) -> Any:
        """See `Framework.allocate`."""
        return np.empty(shape, dtype_of(dtype))

    def assign(self, out: Any, value: Any) -> None:
        """See `Framework.assign`."""
        out[...] = value

    def current_stream(self, device: int) -> int:
        """See `Framework.current_stream`."""
        return 0

    def finished(self, result: Any) -> Any:
        """See `Framework.finished`. Two vectors give a scalar, as from `numpy.matmul`."""
        return result[()]


FRAMEWORK = NumpyArrays()
