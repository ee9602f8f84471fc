"""`tilewright report`: read the records, write the page, say where it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tilewright.report.html import write_page
from tilewright.report.reading import read_sources
from tilewright.report.report_page import report_page


def write_report(paths: Sequence[Path], out: Path) -> int:
    """Write one page about the records in `paths`, or the package's own. Returns the exit status."""
    sources = read_sources(paths)
    text = report_page(sources)
    write_page(out, text)
    rows = sum(len(source.record.rows) for source in sources)
    print(f"{out}: {len(sources)} records, {rows} rows, {len(text.encode()) / 1024:.0f} KiB")
    return 0
