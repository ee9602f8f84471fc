"""Operators on what counts and what addresses: loops, advances, terms, strides, subscripts and names.

Owns where they stand in a text. `operators` applies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mutants.text import ENDS_OF_FACTOR, ENDS_OF_TERM, LOOP, Edit, Operator, Text, operand_after, operand_before

ADVANCE = re.compile(r"(?<=[;{}\n])[ ]*\b\w+ [-+^]= [^;]*;")
BUILT_IN = ("threadIdx.x", "threadIdx.y", "blockIdx.x", "blockIdx.y")
DECLARED = re.compile(r"(?<=[\w>*&,] )\w+(?= = )|(?<=\bint )\w+(?=[,)])")
SUBSCRIPTS = re.compile(r"\b(\w+)\[([^][]+)\]\[([^][]+)\]")
SUBSCRIPT = re.compile(r"(?<=\w)\[(\d+|\w+)\](?!\[|;)")
PARTNERS = (("row", "col"), ("rows", "cols"), ("M", "N"), ("a", "b"), ("c", "d"), ("m", "n"), ("x", "y"), ("A", "B"))


def loop_bounds(text: Text) -> Iterator[Edit]:
    """A loop that starts a step late, or takes a step more or less."""
    for match in LOOP.finditer(text.code):
        name, step = match[1], match[4] or "1"
        yield Edit(f"`{name}` starts at {step}", ((match.span(2), f"{match[2]} + {step}"),))
        yield Edit(f"`{name}` a step more", ((match.span(3), f"{match[3]} + {step}"),))
        yield Edit(f"`{name}` a step less", ((match.span(3), f"{match[3]} - {step}"),))


def advance_removed(text: Text) -> Iterator[Edit]:
    """A pointer, or the number of a stage, that stays where it is."""
    for match in ADVANCE.finditer(text.expressions):
        yield Edit(f"`{match[0].strip()}` gone", ((match.span(), ";"),))


def term_removed(text: Text) -> Iterator[Edit]:
    """One term of a sum gone."""
    code = text.expressions
    pointers = {*re.findall(r"\w[*] (\w+)\b", text.code), *re.findall(r"\b(\w+)\[", text.code)}
    for match in re.finditer(r" ([+^]) ", code):
        right = operand_after(code, match.end(), ENDS_OF_TERM)
        yield Edit(f"`{match[1]} {code[slice(*right)]}` gone", (((match.start(), right[1]), ""),))
        left = operand_before(code, match.start(), ENDS_OF_TERM)
        term, ends_chain = code[slice(*left)], code[: left[0]].rstrip()[-1:] in "+^"
        if not ends_chain and term not in pointers and not re.search(r"\bargs\.[a-d]$", term):
            yield Edit(f"`{term} {match[1]}` gone", (((left[0], match.end()), ""),))


def factor_removed(text: Text) -> Iterator[Edit]:
    """A stride, a divisor or a modulus gone."""
    code = text.expressions
    for match in re.finditer(r" ([*/%]) ", code):
        right = operand_after(code, match.end(), ENDS_OF_FACTOR)
        if text.constants.get(code[slice(*right)]) != 1 or match[1] == "%":
            yield Edit(f"`{match[1]} {code[slice(*right)]}` gone", (((match.start(), right[1]), ""),))


def subscripts_swapped(text: Text) -> Iterator[Edit]:
    """Row for column in a two-dimensional array."""
    for match in SUBSCRIPTS.finditer(text.expressions):
        if match[2] != match[3]:
            name = f"{match[1]}[{match[3]}][{match[2]}]"
            yield Edit(f"`{match[0]}` is `{name}`", ((match.span(), name),))


def subscript_off_by_one(text: Text) -> Iterator[Edit]:
    """The next element in place of the one meant."""
    for match in SUBSCRIPT.finditer(text.expressions):
        yield Edit(f"`[{match[1]}]` is `[{match[1]} + 1]`", ((match.span(1), f"{match[1]} + 1"),))


def name_swapped(text: Text) -> Iterator[Edit]:
    """A name in place of its partner that is known there: row for column, M for N, a for b, x for y."""
    code = DECLARED.sub(lambda match: " " * len(match[0]), text.expressions)
    everywhere = {*text.constants, *BUILT_IN, *re.findall(r"\bargs\.\w+", text.code)}
    for match in re.finditer(r"\b(?:\w+\.)?[A-Za-z]\w*\b(?!\()", code):
        before = text.code[text.code.rfind("\n}", 0, match.start()) + 1 : match.start()]
        for other in _partners(match[0]):
            is_known = other in everywhere or re.search(rf"\b{other}\b", before)
            if is_known and text.constants.get(other, other) != text.constants.get(match[0]):
                yield Edit(f"`{match[0]}` is `{other}`", ((match.span(), other),))


OPERATORS: dict[str, Operator] = {
    "loop": loop_bounds,
    "advance removed": advance_removed,
    "term removed": term_removed,
    "factor removed": factor_removed,
    "subscripts swapped": subscripts_swapped,
    "subscript off by one": subscript_off_by_one,
    "name swapped": name_swapped,
}


def _partners(name: str) -> Iterator[str]:
    """The names that differ from `name` as a row's from a column's."""
    for pair in PARTNERS:
        for here, there in (pair, reversed(pair)):
            changed = re.sub(rf"(?<![a-zA-Z]){here}(?![a-z])|(?<=ld){here}$|(?<=[BWTt]){here}(?=$|ITER)", there, name)
            if changed != name:
                yield changed
