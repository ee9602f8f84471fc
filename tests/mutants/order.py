"""Operators on what orders and what guards: barriers, commits, waits and conditions.

Owns where they stand in a text. `operators` applies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from mutants.text import Edit, Operator, Span, Text, closing_of, places_after, places_before

SYNCHRONISATION = re.compile(
    r"\b(?:__sync\w+|(?:barrier|mbarrier|fence)_\w+|(?:cp_async|tma|wgmma)_(?:commit|wait|wait_read|fence|mbarrier_\w+)"
    r"|(?:release|acquire)_registers)(?:<[^<>;]*>)?\([^;{]*\);"
)
WAIT = re.compile(r"\b(?:cp_async|tma|wgmma)_wait(?:_read)?<([^<>;]*)>")
CONDITION = re.compile(r"\bif (?=\()|\bconst bool \w+ = (?=[^;]*;)")
COMPARISON = re.compile(r" (<|>|<=|>=) ")
MOST_UP, MOST_DOWN = 4, 3


def synchronisation_removed(text: Text) -> Iterator[Edit]:
    """A barrier, fence, commit, arrival or wait taken out."""
    for match in SYNCHRONISATION.finditer(text.code):
        yield Edit("gone", ((match.span(), ";"),))


def wait_weakened(text: Text) -> Iterator[Edit]:
    """A wait that leaves one group more unfinished."""
    for match in WAIT.finditer(text.code):
        more = str(int(match[1]) + 1) if match[1].isdigit() else f"{match[1]} + 1"
        yield Edit(f"leaves {more}", ((match.span(1), more),))


def moved_up(text: Text) -> Iterator[Edit]:
    """A barrier, fence, commit, arrival or wait before statements that it came after, or before the loop it was in."""
    for match in SYNCHRONISATION.finditer(text.code):
        for place in islice(places_before(text.code, match.span()), MOST_UP):
            place = _before_pragmas(text.source, place)
            before, end = _statement_at(text.source, place), "\n" if text.source[place] == "#" else " "
            yield Edit(f"before `{before}`", ((match.span(), ";"), ((place, place), match[0] + end)))


def moved_down(text: Text) -> Iterator[Edit]:
    """A barrier, fence, commit, arrival or wait after statements that it came before, or after the loop it was in."""
    for match in SYNCHRONISATION.finditer(text.code):
        for place in islice(places_after(text.code, match.span()), MOST_DOWN):
            after = _statement_at(text.source, text.source.rfind("\n", 0, place) + 1)
            yield Edit(f"after `{after}`", ((match.span(), ";"), ((place, place), " " + match[0])))


def guard_removed(text: Text) -> Iterator[Edit]:
    """A condition that always holds."""
    for start, end in _conditions(text.code):
        yield Edit(f"`{text.source[start:end]}` is true", (((start, end), "true"),))


def guard_halved(text: Text) -> Iterator[Edit]:
    """One of several conditions gone."""
    for start, end in _conditions(text.code):
        for group in re.finditer(r"\(([^()]*)\)", text.code[start:end]):
            operator = next((sign for sign in (" && ", " || ") if sign in group[1]), None)
            parts = group[1].split(operator) if operator else []
            for part in parts:
                kept = operator.join(other for other in parts if other != part)
                span = (start + group.start(1), start + group.end(1))
                yield Edit(f"`{part}` gone", ((span, kept),))


def guard_off_by_one(text: Text) -> Iterator[Edit]:
    """A comparison that holds for one value more, or for one less."""
    for start, end in _conditions(text.code):
        for match in COMPARISON.finditer(text.code[start:end]):
            sign, at = match[1], (start + match.start(1), start + match.end(1))
            other = sign[0] if sign.endswith("=") else f"{sign}="
            yield Edit(f"`{sign}` is `{other}`", ((at, other),))
            nearer = "+ 1" if sign[0] == "<" or sign == ">=" else "- 1"
            yield Edit(f"`{sign}` is `{nearer} {sign}`", ((at, f"{nearer} {sign}"),))


OPERATORS: dict[str, Operator] = {
    "removed": synchronisation_removed,
    "weakened": wait_weakened,
    "moved up": moved_up,
    "moved down": moved_down,
    "guard removed": guard_removed,
    "guard halved": guard_halved,
    "guard off by one": guard_off_by_one,
}


def _before_pragmas(source: str, place: int) -> int:
    line = source.rfind("\n", 0, place) + 1
    above = source.rfind("\n", 0, line - 1) + 1
    return _before_pragmas(source, above) if source.startswith("#pragma", above) else place


def _statement_at(source: str, place: int) -> str:
    lines = (line.strip() for line in source[place:].splitlines())
    return re.sub(r"\s*//.*", "", next(line for line in lines if not line.startswith("#")))


def _conditions(code: str) -> Iterator[Span]:
    for match in CONDITION.finditer(code):
        if match[0].startswith("if"):
            yield match.end() + 1, closing_of(code, match.end())
        else:
            yield match.end(), code.index(";", match.end())
