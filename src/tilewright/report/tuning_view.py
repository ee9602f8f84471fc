"""A tuning record drawn: all trials in order of speed, each parameter by itself, the best and its ties, what failed."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

from tilewright.record import Row
from tilewright.report.html import Html, joined, tag
from tilewright.report.parts import duration, figure, folded, heading_of, pairs, plain, sheet, spread, taken, time
from tilewright.report.reading import Source
from tilewright.report.samples_view import samples_part
from tilewright.report.svg import Axis, Scale, dots, image, line, mark, plot, rect, words

LEAD = (
    "Every config that was tried, the fastest first, as a share of the best one's speed; then every parameter by "
    "itself: the box holds the middle half of the trials with that value, the line is their median, the star marks the "
    "winner's value. Ties are configs whose intervals do not tell them from the winner. What failed is a "
    "result and is counted."
)
SHOWN = 10


def is_tuning(source: Source) -> bool:
    """Whether the record is of a search."""
    return source.record.command == "tune"


def tuning_part(source: Source) -> Html:
    """One search: landscape, parameters, the best ten, and what was rejected or failed."""
    about = source.record.about or {}
    timed = sorted((row for row in source.record.rows if row.time_us is not None), key=_time_us)
    if not timed:
        return tag(
            "article", tag("h3", f"Tuning, {heading_of(source)}"), tag("p", "No config has a time."), taken(source)
        )
    best, ties = _winner(source, timed[0])
    space = {"space": plain(about["space"])} if "space" in about else {}
    asked = {name: plain(about[name]) for name in ("strategy", "effort", "seed", "evaluations") if name in about}
    return tag(
        "article",
        tag("h3", f"Tuning {best.rung}, {heading_of(source)}"),
        pairs({**asked, "winner": _settings(best), "ties": f"{len(ties)}", **space}.items()),
        tag("figure", _landscape(source, timed, best, ties)),
        _parameters(source, timed, best),
        taken(source),
        _best_table(timed, best, ties),
        _lost(source),
        samples_part(source),
        id=f"{source.ident}-tuning",
    )


def _time_us(row: Row) -> float:
    return row.time_us or 0.0


def _winner(source: Source, fastest: Row) -> tuple[Row, list[Row]]:
    about, rows = source.record.about or {}, source.record.rows
    best = rows[about["best"]] if about.get("best") is not None else fastest
    return best, [rows[index] for index in about.get("ties", ()) if rows[index] is not best]


def _settings(row: Row) -> str:
    return " ".join(f"{name}={value}" for name, value in (row.config or {}).items())


def _share(row: Row, best: Row) -> float:
    """Speed as per cent of the best one's."""
    return 100 * _time_us(best) / _time_us(row)


def _speeds(timed: Sequence[Row], best: Row) -> Scale:
    """From a round share below the slowest to just above the fastest."""
    shares = [_share(row, best) for row in timed]
    return Scale(10 * math.floor(min(*shares, 90.0) / 10), max(shares) * 1.02)


def _landscape(source: Source, timed: Sequence[Row], best: Row, ties: Sequence[Row]) -> Html:
    x, y = Scale(0, len(timed) + 1), _speeds(timed, best)
    places = {id(row): (x.at(rank), 100 - y.at(_share(row, best))) for rank, row in enumerate(timed, start=1)}
    marks = [mark("diamond", *places[id(row)], "tie", f"tie: {_settings(row)}") for row in ties if id(row) in places]
    marks.append(mark("star", *places[id(best)], "called", f"winner: {_settings(best)}"))
    slowest = timed[-1]
    described = (
        f"{len(timed)} configs from {duration(_time_us(best))} to {duration(_time_us(slowest))}, the slowest at "
        f"{_share(slowest, best):.1f}% of the best one's speed; {len(ties)} ties with the winner."
    )
    axes = (Axis(x, "configs, fastest first"), Axis(y, "% of the best"))
    drawn = plot(
        f"{source.ident}-landscape",
        f"Tuning landscape of {best.rung}",
        described,
        axes,
        [dots(places.values(), ""), *marks],
    )
    legend = tag(
        "figcaption", _key("star", "called", "the winner"), _key("diamond", "tie", "ties with it"), class_="legend"
    )
    return joined([drawn, legend])


def _key(shape: str, class_: str, text: str) -> Html:
    return tag("span", tag("svg", mark(shape, 50, 50, class_), width="18", height="18", aria_hidden="true"), text)


def _parameters(source: Source, timed: Sequence[Row], best: Row) -> Html:
    y = _speeds(timed, best)
    names = dict.fromkeys(name for row in timed for name in (row.config or {}))
    drawn = []
    for name in names:
        groups: dict[int, list[float]] = {}
        for row in timed:
            if row.config is not None and name in row.config:
                groups.setdefault(row.config[name], []).append(_share(row, best))
        if len(groups) > 1:
            chosen = (best.config or {}).get(name)
            drawn.append(_parameter(f"{source.ident}-{name}", name, dict(sorted(groups.items())), chosen, y))
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


def _best_table(timed: Sequence[Row], best: Row, ties: Sequence[Row]) -> Html:
    def kind(row: Row) -> str:
        return "★ winner" if row is best else "◆ tie" if any(row is tie for tie in ties) else ""

    leading = [best, *ties, *(row for row in timed if not kind(row))][: max(SHOWN, 1 + len(ties))]
    headings = ("", "settings", "time", "% of the best", "% of cuBLAS [95% interval]", "registers", "occupancy")
    rows = [
        (
            kind(row),
            _settings(row),
            time(row),
            f"{_share(row, best):.1f}",
            "" if row.ratio_to_baseline is None else spread(row.ratio_to_baseline, unit=""),
            figure(row.registers),
            figure(row.occupancy, "{:.1f}%", 100),
        )
        for row in leading
    ]
    return sheet(f"The winner, its ties and the next, of {len(timed)} with a time", headings, rows)


def _lost(source: Source) -> Html:
    """Failures by kind, with an example of each, and rejections by rule."""
    failures = Counter(row.failure for row in source.record.rows if row.failure is not None)
    first = {row.failure: row for row in reversed(source.record.rows) if row.failure is not None}
    kinds = [
        (kind, f"{count}", f"{_settings(first[kind])}: {first[kind].verdict or ''}")
        for kind, count in failures.most_common()
    ]
    rejected = (source.record.about or {}).get("rejected", {})
    rules = [(rule, plain(count)) for rule, count in sorted(rejected.items(), key=lambda item: -item[1])]
    parts = []
    if kinds:
        parts.append(sheet(f"{sum(failures.values())} configs failed", ("kind", "configs", "the first of them"), kinds))
    if rules:
        parts.append(
            folded(
                f"{sum(rejected.values())} rejected by a rule", sheet("Before compiling", ("rule", "configs"), rules)
            )
        )
    return joined(parts)
