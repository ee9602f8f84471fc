"""A caller's stream as the driver's raw handle."""

from __future__ import annotations

from typing import Any

from tilewright.errors import InvalidInput


def stream_handle(stream: Any) -> int:
    """The handle of a raw one, an object with `__cuda_stream__`, or a torch or CuPy stream. Raises InvalidInput."""
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    raise InvalidInput(
        f"stream={stream!r}: must be a raw handle, an object with __cuda_stream__, or a torch or CuPy stream; leave it "
        f"out for the framework's current one"
    )
