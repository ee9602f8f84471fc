"""Experiments and comparisons: the question, what was predicted, and each arm's interval against the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tilewright.record import Row
from tilewright.report.html import Html, tag
from tilewright.report.intervals_view import intervals, ratio_text, told_arms
from tilewright.report.parts import (
    figure,
    folded,
    full,
    heading_of,
    pairs,
    plain,
    sheet,
    spread,
    taken,
    time,
    verification,
)
from tilewright.report.reading import Source
from tilewright.report.samples_view import samples_part

LEAD = (
    "Each arm against its reference, paired in the same rounds: right of the middle line is faster. The stroke is the "
    "95% interval, the shaded band the margin within which two count as equivalent. An outcome that was predicted "
    "wrong stays here, and so does one that is confounded: then more differs than what was asked about."
)
COMMANDS = ("experiment", "compare", "replay")
TOLD_APART = ("experiment", "question", "claim", "prediction", "finding", "verdict", "reference", "arms")


def is_comparison(source: Source) -> bool:
    """Whether the record holds arms against a reference."""
    return source.record.command in COMMANDS


def overview(sources: Sequence[Source]) -> Html:
    """All comparisons in a table, and how many ended how."""
    rows = []
    for source in sources:
        about = source.record.about or {}
        link = tag("a", name_of(source), href=f"#{source.ident}-experiment")
        rows.append((link, plain(about.get("question", "")), _verdict(source), plain(about.get("finding", ""))))
    counted = Counter(row.outcome for source in sources for row in source.record.rows if row.outcome is not None)
    words = ", ".join(f"{count} {word}" for word, count in counted.most_common())
    asked = f"{len(sources)} question{'s' if len(sources) != 1 else ''}"
    return sheet(f"{asked}; arms: {words or 'none judged'}", ("name", "question", "verdict", "finding"), rows)


def name_of(source: Source) -> str:
    """The experiment's name, or the file's."""
    return str((source.record.about or {}).get("experiment", source.name))


def _verdict(source: Source) -> str:
    about = source.record.about or {}
    if "verdict" in about:
        return plain(about["verdict"])
    return ", ".join(dict.fromkeys(row.outcome for row in source.record.rows if row.outcome is not None))


def experiment_part(source: Source) -> Html:
    """One record: words, intervals, causes, all figures, raw samples."""
    about = source.record.about or {}
    verdict = tag("span", _verdict(source) or "not judged", class_="verdict")
    asked = tag("p", plain(about["question"]), class_="question") if "question" in about else Html()
    return tag(
        "article",
        tag("h3", f"{name_of(source)} ", verdict),
        asked,
        pairs(_told(about)),
        intervals(source),
        _expected(source),
        _causes(source.record.rows),
        taken(source),
        folded("All figures of these arms as a table", _table(source)),
        samples_part(source, source.record.rows),
        id=f"{source.ident}-experiment",
    )


def _told(about: dict[str, Any]) -> list[tuple[str, str]]:
    titles = (("claim", "claimed"), ("prediction", "predicted"), ("finding", "found"))
    known = [(title, plain(about[key])) for key, title in titles if key in about]
    return known + [(name.replace("_", " "), plain(value)) for name, value in about.items() if name not in TOLD_APART]


def _expected(source: Source) -> Html:
    """What was claimed and predicted of each arm, and what came of it; only what some arm has."""
    titles = {
        "against": "compared with",
        "bundle": "bundle",
        "claim": "claimed",
        "claim_verdict": "the claim",
        "prediction": "predicted",
        "prediction_verdict": "the prediction",
        "confounded": "confounded by",
    }
    arms = told_arms(source)
    known = {name: title for name, title in titles.items() if any(name in arm for arm in arms.values())}
    if not known:
        return Html()
    rows = [(label, *(plain(arm[name]) if name in arm else "" for name in known)) for label, arm in arms.items()]
    return sheet("What was expected of each arm, and what came of it", ("arm", *known.values()), rows)


def _causes(rows: Sequence[Row]) -> Html:
    told = [(full(row), "; ".join(_cause(each) for each in row.causes)) for row in rows if row.causes]
    return tag("div", tag("h4", "What each build differs in"), pairs(told), class_="causes") if told else Html()


def _cause(cause: dict[str, Any]) -> str:
    sides = [plain(cause[side]) for side in ("reference", "arm") if cause.get(side) is not None]
    name = " ".join(plain(cause[key]) for key in ("kind", "what") if cause.get(key))
    return f"{name}: {' → '.join(sides)}" if sides else name


def _table(source: Source) -> Html:
    headings = (
        *("arm", "time", "× the reference [95% interval]", "outcome", "% of cuBLAS [95% interval]", "TFLOP/s"),
        *("registers", "spilled bytes", "occupancy", "verified"),
    )
    return sheet(heading_of(source), headings, [_cells(row) for row in source.record.rows])


def _cells(row: Row) -> tuple[str, ...]:
    return (
        full(row),
        time(row),
        "" if row.ratio_to_reference is None else ratio_text(row.ratio_to_reference),
        row.outcome or "",
        "" if row.ratio_to_baseline is None else spread(row.ratio_to_baseline, unit=""),
        figure(row.tflops, "{:.2f}"),
        figure(row.registers),
        figure(row.spill_bytes),
        figure(row.occupancy, "{:.1f}%", 100),
        verification(row),
    )
