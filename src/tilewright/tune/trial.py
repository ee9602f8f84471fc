"""One config tried: what became of it. Owns the value and its JSON form, which the store keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

Outcome = Literal["timed", "slow", "same", "failed"]
Stage = Literal["compile", "run"]
MOST_US = 1e12
"""No time and no ratio is larger: beyond, a number is a mistake."""
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
        """The inverse of `to_json`. Raises ValueError or TypeError, naming the value, for what no trial gives."""
        trial = cls(**{**data, "samples_us": tuple(data.get("samples_us", ()))})
        require_config("config", trial.config)
        require(trial.outcome in get_args(Outcome), "outcome", trial.outcome, f"one of {', '.join(get_args(Outcome))}")
        has_time = trial.time_us is not None or trial.outcome in ("timed", "slow")
        for time_us in (*((trial.time_us,) if has_time else ()), *trial.samples_us):
            require_time("time_us", time_us)
        if trial.same_as is not None:
            require_config("same_as", trial.same_as)
        require(trial.stage in (None, *get_args(Stage)), "stage", trial.stage, f"one of {', '.join(get_args(Stage))}")
        require(isinstance(trial.message, str), "message", trial.message, "a text")
        require(trial.failure is None or isinstance(trial.failure, str), "failure", trial.failure, "an error's name")
        require(isinstance(trial.facts, dict), "facts", trial.facts, "an object")
        for name, kind in (("identity", str), ("registers", int), ("smem_bytes", int)):
            require(isinstance(trial.facts.get(name, kind()), kind), name, trial.facts.get(name), f"of {kind.__name__}")
        return trial


def require(holds: bool, name: str, value: object, what: str) -> None:
    """Raise ValueError unless `holds`, saying that `name` must be `what`."""
    if not holds:
        raise ValueError(f"{name}={value!r:.80}: must be {what}")


def require_config(name: str, value: object) -> None:
    """Raise ValueError unless the value is an object of integers."""
    is_config = isinstance(value, dict) and all(type(x) is int for x in value.values())
    require(is_config, name, value, "an object of integers")


def require_time(name: str, value: object) -> None:
    """Raise ValueError unless the value is a number above 0 that a time, or a ratio of two, can be."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    require(is_number and 0 < value <= MOST_US, name, value, "a number above 0")  # type: ignore[operator]


def config_key(values: Mapping[str, int]) -> str:
    """A config's values as one text, the same whatever their order."""
    return json.dumps(dict(sorted(values.items())), separators=(",", ":"))
