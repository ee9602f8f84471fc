"""Measured roofs of a card and recorded rungs under or above them, with what it means where one is above.

The model takes every requested byte to come from one level of memory. A point above that level's roof shows that this
is not so; nothing is drawn or measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.declare import all_rungs, rung_config
from tilewright.errors import TilewrightError
from tilewright.facts.roofline import MIB, Card, roofline
from tilewright.lab.render import INSTRUCTIONS
from tilewright.problem import Problem
from tilewright.record import Row, ceiling, compute_ceiling
from tilewright.report.reading import Source


@dataclass(frozen=True, slots=True)
class Roofs:
    """What a card was measured to do at most, in TB/s and TFLOP/s; `compute` says by which instruction."""

    dram_tb_per_s: float
    l2_tb_per_s: float
    compute_tflops: float
    compute: str

    def dram_tflops(self, flop_per_byte: float) -> float:
        """What DRAM allows at an intensity, if every byte came from there."""
        return self.dram_tb_per_s * flop_per_byte

    def l2_tflops(self, flop_per_byte: float) -> float:
        """What the L2 allows at an intensity, if every byte came from there."""
        return self.l2_tb_per_s * flop_per_byte


@dataclass(frozen=True, slots=True)
class Point:
    """A timed row at its declared intensity, against the roofs."""

    row: Row
    flop_per_byte: float
    tflops: float
    above_dram: bool
    above_l2: bool


def roofs_of(device: str, sources: Sequence[Source], dtype: str) -> Roofs | None:
    """The newest recorded ceilings of the device for elements of `dtype`, or None where one is missing."""
    records = [source.record for source in sources]
    dram, l2 = (ceiling(records, device, f"ceiling_{name}") for name in ("dram_read", "l2_read"))
    compute = compute_ceiling(records, device, dtype)
    if dram is None or l2 is None or compute is None:
        return None
    if dram.tb_per_s is None or l2.tb_per_s is None or compute.tflops is None:
        return None
    return Roofs(dram.tb_per_s, l2.tb_per_s, compute.tflops, INSTRUCTIONS[compute.rung])


def points_of(rows: Sequence[Row], roofs: Roofs) -> list[Point]:
    """Every timed row whose declaration says what it requests."""
    points = []
    for row in rows:
        if row.tflops is None or not row.global_load_bytes_per_flop:
            continue
        intensity = 1 / row.global_load_bytes_per_flop
        above_dram, above_l2 = (row.tflops > roof(intensity) for roof in (roofs.dram_tflops, roofs.l2_tflops))
        points.append(Point(row, intensity, row.tflops, above_dram, above_l2))
    return points


def why_above(point: Point, roofs: Roofs, source: Source) -> str:
    """What a point above the DRAM roof shows, in words, with the figures it follows from."""
    allowed = roofs.dram_tflops(point.flop_per_byte)
    parts = [
        f"At {point.flop_per_byte:.3g} FLOP a requested byte, {roofs.dram_tb_per_s:.2f} TB/s of DRAM allow "
        f"{allowed:.3g} TFLOP/s; it runs at {point.tflops:.3g}, {point.tflops / allowed:.1f} times that. The roof "
        "takes every requested byte to come from DRAM.",
        _premise(point.row, roofs, source),
    ]
    if point.above_l2:
        parts.append(
            f"It is above the L2's {roofs.l2_tflops(point.flop_per_byte):.3g} TFLOP/s as well, so not even the L2 "
            "serves every requested byte: lanes of a warp that ask for the same sector make one request for it, and "
            "the L1 serves again what it holds."
        )
    return " ".join(parts)


def _premise(row: Row, roofs: Roofs, source: Source) -> str:
    """Which sizes fit the L2, where rung and config are still what they were when this was recorded."""
    device = source.record.environment.get("device", {})
    unexplained = "Not so here: the speed alone shows it."
    if "l2_bytes" not in device or row.rung not in all_rungs():
        return unexplained
    card = Card(
        name=source.device,
        arch=row.arch or str(source.record.environment.get("arch")),
        sms=int(device.get("sm_count", 0)),
        boost_mhz=0,
        dram_gb_per_s=round(roofs.dram_tb_per_s * 1000),
        l2_mib=int(device["l2_bytes"]) // MIB,
    )
    try:
        problem = Problem(**row.problem)
        found = roofline(rung_config(all_rungs()[row.rung], row.config), problem, card)
    except (TilewrightError, TypeError):
        return unexplained
    return unexplained if found.premise_holds else found.premise()
