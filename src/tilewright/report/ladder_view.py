"""A ladder record drawn: every rung's share of cuBLAS as a bar, in the ladder's order, with all figures behind it."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.lab.render import INSTRUCTIONS, percent
from tilewright.record import Row, compute_ceiling
from tilewright.report.html import Html, joined, tag
from tilewright.report.parts import failed, figure, folded, full, heading_of, sheet, spread, taken, time, verification
from tilewright.report.reading import Source
from tilewright.report.samples_view import samples_part
from tilewright.report.svg import Scale, line, rect

LEAD = (
    "Each bar is a rung's speed as a share of cuBLAS (never with TF32), measured in the same rounds; the longer the "
    "faster. The bracket is the 95% interval of the median paired ratio. The tick at the bar's end is that interval "
    "drawn to scale: where it is a single stroke, the interval is narrower than the stroke. Percentages of different "
    "records do not compare: cuBLAS itself moves between sessions."
)


RESOURCES = ("registers", "spilled bytes", "occupancy", "shared bytes a CTA", "stages")
WHOLE_ROWS = 4
"""A record of fewer rows is of one rung, not of a ladder."""


def is_ladder(source: Source) -> bool:
    """Whether the record is a ladder, of one rung or of many."""
    return source.record.command == "ladder"


def ladder_part(source: Source, sources: Sequence[Source]) -> Html:
    """One record: bars, a table of all figures, and the raw samples folded in."""
    timed = [row for row in source.record.rows if row.time_us is not None]
    drawn = _bars(source.record.rows) if timed else tag("p", "No times: these rows were run in the emulator.")
    return tag(
        "article",
        tag("h3", heading_of(source)),
        drawn,
        taken(source),
        folded("All figures of these rungs as tables", _tables(source, sources)),
        samples_part(source, source.record.rows),
        id=f"{source.ident}-ladder",
    )


def _bars(rows: Sequence[Row]) -> Html:
    longest = max([1.0, *(row.ratio_to_baseline.high for row in rows if row.ratio_to_baseline is not None)])
    scale = Scale(0, longest * 1.01)
    best = max((r for r in rows if r.ratio_to_baseline), key=_median, default=None)
    return tag("ol", *(_bar(row, scale, is_best=row is best) for row in rows), class_="bars")


def _median(row: Row) -> float:
    return 0.0 if row.ratio_to_baseline is None else row.ratio_to_baseline.median


def _bar(row: Row, scale: Scale, *, is_best: bool) -> Html:
    if row.failure is not None:
        return failed(row)
    classes = " ".join(["best"] * is_best + ["baseline"] * (row.number is None))
    return tag(
        "li",
        tag("span", full(row), class_="name"),
        _drawn(row, scale),
        tag("span", time(row), class_="time"),
        tag("span", _said(row, is_best=is_best), class_="share"),
        class_=classes or None,
    )


def _said(row: Row, *, is_best: bool) -> str:
    if row.ratio_to_baseline is None:
        return "the baseline" if row.number is None else ""
    return spread(row.ratio_to_baseline) + (" ★" if is_best else "")


def _drawn(row: Row, scale: Scale) -> Html:
    ratio, full_mark = row.ratio_to_baseline, scale.at(1.0)
    content = [line(full_mark, 0, full_mark, 100, "at-baseline")]
    if ratio is not None:
        content.insert(0, rect(0, 15, scale.at(ratio.median), 70, "bar"))
        content.append(line(scale.at(ratio.low), 50, scale.at(ratio.high), 50, "whisker"))
        content += [line(scale.at(end), 0, scale.at(end), 100, "whisker") for end in (ratio.low, ratio.high)]
    elif row.number is None and row.time_us is not None:
        content.insert(0, rect(0, 15, full_mark, 70, "bar hatched"))
    return tag("svg", *content, width="100%", height=18, aria_hidden="true", class_="image")


def _tables(source: Source, sources: Sequence[Source]) -> Html:
    rows = source.record.rows
    dtype = str(rows[0].problem.get("dtype", "float32")) if rows else "float32"
    most = compute_ceiling((each.record for each in sources), source.device, dtype)
    most_tflops, of_peak = None if most is None else most.tflops, dtype == "float32"
    speeds = (
        "rung",
        "time",
        "TFLOP/s",
        "% of cuBLAS [95% interval]",
        *(["% of FP32 peak"] if of_peak else []),
        f"% of measured {'compute ceiling' if most is None else INSTRUCTIONS[most.rung]}",
        "× the rung below",
    )
    builds = ("rung", "what it teaches", "verified", *RESOURCES)
    return joined(
        [
            sheet("Speed", speeds, [_speed(row, most_tflops, of_peak=of_peak) for row in rows]),
            sheet("Build and verification", builds, [_build(row) for row in rows]),
        ]
    )


def _speed(row: Row, most_tflops: float | None, *, of_peak: bool) -> tuple[str, ...]:
    of_most = None if most_tflops is None or row.tflops is None else row.tflops / most_tflops
    return (
        full(row),
        time(row),
        figure(row.tflops, "{:.2f}"),
        "" if row.ratio_to_baseline is None else spread(row.ratio_to_baseline, unit=""),
        *([_share(row.fraction_of_peak)] if of_peak else []),
        _share(of_most),
        figure(row.gain_over_below, "{:.2f}"),
    )


def _share(fraction: float | None) -> str:
    return "" if fraction is None else percent(fraction)


def _build(row: Row) -> tuple[str, ...]:
    return (
        full(row),
        row.summary or "",
        verification(row),
        figure(row.registers) + "".join(f", {role['role']} {role['registers']}" for role in row.roles or []),
        figure(row.spill_bytes),
        figure(row.occupancy, "{:.1f}%", 100),
        figure(row.smem_bytes),
        figure(row.stages),
    )
