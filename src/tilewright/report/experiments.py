"""The experiments as a document: each question with its claim and prediction, and what the records say came of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.lab.experiment import Experiment, ExperimentArm
from tilewright.lab.experiment_command import recorded_verdicts
from tilewright.lab.render import percent
from tilewright.lab.trial_table import loads_text, ratio_text, registers_text
from tilewright.record import Record, Row

INTRODUCTION = """\
# Experiments

One question each. The claim is what the documents that the ladder began from say of it; the prediction was written down
for an H200 before anything was measured. Each arm differs from the one it is against in the cause named, or in several
that are judged as one under a name; anything more, and the comparison is called confounded. Outcomes come from the
records in `src/tilewright/records/experiments/`; where none of them holds one, it says so. A negative result stays.

`tilewright experiment NAME` answers one on your card, or without a card builds it and checks its causes; a `.toml` file
of your own will do as well. `scripts/docs` writes this file.
"""
HEADING = "| arm | against | differs in | claimed | predicted |"


def experiments_document(experiments: Iterable[Experiment], records: Iterable[Record]) -> str:
    """The whole of `docs/experiments.md`."""
    recorded = recorded_verdicts(records)
    sections = [_section(experiment, recorded.get(experiment.name, [])) for experiment in experiments]
    return "\n\n".join([INTRODUCTION.rstrip(), *sections]) + "\n"


def _section(experiment: Experiment, records: Sequence[Record]) -> str:
    parts = [
        f"## {experiment.question}",
        f"`{experiment.name}`, {experiment.problem}",
        f"**Claimed.** {experiment.claim or 'Nothing.'}",
        f"**Predicted.** {experiment.prediction}",
        _arms_table(experiment),
        *(_outcome(record) for record in records),
    ]
    return "\n\n".join(parts if records else [*parts, "**Found.** Not recorded yet."])


def _arms_table(experiment: Experiment) -> str:
    return "\n".join([HEADING, "|---|---|---|---|---|", *(_arm_line(arm) for arm in experiment.arms)])


def _arm_line(arm: ExperimentArm) -> str:
    entrant = arm.entrant
    causes = ", ".join(f"`{name}`" for name in entrant.named or ())
    bundle = f" as {entrant.bundle}" if entrant.bundle else ""
    against = entrant.against or f"(`{entrant.candidate}`)"
    cells = (entrant.label, against, f"{causes}{bundle}", arm.claim, arm.prediction)
    return f"| {' | '.join(cells)} |"


def _outcome(record: Record) -> str:
    about: Mapping[str, Any] = record.about or {}
    told = {arm["arm"]: arm for arm in about.get("arms", ())}
    env = record.environment
    lines = [
        "| arm | ms | % of cuBLAS | × its reference [95% interval] | outcome | claim | prediction | load bytes/FLOP "
        "| registers |",
        "|---|---:|---:|---:|---|---|---|---:|---:|",
        *_outcome_lines(record.rows, told),
    ]
    rounds = env.get("measurement", {}).get("rounds", 0)
    taken = f"{env['device']['name']}, {env['date']}, {rounds} rounds, commit `{env['commit']}`"
    return "\n".join([f"**Found** ({taken}). {about['finding']}", "", *lines])


def _outcome_lines(rows: Iterable[Row], told: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        arm = told.get(row.arm or "", {})
        cells = (
            row.arm or row.rung,
            "" if row.time_us is None else f"{row.time_us / 1000:.3g}",
            "" if row.ratio_to_baseline is None else percent(row.ratio_to_baseline.median),
            ratio_text(row.ratio_to_reference),
            row.outcome or row.failure or "",
            arm.get("claim_verdict", ""),
            arm.get("prediction_verdict", ""),
            loads_text(row),
            registers_text(row),
        )
        yield f"| {' | '.join(cells)} |"
