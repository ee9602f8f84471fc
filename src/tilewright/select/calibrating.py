"""From records of runs to a calibration: rates from ceilings, each rung's constants by least squares, and its regret.

Half of the shapes, drawn at random, is kept out of a first fit; what choosing by the model costs there, against the
best that was measured, stands in the calibration, whose constants are then fitted to all shapes. Owns the draw, the fit
and these figures; it measures nothing.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tilewright.declare import Config
from tilewright.errors import InvalidInput
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.record import Ratio, Record, Row, tries_every
from tilewright.select.calibration import SELDOM_MEASURED, Calibration, KnownConfig, Learned, shape_class
from tilewright.select.candidates import written_down
from tilewright.select.fitting import Vector, fitted
from tilewright.select.model import Constants
from tilewright.select.rates import Rates
from tilewright.select.samples import Sample, card_of, problem_of, rates_of, rows_of, samples_of

SHARED = ("latency_us", "fill_us", "epilogue", "alone", "copy_ns")
"""The constants that a rung's configs have in common."""
PRIOR_WEIGHT = 0.3
"""How much a departure from the usual constants counts beside one row's error: for rungs with few rows."""
USUAL_ERROR = 0.1
"""How far a row's time may be from the model's, as a logarithm, before it counts as an outlier."""
LEAST_SHAPES = 12
"""Of fewer shapes none is kept out."""
CHAIN_FLOOR = 0.998
"""How much slower a chain may seem by dependent launch: a measurement's noise."""
MOST_CONFIGS, LEAST_GAIN, UNSERVED = 24, 0.001, 10.0
"""How many configs are kept at most, what the last must gain in the mean, what a problem without one counts as."""


def calibrated(records: Mapping[str, Record], *, seed: int = 0, launch: str | None = None) -> Calibration:
    """The calibration that records of one card give, by their names.

    What a suite's shapes took by an earlier choice alone is left out, else a choice would speak for itself, but for how
    the framework's product compares with it. Of the rows those of one launch mode count; see `samples.rows_of`.

    Raises InvalidInput for records of several cards, of a card that isn't listed, or without a row to learn from.
    """
    card, arch = card_of(records)
    rates = rates_of(card, list(records.values()))
    used = {name: record for name, record in records.items() if record.command != "bench" or tries_every(record)}
    every = list(used.values())
    samples = list(samples_of(every, arch, rates.sm_count, launch))
    if not samples:
        which = "" if launch is None else f" of launch mode {launch}"
        raise InvalidInput(
            f"{', '.join(records)}: no verified and timed row{which} to learn from; pass records of `bench`"
        )
    compared = {name: record for name, record in records.items() if name in used or (record.about or {}).get("launch")}
    dtypes = dict.fromkeys(sample.problem.dtype for sample in samples)
    learned = {dtype: _learned([s for s in samples if s.problem.dtype == dtype], rates, seed) for dtype in dtypes}
    with_library = {
        dtype: found._replace(
            library=_library(compared.values(), dtype, launch),
            own=faster_than_library(every, dtype),
            dependent=faster_in_chains(every, dtype),
        )
        for dtype, found in learned.items()
    }
    commits = sorted({str(record.environment.get("commit")) for record in compared.values()})
    named = {} if launch is None else {"launch": launch}
    more = [name for name in compared if name not in used]
    about = {"records": list(used), "compared": more, "commits": commits, "seed": seed, **named}
    return Calibration(arch=arch.name, rates=rates, learned=with_library, about=about)


