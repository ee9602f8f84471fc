"""What a call asks of a framework: descriptors of its arrays, copies, new arrays, streams.

One subclass a framework, each in its module. They know arrays; what is multiplied how is not theirs.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.api.operands import Operand, Shape
from tilewright.errors import InvalidProblem

if TYPE_CHECKING:
    from tilewright.api.plan import Copy


class Framework(ABC):
    """A framework's arrays. `name` is the framework's own."""

    name: str
    on_host = False
    """Whether its arrays lie in the host's memory and are copied to a device and back."""
    repeats = True
    """Whether `identity` is cheap and says enough for a plan to be repeated."""
    multiplies = False
    """Whether it has a `product` of its own that may be taken in place of a kernel."""

    look_up: Callable[..., tuple[Any, int, int, int, int, int]] | None = None
    """Gives, for (a, b, c, out, bias, options), the key that a call is looked up by and the five addresses, 0 for None.

    A shorter way than by each array's `identity`, for a framework that has one. Raises as that does.
    """
    takes_over: Callable[..., bool] | None = None
    """Whether a call of (a, b, c, out, bias) is the framework's own business: gradients, tracing, its casting rules."""

    def identity(self, array: Any) -> tuple[int, Any]:
        """The address, and everything else that a plan depends on, the array's class included, to compare with `==`.

        Raises AttributeError, TypeError or RuntimeError for what is no array of the framework.
        """
        raise NotImplementedError

    @abstractmethod
    def address(self, array: Any) -> int:
        """The address of its first element."""

    def address_of(self, array: Any) -> Callable[[], int]:
        """What gives the array's address of the moment when it is called."""
        return partial(self.address, array)

    @abstractmethod
    def describe(self, name: str, array: Any) -> Operand:
        """The array as `name`. Raises InvalidProblem for kinds of arrays that are not supported."""

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

    def product(self, a: Any, b: Any, bias: Any, out: Any, dtype: str) -> Any:
        """A·B + bias by the framework itself on its current stream, in `out` or a new array without gaps.

        Elements are taken as `dtype`. `bias` and `out` may be None. None where its settings of this moment promise less
        than the library does.
        """
        return None

    def finished(self, result: Any) -> Any:
        """What the caller gets for an array from `allocate`, once its launches are on their way."""
        return result

    def call(self, **arguments: Any) -> Any:
        """The call through the framework, where it takes over."""
        raise NotImplementedError


def once(array: Any, copy: Copy) -> Any:
    """The array with what repeats itself there once."""
    return array[tuple(slice(0, 1) if axis in copy.repeated else slice(None) for axis in range(array.ndim))]
