"""The conditions a time holds under, by name: how hot the card is, how launches reach it, and where operands lie.

Owns the words and nothing else; `schedule` and `ring` act on them.
"""

from __future__ import annotations

from tilewright.errors import InvalidInput

STEADY, BURST, SUSTAINED = "steady", "burst", "sustained"
STREAM, GRAPH = "stream", "graph"
COLD, WARM = "cold", "warm"
MODES = (STEADY, BURST, SUSTAINED)
"""Rounds back to back on a card that has settled; each after an idle gap, so that power limits none of them; or back to
back with half a second of each arm, so that the card settles on that arm alone."""
LAUNCHES = (STREAM, GRAPH)
"""Launches queued on a stream one by one, or captured once into a CUDA graph that is replayed."""
CACHES = (COLD, WARM)
"""Operands from a ring of buffer sets that outlasts the L2, or the same set each time."""


def launch_of(launch: str | None, mode: str) -> str:
    """The launch mode that is meant: where none is named a stream, or graphs in the mode that needs them.

    Raises InvalidInput for another mode than `MODES`, for another launch mode than `LAUNCHES`, and for a stream in the
    sustained mode, since no stream holds half a second of short launches.
    """
    if mode not in MODES:
        raise InvalidInput(f"mode {mode!r}: must be one of {', '.join(MODES)}")
    if launch is None:
        return GRAPH if mode == SUSTAINED else STREAM
    if launch not in LAUNCHES:
        raise InvalidInput(f"launch {launch!r}: must be one of {', '.join(LAUNCHES)}")
    if mode == SUSTAINED and launch != GRAPH:
        raise InvalidInput(f"launch {launch!r} in mode {mode}: half a second of launches is replayed; use {GRAPH!r}")
    return launch


def check_cache(cache: str) -> None:
    """Raises InvalidInput for another cache state than `CACHES`."""
    if cache not in CACHES:
        raise InvalidInput(f"cache {cache!r}: must be one of {', '.join(CACHES)}")
