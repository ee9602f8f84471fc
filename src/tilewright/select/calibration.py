"""What runs on a card have taught the model: its ceilings, each rung's constants, and which configs are worth a look.

Owns the file, one JSON for each card in `calibration/`, and which one serves a card. Made by `calibrating`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tilewright.arch import ArchSpec
from tilewright.declare import Config
from tilewright.errors import InvalidInput
from tilewright.facts.roofline import get_card
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.select.model import Constants
from tilewright.select.rates import Rates, card_like, nominal_rates

SCHEMA = "tilewright-calibration/2"
FOLDER = Path(__file__).resolve().parent / "calibration"
LIKE = {"float16": "bfloat16"}
"""Element types that run like another one, whose constants stand for their own."""
SELDOM_MEASURED = ("float16", "bfloat16")
"""Element types of which records hold a few shapes alone: no suite has been measured in them yet."""


class KnownConfig(NamedTuple):
    """A config that was measured: its efficiency, and how many of its CTAs an SM holds.

    `fastest` are the shape classes for whose shapes none of those that were measured was faster in the mean.
    """

    rung: str
    settings: Mapping[str, int]
    efficiency: float
    ctas_per_sm: int
    fastest: Sequence[str] = ()


class Learned(NamedTuple):
    """What is known of products of one element type.

    `library` is, by shape class, the ratio of the framework's own time to the chosen kernel's where that is below 1.
    `own` is that to our fastest kernel's where every record says that it is above 1; of SELDOM_MEASURED alone.
    `dependent` is, by rung, how many times as fast chains of its products are by dependent launch, where they are.
    `fit` says how it was made and how well it holds.
    """

    rungs: Mapping[str, Constants]
    configs: tuple[KnownConfig, ...]
    library: Mapping[str, float]
    fit: Mapping[str, Any]
    own: Mapping[str, float] = MappingProxyType({})
    dependent: Mapping[str, float] = MappingProxyType({})

    def known(self, config: Config) -> KnownConfig | None:
        """What was learned of this config; None where it was not kept."""
        same = (x for x in self.configs if x.rung == config.rung.name and dict(x.settings) == config.values)
        return next(same, None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """A card's rates with what was learned by element type, and the records it is from; none of a card never seen."""

    arch: str
    rates: Rates
    learned: Mapping[str, Learned] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    def of(self, dtype: str) -> Learned | None:
        """What is known of products of `dtype`, or of a type that runs like it."""
        return self.learned.get(dtype) or self.learned.get(LIKE.get(dtype, ""))

    def to_json(self) -> dict[str, Any]:
        """The file's contents."""
        learned = {
            dtype: {
                "rungs": {name: constants._asdict() for name, constants in found.rungs.items()},
                "configs": [config._asdict() for config in found.configs],
                "library": dict(found.library),
                "own": dict(found.own),
                "dependent": dict(found.dependent),
                "fit": dict(found.fit),
            }
            for dtype, found in self.learned.items()
        }
        return {
            "schema": SCHEMA,
            "arch": self.arch,
            "about": dict(self.about),
            "rates": self.rates._asdict(),
            "learned": learned,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """The inverse of `to_json`. Raises InvalidInput for another schema."""
        if data.get("schema") != SCHEMA:
            raise InvalidInput(f"schema={data.get('schema')!r}: this version reads {SCHEMA}; calibrate again")
        learned = {
            dtype: Learned(
                rungs={name: Constants(**values) for name, values in found["rungs"].items()},
                configs=tuple(KnownConfig(**values) for values in found["configs"]),
                library=found["library"],
                fit=found["fit"],
                own=found.get("own", {}),
                dependent=found.get("dependent", {}),
            )
            for dtype, found in data["learned"].items()
        }
        return cls(arch=data["arch"], rates=Rates(**data["rates"]), learned=learned, about=data["about"])


@cache
def packaged() -> tuple[Calibration, ...]:
    """Every calibration that comes with the package."""
    return tuple(
        Calibration.from_json(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(FOLDER.glob("*.json"))
    )


@cache
def calibration_for(arch: ArchSpec, sm_count: int, card: str | None = None) -> Calibration:
    """The calibration of the card named, or of one of this architecture and size; else what its datasheet says."""
    for known in packaged():
        same_size = (known.arch, known.rates.sm_count) == (arch.name, sm_count)
        if same_size and card in (None, known.rates.card):
            return known
    return Calibration(
        arch=arch.name, rates=nominal_rates(card_like(arch, sm_count) if card is None else get_card(card))
    )


def shape_class(problem: Problem) -> str:
    """The class in which a measured ratio stands for others: layout, alignment, sizes to quarters of a power of two."""
    sizes = ",".join(
        str(round(4 * math.log2(size)) if size else -1) for size in (problem.m, problem.n, problem.k, problem.batch)
    )
    return f"{problem.layout} {'aligned' if _is_aligned(problem) else 'unaligned'} {sizes}"


def _is_aligned(problem: Problem) -> bool:
    """Whether every row of A, B and D starts at a multiple of 16 bytes."""
    element_bytes = ITEMSIZE_BYTES[problem.dtype]
    rows = (problem.lda, problem.ldb, problem.ldd)
    return problem.alignment_bytes % 16 == 0 and all(row * element_bytes % 16 == 0 for row in rows)
