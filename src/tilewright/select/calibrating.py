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
from tilewright.record import Record, Row, compute_ceiling
from tilewright.select.calibration import Calibration, KnownConfig, Learned, shape_class
from tilewright.select.fitting import Vector, fitted
from tilewright.select.model import Constants, predict
from tilewright.select.rates import Rates, nominal_rates
from tilewright.select.traits import Traits, split_of, traits_of

COMMANDS = ("bench", "ladder", "tune")
PROBLEM_FIELDS = ("m", "n", "k", "layout", "dtype", "out_dtype", "alpha", "beta")
PRIOR_WEIGHT = 0.3
"""How much a departure from the usual constants counts beside one row's error: for rungs with few rows."""
NEAR_BEST = 1.1
"""A config is kept that was within this factor of the best for some shape."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One config's time for one problem."""

    problem: Problem
    config: Config
    traits: Traits
    time_us: float

    def expected_us(self, constants: Constants, rates: Rates) -> float:
        """The model's time with these constants."""
        return predict(
            self.traits, split_of(self.config, self.traits, self.problem), constants, self.problem, rates
        ).total_us


def calibrated(records: Mapping[str, Record], *, seed: int = 0) -> Calibration:
    """The calibration that records of one card give, by their names.

    Raises InvalidInput for records of several cards, of a card that isn't listed, or without a row to learn from.
    """
    card, arch = _card_of(records)
    every = list(records.values())
    rates = _rates(card, every)
    samples = list(_samples(every, arch))
    if not samples:
        raise InvalidInput(f"{', '.join(records)}: no verified and timed row to learn from; pass records of `bench`")
    dtypes = dict.fromkeys(sample.problem.dtype for sample in samples)
    learned = {dtype: _learned([s for s in samples if s.problem.dtype == dtype], rates, seed) for dtype in dtypes}
    with_library = {
        dtype: replace(found, library=_library(every, dtype)) for dtype, found in learned.items()
    }
    commits = sorted({str(record.environment.get("commit")) for record in every})
    about = {"records": list(records), "commits": commits, "seed": seed}
    return Calibration(arch=arch.name, rates=rates, learned=with_library, about=about)


def problem_of(fields: Mapping[str, Any]) -> Problem:
    """The problem that a row is about."""
    return Problem(**{name: fields[name] for name in PROBLEM_FIELDS if name in fields})


def _card_of(records: Mapping[str, Record]) -> tuple[Card, ArchSpec]:
    devices = {str(record.environment.get("device", {}).get("name")) for record in records.values()}
    if len(devices) != 1:
        raise InvalidInput(f"records of {', '.join(sorted(devices))}: must be of one card; calibrate each by itself")
    (device,) = devices
    found = [card for card in CARDS.values() if card.name.lower() in device.lower()]
    if not found:
        raise InvalidInput(f"{device}: its datasheet is not listed; there are {', '.join(CARDS)}")
    return found[0], get_arch(found[0].arch)


def _rates(card: Card, records: Sequence[Record]) -> Rates:
    """The measured ceilings, and what the datasheet says where one is missing."""
    rows = {row.rung: row for record in records if record.command == "ceilings" for row in record.rows}
    usual = nominal_rates(card)
    flops = dict(usual.flops_per_us)
    for record in records:
        device = record.environment["device"]["name"]
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


def _samples(records: Iterable[Record], arch: ArchSpec) -> Iterable[Sample]:
    """Every verified and timed row of a rung and config that there are today."""
    for record in records:
        for row in record.rows if record.command in COMMANDS else ():
            rung = all_rungs().get(row.rung)
            if rung is None or row.time_us is None or not row.verified or row.config is None:
                continue
            try:
                config = rung_config(rung, row.config)
            except InvalidInput:
                continue
            yield Sample(problem_of(row.problem), config, traits_of(config, arch, row.ctas_per_sm), row.time_us)


