"""Raw samples, folded in: every round of every arm as a dot, and the numbers themselves below it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tilewright.record import Row
from tilewright.report.html import Html, tag
from tilewright.report.parts import folded, full, time
from tilewright.report.reading import Source
from tilewright.report.svg import Scale, dots, image, line, percent_of, words

LEAST_SPREAD_PERCENT = 0.5
HEIGHT_PX = 54


def samples_part(source: Source, rows: Sequence[Row]) -> Html:
    """The samples of a record's `rows` on one scale, so that their spreads compare."""
    sampled = [row for row in rows if row.samples_us]
    if not sampled:
        return Html()
    most = max(LEAST_SPREAD_PERCENT, *(abs(each) for row in sampled for each in deviations(row)))
    count = sum(len(row.samples_us or ()) for row in sampled)
    note = (
        f"Each dot is one round, in the order they ran; up is slower. All strips reach from −{most:.2g}% to "
        f"+{most:.2g}% of the arm's own median. The numbers are microseconds a launch."
    )
    strips = [_strip(f"{source.ident}-s{index}", row, most) for index, row in enumerate(sampled)]
    return folded(
        f"Raw samples: {count} times of {len(sampled)} arm{'s' if len(sampled) != 1 else ''}",
        tag("p", note, class_="lead"),
        tag("div", *strips, class_="strips"),
    )


def deviations(row: Row) -> list[float]:
    """Each sample's distance from the arm's median, in per cent of it."""
    samples = row.samples_us or []
    middle = statistics.median(samples)
    return [100 * (sample / middle - 1) for sample in samples]


def _strip(ident: str, row: Row, most: float) -> Html:
    samples = row.samples_us or []
    inner = f", each the mean of {row.inner} launches" if row.inner and row.inner > 1 else ""
    told = f"{len(samples)} rounds{inner}; from {min(samples)} to {max(samples)} µs, median {time(row)}"
    scale = Scale(-most * 1.08, most * 1.08)
    places = [(_across(i, len(samples)), 100 - scale.at(each)) for i, each in enumerate(deviations(row))]
    drawn = image(
        ident, f"Samples of {full(row)}", told, HEIGHT_PX, line(0, 50, 100, 50, "axis-line"), dots(places, "")
    )
    numbers = tag("p", " ".join(str(sample) for sample in samples), class_="numbers")
    return tag("div", tag("h4", full(row)), tag("p", told, class_="taken"), drawn, numbers, class_="strip")


def _across(index: int, count: int) -> float:
    return 100 * (index + 0.5) / count


def trace(ident: str, title: str, values: Sequence[float], unit: str) -> Html:
    """A reading of every round as a line of dots, with its lowest and highest value said."""
    low, high = min(values), max(values)
    room = max((high - low) * 0.15, abs(high) * 0.005, 1e-9)
    scale = Scale(low - room, high + room)
    places = [(_across(i, len(values)), 100 - scale.at(value)) for i, value in enumerate(values)]
    told = f"{title}, {len(values)} rounds: {low:g} to {high:g} {unit}, median {statistics.median(values):g} {unit}"
    ends = [
        words(f"{v:.4g}", 0, 100 - scale.at(v), "tick", dx=-6, dy=4, anchor="end") for v in dict.fromkeys((low, high))
    ]
    frame = tag("rect", x="0", y="0", width="100%", height=percent_of(100), class_="frame")
    drawn = image(ident, title, told, HEIGHT_PX, frame, dots(places, ""), *ends)
    return tag("figure", tag("figcaption", told), tag("div", drawn, class_="trace"))
