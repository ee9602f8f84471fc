"""What a call asks of a framework: views, copies, new arrays, streams.

One subclass a framework, each in its module. They know arrays; what is multiplied how is not theirs.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import Any

from tilewright.api.plan import Copy
from tilewright.api.shapes import Shape
from tilewright.api.view import View
from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, storage_dtype

DTYPES = tuple(dict.fromkeys(storage_dtype(dtype) for dtype in ITEMSIZE_BYTES))


class Framework(ABC):
    """A framework's arrays. `name` is the framework's own."""

    name: str
    on_host = False
    """Whether its arrays lie in the host's memory and are copied to a device and back."""
    repeats = True
    """Whether `signature` is cheap and says enough for a plan to be repeated."""
    multiplies = False
    """Whether it has a `product` of its own that may be taken in place of a kernel."""

    @abstractmethod
    def signature(self, array: Any) -> Any:
        """Everything a plan depends on but the address, to compare with `==`.

        Raises AttributeError for another framework's array.
        """

    @abstractmethod
    def address(self, array: Any) -> int:
        """Where its first element lies."""

    @abstractmethod
    def view(self, name: str, array: Any) -> View:
        """The array as `name`. Raises InvalidProblem for element types or kinds of arrays that are not taken."""

    @abstractmethod
    def broadcast(self, array: Any, shape: Shape) -> Any:
        """The array repeated to `shape`, without copying."""

    @abstractmethod
    def copy(self, array: Any, copy: Copy) -> Any:
        """A copy without gaps as `copy` says, in native elements, on the current stream."""

    @abstractmethod
    def allocate(self, shape: Shape, dtype: str, device: int) -> Any:
        """A new array without gaps, its contents arbitrary, on the current stream."""

    @abstractmethod
    def assign(self, out: Any, value: Any) -> None:
        """Copy `value` into `out`, of the same shape, on the current stream."""

    @abstractmethod
    def current_stream(self, device: int) -> int:
        """The raw handle of the framework's current stream on a device."""

    def using(self, device: int, stream: int) -> contextlib.AbstractContextManager[Any]:
        """A context in which the framework works on this device and this raw stream."""
        raise InvalidProblem(f"stream={stream:#x}: {self.name} has no streams to work on; leave it out")

    def product(self, a: Any, b: Any, out: Any, dtype: str) -> Any:
        """A·B by the framework itself on its current stream, in `out` or a new array, elements multiplied as `dtype`.

        None where its settings of this moment promise another arithmetic than the library's.
        """
        return None

    def finished(self, result: Any) -> Any:
        """What the caller gets for an array from `allocate`, once its launches are on their way."""
        return result

    def takes_over(self, arrays: tuple[Any, ...]) -> bool:
        """Whether the call is the framework's own business: gradients, tracing, its casting rules."""
        return False

    def call(self, **arguments: Any) -> Any:
        """The call through the framework, where it takes over."""
        raise NotImplementedError


def require_dtype(name: str, dtype: str) -> str:
    """`dtype` if products of it are taken. Raises InvalidProblem."""
    if dtype not in DTYPES:
        raise InvalidProblem(f"{name}: dtype={dtype}: takes {', '.join(DTYPES)}; convert it")
    return dtype


def once(array: Any, copy: Copy) -> Any:
    """The array with what repeats itself there once."""
    return array[tuple(slice(0, 1) if axis in copy.repeated else slice(None) for axis in range(array.ndim))]


def unaligned(address: int, strides_bytes: Shape, itemsize: int) -> str:
    """Why elements of `itemsize` bytes can't be used where they lie; empty where they can."""
    if address % itemsize:
        return f"its address is no multiple of {itemsize} bytes, an element's size"
    if any(step % itemsize for step in strides_bytes):
        return f"its strides are no multiples of {itemsize} bytes, an element's size"
    return ""
