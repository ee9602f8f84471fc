"""The confound guard: what two builds differ in by choice, against what their author said they differ in.

A cause is a difference that somebody made: a step of the ladder, a parameter, a passage of the text, an option. What
follows from it by itself, a derived constant or the bounds of another number of threads, is a consequence: told, and
not counted. Owns the comparison of two `BuildRecord`s; it compiles and measures nothing.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tilewright.declare import Registry, Rung, all_rungs
from tilewright.lab.build_record import BuildRecord, Word

SHOWN_WORDS = 12
NONE = "–"


@dataclass(frozen=True, slots=True)
class Cause:
    """One difference: its kind, what differs, and how it is on either side."""

    kind: str
    what: str
    reference: str
    arm: str

    def __str__(self) -> str:
        return f"{self.kind} {self.what}: {self.reference} → {self.arm}"

    def to_json(self) -> dict[str, Any]:
        """The four as JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Differences:
    """Everything two builds differ in: by choice, and as a consequence of that."""

    causes: tuple[Cause, ...]
    consequences: tuple[Cause, ...]


def differences(reference: BuildRecord, arm: BuildRecord, registry: Registry | None = None) -> Differences:
    """What `arm` differs from `reference` in.

    Between two rungs the causes are the steps on the way from one to the other in the ladder's tree, each with the
    constants that its declaration gives it; a setting apart from those, and an edit of either text, is a cause beside.
    """
    if reference.rung.name == arm.rung.name:
        causes = [*_source(reference, arm), *_written_bounds(reference, arm), *_parameters(reference, arm)]
    else:
        causes = [*_steps(reference.rung, arm.rung, registry or all_rungs()), *_apart_from_steps(reference, arm)]
    causes += _each("problem constant", reference.problem_constants, arm.problem_constants)
    causes += _each("option", _options(reference), _options(arm))
    for kind in ("arch", "compiler", "compute"):
        sides = getattr(reference, kind), getattr(arm, kind)
        causes += [Cause("build", kind, *sides)] if sides[0] != sides[1] else []
    return Differences(tuple(causes), tuple(_consequences(reference, arm, causes)))


def confounded(found: Differences, *, named: Sequence[str] | None = None, bundle: str = "") -> str:
    """Why a comparison of the two can't say what made the difference; empty where it can.

    `named` are the causes (`Cause.what`) that the author says there are; None for whichever one there is. More than one
    needs a `bundle`: a name under which they are judged together.
    """
    whats = [cause.what for cause in found.causes]
    if named is not None:
        unnamed = [str(cause) for cause in found.causes if cause.what not in named]
        if unnamed:
            return f"named was {', '.join(named) or 'nothing'}, and they also differ in {'; '.join(unnamed)}"
        missing = [name for name in named if name not in whats]
        if missing:
            return f"named was {', '.join(missing)}, in which they do not differ"
    if len(whats) > 1 and not bundle:
        listed = "; ".join(str(cause) for cause in found.causes)
        return f"{len(whats)} causes, so none of them can be held responsible: {listed}"
    return ""


def _each(kind: str, reference: Mapping[str, Any], arm: Mapping[str, Any]) -> list[Cause]:
    return [
        Cause(kind, name, str(reference.get(name, NONE)), str(arm.get(name, NONE)))
        for name in dict.fromkeys([*reference, *arm])
        if reference.get(name) != arm.get(name)
    ]


def _options(record: BuildRecord) -> dict[str, str]:
    return {name: value for name, _, value in (option.partition("=") for option in record.options)}


def _parameters(reference: BuildRecord, arm: BuildRecord) -> list[Cause]:
    """Parameters that differ, and constants of a text's own that both texts have."""
    shared = reference.own_constants.keys() & arm.own_constants.keys()
    own = _each(
        "constant",
        {name: reference.own_constants[name] for name in sorted(shared)},
        {name: arm.own_constants[name] for name in sorted(shared)},
    )
    made = [_as_bounds(cause, reference, arm) for cause in _each("parameter", reference.params, arm.params)]
    return made + own


def _as_bounds(cause: Cause, reference: BuildRecord, arm: BuildRecord) -> Cause:
    """A parameter that only the launch bounds name is a difference of the launch bounds."""
    if reference.serves_bounds_alone(cause.what) and arm.serves_bounds_alone(cause.what):
        return Cause("launch bounds", cause.what, reference.bounds, arm.bounds)
    return cause


