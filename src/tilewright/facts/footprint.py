"""The shape of one warp's accesses: bytes asked for, bytes spanned, sectors, banks and wavefronts.

Computed from a rung's declared footprints for the 32 lanes of warp 0, arrays starting on a sector and on bank 0.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from tilewright.declare.config import Config
from tilewright.declare.footprint import Footprint
from tilewright.emulator.banks import BANK_BYTES, BANKS, WARP, phases
from tilewright.problem import ITEMSIZE_BYTES, Problem

SECTOR_BYTES = 32


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
    names = config.problem_scope(problem)
    return [
        item.offset.evaluate(names.with_values({"lane": lane, "tx": lane % width, "ty": lane // width}))
        for lane in range(WARP)
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
    served = phases(dict(enumerate(starts)), lane_bytes, is_plain_load=item.kind == "shared load")
    banks = len({byte // BANK_BYTES % BANKS for byte in touched})
    return replace(access, banks=banks, wavefronts=sum(map(len, served)), conflict_ways=max(map(len, served)))
