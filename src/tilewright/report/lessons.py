"""The ladder as a document: each rung's words, its picture, and what the records say became of its prediction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from tilewright.declare import Registry, Rung, Search, rung_config
from tilewright.lab.outcomes import outcome_sentence, outcomes, size_of
from tilewright.lab.picture import draw_tiles
from tilewright.lab.render import percent
from tilewright.lab.suite_summary import best_rows, means_of, median_ratio
from tilewright.measure.modes import GRAPH
from tilewright.record import Record, Row, tries_every
from tilewright.report.tables import PART_ROWS, caption

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


def lesson_section(step: Rung | Search, records: Sequence[Record], suites: Sequence[Row]) -> str:
    """One step's part of the document; `suites` are the fastest of our kernels for the shapes of suites."""
    sentences = [outcome_sentence(record, row) for record, row in outcomes(records, step.name)]
    told = "\n".join(f"- {sentence}" for sentence in [*sentences, *_suite_sentences(step.name, suites)])
    builds_on = f"Builds on `{step.builds_on}`. " if step.builds_on else ""
    parts = [
        f"## {step.number} · {step.title}",
        f"`{step.name}`. {builds_on}{_settings(step)}",
        f"*{step.summary}*",
        f"**The idea.** {_prose(step.lesson.idea)}",
        *([f"```text\n{draw_tiles(rung_config(step).constants)}\n```"] if isinstance(step, Rung) else []),
        f"**The prediction.** {_prose(step.lesson.prediction)}",
        *([_outcome(told)] if isinstance(step, Rung) else []),
        f"**What it costs.** {_prose(step.lesson.cost)}",
        f"**When it stops being right.** {_prose(step.lesson.expires)}",
    ]
    return "\n\n".join(parts)


def _suite_sentences(name: str, suites: Sequence[Row]) -> Iterator[str]:
    """For how many shapes of the suites it is the fastest of our kernels, and how fast, where there are such."""
    rows = sorted((row for row in suites if row.rung == name), key=median_ratio)
    if not rows:
        return
    *_, overall = means_of(rows)
    ends = [f"{percent(median_ratio(row))}% ({size_of(row)} {row.problem['layout']})" for row in (rows[0], rows[-1])]
    yield (
        f"[Suites](suites.md): the fastest of our kernels for {len(rows)} of {len(suites)} shapes. There it reaches "
        f"{percent(overall.mean)}% of cuBLAS in the mean, from {ends[0]} to {ends[1]}."
    )


def _settings(step: Rung | Search) -> str:
    if isinstance(step, Search):
        return "It has no kernel of its own."
    return f"Default config: `{rung_config(step)}`."


def _outcome(told: str) -> str:
    return f"**The outcome.**\n\n{told}" if told else "**The outcome.** Not recorded yet."


def _prose(words: str) -> str:
    return " ".join(words.split())


def steps_table(steps: Iterable[Rung | Search], records: Sequence[Record]) -> str:
    """Every step with what was published of it and what was measured at 4096³."""
    lines = [
        "| rung | technique | article: ms | article: % of cuBLAS | chapter: step | chapter: % claimed "
        "| measured: ms | measured: % of cuBLAS | measured: % of peak |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for step in steps:
        row = next((row for _, row in outcomes(records, step.name) if _is_plain(step, row)), None)
        published = step.published
        cells = (
            f"{step.number}",
            step.title,
            _or_blank(published.time_ms),
            _or_blank(published.percent_of_cublas),
            _or_blank(published.chapter_step),
            _or_blank(published.chapter_percent),
            f"{row.time_us / 1000:.3g}" if row is not None and row.time_us is not None else "",
            percent(row.ratio_to_baseline.median) if row is not None and row.ratio_to_baseline is not None else "",
            percent(row.fraction_of_peak) if row is not None and row.fraction_of_peak is not None else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    ladders = [
        r for r in records if r.command == "ladder" and len(r.rows) > PART_ROWS and r.rows[0].problem["m"] == 4096
    ]
    captions = [caption(r) for r in ladders]
    return "\n".join([*lines, "", *captions])


def _is_plain(step: Rung | Search, row: Row) -> bool:
    """Whether the row is the step's default config at 4096³."""
    return isinstance(step, Rung) and row.problem["m"] == 4096 and row.config == rung_config(step).values


def _or_blank(value: object) -> str:
    return "" if value is None else str(value)


def ladder_document(rungs: Registry, records: Sequence[Record], suites: Sequence[Record]) -> str:
    """The whole of `docs/ladder.md`."""
    tried = _tried_rows(suites)
    sections = [lesson_section(step, records, tried) for step in rungs.steps]
    return "\n\n".join([INTRODUCTION.rstrip(), TABLE.rstrip(), steps_table(rungs.steps, records), *sections]) + "\n"


def _tried_rows(suites: Sequence[Record]) -> list[Row]:
    """The fastest row of each shape of a suite in which all candidates were tried; from graphs where there is one."""
    tried = [record for record in suites if tries_every(record)]
    found: dict[tuple[str, str], Row] = {}
    for record in sorted(tried, key=lambda each: (each.about or {}).get("launch") == GRAPH):
        for row in best_rows(record):
            found[str((record.about or {}).get("suite")), json.dumps(row.problem, sort_keys=True)] = row
    return list(found.values())
