"""How a problem's tiles fill a card: waves of CTAs, the last of which leaves SMs idle.

Arithmetic on the launch geometry and the CTAs that an SM holds at once. It takes every tile to last equally long.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.declare.config import Config
from tilewright.facts.roofline import Card
from tilewright.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Waves:
    """Tiles of D on a card with room for `slots` CTAs at once.

    A persistent kernel's grid follows from the card's SMs, and each of its `ctas` takes several tiles; any other's CTAs
    take one each.
    """

    card: str
    tiles: int
    ctas: int
    slots: int
    persistent: bool

    @property
    def waves(self) -> float:
        """Rounds in which all slots are filled with tiles, the last one counted as the part that it fills."""
        return self.tiles / self.slots

    @property
    def tail(self) -> int:
        """Tiles of the last wave."""
        return self.tiles - (math.ceil(self.waves) - 1) * self.slots

    @property
    def tail_efficiency(self) -> float:
        """The share of the slots that the last wave fills."""
        return self.tail / self.slots

    @property
    def utilisation(self) -> float:
        """The share of all slots of all waves that tiles fill: what the tail leaves of the card's speed."""
        return self.tiles / (math.ceil(self.waves) * self.slots)

    @property
    def tiles_per_cta(self) -> tuple[int, int]:
        """The fewest and the most tiles that a CTA takes."""
        return self.tiles // self.ctas, -(-self.tiles // self.ctas)

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON types."""
        derived = ("waves", "tail", "tail_efficiency", "utilisation", "tiles_per_cta")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}


def waves(config: Config, problem: Problem, card: Card, ctas_per_sm: int) -> Waves:
    """The waves of `config` for `problem` on `card`, whose SMs hold `ctas_per_sm` of its CTAs."""
    ctas = math.prod(config.grid(problem, sm_count=card.sms))
    persistent = config.rung.launch.persistent
    tiles, held = ctas, ctas_per_sm
    if persistent:
        rows, cols, _ = config.tile
        tiles = -(-problem.m // rows) * -(-problem.n // cols) * problem.batch
        held = min(ctas_per_sm, -(-ctas // card.sms))
    return Waves(card=card.name, tiles=tiles, ctas=ctas, slots=card.sms * held, persistent=persistent)
