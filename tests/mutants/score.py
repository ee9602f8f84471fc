"""The score: what caught each mutant, kept in score.json, and docs/mutants.md made of it.

`caught` holds, in the mutants' order, by which result and by which check each was caught, as in "wrong race"; NONE
where it was by none. `reasons` are the survivors that are right, with why. Owns files and words; judging is `judge`'s.
"""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutants import order
from mutants.judge import all_catches
from mutants.operators import OPERATORS, Mutant
from mutants.subjects import Subject, subjects

HERE = Path(__file__).parent
SCORE, SURVIVORS = HERE / "score.json", HERE / "survivors.toml"
NONE = "-"
INTRODUCTION = """\
# Mutation score

A checker is worth what it catches. Here every barrier, fence, commit, arrival, wait, copy, guard, loop and index term
of every rung's own text, and of the headers they compute with, is removed, moved or changed, one at a time, and so are
the parities, bytes, stages, swizzles, descriptors and registers of the asynchronous rungs: {all} mutants. On the tensor
track, which is slow to judge, all removals and all of the latter are judged in every rung; of the others one in three,
where the rung below has not the same.

Each is judged by its *results* (integers compared exactly, NaN in all padding, three schedules, asynchronous copies
landing late, early and in between, arrays at both ends of their pages) and by the *checks* of the trace build (races,
uninitialised reads, stores that the asynchronous proxy need not see, misplaced and misaligned accesses, indices beyond
their dimension). {caught} are caught, {refused} of them by the compiler, which counts as both. The other {right} are
right by the programming model, or by our rule where the model leaves one open, each for the reason given below.
`scripts/mutants` writes this file; the operators are `tests/mutants/operators.py`, and a new rung has its mutants
without a line there.
"""


@dataclass(frozen=True, slots=True)
class Scored:
    """A mutant of the subject named, and by which result and which check it was caught."""

    subject: str
    mutant: Mutant
    results: str
    checks: str

    @property
    def means(self) -> str:
        """By what it is caught: 'both', 'results', 'checks' or 'nothing'."""
        caught = self.results != NONE, self.checks != NONE
        return {(True, True): "both", (True, False): "results", (False, True): "checks"}.get(caught, "nothing")


@functools.cache
def reasons() -> dict[tuple[str, tuple[str, str, str]], str]:
    """Why a survivor is right, by its subject and key."""
    listed = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))["survivor"]
    return {
        (subject, (one["operator"], one["line"], words)): one["reason"]
        for one in listed
        for subject in one["in"]
        for words in one["words"]
    }


def digest(subject: Subject) -> str:
    """Of the mutants' texts: a score is theirs and no others'."""
    return hashlib.sha256("\0".join(mutant.source for mutant in subject.mutants).encode()).hexdigest()[:16]


def judged(subject: Subject, mutant: Mutant) -> str:
    """What score.json holds of it."""
    return " ".join(NONE if catch is None else catch.kind for catch in all_catches(subject, mutant))


def load() -> dict[str, list[Scored]]:
    """The score of each subject whose mutants are the ones that were judged."""
    kept = json.loads(SCORE.read_text(encoding="utf-8"))
    return {
        name: [
            Scored(name, mutant, *caught.split())
            for mutant, caught in zip(subject.mutants, kept[name]["caught"], strict=True)
        ]
        for name, subject in subjects().items()
        if kept.get(name, {}).get("digest") == digest(subject)
    }


def store(caught: dict[str, list[str]]) -> None:
    """Keep what caught each subject's mutants."""
    made = {name: {"digest": digest(subjects()[name]), "caught": each} for name, each in caught.items()}
    SCORE.write_text(json.dumps(made, indent=0) + "\n", encoding="utf-8")


def document(score: dict[str, list[Scored]]) -> str:
    """docs/mutants.md."""
    everything = [scored for each in score.values() for scored in each]
    survivors = [scored for scored in everything if scored.means == "nothing"]
    ordering = [
        scored for scored in everything if scored.mutant.operator in order.OPERATORS and scored.means != "nothing"
    ]
    counts = {"all": len(everything), "caught": len(everything) - len(survivors), "right": len(survivors)}
    refused = sum(scored.results == "refused" for scored in everything)
    return "\n".join(
        (
            INTRODUCTION.format(**counts, refused=refused),
            *_summary("text", {name: [s.means for s in each] for name, each in score.items()}),
            *_summary("operator", _by_operator(everything)),
            "## Caught by the checks alone\n",
            "No schedule gave a wrong result; order or place was wrong all the same.\n",
            *_table([scored for scored in everything if scored.means == "checks"], "check", lambda s: s.checks),
            "## Right all the same\n",
            *_table(survivors, "why", lambda s: reasons().get((s.subject, s.mutant.key), "**unexplained**")),
            "## Each barrier, commit, wait and guard\n",
            *_table(ordering, "result / check", lambda s: f"{s.results} / {s.checks}"),
        )
    )


def _by_operator(everything: list[Scored]) -> dict[str, list[str]]:
    docs = {name: f"{name}: {(operator.__doc__ or '').strip()}" for name, operator in OPERATORS.items()}
    made: dict[str, list[str]] = {words: [] for words in docs.values()}
    for scored in everything:
        made[docs[scored.mutant.operator]].append(scored.means)
    return made


def _summary(title: str, means: dict[str, list[str]]) -> Iterator[str]:
    columns = ("both", "results", "checks", "nothing")
    yield f"| {title} | mutants | caught by both | by results alone | by checks alone | right |"
    yield "|---|---:|---:|---:|---:|---:|"
    total: Counter[str] = Counter()
    for name, each in means.items():
        counted = Counter(each)
        total += counted
        yield f"| {name} | {len(each)} | {' | '.join(str(counted[column]) for column in columns)} |"
    yield f"| all | {total.total()} | {' | '.join(str(total[column]) for column in columns)} |\n"


def _table(rows: list[Scored], title: str, last: Callable[[Scored], str]) -> Iterator[str]:
    """One row for the mutants that differ in nothing but where they are."""
    together: dict[tuple[str, ...], list[str]] = {}
    for scored in rows:
        place = f"{scored.subject.split('_')[0]}:{scored.mutant.line}"
        together.setdefault((*scored.mutant.key, last(scored)), []).append(place)
    yield f"| where | operator | line | change | {title} |"
    yield "|---|---|---|---|---|"
    for (operator, was, words, at_end), places in together.items():
        cells = (", ".join(places), operator, f"`{was}`", words, at_end)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
