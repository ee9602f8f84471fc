"""Records as one page: a summary in figures, then the sections in the order of a reader's questions.

Decides what goes where; each section draws itself. Never measures: every figure is a row's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tilewright.lab.render import UNSUPPORTED, percent
from tilewright.record import Row
from tilewright.report import (
    chains_view,
    environment_view,
    examples_view,
    experiments_view,
    ladder_view,
    overhead_view,
    resources_view,
    roofline_view,
    suite_view,
    tuning_view,
)
from tilewright.report.html import Html, joined, page, tag
from tilewright.report.parts import named, section, short, sized
from tilewright.report.reading import Source
from tilewright.report.svg import definitions

STYLE_FILE = Path(__file__).with_name("report.css")


def report_page(sources: Sequence[Source]) -> str:
    """The whole file as text."""
    sections = [
        (ident, title, section(ident, title, lead, *parts)) for ident, title, lead, parts in _sections(sources) if parts
    ]
    contents = tag("nav", *(tag("a", title, href=f"#{ident}") for ident, title, _ in sections), aria_label="Contents")
    body = joined(
        [
            definitions(),
            tag("header", *_header(sources)),
            contents,
            tag("main", *(part for *_, part in sections)),
            _footer(),
        ]
    )
    return page("tilewright report", STYLE_FILE.read_text(encoding="utf-8"), body)


def _sections(sources: Sequence[Source]) -> Iterable[tuple[str, str, str, list[Html]]]:
    ladders = sorted(filter(ladder_view.is_ladder, sources), key=_whole_and_large_first)
    comparisons = [source for source in sources if experiments_view.is_comparison(source)]
    searches = [source for source in sources if tuning_view.is_tuning(source)]
    ceilings = [source for source in sources if source.record.command == "ceilings"]
    timed = [source for source in ladders if any(row.tflops is not None for row in source.record.rows)]
    rooflines = [roofline_view.roofline_part(source, sources) for source in timed]
    overview = [experiments_view.overview(comparisons)] if comparisons else []
    yield "ladder", "The ladder", ladder_view.LEAD, [ladder_view.ladder_part(source, sources) for source in ladders]
    yield "resources", "Registers and occupancy", resources_view.LEAD, _drawn(resources_view.resources_part, timed)
    yield (
        "roofline",
        "Roofline",
        roofline_view.LEAD,
        [r for r in rooflines if r] + _drawn(roofline_view.ceilings_part, ceilings),
    )
    yield (
        "experiments",
        "Experiments",
        experiments_view.LEAD,
        overview + _drawn(experiments_view.experiment_part, comparisons),
    )
    yield "suites", "Suites", suite_view.LEAD, _drawn(suite_view.suite_part, filter(suite_view.is_suite, sources))
    uses = filter(examples_view.is_example, sources)
    yield "examples", "Real uses", examples_view.LEAD, _drawn(examples_view.example_part, uses)
    calls = filter(overhead_view.is_overhead, sources)
    chains = filter(chains_view.is_chains, sources)
    yield "chains", "Chains of products", chains_view.LEAD, _drawn(chains_view.chains_part, chains)
    yield "overhead", "The host's overhead", overhead_view.LEAD, _drawn(overhead_view.overhead_part, calls)
    yield "tuning", "Tuning", tuning_view.LEAD, _drawn(tuning_view.tuning_part, searches)
    yield "environment", "How it was taken", environment_view.LEAD, _drawn(environment_view.environment_part, sources)


def _drawn(part: Callable[[Source], Html], sources: Iterable[Source]) -> list[Html]:
    return [drawn for source in sources if (drawn := part(source))]


def _whole_and_large_first(source: Source) -> tuple[bool, int]:
    rows = source.record.rows
    largest = max((row.problem.get("m", 0) for row in rows), default=0)
    return len(rows) < ladder_view.WHOLE_ROWS, -largest


def _header(sources: Sequence[Source]) -> list[Html]:
    devices = dict.fromkeys(source.device for source in sources)
    dates = sorted(
        {str(source.record.environment["date"]) for source in sources if "date" in source.record.environment}
    )
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "undated"
    counted = f"{len(sources)} record{'s' if len(sources) != 1 else ''}"
    subtitle = tag("p", f"{', '.join(devices)} · {counted} · {when}", class_="subtitle")
    return [tag("h1", "tilewright report"), subtitle, tag("ul", *_tiles(sources), class_="tiles")]


def _tiles(sources: Sequence[Source]) -> list[Html]:
    rows = [row for source in sources for row in source.record.rows]
    ladders = sorted(filter(ladder_view.is_ladder, sources), key=_whole_and_large_first)
    climbed = [row for source in ladders for row in source.record.rows]
    tiles = [_best_tile(size, climbed) for size in _sizes(climbed)]
    gains = [_gain_tile(source) for source in ladders]
    verified = sum(row.verified is True for row in rows)
    failed = sum(row.failure not in (None, UNSUPPORTED) for row in rows)
    outcomes = [row.outcome for row in rows if row.outcome is not None]
    return [
        *tiles[:2],
        *[gain for gain in gains if gain][:1],
        *([_tile(f"{verified}", "rows verified before they were timed")] if verified else []),
        *([_tile(f"{failed}", "rows failed; each is shown with its kind")] if failed else []),
        *(
            [_tile(f"{len(outcomes)}", f"arm{'s' if len(outcomes) != 1 else ''} judged against a reference")]
            if outcomes
            else []
        ),
    ]


def _sizes(rows: Sequence[Row]) -> list[str]:
    compared = [row for row in rows if row.ratio_to_baseline is not None and sized(row)]
    return list(dict.fromkeys(sized(row) for row in sorted(compared, key=lambda row: -row.problem["m"])))


def _best_tile(size: str, rows: Sequence[Row]) -> Html:
    compared = [row for row in rows if row.ratio_to_baseline is not None and sized(row) == size]
    best = max(compared, key=lambda row: row.ratio_to_baseline.median if row.ratio_to_baseline else 0.0)
    assert best.ratio_to_baseline is not None
    return _tile(f"{percent(best.ratio_to_baseline.median)}%", f"of cuBLAS at {size}, by {named(best)}")


def _gain_tile(source: Source) -> Html:
    timed = [row for row in source.record.rows if row.time_us is not None and row.number is not None]
    if len(timed) < ladder_view.WHOLE_ROWS:
        return Html()
    slowest, fastest = max(timed, key=_time_us), min(timed, key=_time_us)
    gain = _time_us(slowest) / _time_us(fastest)
    return _tile(f"×{gain:.3g}", f"from {short(slowest)} to {short(fastest)} at {sized(fastest)}")


def _time_us(row: Row) -> float:
    return row.time_us or 0.0


def _tile(number: str, words: str) -> Html:
    return tag("li", tag("b", number), tag("span", words))


def _footer() -> Html:
    return tag("footer", "Written by tilewright report. This file needs no network and holds every sample it draws.")