def _written_bounds(reference: BuildRecord, arm: BuildRecord) -> list[Cause]:
    if reference.bounds_text == arm.bounds_text:
        return []
    return [Cause("launch bounds", "__launch_bounds__", reference.bounds, arm.bounds)]


def _source(reference: BuildRecord, arm: BuildRecord) -> list[Cause]:
    return [
        Cause("source", "source", _passage(ours), _passage(theirs))
        for ours, theirs in _hunks(reference.words, arm.words)
    ]


def _passage(words: Sequence[Word]) -> str:
    """A passage of a text, shortened, with its line."""
    if not words:
        return NONE
    shown = " ".join(word.text for word in words[:SHOWN_WORDS])
    return f"line {words[0].line}: {shown}{' …' if len(words) > SHOWN_WORDS else ''}"


def _hunks(left: Sequence[Word], right: Sequence[Word]) -> Iterator[tuple[Sequence[Word], Sequence[Word]]]:
    """Differing passages; two that lie on one line, or on neighbouring ones, of either text are one."""
    matcher = difflib.SequenceMatcher(None, [w.text for w in left], [w.text for w in right], autojunk=False)
    open_at: tuple[int, int, int, int] | None = None
    for kind, i0, i1, j0, j1 in matcher.get_opcodes():
        if kind == "equal":
            continue
        if open_at is not None and (_near(left, open_at[1], i0) or _near(right, open_at[3], j0)):
            open_at = open_at[0], i1, open_at[2], j1
            continue
        if open_at is not None:
            yield left[open_at[0] : open_at[1]], right[open_at[2] : open_at[3]]
        open_at = i0, i1, j0, j1
    if open_at is not None:
        yield left[open_at[0] : open_at[1]], right[open_at[2] : open_at[3]]


def _near(words: Sequence[Word], end: int, start: int) -> bool:
    """Whether the words from `start` on begin no later than the line after the one where those before `end` stop."""
    return end > 0 and start < len(words) and words[start].line - words[end - 1].line <= 1


def _steps(reference: Rung, arm: Rung, registry: Registry) -> list[Cause]:
    """The steps from one rung to the other: back to where their ways part, then forward."""
    back, forward = _way_down(reference, registry), _way_down(arm, registry)
    if back[-1] != forward[-1]:
        return [Cause("rung", arm.name, reference.name, arm.name)]
    while len(back) > 1 and len(forward) > 1 and back[-2] == forward[-2]:
        back.pop()
        forward.pop()
    undone = [Cause("step", above, above, below) for above, below in itertools.pairwise(back)]
    done = [Cause("step", above, below, above) for above, below in itertools.pairwise(forward)]
    return [*undone, *reversed(done)]


def _way_down(rung: Rung, registry: Registry) -> list[str]:
    way = [rung.name]
    while (below := registry[way[-1]].builds_on) is not None:
        way.append(below)
    return way


def _apart_from_steps(reference: BuildRecord, arm: BuildRecord) -> list[Cause]:
    """Settings that the declarations don't give the two rungs, and edits of their texts."""
    usual_reference, usual_arm = _defaults(reference.rung), _defaults(arm.rung)
    causes = []
    for cause in _each("parameter", reference.params, arm.params):
        as_declared = reference.params.get(cause.what) == usual_reference.get(cause.what) and arm.params.get(
            cause.what
        ) == usual_arm.get(cause.what)
        causes += [] if as_declared else [cause]
    for record in (reference, arm):
        plain = _rung_words(record)
        for ours, theirs in _hunks(plain, record.words):
            causes.append(Cause("source", "source", _passage(ours), f"{record.rung.name} {_passage(theirs)}"))
    return causes


def _rung_words(record: BuildRecord) -> tuple[Word, ...]:
    return replace(record, text=record.rung.source).words


def _defaults(rung: Rung) -> dict[str, int]:
    return {param.name: param.default for param in rung.params}


def _consequences(reference: BuildRecord, arm: BuildRecord, causes: Sequence[Cause]) -> Iterator[Cause]:
    """What differs because of the causes: derived constants, constants that one text alone names, launch bounds."""
    if reference.rung.name != arm.rung.name:
        return
    yield from _each("derived constant", reference.derived, arm.derived)
    yield from (
        c for c in _each("constant", reference.own_constants, arm.own_constants) if NONE in (c.reference, c.arm)
    )
    if reference.bounds != arm.bounds and not any(cause.kind == "launch bounds" for cause in causes):
        yield Cause("launch bounds", "__launch_bounds__", reference.bounds, arm.bounds)
