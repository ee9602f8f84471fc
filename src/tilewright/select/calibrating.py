"""From records of runs to a calibration: rates from ceilings, each rung's constants by least squares, and its regret.

Half of the shapes, drawn at random, is kept out of the fit; what choosing by the model costs there, against the best
that was measured, stands in the calibration. Owns the draw, the fit and these figures; it measures nothing.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilewright.arch import ArchSpec, get_arch
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidInput
from tilewright.facts.roofline import CARDS, Card
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.record import Ratio, Record, compute_ceiling
from tilewright.select.calibration import Calibration, KnownConfig, Learned, shape_class
from tilewright.select.candidates import written_down
from tilewright.select.fitting import Vector, fitted
from tilewright.select.model import Constants, predict
from tilewright.select.rates import Rates, nominal_rates
from tilewright.select.traits import Pieces, Traits, names_of, pieces_of, traits_of

COMMANDS = ("bench", "ladder", "tune")
PAIRED_ARMS = ("chosen", "own", "best")
"""Where every candidate was tried, these were too, and their times in the rounds are no times of a screening."""
PROBLEM_FIELDS = ("m", "n", "k", "layout", "dtype", "out_dtype", "alpha", "beta")
SHARED = ("latency_us", "fill_us", "epilogue", "alone")
"""The constants that a rung's configs have in common."""
PRIOR_WEIGHT = 0.3
"""How much a departure from the usual constants counts beside one row's error: for rungs with few rows."""
MOST_CONFIGS, LEAST_GAIN, UNSERVED = 24, 0.001, 10.0
"""How many configs are kept at most, what the last must gain in the mean, what a problem without one counts as."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One config's time for one problem."""

    problem: Problem
    config: Config
    traits: Traits
    pieces: Pieces
    time_us: float

    def expected_us(self, constants: Constants, rates: Rates) -> float:
        """The model's time with these constants."""
        return predict(self.traits, self.pieces, constants, self.problem, rates).total_us


def calibrated(records: Mapping[str, Record], *, seed: int = 0) -> Calibration:
    """The calibration that records of one card give, by their names.

    Raises InvalidInput for records of several cards, of a card that isn't listed, or without a row to learn from.
    """
    card, arch = card_of(records)
    every = list(records.values())
    rates = rates_of(card, every)
    samples = list(_samples(every, arch, rates.sm_count))
    if not samples:
        raise InvalidInput(f"{', '.join(records)}: no verified and timed row to learn from; pass records of `bench`")
    dtypes = dict.fromkeys(sample.problem.dtype for sample in samples)
    learned = {dtype: _learned([s for s in samples if s.problem.dtype == dtype], rates, seed) for dtype in dtypes}
    with_library = {dtype: replace(found, library=_library(every, dtype)) for dtype, found in learned.items()}
    commits = sorted({str(record.environment.get("commit")) for record in every})
    about = {"records": list(records), "commits": commits, "seed": seed}
    return Calibration(arch=arch.name, rates=rates, learned=with_library, about=about)


def problem_of(fields: Mapping[str, Any]) -> Problem:
    """The problem that a row is about."""
    return Problem(**{name: fields[name] for name in PROBLEM_FIELDS if name in fields})


def card_of(records: Mapping[str, Record]) -> tuple[Card, ArchSpec]:
    """The one listed card that the records are of. Raises InvalidInput."""
    devices = {str(record.environment.get("device", {}).get("name")) for record in records.values()}
    if len(devices) != 1:
        raise InvalidInput(f"records of {', '.join(sorted(devices))}: must be of one card; calibrate each by itself")
    (device,) = devices
    found = [card for card in CARDS.values() if card.name.lower() in device.lower()]
    if not found:
        raise InvalidInput(f"{device}: its datasheet is not listed; there are {', '.join(CARDS)}")
    return found[0], get_arch(found[0].arch)


def rates_of(card: Card, records: Sequence[Record]) -> Rates:
    """The measured ceilings, and what the datasheet says where one is missing."""
    rows = {row.rung: row for record in records if record.command == "ceilings" for row in record.rows}
    usual = nominal_rates(card)
    flops, device = dict(usual.flops_per_us), records[0].environment["device"]["name"]
    for dtype in flops:
        found = compute_ceiling(records, device, dtype)
        if found is not None and found.tflops is not None:
            flops[dtype] = found.tflops * 1e6

    def per_us(name: str, default: float) -> float:
        row = rows.get(name)
        return default if row is None or row.tb_per_s is None else row.tb_per_s * 1e6

    return replace(
        usual,
        flops_per_us=flops,
        shared_per_us=per_us("ceiling_shared_read", usual.shared_per_us),
        l2_per_us=per_us("ceiling_l2_read", usual.l2_per_us),
        dram_read_per_us=per_us("ceiling_dram_read", usual.dram_read_per_us),
        dram_write_per_us=per_us("ceiling_dram_write", usual.dram_write_per_us),
        source="measured ceilings" if rows else usual.source,
    )


