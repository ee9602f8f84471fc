"""Arrays of any other library that are on a GPU and say so by DLPack or the CUDA array interface.

They are used where they are stored. Such a library can't be asked for a new array or a copy, so `out` must be given.
"""

from __future__ import annotations

from typing import Any, NoReturn

from tilewright.api.frameworks.base import Framework
from tilewright.api.operands import Operand, Shape, packed_strides, times
from tilewright.api.plan import Copy
from tilewright.errors import InvalidProblem

LEGACY_DEFAULT_STREAM = 0


class ExportedArrays(Framework):
    """Whatever exports its memory. The call's stream is the legacy default one unless another is given."""

    name = "another library"
    repeats = False

    def address(self, array: Any) -> int:
        """See `Framework.address`."""
        return self.describe("array", array).address

    def describe(self, name: str, array: Any) -> Operand:
        """See `Framework.describe`."""
        from cuda.core.utils import StridedMemoryView

        try:
            # -1: the call's stream orders the launch, so no further ordering is asked of the exporter.
            seen = StridedMemoryView.from_any_interface(array, stream_ptr=-1)
        except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as error:
            raise InvalidProblem(f"{name}: {type(array).__name__}: cannot be exported: {error}") from error
        if seen.dtype is None:
            raise InvalidProblem(f"{name}: {type(array).__name__}: its element type is none of NumPy's; convert it")
        shape = tuple(seen.shape)
        strides = packed_strides(shape) if seen.strides is None else tuple(seen.strides)
        strides_bytes = times(strides, seen.dtype.itemsize)
        device = int(seen.device_id)
        return Operand(name, int(seen.ptr), shape, strides_bytes, seen.dtype.name, device, not seen.readonly)

    def broadcast(self, array: Any, shape: Shape) -> Any:
        """See `Framework.broadcast`."""
        if self.describe("C", array).shape != shape:
            self._refuse("be asked to broadcast C", f"pass C of shape {shape}")
        return array

    def copy(self, array: Any, copy: Copy) -> Any:
        """Refused."""
        self._refuse(f"be asked for a copy of {copy.name}, which is needed because {copy.reason}", "copy it yourself")

    def allocate(self, shape: Shape, dtype: str, device: int) -> Any:
        """Refused."""
        self._refuse(f"be asked for a new array of {shape}", "pass out=, not overlapping an input, its rows contiguous")

    def assign(self, out: Any, value: Any) -> None:
        """Refused."""
        self._refuse("be asked to copy", "pass another out")

    def current_stream(self, device: int) -> int:
        """See `Framework.current_stream`."""
        return LEGACY_DEFAULT_STREAM

    def _refuse(self, what: str, fix: str) -> NoReturn:
        raise InvalidProblem(f"a library known by its exported memory alone cannot {what}: {fix}")


FRAMEWORK = ExportedArrays()
