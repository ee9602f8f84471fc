"""Records of one card read for a calibration: its rates, and each config's time for a problem.

Owns which rows count. What is made of them is `calibrating`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.arch import ArchSpec, get_arch
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidInput
from tilewright.facts.roofline import CARDS, Card, card_of_device
from tilewright.measure.modes import GRAPH
from tilewright.problem import Problem
from tilewright.record import Record, Row, compute_ceiling, is_steady, tries_every
from tilewright.select.candidates import refusal
from tilewright.select.model import Constants, predict
from tilewright.select.rates import Rates, nominal_rates
from tilewright.select.traits import Pieces, Traits, names_of, pieces_of, traits_of

COMMANDS = ("bench", "ladder", "tune")
PAIRED_ARMS = ("chosen", "own", "best")
"""Where every candidate was tried, these were too, and their times in the rounds are no times of a screening."""
PROBLEM_FIELDS = ("m", "n", "k", "layout", "dtype", "out_dtype", "alpha", "beta")


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


def problem_of(fields: Mapping[str, Any]) -> Problem:
    """The problem that a row is about."""
    return Problem(**{name: fields[name] for name in PROBLEM_FIELDS if name in fields})


def card_of(records: Mapping[str, Record]) -> tuple[Card, ArchSpec]:
    """The one listed card that the records are of. Raises InvalidInput."""
    devices = {str(record.environment.get("device", {}).get("name")) for record in records.values()}
    if len(devices) != 1:
        raise InvalidInput(f"records of {', '.join(sorted(devices))}: must be of one card; calibrate each by itself")
    (device,) = devices
    card = card_of_device(device)
    if card is None:
        raise InvalidInput(f"{device}: its datasheet is not listed; there are {', '.join(CARDS)}")
    return card, get_arch(card.arch)


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

    return usual._replace(
        flops_per_us=flops,
        shared_per_us=per_us("ceiling_shared_read", usual.shared_per_us),
        l2_per_us=per_us("ceiling_l2_read", usual.l2_per_us),
        dram_read_per_us=per_us("ceiling_dram_read", usual.dram_read_per_us),
        dram_write_per_us=per_us("ceiling_dram_write", usual.dram_write_per_us),
        source="measured ceilings" if rows else usual.source,
    )


def rows_of(records: Iterable[Record], launch: str | None = None) -> Iterator[tuple[Record, Row]]:
    """Every row timed in the steady mode, with its record, of one launch mode: the one named.

    Where none is named, of a shape that has rows from graphs those alone, and of any other shape all that there are,
    those of records that don't say included.
    """
    rows = [
        (record, row)
        for record in records
        if record.command in COMMANDS and is_steady(record)
        for row in record.rows
        if row.time_us is not None
    ]
    from_graphs = {problem_of(row.problem) for _, row in rows if row.launch == GRAPH}
    for record, row in rows:
        wanted = launch or (GRAPH if problem_of(row.problem) in from_graphs else row.launch)
        if row.launch == wanted:
            yield record, row


def samples_of(records: Iterable[Record], arch: ArchSpec, sm_count: int, launch: str | None = None) -> Iterable[Sample]:
    """Every verified one of `rows_of`, of a rung and config of today that may be chosen for its shape."""
    for record, row in rows_of(records, launch):
        rung = all_rungs().get(row.rung)
        paired = tries_every(record) and row.arm in PAIRED_ARMS
        if rung is None or row.time_us is None or not row.verified or row.config is None or paired:
            continue
        problem = problem_of(row.problem)
        try:
            config = rung_config(rung, row.config)
        except InvalidInput:
            continue
        if refusal(config, problem, sm_count):
            continue
        traits = traits_of(config, arch, row.ctas_per_sm)
        pieces = pieces_of(config, traits, problem, names_of(problem, sm_count))
        yield Sample(problem, config, traits, pieces, row.time_us)
