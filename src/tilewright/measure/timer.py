"""Device time of queued work, free of the host's cost of queueing it.

`Timer` is what rounds need; `CudaTimer` is the one for a GPU. Owns events and the device-side delay. It knows
no arm, no order and no statistics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tilewright.errors import TimedOut
from tilewright.measure.graph import Replay
from tilewright.run.cuda import current_context_kept

Batch = Callable[[Any], None]
DELAY_SOURCE = Path(__file__).with_name("delay.cu")
DELAY_ENTRY = "tilewright_delay"
DELAY_MIN_US, DELAY_MAX_US = 100.0, 200_000.0
DELAY_DECAY = 0.98
MAX_TRIES = 16


@dataclass(frozen=True, slots=True)
class Replays:
    """A batch of graphs, each of which has to be queued before the device comes to it."""

    graphs: Sequence[Batch]

    def __call__(self, stream: Any) -> None:
        """Queue all of them."""
        for graph in self.graphs:
            graph(stream)


class Timer(Protocol):
    """A device's clock, and the host's."""

    def now_s(self) -> float:
        """Host seconds from any fixed start, for budgets."""
        ...

    def time_us(self, batches: Sequence[Batch], during: Callable[[], None]) -> list[float]:
        """Run the batches back to back and give each one's device time in microseconds.

        A batch is called with the stream, queues work on it and returns without waiting; it may be called
        again where a try was spoiled. `during` is called on the host while the device is busy.
        """
        ...

    def idle(self, seconds: float) -> None:
        """Leave the device without work for that long."""
        ...

    def capture(self, batch: Batch) -> Batch:
        """What `batch` queues, as a graph: a batch that queues all of it with one launch.

        Raises LaunchFailed where that cannot be.
        """
        ...


class CudaTimer:
    """CUDA events on one `cuda.core.Stream`. Its device is current while batches are called.

    Every call queues a spin kernel, then event, batch, event for each batch, and waits once. A batch counts
    only if the device had not reached it when the host had queued all of it, or each graph of `Replays`; if one was
    late, the delay is doubled and the whole call repeated, so no figure holds time in which the GPU waited for the
    host.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        with _device_current(stream):
            self._kernel, self._config = _build_delay(stream.device.arch)
        self._events: list[tuple[Any, Any]] = []
        self.delay_us = DELAY_MIN_US

    def now_s(self) -> float:
        """Host seconds."""
        return time.monotonic()

    def time_us(self, batches: Sequence[Batch], during: Callable[[], None]) -> list[float]:
        """See `Timer`. Raises TimedOut where the host cannot queue a batch within the longest delay."""
        with _device_current(self._stream):
            return self._time_us(batches, during)

    def idle(self, seconds: float) -> None:
        """See `Timer`."""
        time.sleep(seconds)

    def capture(self, batch: Batch) -> Batch:
        """See `Timer`."""
        with _device_current(self._stream):
            return Replay(self._stream, batch)

    def _time_us(self, batches: Sequence[Batch], during: Callable[[], None]) -> list[float]:
        while len(self._events) < len(batches):
            self._events.append((self._new_event(), self._new_event()))
        events = self._events[: len(batches)]
        for _ in range(MAX_TRIES):
            late = self._queue(batches, events)
            during()
            self._stream.sync()
            if not late:
                self.delay_us = max(DELAY_MIN_US, self.delay_us * DELAY_DECAY)
                return [(stop - start) * 1000.0 for start, stop in events]
            self.delay_us = min(DELAY_MAX_US, self.delay_us * 2.0)
        raise TimedOut(
            f"batches {late} of {len(batches)}: not queued before the GPU reached them, with a delay of "
            f"{self.delay_us / 1000.0:.0f} ms; a launch that waits for the GPU cannot be timed: make it asynchronous"
        )

    def _queue(self, batches: Sequence[Batch], events: Sequence[tuple[Any, Any]]) -> list[int]:
        from cuda.core import launch

        launch(self._stream, self._config, self._kernel, np.uint64(self.delay_us * 1000.0))
        late = []
        for index, (batch, (start, stop)) in enumerate(zip(batches, events, strict=True)):
            self._stream.record(start)
            if self._is_late(batch, start):
                late.append(index)
            self._stream.record(stop)
        return late

    def _is_late(self, batch: Batch, start: Any) -> bool:
        """Queue the batch behind `start`. Whether the device came to a part of it that was not queued yet."""
        if not isinstance(batch, Replays):
            batch(self._stream)
            return bool(start.is_done)
        late, reached = False, start
        for graph in batch.graphs:
            graph(self._stream)
            late |= bool(reached.is_done)
            reached = self._stream.record()
        return late

    def _new_event(self) -> Any:
        from cuda.core import EventOptions

        return self._stream.record(options=EventOptions(timing_enabled=True))


@contextmanager
def _device_current(stream: Any) -> Iterator[None]:
    with current_context_kept():
        stream.device.set_current()
        yield


def _build_delay(arch: str) -> tuple[Any, Any]:
    from cuda.core import LaunchConfig

    return compile_delay(f"sm_{arch}").get_kernel(DELAY_ENTRY), LaunchConfig(grid=1, block=1)


def compile_delay(target: str) -> Any:
    """The delay kernel as a `cuda.core.ObjectCode` for a target such as 'sm_90'. Needs NVRTC and no GPU."""
    from cuda.core import Program, ProgramOptions

    text = DELAY_SOURCE.read_text(encoding="utf-8")
    return Program(text, "c++", ProgramOptions(std="c++17", arch=target)).compile("cubin")
