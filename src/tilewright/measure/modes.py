"""The conditions a time holds under, by name: how hot the card is, and where operands lie.

Owns the words and nothing else; `schedule` and `ring` act on them.
"""

from __future__ import annotations

from tilewright.errors import InvalidInput

STEADY, BURST, SUSTAINED = "steady", "burst", "sustained"
COLD, WARM = "cold", "warm"
MODES = (STEADY, BURST, SUSTAINED)
"""Rounds back to back on a card that has settled; each after an idle gap, so that power limits none of them; or back to
back with half a second of each arm, so that the card settles on that arm alone."""
CACHES = (COLD, WARM)
"""Operands from a ring of buffer sets that outlasts the L2, or the same set each time."""


def check_mode(mode: str) -> None:
    """Raises InvalidInput for another mode than `MODES`."""
    if mode not in MODES:
        raise InvalidInput(f"mode {mode!r}: must be one of {', '.join(MODES)}")


def check_cache(cache: str) -> None:
    """Raises InvalidInput for another cache state than `CACHES`."""
    if cache not in CACHES:
        raise InvalidInput(f"cache {cache!r}: must be one of {', '.join(CACHES)}")
