"""One config tried: what became of it. Owns the value and its JSON form, which the store keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Outcome = Literal["timed", "slow", "same", "failed"]
Stage = Literal["compile", "run"]
CRASHED, OUT_OF_MEMORY, TIMED_OUT = "Crashed", "OutOfMemory", "TimedOut"
"""Failures that no exception can report: the process ended by itself, grew beyond its limit or didn't end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What became of one config.

    `timed`: verified, and `time_us` is the median of `samples_us`. `slow`: verified, and given up after one launch, of
    which `time_us` is the time. `same`: its instructions are those of `same_as`, so it has that one's time or failure.
    `failed`: `failure` is its kind, by the error's name or one of this module's, in the `stage` named; `message` says
    more. `facts` are what the binary shows: registers, spills, shared bytes, occupancy, `identity`.
    """

    config: dict[str, int]
    outcome: Outcome
    time_us: float | None = None
    samples_us: tuple[float, ...] = ()
    same_as: dict[str, int] | None = None
    failure: str | None = None
    stage: Stage | None = None
    message: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The config as one canonical text."""
        return config_key(self.config)

    def to_json(self) -> dict[str, Any]:
        """The trial as JSON types, what is empty left out."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "", (), {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Trial:
        """The inverse of `to_json`. Raises KeyError or TypeError on a foreign mapping."""
        return cls(**{**data, "samples_us": tuple(data.get("samples_us", ()))})


def config_key(values: Mapping[str, int]) -> str:
    """A config's values as one text, the same whatever their order."""
    return json.dumps(dict(sorted(values.items())), separators=(",", ":"))
