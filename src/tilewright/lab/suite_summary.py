"""What a suite's record comes to: geometric means by class, the worst shapes, the floors beside them.

Reads rows alone. A shape counts by what was chosen for it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.lab.suite_rows import BEST, CHOSEN, OWN
from tilewright.measure.baseline import BASELINE
from tilewright.measure.modes import GRAPH
from tilewright.record import Record, Row

WORST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMean:
    """One class: how many shapes have a ratio, its geometric mean, the lowest, and the mean share of the floor.

    `regret` is the chosen kernel's time over the best candidate's, None where no candidates were tried.
    """

    name: str
    shapes: int
    mean: float
    lowest: float
    of_floor: float
    regret: float | None


def chosen_rows(record: Record) -> list[Row]:
    """Each shape's row of what was chosen."""
    return [row for row in record.rows if row.arm == CHOSEN]


def how_launched(record: Record) -> str:
    """Whether calls were timed, and how launches were queued, in words to follow others; of an older record nothing."""
    about = record.about or {}
    words = ["called"] if about.get("call") else []
    if "launch" in about:
        words.append("in graphs" if about["launch"] == GRAPH else "on a stream")
    return "".join(f", {word}" for word in words)


def baseline_rows(record: Record) -> list[Row]:
    """Each shape's row of the baseline."""
    return [row for row in record.rows if row.arm == BASELINE]


def best_rows(record: Record) -> list[Row]:
    """Each shape's fastest row of our own kernels that was timed in the rounds with the baseline."""
    best: dict[str, Row] = {}
    for row in record.rows:
        if row.arm in (CHOSEN, OWN, BEST) and row.config is not None and row.ratio_to_baseline is not None:
            best[_key(row)] = max(best.get(_key(row), row), row, key=median_ratio)
    return list(best.values())


def median_ratio(row: Row) -> float:
    """How often the row's time goes into the baseline's; of one without a ratio, more than any."""
    return math.inf if row.ratio_to_baseline is None else row.ratio_to_baseline.median


def class_means(record: Record) -> list[ClassMean]:
    """Every class in the suite's order, and all of them together last where there are several."""
    return means_of(chosen_rows(record), _regrets(record.rows))


def means_of(shapes: Iterable[Row], regrets: Mapping[str, float] | None = None) -> list[ClassMean]:
    """The same of rows, one for each shape that counts."""
    rows = [row for row in shapes if row.ratio_to_baseline is not None and row.time_us is not None]
    names = list(dict.fromkeys(row.shape_class or "" for row in rows))
    grouped = [(name, [row for row in rows if row.shape_class == name]) for name in names]
    if len(names) > 1:
        grouped.append(("all", rows))
    return [_mean(name, members, regrets or {}) for name, members in grouped]


def worst(record: Record, most: int = WORST) -> list[Row]:
    """The shapes with the lowest ratios, the lowest first."""
    rows = [row for row in chosen_rows(record) if row.ratio_to_baseline is not None]
    return sorted(rows, key=median_ratio)[:most]


def summary(record: Record) -> dict[str, Any]:
    """Means and worst shapes as JSON types."""
    told = [
        {
            "shape_class": row.shape_class,
            "problem": row.problem,
            "rung": row.rung,
            "ratio": row.ratio_to_baseline.median,
        }
        for row in worst(record)
        if row.ratio_to_baseline is not None
    ]
    return {"means": [asdict(mean) for mean in class_means(record)], "worst": told}


def _mean(name: str, rows: Sequence[Row], regrets: Mapping[str, float]) -> ClassMean:
    ratios = [row.ratio_to_baseline.median for row in rows if row.ratio_to_baseline is not None]
    floors = [row.floor_us["both"] / row.time_us for row in rows if row.floor_us and row.time_us]
    found = [regrets[key] for row in rows if (key := _key(row)) in regrets]
    return ClassMean(
        name=name,
        shapes=len(ratios),
        mean=statistics.geometric_mean(ratios),
        lowest=min(ratios),
        of_floor=statistics.geometric_mean(floors),
        regret=statistics.geometric_mean(found) if found else None,
    )


def _key(row: Row) -> str:
    return f"{row.shape_class} {sorted(row.problem.items())}"


def _regrets(rows: Iterable[Row]) -> dict[str, float]:
    """By shape, the own kernel's time over the best candidate's; 1 where the own one is the best that was screened."""
    own: dict[str, float] = {}
    best: dict[str, float] = {}
    tried: set[str] = set()
    for row in rows:
        key = _key(row)
        if row.time_us is None or row.config is None:
            continue
        if row.arm == BEST:
            best[key] = row.time_us
        elif row.arm in (CHOSEN, OWN):
            own[key] = row.time_us
        else:
            tried.add(key)
    return {key: time_us / best.get(key, time_us) for key, time_us in own.items() if key in tried}