def _learned(samples: list[Sample], rates: Rates, seed: int) -> Learned:
    problems = list(dict.fromkeys(sample.problem for sample in samples))
    held_out = set(random.Random(seed).sample(problems, len(problems) // 2)) if len(problems) > 3 else set()
    used = [sample for sample in samples if sample.problem not in held_out]
    rungs: dict[str, Constants] = {}
    configs: list[KnownConfig] = []
    for name in dict.fromkeys(sample.config.rung.name for sample in used):
        rungs[name], efficiencies = _fit_rung([s for s in used if s.config.rung.name == name], rates)
        configs += _known(used, name, efficiencies)
    learned = Learned(rungs=rungs, configs=tuple(configs), library={}, fit={})
    kept = _near_best(used)
    fit = {
        "rows": len(used),
        "shapes": len(problems) - len(held_out),
        "held_out_shapes": len(held_out),
        "error": _error(used, learned, rates),
        "held_out_error": _error([s for s in samples if s.problem in held_out], learned, rates),
        "regret": regret(used, learned, rates),
        "held_out_regret": regret([s for s in samples if s.problem in held_out], learned, rates),
    }
    return replace(learned, configs=tuple(c for c in configs if (c.rung, tuple(c.settings.items())) in kept), fit=fit)


def _fit_rung(samples: list[Sample], rates: Rates) -> tuple[Constants, dict[Config, float]]:
    """The rung's constants and each config's efficiency; the rung's own efficiency is the configs' median."""
    configs = list(dict.fromkeys(sample.config for sample in samples))
    usual = Constants()
    start = np.array([usual.latency_us, usual.fill_us, usual.epilogue, *(usual.efficiency for _ in configs)])
    place = {config: 3 + i for i, config in enumerate(configs)}

    def residuals(values: Vector) -> Vector:
        latency_us, fill_us, epilogue = (float(x) for x in values[:3])
        errors = [
            math.log(
                s.expected_us(Constants(float(values[place[s.config]]), latency_us, fill_us, epilogue), rates)
                / s.time_us
            )
            for s in samples
        ]
        return np.array([*errors, *(PRIOR_WEIGHT * np.log(values / start))])

    found = [float(x) for x in fitted(start, residuals)]
    efficiencies = {config: found[place[config]] for config in configs}
    return Constants(statistics.median(efficiencies.values()), *found[:3]), efficiencies


def _known(samples: Sequence[Sample], rung: str, efficiencies: Mapping[Config, float]) -> list[KnownConfig]:
    ctas = {s.config: s.traits.ctas_per_sm for s in samples if s.config.rung.name == rung}
    return [
        KnownConfig(rung=rung, settings=dict(config.values), efficiency=efficiency, ctas_per_sm=ctas[config])
        for config, efficiency in efficiencies.items()
    ]


def _near_best(samples: Sequence[Sample]) -> set[tuple[str, tuple[tuple[str, int], ...]]]:
    """Configs within NEAR_BEST of the best for some problem."""
    best: dict[Problem, float] = {}
    for sample in samples:
        best[sample.problem] = min(sample.time_us, best.get(sample.problem, math.inf))
    return {
        (s.config.rung.name, tuple(s.config.values.items()))
        for s in samples
        if s.time_us <= NEAR_BEST * best[s.problem]
    }


def _constants_of(learned: Learned, config: Config) -> Constants:
    usual = learned.rungs.get(config.rung.name, Constants())
    for known in learned.configs:
        if known.rung == config.rung.name and dict(known.settings) == config.values:
            return replace(usual, efficiency=known.efficiency)
    return usual


def _error(samples: Sequence[Sample], learned: Learned, rates: Rates) -> float | None:
    """The model's typical factor off, as the geometric mean of its distance from 1."""
    if not samples:
        return None
    logs = [abs(math.log(s.expected_us(_constants_of(learned, s.config), rates) / s.time_us)) for s in samples]
    return math.exp(statistics.fmean(logs))


def regret(samples: Sequence[Sample], learned: Learned, rates: Rates) -> float | None:
    """The geometric mean, over problems with several configs, of the chosen one's time over the best one's."""
    by_problem: dict[Problem, list[Sample]] = {}
    for sample in samples:
        by_problem.setdefault(sample.problem, []).append(sample)
    logs = []
    for tried in by_problem.values():
        if len(tried) > 1:
            chosen = min(tried, key=lambda s: s.expected_us(_constants_of(learned, s.config), rates))
            logs.append(math.log(chosen.time_us / min(s.time_us for s in tried)))
    return math.exp(statistics.fmean(logs)) if logs else None


def _library(records: Iterable[Record], dtype: str) -> dict[str, float]:
    """By shape class the library's time over the chosen kernel's, where the interval of every row of it is below 1."""
    found: dict[str, list[Row]] = {}
    for record in records:
        for row in record.rows if record.command == "bench" else ():
            if row.rung != BASELINE and row.ratio_to_baseline is not None and row.problem.get("dtype") == dtype:
                found.setdefault(shape_class(problem_of(row.problem)), []).append(row)
    slower = {
        name: [row.ratio_to_baseline.median for row in rows if row.ratio_to_baseline is not None]
        for name, rows in found.items()
        if all(row.ratio_to_baseline is not None and row.ratio_to_baseline.high < 1.0 for row in rows)
    }
    return {name: round(statistics.geometric_mean(ratios), 4) for name, ratios in slower.items()}
