"""What a traced launch asked of memory, as values: counts by source line, findings, raw accesses.

Counts are of warp instructions, added up over the launch. Owns their meaning; how they were come by is the tracing
runner's (`runtime/trace/`), and how they are shown is `lab`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

Space = Literal["shared", "global"]
Kind = Literal[
    "load",
    "store",
    "copy load",
    "copy store",
    "atomic load",
    "atomic",
    "matrix load",
    "matrix store",
    "mbarrier init",
    "mbarrier use",
    "TMA load",
    "TMA fill",
    "TMA count",
    "TMA read",
    "TMA store",
    "wgmma read",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""As the runner numbers them. A TMA load's row of global memory is a "TMA load", a TMA store's a "TMA store"."""
SPACES: tuple[Space, ...] = ("shared", "shared", "global")
SECTOR_BYTES = 32
SHARED_ONLY = ("wavefronts", "conflict_free_wavefronts", "ways", "banks")
GLOBAL_ONLY = ("sectors", "fewest_sectors", "wanted_bytes")
OTHERS: dict[Space, tuple[str, ...]] = {"shared": GLOBAL_ONLY, "global": SHARED_ONLY}
SUMMED = ("instructions", "lanes", "wavefronts", "conflict_free_wavefronts", *GLOBAL_ONLY)

EVENT = np.dtype(
    [
        *(("offset", "<u8"), ("instruction", "<u8"), ("site", "<u4"), ("cta", "<u4"), ("thread", "<u2")),
        *(("width_bytes", "<u2"), ("kind", "u1"), ("space", "u1"), ("array", "<i2")),
    ]
)
"""One access of a warp's lane: byte offset in its array, the warp instruction, CTA and thread counted linearly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLine:
    """One kind of access at one source line to one array.

    `instructions` are warp instructions (requests, for global memory) and `lanes` the threads' accesses in them.
    Shared memory: `wavefronts` as the banks serve them, `conflict_free_wavefronts` without conflicts, `ways` the most
    words one bank delivers at once, `banks` the most banks one instruction touches. Global memory: `sectors` of 32
    bytes, `wanted_bytes` each byte of a request once, `fewest_sectors` if those lay side by side. What TMA moves is
    no warp instruction: there each row of a box is one request, of `width_bytes`, by one lane.
    """

    file: str
    line: int
    space: Space
    kind: Kind
    array: str
    width_bytes: int
    instructions: int
    lanes: int
    wavefronts: int = 0
    conflict_free_wavefronts: int = 0
    ways: int = 0
    banks: int = 0
    sectors: int = 0
    fewest_sectors: int = 0
    wanted_bytes: int = 0

    @property
    def place(self) -> tuple[str, int, Space, Kind, str, int]:
        """What no two lines of a trace share."""
        return self.file, self.line, self.space, self.kind, self.array, self.width_bytes

    @property
    def by_warps(self) -> bool:
        """Whether warps ask for it, and not TMA."""
        return not self.kind.startswith("TMA")

    @property
    def wavefronts_per_access(self) -> float:
        """Wavefronts of one warp instruction, on average."""
        return self.wavefronts / self.instructions

    @property
    def conflicts(self) -> int:
        """Wavefronts that bank conflicts add."""
        return self.wavefronts - self.conflict_free_wavefronts

    @property
    def sectors_per_request(self) -> float:
        """Sectors of one warp instruction, on average."""
        return self.sectors / self.instructions

    @property
    def efficiency(self) -> float:
        """Bytes wanted over bytes moved."""
        return self.wanted_bytes / (self.sectors * SECTOR_BYTES)

    def to_json(self) -> dict[str, Any]:
        """The fields that its space has, as JSON types."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in OTHERS[self.space]}


def merged(lines: Iterable[MemoryLine]) -> tuple[MemoryLine, ...]:
    """The lines with those of the same place, kind, array and width added up, by file and line."""
    made: dict[tuple[str, int, Space, Kind, str, int], MemoryLine] = {}
    for line in lines:
        made[line.place] = plus(made[line.place], line) if line.place in made else line
    return tuple(made[place] for place in sorted(made))


def plus(line: MemoryLine, other: MemoryLine, times: int = 1) -> MemoryLine:
    """`line` with `times` what `other` counts added; ways and banks are the most of both."""
    sums: dict[str, Any] = {name: getattr(line, name) + times * getattr(other, name) for name in SUMMED}
    return replace(line, **sums, ways=max(line.ways, other.ways), banks=max(line.banks, other.banks))


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a check objects to.

    `flaw` is 'race', 'uninitialised', 'misaligned', 'out_of_bounds', 'padding', 'index' or 'proxy'. `array` is a name,
    or for an index beyond its dimension the array's type. `lines` are the source lines involved, `file:line`; `text`
    says it in words.
    """

    flaw: str
    array: str
    lines: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What one launch did. `events` (dtype EVENT) are its accesses in lockstep order, where they were asked for.

    `sites` maps an event's site to its source line, `file:line`, and `array_names` its space and array to a name.
    """

    lines: tuple[MemoryLine, ...]
    findings: tuple[Finding, ...]
    events: npt.NDArray[np.void] | None
    sites: dict[int, str]
    array_names: dict[tuple[int, int], str]

    def select(self, **wanted: object) -> tuple[MemoryLine, ...]:
        """The lines whose fields have the wanted values: `select(space="shared", array="As", kind="store")`."""
        return tuple(line for line in self.lines if all(getattr(line, name) == value for name, value in wanted.items()))

    def per_access(self, space: Space) -> float | None:
        """Wavefronts of a warp's shared access, or sectors of its global request, on average; None for none."""
        chosen = self.select(space=space, by_warps=True)
        total = sum(line.wavefronts if space == "shared" else line.sectors for line in chosen)
        return total / sum(line.instructions for line in chosen) if chosen else None
