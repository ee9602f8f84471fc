"""A real use beside the framework's own products: one table a record, and the kernels behind it."""

from __future__ import annotations

from tilewright.report.html import Html, tag
from tilewright.report.parts import full, heading_of, sheet, spread, taken, time
from tilewright.report.reading import Source
from tilewright.report.samples_view import samples_part

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
    record, about = source.record, source.record.about or {}
    ratios = ["" if r.ratio_to_baseline is None else spread(r.ratio_to_baseline, unit="") for r in record.rows]
    rows = [(full(row), time(row), ratio) for row, ratio in zip(record.rows, ratios, strict=True)]
    kernels = list(about.get("kernels", {}).items())
    return tag(
        "article",
        tag("h3", f"{about.get('example', '')}: {heading_of(source)}"),
        sheet("Times", ("what", "time", "% of the framework's"), rows),
        sheet("Kernels", ("products", "chosen"), kernels),
        taken(source),
        samples_part(source, record.rows),
        id=f"{source.ident}-example",
    )
