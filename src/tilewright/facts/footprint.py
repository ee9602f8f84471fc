"""The shape of one warp's accesses: bytes asked for, bytes spanned, sectors, banks and wavefronts.

Computed from a rung's declared footprints for the 32 lanes of warp 0, arrays starting on a sector and on bank 0.
Sectors are exact. Wavefronts follow a rule fitted to measurements for 4- and 16-byte accesses; for 8 bytes it is the
plain reading of two half-warps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from tilewright.declare.config import Config
from tilewright.declare.footprint import Footprint
from tilewright.problem import ITEMSIZE_BYTES, Problem

LANES = 32
SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """One warp-wide access.

    `distinct_bytes` counts each byte once however many lanes ask for it; `span_bytes` reaches from the first to the
    last. `sectors` are 32-byte units of global memory. `banks` are the shared-memory banks touched, `wavefronts` the
    passes it takes, `conflict_ways` how many different words the busiest bank gives in one pass's worth of lanes.
    """

    name: str
    kind: str
    lane_bytes: int
    distinct_bytes: int
    span_bytes: int
    sectors: int | None = None
    banks: int | None = None
    wavefronts: int | None = None
    conflict_ways: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields that apply, as JSON types."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def warp_accesses(config: Config, problem: Problem) -> list[WarpAccess]:
    """The declared footprints of `config`, evaluated; problems matter for leading dimensions only."""
    return [_evaluate(item, config, problem) for item in config.rung.footprints]


def lane_offsets(item: Footprint, config: Config, problem: Problem) -> list[int]:
    """The first element of each lane's access, lane 0 first."""
    width = config.block[0]
    names = config.scope.with_values(problem.names())
    return [
        item.offset.evaluate(names.with_values({"lane": lane, "tx": lane % width, "ty": lane // width}))
        for lane in range(LANES)
    ]


def _evaluate(item: Footprint, config: Config, problem: Problem) -> WarpAccess:
    element_bytes = ITEMSIZE_BYTES[problem.dtype]
    lane_bytes = item.elements.evaluate(config.scope) * element_bytes
    starts = [offset * element_bytes for offset in lane_offsets(item, config, problem)]
    touched = {byte for start in starts for byte in range(start, start + lane_bytes)}
    span_bytes = max(touched) - min(touched) + 1
    access = WarpAccess(item.name, item.kind, lane_bytes, len(touched), span_bytes)
    if item.is_global:
        return replace(access, sectors=len({byte // SECTOR_BYTES for byte in touched}))
    ways = [conflict_ways(phase, lane_bytes) for phase in phases(starts, lane_bytes)]
    banks = len({byte // BANK_BYTES % BANKS for byte in touched})
    return replace(access, banks=banks, wavefronts=sum(ways), conflict_ways=max(ways))


def phases(starts: list[int], lane_bytes: int) -> list[list[int]]:
    """The groups of lanes served one after the other.

    4 bytes: the whole warp. 8: two half-warps. 16: four groups of eight, two neighbouring groups at once when every
    lane shares its address with the lane next to it, or every lane with the lane after that.
    """
    count = max(1, LANES * lane_bytes // (BANKS * BANK_BYTES))
    if lane_bytes == 16 and any(_paired(starts, distance) for distance in (1, 2)):
        count //= 2
    size = LANES // count
    return [starts[first : first + size] for first in range(0, LANES, size)]


def _paired(starts: list[int], distance: int) -> bool:
    return all(start == starts[lane ^ distance] for lane, start in enumerate(starts))


def conflict_ways(starts: list[int], lane_bytes: int) -> int:
    """The most different words that one bank has to give to these lanes."""
    words = {word for start in starts for word in range(start // BANK_BYTES, (start + lane_bytes) // BANK_BYTES)}
    in_bank = [0] * BANKS
    for word in words:
        in_bank[word % BANKS] += 1
    return max(in_bank)
