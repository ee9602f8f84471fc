"""The ladder as a document: each rung's words, its picture, and what the records say became of its prediction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.declare import Registry, Rung, rung_config
from tilewright.lab.outcomes import outcome_sentence, outcomes
from tilewright.lab.picture import draw_tiles
from tilewright.lab.render import percent
from tilewright.record import Record
from tilewright.report.tables import caption

INTRODUCTION = """\
# The ladder

Each rung changes one thing about the rung it builds on. The words are the declarations', the pictures are drawn from
their constants, and the outcomes are generated from the records in `src/tilewright/records/`: a figure that no record
holds does not appear. `scripts/docs` writes this file.
"""
TABLE = """\
## The steps, published and measured

*Article*: an SGEMM article's figures at 4096³ on a card of 84 SMs (sm_120). *Chapter*: the step and the percentage "of
peak" that a course chapter gives it; they look like percentages of cuBLAS, and the chapter says itself that it did not
reproduce them. *Measured*: here, at 4096³.
"""


def lesson_section(rung: Rung, records: Sequence[Record]) -> str:
    """One rung's part of the document."""
    config = rung_config(rung)
    settings = " ".join(f"{name}={value}" for name, value in config.values.items())
    told = "\n".join(f"- {outcome_sentence(record, row)}" for record, row in outcomes(records, rung.name))
    builds_on = f"Builds on `{rung.builds_on}`. " if rung.builds_on else ""
    parts = [
        f"## {rung.number} · {rung.title}",
        f"`{rung.name}`. {builds_on}Default config: `{settings}`.",
        f"*{rung.summary}*",
        f"**The idea.** {_prose(rung.lesson.idea)}",
        f"```text\n{draw_tiles(config.constants)}\n```",
        f"**The prediction.** {_prose(rung.lesson.prediction)}",
        f"**The outcome.**\n\n{told}" if told else "**The outcome.** Not recorded yet.",
        f"**What it costs.** {_prose(rung.lesson.cost)}",
        f"**When it stops being right.** {_prose(rung.lesson.expires)}",
    ]
    return "\n\n".join(parts)


def _prose(words: str) -> str:
    return " ".join(words.split())


def steps_table(rungs: Iterable[Rung], records: Sequence[Record]) -> str:
    """Every step with what was published of it and what was measured at 4096³."""
    lines = [
        "| rung | technique | article: ms | article: % of cuBLAS | chapter: step | chapter: % claimed "
        "| measured: ms | measured: % of cuBLAS | measured: % of peak |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for rung in rungs:
        row = next((row for _, row in outcomes(records, rung.name) if row.problem["m"] == 4096), None)
        published = rung.published
        cells = (
            f"{rung.number}",
            rung.title,
            _or_blank(published.time_ms),
            _or_blank(published.percent_of_cublas),
            _or_blank(published.chapter_step),
            _or_blank(published.chapter_percent),
            f"{row.time_us / 1000:.3g}" if row is not None and row.time_us is not None else "",
            percent(row.ratio_to_baseline.median) if row is not None and row.ratio_to_baseline is not None else "",
            percent(row.fraction_of_peak) if row is not None and row.fraction_of_peak is not None else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    captions = [caption(r) for r in records if r.command == "ladder" and r.rows and r.rows[0].problem["m"] == 4096]
    return "\n".join([*lines, "", *captions])


def _or_blank(value: object) -> str:
    return "" if value is None else str(value)


def ladder_document(rungs: Registry, records: Sequence[Record]) -> str:
    """The whole of `docs/ladder.md`."""
    sections = [lesson_section(rung, records) for rung in rungs.values()]
    return "\n\n".join([INTRODUCTION.rstrip(), TABLE.rstrip(), steps_table(rungs.values(), records), *sections]) + "\n"
