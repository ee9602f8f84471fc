"""Which bank serves which lane in which wavefront: the bank rule again, for single instructions.

`runtime/trace/banks.hpp` counts by the same rule; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping

WARP, BANKS, BANK_BYTES = 32, 32, 4

Wavefront = dict[int, tuple[int, ...]]
"""Bank to the lanes whose word it delivers."""


def wavefronts(offsets: Mapping[int, int], width_bytes: int) -> list[Wavefront]:
    """The wavefronts of one warp instruction, given each active lane's byte offset in its array."""
    return [wavefront for phase in phases(offsets, width_bytes) for wavefront in phase]


def phases(offsets: Mapping[int, int], width_bytes: int) -> list[list[Wavefront]]:
    """The same by phase: one wavefront each where no two words that it wants lie in one bank."""
    return [_served({lane: offsets[lane] for lane in lanes}, width_bytes) for lanes in _together(offsets, width_bytes)]


def _served(offsets: Mapping[int, int], width_bytes: int) -> list[Wavefront]:
    words: dict[int, list[int]] = {}
    for lane, offset in offsets.items():
        for word in range(offset // BANK_BYTES, (offset + width_bytes - 1) // BANK_BYTES + 1):
            words.setdefault(word, []).append(lane)
    phase: list[Wavefront] = []
    for word, asking in words.items():
        bank = word % BANKS
        turn = sum(bank in wavefront for wavefront in phase)
        if turn == len(phase):
            phase.append({})
        phase[turn][bank] = tuple(asking)
    return phase


def _together(offsets: Mapping[int, int], width_bytes: int) -> list[list[int]]:
    """The active lanes that are served together: all, or a half or a quarter of the warp, two of which may merge."""
    lanes = WARP * BANK_BYTES // max(width_bytes, BANK_BYTES)
    if lanes == WARP:
        return [sorted(offsets)]
    together = []
    for first in range(0, WARP, 2 * lanes):
        pair = [lane for lane in range(first, first + 2 * lanes) if lane in offsets]
        halves = [[lane for lane in pair if lane < first + lanes], [lane for lane in pair if lane >= first + lanes]]
        together += [pair] if _merge(pair, offsets) else halves
    return [lanes for lanes in together if lanes]


def _merge(lanes: list[int], offsets: Mapping[int, int]) -> bool:
    return any(
        all(offsets.get(lane ^ distance, offsets[lane]) == offsets[lane] for lane in lanes) for distance in (1, 2)
    )
