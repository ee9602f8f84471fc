"""Mutants of a kernel's own text: one barrier, wait, guard, loop or index term removed, moved or changed.

An operator is a function from a text to edits; it finds its places by pattern, so a new rung has mutants without a
line here. Owns what a mutant is; whether anyone notices is `judge`'s.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from mutants import asynchrony, indices, order
from mutants.text import Text, line_of, without_comment

OPERATORS = {**order.OPERATORS, **asynchrony.OPERATORS, **indices.OPERATORS}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed text. `was` is what stands in the line; the key is the same in every rung that has it."""

    operator: str
    line: int
    was: str
    words: str
    source: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What was changed, wherever the line stands."""
        return self.operator, self.was, self.words


def mutants(source: str, constants: Mapping[str, int]) -> list[Mutant]:
    """Every mutant of a text, by operator and place. One that another operator makes too is made once."""
    text, texts = Text(source, constants), {source}
    found: dict[tuple[str, str, str], Mutant] = {}
    for name, operator in OPERATORS.items():
        for edit in operator(text):
            changed = edit.applied(source)
            if changed not in texts:
                texts.add(changed)
                line = line_of(source, edit.spans[0][0][0])
                was = without_comment(source.splitlines()[line - 1])
                words = _not_yet(edit.words, {key[2] for key in found if key[:2] == (name, was)})
                mutant = Mutant(name, line, was, words, changed)
                found[mutant.key] = mutant
    return list(found.values())


def _not_yet(words: str, taken: set[str]) -> str:
    """The words, with a number where a line of the same text has them already."""
    candidates = (words if number == 1 else f"{words} ({number})" for number in itertools.count(1))
    return next(each for each in candidates if each not in taken)
