"""Speed by each parameter of a search: for every value the spread of the trials that had it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from tilewright.record import Row
from tilewright.report.html import Html, tag
from tilewright.report.svg import Scale, image, line, mark, rect, words


def share(row: Row, best: Row) -> float:
    """Speed as per cent of the best one's."""
    return 100 * (best.time_us or 0.0) / (row.time_us or math.inf)


def speed_scale(timed: Sequence[Row], best: Row) -> Scale:
    """From a round share below the slowest to just above the fastest."""
    shares = [share(row, best) for row in timed]
    return Scale(10 * math.floor(min(*shares, 90.0) / 10), max(shares) * 1.02)


def parameters_part(ident: str, timed: Sequence[Row], best: Row) -> Html:
    """A small plot for every parameter that was varied."""
    y = speed_scale(timed, best)
    names = dict.fromkeys(name for row in timed for name in (row.config or {}))
    drawn = []
    for name in names:
        groups: dict[int, list[float]] = {}
        for row in timed:
            if row.config is not None and name in row.config:
                groups.setdefault(row.config[name], []).append(share(row, best))
        if len(groups) > 1:
            chosen = (best.config or {}).get(name)
            drawn.append(_parameter(f"{ident}-{name}", name, dict(sorted(groups.items())), chosen, y))
    if not drawn:
        return Html()
    title = f"Each parameter by itself, from {y.low:g}% of the best one's speed at the bottom to 100% at the upper line"
    return tag("div", tag("h4", title), tag("div", *drawn, class_="multiples"))


def _parameter(ident: str, name: str, groups: dict[int, list[float]], chosen: int | None, y: Scale) -> Html:
    width, best = 100 / len(groups), 100 - y.at(100)
    content, told = [line(0, best, 100, best, "grid"), line(0, 100, 100, 100, "axis-line")], []
    for index, (value, shares) in enumerate(groups.items()):
        middle = width * (index + 0.5)
        low, median, high = _quartiles(shares)
        top, mid, bottom = (100 - y.at(share) for share in (high, median, low))
        content += [
            line(middle, 100 - y.at(max(shares)), middle, 100 - y.at(min(shares)), "whisker thin"),
            rect(middle - width * 0.3, top, width * 0.6, bottom - top, "box"),
            line(middle - width * 0.3, mid, middle + width * 0.3, mid, "whisker"),
            words(f"{value}", middle, 100, "tick", dy=16, anchor="middle"),
        ]
        if value == chosen:
            content.append(mark("star", middle, best, "called"))
        told.append(f"{value}: best {max(shares):.1f}, median {median:.1f} of {len(shares)}")
    drawn = image(ident, f"{name}, % of the best", "; ".join(told), 130, *content)
    return tag("figure", tag("h4", name), tag("div", drawn, class_="multiple"))


def _quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) == 1:
        return values[0], values[0], values[0]
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, median, high
