"""From screening to a winner: who is measured again, who ties with the fastest, and which of them is taken.

Owns the rules, all fixed beforehand; times come from `measure`'s rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.declare import Rung
from tilewright.measure.samples import Samples
from tilewright.measure.stats import Interval
from tilewright.tune.trial import Trial

MOST, WITHIN = 8, 0.03
TIE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist:
    """A config measured in the final rounds. Ratios are the other's time over this one's: above 1 it is faster."""

    label: str
    trial: Trial
    time: Interval
    ratio_to_fastest: Interval
    ratio_to_baseline: Interval | None

    @property
    def ties(self) -> bool:
        """Whether its interval against the fastest reaches to within TIE of equal."""
        return self.ratio_to_fastest.high >= 1.0 - TIE


def finalists(trials: Iterable[Trial], *, most: int = MOST, within: float = WITHIN) -> list[Trial]:
    """The timed trials within `within` of the fastest, at most `most`, the fastest first."""
    timed = sorted((t for t in trials if t.outcome == "timed"), key=lambda t: (t.time_us or 0.0, t.key))
    return [t for t in timed if (t.time_us or 0.0) <= (1.0 + within) * (timed[0].time_us or 0.0)][:most]


def label_of(rung: Rung, values: Mapping[str, int]) -> str:
    """A name for a config of the rung: what differs from the rung's defaults."""
    changed = [f"{p.name}={values[p.name]}" for p in rung.params if values[p.name] != p.default]
    return " ".join(changed) or "defaults"


def ranked(trials: Mapping[str, Trial], samples: Samples, baseline: str | None) -> list[Finalist]:
    """The measured finalists by label, the fastest first. Empty where no round counted or the card was throttled."""
    if not samples.rounds or samples.stop == "throttled":
        return []
    fastest = min(trials, key=samples.median_us)
    found = [
        Finalist(
            label=label,
            trial=trial,
            time=samples.interval_us(label),
            ratio_to_fastest=samples.ratio(label, fastest),
            ratio_to_baseline=None if baseline is None else samples.ratio(label, baseline),
        )
        for label, trial in trials.items()
    ]
    return sorted(found, key=lambda finalist: -finalist.ratio_to_fastest.median)


def winner(ranking: Sequence[Finalist]) -> Finalist | None:
    """Of those that tie with the fastest: fewest registers, then least shared memory, then the first by name."""
    tied = [finalist for finalist in ranking if finalist.ties]
    return min(tied, key=_preference, default=None)


def _preference(finalist: Finalist) -> tuple[int, int, str]:
    facts = finalist.trial.facts
    return int(facts.get("registers", 0)), int(facts.get("smem_bytes", 0)), finalist.trial.key
