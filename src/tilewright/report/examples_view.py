"""A real use beside the framework's own products: one table a record, and the kernels behind it."""

from __future__ import annotations

from tilewright.report.html import Html, tag
from tilewright.report.parts import folded, heading_of, sheet, spread, taken, time
from tilewright.report.reading import Source

LEAD = (
    "What a script of the checkout's examples folder found: the framework's own products and tilewright's in the same "
    "rounds, after both had been checked. The ratio is the framework's time over tilewright's, above 100% where "
    "tilewright is faster."
)


def is_example(source: Source) -> bool:
    """Whether the record is of an example."""
    return source.record.command == "example"


def example_part(source: Source) -> Html:
    """One record: times and ratios, the kernels that were chosen, and the raw samples folded in."""
    record = source.record
    ratios = ["" if r.ratio_to_baseline is None else spread(r.ratio_to_baseline, unit="") for r in record.rows]
    rows = [(row.arm or row.rung, time(row), ratio) for row, ratio in zip(record.rows, ratios, strict=True)]
    kernels = list((record.about or {}).get("kernels", {}).items())
    samples = [(row.arm or row.rung, ", ".join(map(str, row.samples_us or ()))) for row in record.rows]
    return tag(
        "article",
        tag("h3", f"{(record.about or {}).get('example', '')}: {heading_of(source)}"),
        sheet("Times", ("what", "time", "% of the framework's"), rows),
        sheet("Kernels", ("products", "chosen"), kernels),
        taken(source),
        folded("Raw samples", sheet("µs", ("what", "samples"), samples)),
        id=f"{source.ident}-example",
    )
