"""Rooflines drawn from measured roofs, with the points above a roof called out, and the ceilings they come from."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.lab.ceilings_command import bytes_per_sm_clock, rate
from tilewright.lab.render import percent
from tilewright.record import Row
from tilewright.report.html import Html, joined, tag
from tilewright.report.labels import Named, Segment, placed
from tilewright.report.parts import folded, full, heading_of, sheet, short, taken, time
from tilewright.report.reading import Source
from tilewright.report.roofs import Point, Roofs, points_of, roofs_of, why_above
from tilewright.report.samples_view import samples_part
from tilewright.report.svg import Axis, Scale, line, mark, plot

LEAD = (
    "Speed against arithmetic intensity: FLOP for each byte of global loads that the kernel asks for, by its "
    "declaration. The roofs are measured on the card, not taken from its data sheet. A sloping roof is only a bound if "
    "every requested byte comes from that level of memory; a point above it shows that this premise does not hold."
)

HEIGHT_PX = 360


def roofline_part(source: Source, sources: Sequence[Source]) -> Html:
    """One ladder record under the measured roofs of its card; nothing where no row says what it requests."""
    dtype = str(source.record.rows[0].problem.get("dtype", "float32")) if source.record.rows else "float32"
    roofs = roofs_of(source.device, sources, dtype)
    if roofs is None:
        missing = (
            f"{source.name}: no ceilings of {source.device} among these records for {dtype}, so no roofs are drawn."
        )
        return tag("p", missing)
    points = points_of([row for row in source.record.rows if row.problem.get("dtype", "float32") == dtype], roofs)
    if not points:
        return Html()
    drawn = tag("figure", _plot(source, points, roofs), _legend(roofs))
    beside = tag("div", drawn, _called_out(source, points, roofs), class_="beside")
    table = folded("These points as a table", _table(points, roofs))
    return tag("article", tag("h3", heading_of(source)), beside, taken(source), table, id=f"{source.ident}-roofline")


def _plot(source: Source, points: Sequence[Point], roofs: Roofs) -> Html:
    ridge = roofs.compute_tflops / roofs.dram_tb_per_s
    intensities = [ridge / 16, ridge, *(p.flop_per_byte for p in points)]
    x = Scale(min(intensities) / 2, max(intensities) * 4, log=True)
    y = Scale(min(roofs.dram_tflops(x.low), *(p.tflops for p in points)) / 2, roofs.compute_tflops * 2, log=True)
    named = [Named(short(p.row), x.at(p.flop_per_byte), 100 - y.at(p.tflops)) for p in points]
    marks = [
        mark("diamond" if p.above_dram else "circle", at.x, at.y, "called" if p.above_dram else "point", _told(p))
        for p, at in zip(points, named, strict=True)
    ]
    baseline = _baseline(source, y)
    lines = _roof_lines(x, y, roofs)
    names = placed([*baseline, *named], list(lines.values()), HEIGHT_PX)
    drawn = [line(*segment, class_) for class_, segment in lines.items()]
    content = [*drawn, *_strokes(baseline), *marks, *names]
    above = [full(p.row) for p in points if p.above_dram]
    said = f"Above the DRAM roof: {', '.join(above)}." if above else "No point is above the DRAM roof."
    described = f"{len(points)} points under the DRAM, L2 and {roofs.compute} roofs, on logarithmic axes. {said}"
    axes = (Axis(x, "FLOP per requested byte"), Axis(y, "TFLOP/s"))
    return plot(f"{source.ident}-roof", f"Roofline, {heading_of(source)}", described, axes, content, HEIGHT_PX)


def _told(point: Point) -> str:
    return f"{full(point.row)}: {point.flop_per_byte:.3g} FLOP a byte, {point.tflops:.3g} TFLOP/s"


def _roof_lines(x: Scale, y: Scale, roofs: Roofs) -> dict[str, Segment]:
    """The roofs by their classes in the style sheet."""
    lines = {}
    for tb_per_s, class_ in ((roofs.dram_tb_per_s, "roof dram"), (roofs.l2_tb_per_s, "roof l2")):
        start = max(x.low, y.low / tb_per_s)
        ridge = roofs.compute_tflops / tb_per_s
        ends = ((start, tb_per_s * start), (ridge, roofs.compute_tflops))
        (x1, y1), (x2, y2) = ((x.at(a), 100 - y.at(b)) for a, b in ends)
        lines[class_] = (x1, y1, x2, y2)
    top = 100 - y.at(roofs.compute_tflops)
    return {**lines, "roof compute": (x.at(roofs.compute_tflops / roofs.l2_tb_per_s), top, 100.0, top)}


def _baseline(source: Source, y: Scale) -> list[Named]:
    """CuBLAS does not say what it requests, so it has a speed and no place along the axis: it goes to the edge."""
    found = next((row for row in source.record.rows if row.number is None and row.tflops is not None), None)
    if found is None or found.tflops is None:
        return []
    return [Named(found.rung, 97, 100 - y.at(found.tflops))]


def _strokes(baseline: Sequence[Named]) -> list[Html]:
    return [line(94, at.y, 100, at.y, "at-baseline") for at in baseline]


def _legend(roofs: Roofs) -> Html:
    entries = (
        ("roof dram", f"DRAM read {roofs.dram_tb_per_s:.2f} TB/s"),
        ("roof l2", f"L2 read {roofs.l2_tb_per_s:.2f} TB/s"),
        ("roof compute", f"{roofs.compute} {roofs.compute_tflops:.1f} TFLOP/s"),
    )
    lines = [
        tag("span", tag("svg", line(0, 50, 100, 50, kind), width="34", height="10", aria_hidden="true"), text)
        for kind, text in entries
    ]
    shapes = [
        tag("span", tag("svg", mark(shape, 50, 50, kind), width="18", height="18", aria_hidden="true"), text)
        for shape, kind, text in (
            ("circle", "point", "under the DRAM roof"),
            ("diamond", "called", "above it: not every byte is from DRAM"),
        )
    ]
    return tag("figcaption", *lines, *shapes, class_="legend")


def _called_out(source: Source, points: Sequence[Point], roofs: Roofs) -> Html:
    above = [point for point in points if point.above_dram]
    if not above:
        return tag("div", tag("p", "No point lies above the DRAM roof."), class_="callouts")
    cases: dict[str, list[str]] = {}
    for point in above:
        cases.setdefault(why_above(point, roofs, source), []).append(full(point.row))
    told = [
        tag("p", joined([tag("b", f"◆ {' and '.join(names)}"), f" · {why}"]), class_="callout")
        for why, names in cases.items()
    ]
    return tag("div", tag("h4", "Above the DRAM roof"), *told, class_="callouts")


def _table(points: Sequence[Point], roofs: Roofs) -> Html:
    headings = ("rung", "FLOP a requested byte", "DRAM allows", "L2 allows", "measured TFLOP/s", "× the DRAM roof")
    rows = [
        (
            full(p.row),
            f"{p.flop_per_byte:.3g}",
            f"{roofs.dram_tflops(p.flop_per_byte):.3g}",
            f"{roofs.l2_tflops(p.flop_per_byte):.3g}",
            f"{p.tflops:.2f}",
            f"{p.tflops / roofs.dram_tflops(p.flop_per_byte):.2f}",
        )
        for p in points
    ]
    return sheet("TFLOP/s that each roof allows, and what was measured", headings, rows)


def ceilings_part(source: Source) -> Html:
    """What a card was measured to do at most."""
    headings = ("ceiling", "what it does", "time", "rate", "% of theoretical", "bytes an SM and clock")
    rows = [_ceiling(row, source) for row in source.record.rows]
    title = tag("h3", f"Ceilings of {source.device}")
    table = sheet("Small kernels that fill the card, each proved first", headings, rows)
    return tag(
        "article", title, table, taken(source), samples_part(source, source.record.rows), id=f"{source.ident}-ceilings"
    )


def _ceiling(row: Row, source: Source) -> tuple[str, ...]:
    per_clock = bytes_per_sm_clock(row, source.record) if "measurement" in source.record.environment else None
    return (
        row.rung.removeprefix("ceiling_"),
        row.summary or "" if row.failure is None else f"{row.summary}; not here: {row.verdict}",
        time(row),
        rate(row),
        "" if row.fraction_of_peak is None else percent(row.fraction_of_peak),
        "" if per_clock is None else f"{per_clock:.1f}",
    )
