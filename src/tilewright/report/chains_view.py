"""Chains of products with and without dependent launch: one table a record."""

from __future__ import annotations

from tilewright.report.html import Html, tag
from tilewright.report.parts import folded, full, heading_of, sheet, sized, taken
from tilewright.report.reading import Source

LEAD = (
    "Every product of a chain reads the last one's result. By dependent launch a kernel is set up while the one before "
    "it ends, and waits. The figure is the plain chain's time over the dependent one's: above 1 the latter is faster."
)


def is_chains(source: Source) -> bool:
    """Whether the record is of chains."""
    return source.record.command == "chain"


def chains_part(source: Source) -> Html:
    """One record: the ratio of every chain in either launch mode, and the raw samples folded in."""
    record = source.record
    rows = []
    for ratio in (record.about or {}).get("ratios", ()):
        problem = ratio["problem"]
        shape = f"{problem['m']}×{problem['n']}×{problem['k']} {problem.get('dtype', 'float32')}"
        figure = f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"
        rows.append((shape, ratio["rung"], ratio["launch"], figure))
    samples = [
        (f"{sized(row)} {row.rung}, {full(row)}, {row.launch}", ", ".join(map(str, row.samples_us or ())))
        for row in record.rows
    ]
    return tag(
        "article",
        tag("h3", heading_of(source)),
        sheet("Dependent launch in chains", ("product", "rung", "launches", "× as fast"), rows),
        taken(source),
        folded("Raw samples", sheet("µs a product", ("chain", "samples"), samples)),
        id=f"{source.ident}-chains",
    )
