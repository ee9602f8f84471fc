"""What a search found. Owns the value, and what of it the store keeps as a choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.tune.context import Context
from tilewright.tune.final_rounds import Finals
from tilewright.tune.finalists import Finalist, winner
from tilewright.tune.request import Request
from tilewright.tune.space import Space
from tilewright.tune.sweep import Stop
from tilewright.tune.trial import Trial


@dataclass(frozen=True, kw_only=True)
class TuneResult:
    """The space, what was asked, every trial in it, and the finalists as measured, the fastest first.

    `known` of the trials were made by earlier runs. `finals` is None, and `ranking` empty, where no final rounds ran.
    """

    space: Space
    request: Request
    context: Context
    device: Mapping[str, Any]
    trials: tuple[Trial, ...]
    known: int
    stop: Stop
    finals: Finals | None
    ranking: tuple[Finalist, ...]

    @property
    def winner(self) -> Finalist | None:
        """The finalist that is taken, by the fixed rule among those that tie."""
        return winner(self.ranking)

    @property
    def ties(self) -> tuple[Trial, ...]:
        """Every finalist that ties with the fastest, the winner among them."""
        return tuple(finalist.trial for finalist in self.ranking if finalist.ties)

    @property
    def best(self) -> Trial | None:
        """The winner's trial; without final rounds the fastest of the screening; None where nothing ran."""
        if self.winner is not None:
            return self.winner.trial
        timed = [trial for trial in self.trials if trial.outcome == "timed"]
        return min(timed, key=lambda trial: (trial.time_us or 0.0, trial.key), default=None)


def choice_data(result: TuneResult) -> dict[str, Any]:
    """What the store keeps of a result that has a best config. `measured` says whether final rounds stand behind it."""
    assert result.best is not None
    data: dict[str, Any] = {
        "best": result.best.config,
        "ties": [trial.config for trial in result.ties],
        "measured": result.winner is not None,
        "trials": len(result.trials),
        "time_us": result.best.time_us,
        "device": dict(result.device),
    }
    if result.winner is not None:
        data["time_us"] = result.winner.time.median
        ratio = result.winner.ratio_to_baseline
        data["ratio_to_baseline"] = None if ratio is None else [ratio.low, ratio.median, ratio.high]
    return data