def _learned(samples: list[Sample], rates: Rates, seed: int) -> Learned:
    problems = list(_by_problem(samples))
    held_out = set(random.Random(seed).sample(problems, len(problems) // 2)) if len(problems) >= LEAST_SHAPES else set()
    used = [sample for sample in samples if sample.problem not in held_out]
    unused = [sample for sample in samples if sample.problem in held_out]
    learned = _fit(used, rates)
    fit = {
        "rows": len(used),
        "shapes": len(problems) - len(held_out),
        "held_out_shapes": len(held_out),
        "error": _error(used, learned, rates),
        "held_out_error": _error(unused, learned, rates),
        "regret": regret(used, learned, rates),
        "held_out_regret": regret(unused, learned, rates),
    }
    figures = {name: round(value, 4) for name, value in fit.items() if value is not None}
    return _with_fastest((_fit(samples, rates) if held_out else learned)._replace(fit=figures), samples)


def _with_fastest(learned: Learned, samples: Sequence[Sample]) -> Learned:
    """The same with the shape classes in which a config was fastest, of those that all their shapes were run with."""
    classes: dict[str, dict[Problem, dict[Config, float]]] = {}
    for sample in samples:
        shapes = classes.setdefault(shape_class(sample.problem), {})
        if learned.known(sample.config) is not None:
            shapes.setdefault(sample.problem, {})[sample.config] = sample.time_us
    fastest: dict[int, list[str]] = {}
    for name, shapes in classes.items():
        common = set.intersection(*map(set, shapes.values())) if shapes else set()
        if len(common) > 1:
            best = min(common, key=lambda config: math.prod(times[config] for times in shapes.values()))
            fastest.setdefault(id(learned.known(best)), []).append(name)
    return learned._replace(configs=tuple(x._replace(fastest=fastest.get(id(x), ())) for x in learned.configs))


def _fit(samples: Sequence[Sample], rates: Rates) -> Learned:
    rungs: dict[str, Constants] = {}
    configs: list[KnownConfig] = []
    kept = {*_short_list(samples), *written_down()}
    for name in dict.fromkeys(sample.config.rung.name for sample in samples):
        rungs[name], efficiencies = _fit_rung([s for s in samples if s.config.rung.name == name], rates)
        configs += _known(samples, name, {c: e for c, e in efficiencies.items() if c in kept})
    return Learned(rungs=rungs, configs=tuple(configs), library={}, fit={})


def _fit_rung(samples: list[Sample], rates: Rates) -> tuple[Constants, dict[Config, float]]:
    """The rung's constants and each config's efficiency; the rung's own efficiency is the configs' median."""
    configs = list(dict.fromkeys(sample.config for sample in samples))
    usual = Constants()
    start = np.array([*(getattr(usual, name) for name in SHARED), *(usual.efficiency for _ in configs)])
    place = {config: len(SHARED) + i for i, config in enumerate(configs)}

    def residuals(values: Vector) -> Vector:
        shared = dict(zip(SHARED, map(float, values), strict=False))
        reached = np.minimum(values, 1.0)  # no kernel is faster than its slowest pipe
        errors = [
            math.log(s.expected_us(Constants(efficiency=float(reached[place[s.config]]), **shared), rates) / s.time_us)
            for s in samples
        ]
        return np.array([*_softened(np.array(errors)), *(PRIOR_WEIGHT * np.log(values / start))])

    found = [float(x) for x in fitted(start, residuals)]
    efficiencies = {config: min(found[place[config]], 1.0) for config in configs}
    shared = dict(zip(SHARED, found, strict=False))
    return Constants(efficiency=statistics.median(efficiencies.values()), **shared), efficiencies


def _softened(errors: Vector) -> Vector:
    """Errors whose squares grow like their sizes above USUAL_ERROR, so that a few outliers don't bend the fit."""
    sizes = np.sqrt(2.0 * (np.sqrt(1.0 + (errors / USUAL_ERROR) ** 2) - 1.0))
    return np.asarray(np.sign(errors) * USUAL_ERROR * sizes)


def _known(samples: Sequence[Sample], rung: str, efficiencies: Mapping[Config, float]) -> list[KnownConfig]:
    ctas = {s.config: s.traits.ctas_per_sm for s in samples if s.config.rung.name == rung}
    return [
        KnownConfig(rung=rung, settings=dict(config.values), efficiency=efficiency, ctas_per_sm=ctas[config])
        for config, efficiency in efficiencies.items()
    ]


def _short_list(samples: Sequence[Sample]) -> set[Config]:
    """Few configs of which for every problem one is near the best: each in turn the one that gains most."""
    by_problem = _by_problem(samples)
    best = {problem: min(s.time_us for s in tried) for problem, tried in by_problem.items()}
    logs: dict[Config, dict[Problem, float]] = {}
    for sample in samples:
        logs.setdefault(sample.config, {})[sample.problem] = math.log(sample.time_us / best[sample.problem])
    left = dict.fromkeys(best, math.log(UNSERVED))
    kept: set[Config] = set()
    while len(kept) < MOST_CONFIGS:
        gains = {
            config: sum(max(0.0, left[problem] - log) for problem, log in found.items())
            for config, found in logs.items()
            if config not in kept
        }
        chosen = max(gains, key=gains.__getitem__, default=None)
        if chosen is None or gains[chosen] <= LEAST_GAIN * len(best):
            break
        kept.add(chosen)
        left.update({problem: min(left[problem], log) for problem, log in logs[chosen].items()})
    return kept


def _by_problem(samples: Iterable[Sample]) -> dict[Problem, list[Sample]]:
    found: dict[Problem, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.problem, []).append(sample)
    return found


def _constants_of(learned: Learned, config: Config) -> Constants | None:
    """What the config is expected by; None where it is no candidate."""
    known = learned.known(config)
    return None if known is None else learned.rungs[known.rung]._replace(efficiency=known.efficiency)


def _expected(samples: Iterable[Sample], learned: Learned, rates: Rates) -> dict[Sample, float]:
    """The model's times of those samples that are of candidates."""
    constants = ((sample, _constants_of(learned, sample.config)) for sample in samples)
    return {sample: sample.expected_us(found, rates) for sample, found in constants if found is not None}


def _error(samples: Sequence[Sample], learned: Learned, rates: Rates) -> float | None:
    """The model's typical factor off, as the geometric mean of its distance from 1."""
    logs = [abs(math.log(us / sample.time_us)) for sample, us in _expected(samples, learned, rates).items()]
    return math.exp(statistics.fmean(logs)) if logs else None


def regret(samples: Sequence[Sample], learned: Learned, rates: Rates) -> float | None:
    """The geometric mean, over problems with several configs, of the chosen one's time over the best one's.

    Chosen is among the calibration's configs, the best among all that were measured.
    """
    logs = []
    for tried in _by_problem(samples).values():
        expected = _expected(tried, learned, rates)
        if expected and len(tried) > 1:
            chosen = min(expected, key=expected.__getitem__)
            logs.append(math.log(chosen.time_us / min(s.time_us for s in tried)))
    return math.exp(statistics.fmean(logs)) if logs else None


def _library(records: Iterable[Record], dtype: str, launch: str | None) -> dict[str, float]:
    """By shape class the library's time over our best kernel's, where for every shape of it that is surely below 1.

    Of a shape in several records the mean counts, since two cards of a kind differ by a few in a hundred. Records of a
    choice alone count where they say how launches were queued.
    """
    by_record: dict[int, dict[Problem, Ratio]] = {}
    for record, row in rows_of(records, launch):
        if record.command == "bench" and (row.launch is not None or tries_every(record)):
            _keep_better(by_record.setdefault(id(record), {}), row, dtype)
    by_problem: dict[Problem, list[Ratio]] = {}
    for best in by_record.values():
        for problem, ratio in best.items():
            by_problem.setdefault(problem, []).append(ratio)
    classes = _by_class({problem: _mean(ratios) for problem, ratios in by_problem.items()})
    return _means({name: ratios for name, ratios in classes.items() if all(ratio.high < 1.0 for ratio in ratios)})


def _mean(ratios: Sequence[Ratio]) -> Ratio:
    low, median, high = (
        statistics.geometric_mean(each) for each in zip(*((r.low, r.median, r.high) for r in ratios), strict=True)
    )
    return Ratio(low, median, high)


def faster_than_library(records: Iterable[Record], dtype: str) -> dict[str, float]:
    """By shape class the same ratio, where every record of it, in whatever mode, says that it is surely above 1.

    Of other than SELDOM_MEASURED none, as nobody asks.
    """
    classes: dict[str, list[Ratio]] = {}
    for record in records if dtype in SELDOM_MEASURED else ():
        if record.command in ("bench", "ladder"):
            for name, ratios in _ratios_by_class(record.rows, dtype).items():
                classes.setdefault(name, []).extend(ratios)
    return _means({name: ratios for name, ratios in classes.items() if all(ratio.low > 1.0 for ratio in ratios)})


def faster_in_chains(records: Iterable[Record], dtype: str) -> dict[str, float]:
    """By rung how many times as fast dependent launch makes its chains, in the mean, where it slows none of them."""
    found: dict[str, list[float]] = {}
    for record in records:
        for each in (record.about or {}).get("ratios", ()) if record.command == "chain" else ():
            if each["problem"].get("dtype", "float32") == dtype:
                found.setdefault(each["rung"], []).append(each["median"])
    means = {rung: statistics.geometric_mean(ratios) for rung, ratios in found.items() if min(ratios) > CHAIN_FLOOR}
    return {rung: round(mean, 4) for rung, mean in sorted(means.items()) if mean > 1.0}


def _ratios_by_class(rows: Iterable[Row], dtype: str) -> dict[str, list[Ratio]]:
    """By shape class the ratio of each of its problems, that of the kernel of ours which was fastest in any row."""
    best: dict[Problem, Ratio] = {}
    for row in rows:
        _keep_better(best, row, dtype)
    return _by_class(best)


def _keep_better(best: dict[Problem, Ratio], row: Row, dtype: str) -> None:
    """Keep the row's ratio for its problem where it is one of ours and the best so far."""
    if row.rung != BASELINE and row.ratio_to_baseline is not None and row.problem.get("dtype") == dtype:
        problem = problem_of(row.problem)
        best[problem] = max(best.get(problem, row.ratio_to_baseline), row.ratio_to_baseline, key=_median)


def _by_class(ratios: Mapping[Problem, Ratio]) -> dict[str, list[Ratio]]:
    classes: dict[str, list[Ratio]] = {}
    for problem, ratio in ratios.items():
        classes.setdefault(shape_class(problem), []).append(ratio)
    return classes


def _means(classes: Mapping[str, Sequence[Ratio]]) -> dict[str, float]:
    return {name: round(statistics.geometric_mean(map(_median, ratios)), 4) for name, ratios in classes.items()}


def _median(ratio: Ratio) -> float:
    return ratio.median
