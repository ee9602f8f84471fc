"""A traced line with its costs: in the whole launch, in one step along K, and the machine instructions that serve it.

Owns what is known of a line and how it is said; how the instructions were found is `served.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tilewright.emulator.trace import MemoryLine, Space
from tilewright.facts.mainloop import plain

PER_TILE: dict[Space, tuple[str, ...]] = {
    "shared": ("instructions", "wavefronts", "conflicts"),
    "global": ("instructions", "sectors", "fewest_sectors"),
}
"""What is told of one step along K."""

Mix = dict[str, Fraction]
"""Instructions of a thread by kind, as 'LDS.128'."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What one traced line costs: in the `whole` launch, and what one step along K adds to that, over all `warps`."""

    whole: MemoryLine
    tile: MemoryLine
    warps: int

    @property
    def instructions(self) -> Fraction:
        """Instructions of one warp, and so of each of its threads, in one step along K."""
        return self.per_warp("instructions")

    def per_warp(self, name: str) -> Fraction:
        """What one warp counts in one step along K: 'instructions', 'wavefronts', 'conflicts' or 'sectors'."""
        return Fraction(getattr(self.tile, name), self.warps)


@dataclass(frozen=True, slots=True)
class Served:
    """A traced line with the binary's instructions for it.

    `costs` are at the binary's width, which is not `traced_bytes` where the compiler merged accesses. `main_loop` is
    for one step along K, `elsewhere` as the instructions stand outside the main loop. `unexplained` says why the costs
    may not be the binary's; empty where they are.
    """

    costs: Costs
    traced_bytes: int
    main_loop: Mix = field(default_factory=dict)
    elsewhere: Mix = field(default_factory=dict)
    unexplained: str = ""

    @property
    def is_merged(self) -> bool:
        """Whether the binary's accesses are wider than the source's."""
        return self.costs.whole.width_bytes != self.traced_bytes

    def to_json(self) -> dict[str, Any]:
        """The line's counts with those of one step along K by a warp, and the instructions of a thread."""
        tile = {name: plain(self.costs.per_warp(name)) for name in PER_TILE[self.costs.whole.space]}
        claimed = {
            "merged_from_bytes": self.traced_bytes if self.is_merged else None,
            "main_loop": {kind: plain(count) for kind, count in self.main_loop.items()},
            "elsewhere": {kind: plain(count) for kind, count in self.elsewhere.items()},
            "unexplained": self.unexplained,
        }
        return {**self.costs.whole.to_json(), "k_tile": tile, **{name: v for name, v in claimed.items() if v}}
