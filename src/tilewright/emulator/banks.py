"""Which bank serves which lane in which wavefront: the bank rule again, for pictures and declared footprints.

`runtime/trace/banks.hpp` counts by the same rule; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping

WARP, BANKS, BANK_BYTES = 32, 32, 4

Wavefront = dict[int, tuple[int, ...]]
"""Bank to the lanes whose word it delivers."""


def wavefronts(offsets: Mapping[int, int], width_bytes: int, *, is_plain_load: bool) -> list[Wavefront]:
    """The wavefronts of one warp instruction, given each active lane's byte offset in its array."""
    return [each for phase in phases(offsets, width_bytes, is_plain_load=is_plain_load) for each in phase]


def phases(offsets: Mapping[int, int], width_bytes: int, *, is_plain_load: bool) -> list[list[Wavefront]]:
    """The wavefronts by phase: lanes that are served together, in as many wavefronts as one bank has words for them.

    All lanes are one phase up to 4 bytes, 8 bytes take two and 16 bytes four. A plain load takes half as many where
    every lane shares its address with lane i^1, or every one with i^2 (an idle one agrees); stores and ldmatrix
    never do.
    """
    count = max(1, width_bytes // BANK_BYTES)
    if is_plain_load and count > 1 and _lanes_pair(offsets):
        count //= 2
    size = WARP // count
    together = ([lane for lane in range(first, first + size) if lane in offsets] for first in range(0, WARP, size))
    return [_served(lanes, offsets, width_bytes) for lanes in together if lanes]


def _served(lanes: list[int], offsets: Mapping[int, int], width_bytes: int) -> list[Wavefront]:
    words: dict[int, list[int]] = {}
    for lane in lanes:
        for word in range(offsets[lane] // BANK_BYTES, (offsets[lane] + width_bytes - 1) // BANK_BYTES + 1):
            words.setdefault(word, []).append(lane)
    phase: list[Wavefront] = []
    for word, asking in words.items():
        bank = word % BANKS
        turn = sum(bank in wavefront for wavefront in phase)
        if turn == len(phase):
            phase.append({})
        phase[turn][bank] = tuple(asking)
    return phase


def _lanes_pair(offsets: Mapping[int, int]) -> bool:
    return any(
        all(offsets.get(lane ^ distance, offset) == offset for lane, offset in offsets.items()) for distance in (1, 2)
    )
