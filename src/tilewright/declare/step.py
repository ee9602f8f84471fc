"""What every step of the ladder says of itself, and the step that has no kernel.

Owns words and order only: number, predecessor, lesson, what was published. What follows from a kernel is `rung.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tilewright.errors import InvalidDeclaration


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a rung teaches, in a few short sentences each.

    `idea` is what it does, `prediction` what it should change and why, `cost` what it takes in return, `expires` when
    it stops being right. The outcome is not here: it is a record's.
    """

    idea: str
    prediction: str
    cost: str
    expires: str


class Published(NamedTuple):
    """What the documents this ladder began from report for the step.

    `time_ms` and `percent_of_cublas` are an article's, 4096³ on a card with 84 SMs (sm_120). `chapter_step` and
    `chapter_percent` are a course chapter's, whose percentages it calls of peak and which look like of cuBLAS.
    """

    time_ms: float | None = None
    percent_of_cublas: float | None = None
    chapter_step: int | None = None
    chapter_percent: str | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the ladder, with a kernel (`Rung`) or without (`Search`).

    `number` is permanent, `builds_on` names the rung it is a step from (None for a root), `summary` is the lesson in
    one sentence. `name` is filled in by discovery from the file's stem.
    """

    number: int
    track: str
    builds_on: str | None
    title: str
    summary: str
    lesson: Lesson
    published: Published = field(default_factory=Published)
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class Search(Step):
    """A step that changes no code: the search over the parameters of the rung it builds on. It has no `.cu`."""

    def __post_init__(self) -> None:
        if self.builds_on is None:
            raise InvalidDeclaration(f"{self.title}: a search builds on the rung whose parameters it searches")
