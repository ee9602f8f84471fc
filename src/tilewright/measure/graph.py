"""Launches captured into a CUDA graph, which replays them without the host.

Owns capturing and the graph's life. It knows no arm and times nothing.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from tilewright.errors import LaunchFailed
from tilewright.run.driver import check


class Replay:
    """A graph of what `batch` queued on a stream; calling it queues all of that again with one launch."""

    def __init__(self, stream: Any, batch: Callable[[Any], None]) -> None:
        """Capture `batch`. Raises LaunchFailed for a batch that cannot be captured."""
        from cuda.bindings import driver

        graph = _captured(stream, batch)
        try:
            self._executable = check(driver.cuGraphInstantiate(graph, 0))
        finally:
            driver.cuGraphDestroy(graph)
        weakref.finalize(self, driver.cuGraphExecDestroy, self._executable).atexit = False
        check(driver.cuGraphUpload(self._executable, int(stream.handle)))

    def __call__(self, stream: Any) -> None:
        """Queue the replay on a stream, which may be another than it was captured on."""
        from cuda.bindings import driver

        check(driver.cuGraphLaunch(self._executable, int(stream.handle)))


def _captured(stream: Any, batch: Callable[[Any], None]) -> Any:
    """The graph of `batch`. Relaxed, since a library may allocate while it queues."""
    from cuda.bindings import driver

    handle = int(stream.handle)
    check(driver.cuStreamBeginCapture(handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    try:
        batch(stream)
    except Exception as error:
        driver.cuStreamEndCapture(handle)
        line = str(error).split("\n")[0] or type(error).__name__
        raise LaunchFailed(f"not captured into a CUDA graph: {line}") from error
    return check(driver.cuStreamEndCapture(handle))
