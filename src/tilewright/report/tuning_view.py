"""A tuning record drawn: all trials in order of speed, each parameter by itself, the best and its ties, what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewright.record import Row
from tilewright.report.html import Html, joined, tag
from tilewright.report.parameters_view import parameters_part, share, speed_scale
from tilewright.report.parts import duration, figure, folded, heading_of, pairs, plain, sheet, spread, taken, time
from tilewright.report.reading import Source
from tilewright.report.samples_view import samples_part
from tilewright.report.svg import Axis, Scale, dots, mark, plot

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
    trials = [row for row in source.record.rows if row.config is not None]
    timed = sorted((row for row in trials if row.time_us is not None), key=_time_us)
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
        parameters_part(source.ident, timed, best),
        taken(source),
        _best_table(timed, best, ties),
        _lost(source),
        _trials(trials),
        samples_part(source, [row for row in source.record.rows if row.samples_us]),
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


def _landscape(source: Source, timed: Sequence[Row], best: Row, ties: Sequence[Row]) -> Html:
    x, y = Scale(0, len(timed) + 1), speed_scale(timed, best)
    places = {id(row): (x.at(rank), 100 - y.at(share(row, best))) for rank, row in enumerate(timed, start=1)}
    marks = [mark("diamond", *places[id(row)], "tie", f"tie: {_settings(row)}") for row in ties if id(row) in places]
    marks.append(mark("star", *places[id(best)], "called", f"winner: {_settings(best)}"))
    slowest = timed[-1]
    described = (
        f"{len(timed)} configs from {duration(_time_us(best))} to {duration(_time_us(slowest))}, the slowest at "
        f"{share(slowest, best):.1f}% of the best one's speed; {len(ties)} ties with the winner."
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
            f"{share(row, best):.1f}",
            "" if row.ratio_to_baseline is None else spread(row.ratio_to_baseline, unit=""),
            figure(row.registers),
            figure(row.occupancy, "{:.1f}%", 100),
        )
        for row in leading
    ]
    return sheet(f"The winner, its ties and the next, of {len(timed)} with a time", headings, rows)


def _trials(rows: Sequence[Row]) -> Html:
    headings = ("settings", "time", "samples, µs", "registers", "failure")
    cells = [
        (
            _settings(row),
            time(row),
            " ".join(str(sample) for sample in row.samples_us or []),
            figure(row.registers),
            row.failure or "",
        )
        for row in rows
    ]
    return folded(f"All {len(rows)} trials as a table", sheet("In the order they were tried", headings, cells))


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
