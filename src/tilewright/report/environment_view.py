"""How each record was taken: everything its environment says, with clock and power of every round drawn.

Nothing of an environment is left out; what has no words of its own here is shown under its own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewright.report.html import Html, tag
from tilewright.report.parts import pairs, plain
from tilewright.report.reading import Source
from tilewright.report.samples_view import trace

LEAD = (
    "What a sceptic needs to refute a figure, or to take it again: card, clocks, power, versions, commit, and how the "
    "rounds went. Before anything is timed it is verified at its own size; a warm-up runs until windows of half a "
    "second agree; each round then runs every arm once in a random order; a round under thermal or hardware slowdown "
    "is dropped whole."
)
WORDS = {
    "device.name": "card",
    "device.sm_count": "SMs",
    "device.l2_bytes": "L2, bytes",
    "device.uuid": "card's UUID",
    "device.driver_cuda": "driver, up to CUDA",
    "arch": "compiled for",
    "nvrtc": "NVRTC",
    "measurement.mode": "mode",
    "measurement.launch": "launches from",
    "measurement.cache": "operands' cache",
    "measurement.aa": "A/A, the baseline against itself",
    "measurement.aa_floor": "A/A floor, as a fraction",
    "measurement.rounds": "rounds",
    "measurement.rejected_rounds": "rounds rejected",
    "measurement.stop": "stopped by",
    "measurement.warm": "warm-up settled",
    "measurement.buffer_sets": "sets of operands in turn",
    "measurement.seed": "seed of the order",
    "measurement.data": "operands hold",
    "measurement.median_sm_mhz": "SM clock, median MHz",
    "measurement.median_memory_mhz": "memory clock, median MHz",
    "measurement.clock_reasons": "what held the clock down",
}
UNITS = {"mhz": "MHz", "w": "W", "c": "°C"}


def environment_part(source: Source) -> Html:
    """One record's environment."""
    facts, series = [("file", source.name), ("command", source.record.command)], []
    for path, value in _leaves(source.record.environment):
        numbers = _numbers(value)
        if numbers:
            series.append((path, numbers))
        else:
            facts.append((WORDS.get(path, path.rpartition(".")[2].replace("_", " ")), plain(value)))
    traces = [
        trace(f"{source.ident}-t{index}", _title(path), values, _unit(path))
        for index, (path, values) in enumerate(series)
    ]
    return tag(
        "article", tag("h3", source.name), pairs(facts), *traces, id=f"{source.ident}-taken", class_="taken-part"
    )


def _leaves(value: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, each in value.items():
        if isinstance(each, dict) and set(each) == {"low", "median", "high"}:
            yield f"{before}{name}", "{median:.5g} [{low:.5g}, {high:.5g}]".format(**each)
        elif isinstance(each, dict):
            yield from _leaves(each, f"{before}{name}.")
        elif each is not None:
            yield f"{before}{name}", each


def _numbers(value: object) -> list[float]:
    """A reading for each round; empty for anything else."""
    if not isinstance(value, list) or len(value) < 2:
        return []
    known = [float(each) for each in value if isinstance(each, int | float) and not isinstance(each, bool)]
    return known if len(known) == sum(each is not None for each in value) else []


def _title(path: str) -> str:
    name = path.rpartition(".")[2]
    stem, _, unit = name.rpartition("_")
    return (stem if unit in UNITS else name).replace("_", " ").replace("sm", "SM clock") or name


def _unit(path: str) -> str:
    return UNITS.get(path.rpartition("_")[2], "")
