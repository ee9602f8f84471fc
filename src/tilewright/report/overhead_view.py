"""What a call costs the host, beside the framework's own: one table a record."""

from __future__ import annotations

from tilewright.report.html import Html, tag
from tilewright.report.parts import folded, heading_of, sheet, taken
from tilewright.report.reading import Source

LEAD = (
    "Microseconds of the host's time for a call that is repeated, on arrays so small that the GPU is never waited for. "
    "The ratio is to the baseline's median in the same rounds: below 1 a call costs less."
)


def is_overhead(source: Source) -> bool:
    """Whether the record is of the host's overhead."""
    return source.record.command == "overhead"


def overhead_part(source: Source) -> Html:
    """One record: medians and ratios, and the raw samples folded in."""
    record = source.record
    ratios = (record.about or {}).get("ratios_to_baseline", {})
    rows = [
        (row.rung, "" if row.host_us is None else f"{row.host_us:.2f}", f"{ratios[row.rung]:.2f}")
        for row in record.rows
        if row.rung in ratios
    ]
    samples = [(row.rung, ", ".join(map(str, row.samples_us or ()))) for row in record.rows]
    return tag(
        "article",
        tag("h3", heading_of(source)),
        sheet("A call that is repeated", ("call", "µs", "× the baseline"), rows),
        taken(source),
        folded("Raw samples", sheet("µs a call", ("call", "samples"), samples)),
        id=f"{source.ident}-overhead",
    )