def _samples(records: Iterable[Record], arch: ArchSpec, sm_count: int) -> Iterable[Sample]:
    """Every verified and timed row of a rung and config that there are today."""
    for record in records:
        for row in record.rows if record.command in COMMANDS else ():
            rung = all_rungs().get(row.rung)
            paired = record.command == "bench" and (record.about or {}).get("every") and row.arm in PAIRED_ARMS
            if rung is None or row.time_us is None or not row.verified or row.config is None or paired:
                continue
            try:
                config = rung_config(rung, row.config)
            except InvalidInput:
                continue
            problem, traits = problem_of(row.problem), traits_of(config, arch, row.ctas_per_sm)
            pieces = pieces_of(config, traits, problem, names_of(problem, sm_count))
            yield Sample(problem, config, traits, pieces, row.time_us)


def _learned(samples: list[Sample], rates: Rates, seed: int) -> Learned:
    problems = list(_by_problem(samples))
    held_out = set(random.Random(seed).sample(problems, len(problems) // 2)) if len(problems) > 3 else set()
    used = [sample for sample in samples if sample.problem not in held_out]
    unused = [sample for sample in samples if sample.problem in held_out]
    rungs: dict[str, Constants] = {}
    configs: list[KnownConfig] = []
    kept = {*_short_list(used), *written_down()}
    for name in dict.fromkeys(sample.config.rung.name for sample in used):
        rungs[name], efficiencies = _fit_rung([s for s in used if s.config.rung.name == name], rates)
        configs += _known(used, name, {c: e for c, e in efficiencies.items() if c in kept})
    learned = Learned(rungs=rungs, configs=tuple(configs), library={}, fit={})
    fit = {
        "rows": len(used),
        "shapes": len(problems) - len(held_out),
        "held_out_shapes": len(held_out),
        "error": _error(used, learned, rates),
        "held_out_error": _error(unused, learned, rates),
        "regret": regret(used, learned, rates),
        "held_out_regret": regret(unused, learned, rates),
    }
    return replace(learned, fit={name: round(value, 4) for name, value in fit.items() if value is not None})


def _fit_rung(samples: list[Sample], rates: Rates) -> tuple[Constants, dict[Config, float]]:
    """The rung's constants and each config's efficiency; the rung's own efficiency is the configs' median."""
    configs = list(dict.fromkeys(sample.config for sample in samples))
    usual = Constants()
    start = np.array([*(getattr(usual, name) for name in SHARED), *(usual.efficiency for _ in configs)])
    place = {config: len(SHARED) + i for i, config in enumerate(configs)}

    def residuals(values: Vector) -> Vector:
        shared = dict(zip(SHARED, map(float, values), strict=False))
        errors = [
            math.log(s.expected_us(Constants(efficiency=float(values[place[s.config]]), **shared), rates) / s.time_us)
            for s in samples
        ]
        return np.array([*errors, *(PRIOR_WEIGHT * np.log(values / start))])

    found = [float(x) for x in fitted(start, residuals)]
    efficiencies = {config: found[place[config]] for config in configs}
    shared = dict(zip(SHARED, found, strict=False))
    return Constants(efficiency=statistics.median(efficiencies.values()), **shared), efficiencies


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
    for known in learned.configs:
        if known.rung == config.rung.name and dict(known.settings) == config.values:
            return replace(learned.rungs[known.rung], efficiency=known.efficiency)
    return None


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


def _library(records: Iterable[Record], dtype: str) -> dict[str, float]:
    """By shape class the library's time over our best kernel's, where for every shape of it that is surely below 1."""
    best: dict[Problem, Ratio] = {}
    for record in records:
        for row in record.rows if record.command == "bench" else ():
            if row.rung != BASELINE and row.ratio_to_baseline is not None and row.problem.get("dtype") == dtype:
                problem = problem_of(row.problem)
                best[problem] = max(best.get(problem, row.ratio_to_baseline), row.ratio_to_baseline, key=_median)
    classes: dict[str, list[Ratio]] = {}
    for problem, ratio in best.items():
        classes.setdefault(shape_class(problem), []).append(ratio)
    return {
        name: round(statistics.geometric_mean(map(_median, ratios)), 4)
        for name, ratios in classes.items()
        if all(ratio.high < 1.0 for ratio in ratios)
    }


def _median(ratio: Ratio) -> float:
    return ratio.median
