"""The patterns: where each lane of a warp accesses memory, as data.

Most are places in units of the access's width, so that one table serves 4, 8 and 16 bytes. Wide accesses are served
in phases of fewer lanes that may merge; the tables of shared and idle places tell the possible rules apart. Random
tables come from fixed seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

LANES = 32
REACH_BYTES = 32 * 1024
"""Every access lies below this offset."""
IDLE = -1
MATRIX_ROW_BYTES = 16

Places = list[int]
"""For each lane the number of the word it accesses, IDLE for none."""


@dataclass(frozen=True)
class Pattern:
    """One warp instruction: kernel, width and each lane's byte offset, negative where it is idle."""

    name: str
    entry: str
    width_bytes: int
    offsets: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.entry} {self.width_bytes}: {self.name}"


def each(place: Callable[[int], int]) -> Places:
    return [place(lane) for lane in range(LANES)]


def strides(*steps: int) -> dict[str, Places]:
    return {f"stride {step}": [step * lane for lane in range(LANES)] for step in steps}


def shared_by(*distances: int, start: int = 0, lanes: int = LANES) -> Places:
    """Neighbouring words for `lanes` lanes; lane i shares with i^d, for every distance d."""
    mask = sum(distances)
    leaders = [lane for lane in range(lanes) if lane & mask == 0]
    return [start + leaders.index(lane & ~mask) for lane in range(lanes)]


def without(idle: Callable[[int], bool], places: Places) -> Places:
    return [IDLE if idle(lane) else place for lane, place in enumerate(places)]


def shuffled(places: Places, seed: int, *, block: int = LANES) -> Places:
    """The places of every `block` lanes in another order."""
    rng, mixed = random.Random(seed), []
    for first in range(0, LANES, block):
        mixed += rng.sample(places[first : first + block], block)
    return mixed


def scattered(places: Places, seed: int, *, among: int) -> Places:
    """Equal places stay equal, but each lies anywhere among the first `among` words."""
    rng = random.Random(seed)
    moved = {place: rng.randrange(among) for place in sorted(set(places))}
    return [moved[place] for place in places]


def drawn(seed: int, *, among: int) -> Places:
    return scattered(list(range(LANES)), seed, among=among)


