"""A suite's record drawn: means by class, the shapes from the worst on, each with its floor."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.lab.render import percent
from tilewright.lab.suite_summary import ClassMean, chosen_rows, class_means, how_launched, worst
from tilewright.record import Row
from tilewright.report.html import Html, tag
from tilewright.report.parts import figure, folded, heading_of, sheet, short, sized, spread, taken, time
from tilewright.report.reading import Source

LEAD = (
    "Shapes of one suite, each with the kernel that was chosen for it, against cuBLAS in the same rounds. Means by "
    "class are geometric means of the median ratios, above 100% where the chosen kernel is faster. The floor is the "
    "least time that the operands' bytes or the FLOPs allow by the card's measured ceilings. Regret is the chosen "
    "kernel's time over that of the best candidate, where all were tried."
)
SHOWN = 10


def is_suite(source: Source) -> bool:
    """Whether the record is of a suite."""
    return source.record.command == "bench"


def suite_part(source: Source) -> Html:
    """One suite: classes, the worst ten, and all shapes in a part that opens."""
    record = source.record
    name = str((record.about or {}).get("suite", source.name))
    every = chosen_rows(record)
    headings = ("shape", "class", "kernel", "time", "% of cuBLAS", "floor, % of time")
    lowest = [_cells(row) for row in worst(record, SHOWN)]
    return tag(
        "article",
        tag("h3", f"Suite {name}{how_launched(record)}, {heading_of(source)}"),
        sheet(
            "Means by class",
            ("class", "shapes", "% of cuBLAS", "lowest", "floor, % of time", "regret"),
            [_mean(mean) for mean in class_means(record)],
        ),
        *([sheet("The lowest ratios", headings, lowest)] if lowest else []),
        folded(f"All {len(every)} shapes", sheet("All shapes", headings, [_cells(row) for row in every])),
        taken(source),
        _samples(record.rows),
        id=f"{source.ident}-suite",
    )


def _samples(rows: Sequence[Row]) -> Html:
    """Every row's times as numbers: too many to draw."""
    cells = [(_what(row), row.arm or row.rung, ", ".join(map(str, row.samples_us))) for row in rows if row.samples_us]
    return folded(f"Raw samples of {len(cells)} rows", sheet("µs a launch", ("shape", "arm", "samples"), cells))


def _what(row: Row) -> str:
    return f"{sized(row)} {row.problem['layout']} {row.problem['dtype']}"


def _mean(mean: ClassMean) -> tuple[str, ...]:
    regret = "" if mean.regret is None else f"{100 * (mean.regret - 1):.1f}%"
    ratios = (percent(mean.mean), percent(mean.lowest), percent(mean.of_floor))
    return (mean.name, str(mean.shapes), *ratios, regret)


def _cells(row: Row) -> tuple[str, ...]:
    kernel = row.failure or (short(row) if row.config is not None else row.rung)
    ratio = "" if row.ratio_to_baseline is None else spread(row.ratio_to_baseline, unit="")
    of_floor = row.floor_us["both"] / row.time_us if row.floor_us and row.time_us else None
    return (_what(row), row.shape_class or "", kernel, time(row), ratio, figure(of_floor, "{:.1f}", 100.0))
