"""What a line's accesses would cost if neighbours were merged into wider ones, as a GPU's compiler may have done.

Merged are accesses that one static instruction can stand for: in every lane the elements of one aligned word of the
wider width, in the same warp instructions. Owns that rule. Whether the binary did so is not known here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.emulator.banks import BANK_BYTES, BANKS, WARP, phases
from tilewright.emulator.trace import KINDS, SECTOR_BYTES, SPACES, MemoryLine, Trace
from tilewright.errors import InvalidInput

PERIOD_BYTES = BANKS * BANK_BYTES
"""Moving a whole warp by this changes neither banks nor sectors."""
IDLE = -1

Ints = npt.NDArray[np.int64]


def widened(trace: Trace, line: MemoryLine, width_bytes: int) -> tuple[MemoryLine, ...]:
    """`line` with its accesses merged to `width_bytes`, and what is left of it where some cannot be.

    Empty if none can. Raises InvalidInput for a trace without events.
    """
    events = _events_of(trace, line)
    if not len(events):
        return ()
    offsets, warps = _warp_instructions(events)
    starts = np.where(offsets == IDLE, np.iinfo(np.int64).max, offsets).min(axis=1)
    shapes, shape = _distinct(np.where(offsets == IDLE, IDLE, offsets - starts[:, None]))
    mergeable = (np.where(shapes == IDLE, 0, shapes) % width_bytes == 0).all(axis=1)[shape]
    wide = np.zeros(len(starts), bool)
    if not mergeable.any():
        return ()
    order = np.flatnonzero(mergeable)
    order = order[_by_word(warps[order], shape[order], starts[order], width_bytes)]
    wide[order] = _in_whole_words(warps[order], shape[order], starts[order], line.width_bytes, width_bytes)
    first = wide & (starts % width_bytes == 0)
    if not first.any():
        return ()
    parts = ((first, width_bytes), (~wide, line.width_bytes))
    return tuple(_summed(line, width, shapes, shape[part], starts[part]) for part, width in parts if part.any())


def _events_of(trace: Trace, line: MemoryLine) -> npt.NDArray[np.void]:
    events = trace.events
    if events is None:
        raise InvalidInput("merging needs the accesses themselves; trace with Watch(events=True)")
    sites = [site for site, place in trace.sites.items() if place == f"{line.file}:{line.line}"]
    chosen = np.isin(events["site"], sites) & (events["kind"] == KINDS.index(line.kind))
    arrays = [key for key, name in trace.array_names.items() if name == line.array and SPACES[key[0]] == line.space]
    in_array = [(events["space"] == space) & (events["array"] == array) for space, array in arrays]
    found: npt.NDArray[np.void] = events[
        chosen & np.any(in_array, axis=0) & (events["width_bytes"] == line.width_bytes)
    ]
    return found


def _warp_instructions(events: npt.NDArray[np.void]) -> tuple[Ints, Ints]:
    """Byte offsets by instruction and lane, IDLE where a lane takes no part, and each instruction's warp."""
    begins = np.r_[True, np.diff(events["instruction"].astype(np.int64)) != 0]
    rows = np.cumsum(begins) - 1
    offsets = np.full((int(rows[-1]) + 1, WARP), IDLE, np.int64)
    offsets[rows, events["thread"] % WARP] = events["offset"]
    heads = events[begins]
    return offsets, heads["cta"].astype(np.int64) << 16 | heads["thread"] // WARP


def _distinct(rows: Ints) -> tuple[Ints, Ints]:
    """The distinct rows, and of each row which of them it is."""
    numbers: dict[bytes, int] = {}
    which = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows])
    return rows[np.unique(which, return_index=True)[1]], which


def _by_word(warps: Ints, shape: Ints, starts: Ints, wide: int) -> Ints:
    """The order that puts together what one merged instruction would do.

    Where a warp asks for a word again, in the next step along K, say, its parts belong to the next one.
    """
    order = np.lexsort((starts, shape, warps))
    keys = np.stack([warps, shape, starts])[:, order]
    begins = np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)]
    at = np.arange(len(order))
    again = at - at[begins][np.cumsum(begins) - 1]
    found: Ints = order[np.lexsort((keys[2], again, keys[2] // wide, keys[1], keys[0]))]
    return found


def _in_whole_words(warps: Ints, shape: Ints, starts: Ints, narrow: int, wide: int) -> npt.NDArray[np.bool_]:
    """Which instructions, ordered by word, are one of a run that makes up a whole word."""
    parts = wide // narrow
    whole = np.zeros(len(starts), bool)
    steps = np.arange(parts)
    begins = np.flatnonzero(starts % wide == 0)
    begins = begins[begins + parts <= len(starts)]
    runs = begins[:, None] + steps
    fits = (starts[runs] == starts[begins][:, None] + steps * narrow).all(axis=1)
    for each in (warps, shape):
        fits &= (each[runs] == each[begins][:, None]).all(axis=1)
    whole[runs[fits]] = True
    return whole


def _summed(line: MemoryLine, width_bytes: int, shapes: Ints, shape: Ints, starts: Ints) -> MemoryLine:
    """`line` with the counts of instructions of these shapes from these offsets on."""
    counted = Counter(zip(shape.tolist(), (starts % PERIOD_BYTES).tolist(), strict=True))
    sums: Counter[str] = Counter()
    ways, banks = 0, 0
    for (number, start), times in counted.items():
        offsets = {lane: start + int(at) for lane, at in enumerate(shapes[number]) if at != IDLE}
        one: dict[str, int] = {"instructions": 1, "lanes": len(offsets)}
        if line.space == "global":
            one |= _sectors(offsets, width_bytes)
        else:
            served = phases(offsets, width_bytes, is_plain_load=line.kind == "load")
            one |= {"wavefronts": sum(map(len, served)), "conflict_free_wavefronts": len(served)}
            ways = max(ways, *map(len, served))
            banks = max(banks, len({bank for phase in served for wavefront in phase for bank in wavefront}))
        sums.update({name: times * count for name, count in one.items()})
    made: dict[str, Any] = dict(sums)
    return replace(line, width_bytes=width_bytes, ways=ways, banks=banks, **made)


def _sectors(offsets: dict[int, int], width_bytes: int) -> dict[str, int]:
    wanted = len(set(offsets.values())) * width_bytes
    sectors = {offset // SECTOR_BYTES for offset in offsets.values()}
    return {"sectors": len(sectors), "wanted_bytes": wanted, "fewest_sectors": -(-wanted // SECTOR_BYTES)}