def with_pitch(pitch: int) -> Places:
    """Four rows along k by eight groups of rows, as the rungs with a transposed tile store it."""
    return each(lambda lane: lane % 4 * 4 * pitch + lane // 4)


SEQUENCE = list(range(LANES))

BROADCASTS = {
    "all one word": [0] * LANES,
    "pairs share": shared_by(1),
    "quads share": shared_by(1, 2),
    "halves share": shared_by(16),
    "every fourth lane shares": each(lambda lane: lane % 4),
}

MASKS = {
    "odd lanes idle": without(lambda lane: lane % 2 == 1, SEQUENCE),
    "low half idle": without(lambda lane: lane < 16, SEQUENCE),
    "one lane": without(lambda lane: lane != 13, SEQUENCE),
    "random lanes idle, stride 2": without(lambda lane: 0x5A3C96E1 >> lane & 1 == 0, each(lambda lane: 2 * lane)),
}

SWIZZLES = {
    "rows of eight, column xor row": each(lambda lane: lane // 8 * 32 + (lane % 8 ^ lane // 8)),
    "column of eight rows, xor row": each(lambda lane: lane % 8 * 8 + (lane // 8 ^ lane % 8)),
    "column of eight rows, plain": each(lambda lane: lane % 8 * 8 + lane // 8),
    "column of 32 rows, xor row": each(lambda lane: lane * 32 + (5 ^ lane)),
}


def sharing() -> Iterator[tuple[str, Places]]:
    """Lanes that share words, in ways that only some rules of merging take for mergeable."""
    for distance in (1, 2, 4, 8, 16):
        yield f"i shares with i^{distance}", shared_by(distance)
    yield "i shares with i^3", each(lambda lane: lane // 4 * 2 + (lane % 4 in (1, 2)))
    yield "i shares with i^1 and i^2", shared_by(1, 2)
    yield "i shares with i^2 and i^4", shared_by(2, 4)
    yield "i shares with i^8 and i^16", shared_by(8, 16)
    yield "all one word", [0] * LANES
    yield "i^1 in the low half, i^2 in the high", [*shared_by(1, lanes=16), *shared_by(2, lanes=16, start=8)]
    yield "i^1 in the low half, i^4 in the high", [*shared_by(1, lanes=16), *shared_by(4, lanes=16, start=8)]
    yield "i^2 in the low half only", [*shared_by(2, lanes=16), *range(16, 32)]
    yield "i^1 in the high half only", [*range(16), *shared_by(1, lanes=16, start=16)]
    by_eight = [*shared_by(1, lanes=8), *shared_by(2, lanes=8, start=4)]
    yield "i^1 and i^2 by turns of eight lanes", [*by_eight, *(8 + place for place in by_eight)]
    only_first = [*shared_by(1, lanes=8), *range(8, 16)]
    yield "i^1 in every other eight lanes", [*only_first, *(16 + place for place in only_first)]
    by_four = [0, 0, 1, 1, 2, 3, 2, 3]
    yield "i^1 and i^2 by turns of four lanes", each(lambda lane: lane // 8 * 4 + by_four[lane % 8])
    yield "i^1, but lane 5 goes with lane 8", [4 if lane == 5 else lane // 2 for lane in range(LANES)]
    for among in (2, 4, 8):
        yield f"any of {among} words", drawn(among, among=among)


def idling() -> Iterator[tuple[str, Places]]:
    """Idle lanes: whether one counts as sharing, and what a phase without lanes takes."""
    compact = shared_by(1)
    yield "odd lanes idle", without(lambda lane: lane & 1 == 1, compact)
    yield "every other pair idle", without(lambda lane: lane & 2 == 2, shared_by(2))
    yield "every other quad idle", without(lambda lane: lane & 4 == 4, shared_by(4))
    yield "every other eight idle", without(lambda lane: lane & 8 == 8, shared_by(8))
    yield "low half idle", without(lambda lane: lane < 16, SEQUENCE)
    yield "high half idle", without(lambda lane: lane >= 16, SEQUENCE)
    yield "odd lanes of the low half idle", without(lambda lane: lane < 16 and lane % 2 == 1, SEQUENCE)
    yield "one lane", without(lambda lane: lane != 13, SEQUENCE)
    yield "two lanes that are no neighbours", without(lambda lane: lane not in (0, 9), SEQUENCE)
    yield "one lane idle", without(lambda lane: lane == 17, SEQUENCE)
    yield "random lanes idle", without(lambda lane: 0x5A3C96E1 >> lane & 1 == 0, SEQUENCE)
    yield "random lanes idle, i^1", without(lambda lane: 0x5A3C96E1 >> lane & 1 == 0, compact)


def conflicting() -> Iterator[tuple[str, Places]]:
    """Conflicts in some phases, across phases, and in phases that merge."""
    for seed in (1, 2):
        yield f"random {seed}", drawn(seed, among=256)
    for seed in (4, 5):
        yield f"i^1, random {seed}", scattered(shared_by(1), seed, among=256)
        yield f"i^2, random {seed}", scattered(shared_by(2), seed, among=256)
    yield "i^4, random", scattered(shared_by(4), 6, among=256)
    yield "i^16, random", scattered(shared_by(16), 7, among=256)
    yield "i^1 and i^2, random", scattered(shared_by(1, 2), 8, among=256)
    yield "shuffled by eight", shuffled(SEQUENCE, 9, block=8)
    yield "shuffled by 32", shuffled(SEQUENCE, 10)
    yield "one bank for eight lanes", [*(16 * lane for lane in range(8)), *range(8, 32)]
    yield "one bank for every fourth lane", [16 * lane if lane % 4 == 0 else lane for lane in range(LANES)]


def wide_tables() -> dict[str, Places]:
    """For shared accesses of 8 and 16 bytes."""
    return {**dict(sharing()), **dict(idling()), **dict(conflicting())}


def narrow_load_tables() -> dict[str, Places]:
    loads = {f"random {seed}": drawn(seed, among=512) for seed in (1, 2, 3)}
    fragments = {
        "eight words, four lanes each": each(lambda lane: lane // 4 * 4),
        "four words, by every fourth lane": each(lambda lane: lane % 4 * 4),
    }
    return {**strides(*range(1, 34), 65, 130, 132), **BROADCASTS, **MASKS, **SWIZZLES, **fragments, **loads}


def narrow_store_tables() -> dict[str, Places]:
    stores = {f"random {seed}": drawn(seed, among=512) for seed in (1, 2, 3)}
    transposed = {f"transposed tile, pitch {pitch}": with_pitch(pitch) for pitch in (128, 129, 130, 132)}
    return {**strides(1, 2, 3, 4, 8, 16, 31, 32, 33), **transposed, **BROADCASTS, **stores}


def global_tables() -> dict[str, Places]:
    others = {
        "neighbours, one word on": [1 + lane for lane in range(LANES)],
        "neighbours, 16 words on": [16 + lane for lane in range(LANES)],
        "all one word": [0] * LANES,
        "pairs share": shared_by(1),
        "halves share": shared_by(16),
        "odd lanes idle": without(lambda lane: lane % 2 == 1, SEQUENCE),
        "one lane": without(lambda lane: lane != 13, SEQUENCE),
        "backwards": SEQUENCE[::-1],
        "any of 8 words": drawn(11, among=8),
        "any of 64 words": drawn(12, among=64),
        "random": drawn(13, among=1024),
    }
    return {**strides(1, 2, 8, 33), **others}


def matrix_rows(count: int, transposed: bool) -> dict[str, list[int]]:
    """Byte offsets of the rows of `count` matrices; those of the lanes beyond are not used."""
    pitches = (16, 128) if transposed else (16, 32, 64, 80, 128, 144)
    tables = {f"pitch {pitch}": [pitch * lane for lane in range(LANES)] for pitch in pitches}
    if count == 4:
        tables["two columns, pitch 128"] = each(lambda lane: lane % 16 * 128 + lane // 16 * 16)
        tables["two columns, pitch 128, xor row"] = each(lambda lane: lane % 16 * 128 + (lane // 16 ^ lane % 8) * 16)
    if not transposed:
        places = {
            "all one row": [0] * LANES,
            "i shares with i^1": shared_by(1),
            "i shares with i^2": shared_by(2),
            "i^1, random": scattered(shared_by(1), 16, among=256),
            "any of 8 rows": drawn(14, among=8),
            "random": drawn(15, among=256),
        }
        if count > 1:
            places["equal matrices"] = shared_by(8, 16)
            places["i shares with i^4"] = shared_by(4)
        tables |= {name: [place * MATRIX_ROW_BYTES for place in table] for name, table in places.items()}
    used = 8 * count
    return {name: [*offsets[:used], *[0] * (LANES - used)] for name, offsets in tables.items()}


def _patterns() -> Iterator[Pattern]:
    def scaled(entry: str, width: int, tables: dict[str, Places]) -> Iterator[Pattern]:
        for name, places in tables.items():
            yield Pattern(name, entry, width, tuple(IDLE if place == IDLE else width * place for place in places))

    yield from scaled("shared_load", 4, narrow_load_tables())
    yield from scaled("shared_store", 4, narrow_store_tables())
    for width in (8, 16):
        yield from scaled("shared_load", width, {**strides(1, 2, 4, 8, 17), **SWIZZLES, **wide_tables()})
        yield from scaled("shared_store", width, {**strides(1, 2, 16), **wide_tables()})
    for width in (4, 8, 16):
        yield from scaled("global_load", width, global_tables())
        yield from scaled("global_store", width, global_tables())
    for count in (1, 2, 4):
        for entry, transposed in (("matrix_load", False), ("matrix_load_transposed", True)):
            for name, offsets in matrix_rows(count, transposed).items():
                yield Pattern(name, entry, 4 * count, tuple(offsets))


PATTERNS = tuple(_patterns())
