"""Registers and occupancy against speed: what a config costs beside what it gives."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.record import Row
from tilewright.report.html import Html, tag
from tilewright.report.labels import Named, placed
from tilewright.report.parts import folded, full, heading_of, sheet, short, spread, taken
from tilewright.report.reading import Source
from tilewright.report.svg import Axis, Scale, line, mark, plot

LEAD = (
    "Many warps hide latency; many registers let one thread do more with what it has read. The faster rungs give up "
    "the first for the second. The dashed line is cuBLAS."
)
LEAST_POINTS = 3


def resources_part(source: Source) -> Html:
    """Two plots of one ladder record, where it has enough rungs to see something."""
    rows = [row for row in source.record.rows if row.ratio_to_baseline is not None and row.registers is not None]
    if len(rows) < LEAST_POINTS:
        return Html()
    registers = _plot(source, rows, "registers a thread", "", Scale(0, 256), lambda row: float(row.registers or 0))
    shares = [row for row in rows if row.occupancy is not None]
    occupancy = _plot(source, shares, "occupancy", "%", Scale(0, 105), lambda row: 100 * (row.occupancy or 0.0))
    headings = ("rung", "registers a thread", "occupancy", "CTAs an SM", "limited by", "% of cuBLAS [95% interval]")
    table = sheet("The same figures", headings, [_cells(row) for row in rows])
    return tag(
        "article",
        tag("h3", heading_of(source)),
        tag("div", registers, occupancy, class_="beside even"),
        taken(source),
        folded("These points as a table", table),
        id=f"{source.ident}-resources",
    )


def _plot(source: Source, rows: list[Row], what: str, unit: str, x: Scale, value: Callable[[Row], float]) -> Html:
    y = Scale(0, 105 * max(1.0, *(_share(row) for row in rows)))
    named = [Named(short(row), x.at(value(row)), 100 - y.at(100 * _share(row))) for row in rows]
    marks = [
        mark(
            "circle",
            at.x,
            at.y,
            "point",
            f"{full(row)}: {value(row):g}{unit} {what}, {100 * _share(row):.1f}% of cuBLAS",
        )
        for row, at in zip(rows, named, strict=True)
    ]
    at_baseline = (0.0, 100 - y.at(100), 100.0, 100 - y.at(100))
    described = "; ".join(f"{full(row)} {value(row):g}{unit}, {100 * _share(row):.1f}% of cuBLAS" for row in rows)
    ident = f"{source.ident}-{what.partition(' ')[0]}"
    axes = (Axis(x, what, unit, 6), Axis(y, "% of cuBLAS"))
    drawn = plot(
        ident,
        f"{what} against speed, {heading_of(source)}",
        described,
        axes,
        [line(*at_baseline, "at-baseline"), *marks, *placed(named, [at_baseline])],
    )
    return tag("figure", drawn)


def _share(row: Row) -> float:
    return 0.0 if row.ratio_to_baseline is None else row.ratio_to_baseline.median


def _cells(row: Row) -> tuple[str, ...]:
    return (
        full(row),
        f"{row.registers}",
        "" if row.occupancy is None else f"{100 * row.occupancy:.1f}%",
        "" if row.ctas_per_sm is None else f"{row.ctas_per_sm}",
        " and ".join(row.limiters or []),
        "" if row.ratio_to_baseline is None else spread(row.ratio_to_baseline, unit=""),
    )
