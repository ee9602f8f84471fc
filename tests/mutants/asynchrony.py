"""Operators on what asynchronous copies and products are told: arrivals, parities, bytes, stages, choices.

Owns where they stand in a text. `operators` applies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mutants.text import Edit, Operator, Span, Text, arguments

COPY = re.compile(r"\b(?:tma_load|tma_store|cp_async_zfill|(?:copy|load)_tile)(?:<[^<>;]*>)?\([^;{]*\);")
ARRIVAL = re.compile(r"\b(?:cp_async_)?mbarrier_arrive\w*\([^;{]*\);")
PARITY = re.compile(r"\bmbarrier_(?:try_wait|test_wait|wait)(?=\()")
EXPECTED = re.compile(r"\bmbarrier_(?:arrive_)?expect_tx(?=\()")
DESCRIPTOR = re.compile(r"\b(?:smem_descriptor|descriptor_at)(?=\()")
PRODUCT = re.compile(r"\bwgmma(?:<[^;]*?>)?(?=\()")
REGISTERS = re.compile(r"\b(?:release|acquire)_registers<([^<>;]*)>")
RING = re.compile(r"(?<=(?:%|=) )STAGES\b")
TILE = re.compile(r"(?<!int )\btile\b(?! [-+]?= |\(|\.)")
FLAG = re.compile(r"(?<=[<,( ])(?:!?[A-Z]+_FIRST|true|false)(?=[>,])")
CHOICE = re.compile(r"(?<![\w.!])(!?[\w.]+(?: (?:[-+*/%<>]|[=!<>]=) [\w.]+)*) \? ")


def copy_removed(text: Text) -> Iterator[Edit]:
    """A copy of a tile or of a part of one taken out."""
    for match in COPY.finditer(text.code):
        yield Edit("gone", ((match.span(), ";"),))


def arrival_doubled(text: Text) -> Iterator[Edit]:
    """An arrival made twice."""
    for match in ARRIVAL.finditer(text.code):
        yield Edit("twice", ((match.span(), f"{{ {match[0]} {match[0]} }}"),))


def parity_flipped(text: Text) -> Iterator[Edit]:
    """A wait for the phase before or after the one meant."""
    for _, parity in _last_arguments(text, PARITY):
        yield Edit("the other parity", ((parity, f"(({text.source[slice(*parity)]}) ^ 1)"),))


def bytes_changed(text: Text) -> Iterator[Edit]:
    """More or fewer bytes announced to a barrier than come."""
    for _, number in _last_arguments(text, EXPECTED):
        for change in ("+ 16", "- 16"):
            yield Edit(f"bytes {change}", ((number, f"{text.source[slice(*number)]} {change}"),))


def ring_changed(text: Text) -> Iterator[Edit]:
    """A ring that is one stage shorter or longer in one place than in the others."""
    for match in RING.finditer(text.expressions):
        for other in ("(STAGES - 1)", "(STAGES + 1)"):
            yield Edit(f"`STAGES` is `{other}`", ((match.span(), other),))


def tile_off_by_one(text: Text) -> Iterator[Edit]:
    """The next tile in place of the one meant."""
    for match in TILE.finditer(text.expressions):
        yield Edit("`tile` is `(tile + 1)`", ((match.span(), "(tile + 1)"),))


def swizzle_changed(text: Text) -> Iterator[Edit]:
    """A sum, or bits put together, in place of an exclusive or."""
    for match in re.finditer(r" \^ ", text.expressions):
        for sign in " + ", " | ":
            yield Edit(f"`^` is `{sign.strip()}`", ((match.span(), sign),))


def descriptor_changed(text: Text) -> Iterator[Edit]:
    """A start, a stride or a span that an operand in shared memory does not have."""
    for match in DESCRIPTOR.finditer(text.expressions):
        for number, span in enumerate(arguments(text.code, match.end())[1:], 1):
            was = text.source[slice(*span)]
            for change in ("+ 16", "/ 2"):
                yield Edit(f"argument {number} {change}", ((span, f"({was}) {change}"),))


def accumulation_changed(text: Text) -> Iterator[Edit]:
    """A product that always adds to what is there, or never does."""
    for _, span in _last_arguments(text, PRODUCT):
        for flag in ("true", "false"):
            if text.source[slice(*span)] != flag:
                yield Edit(f"accumulates: {flag}", ((span, flag),))


def registers_changed(text: Text) -> Iterator[Edit]:
    """Registers released or acquired that do not add up."""
    for match in REGISTERS.finditer(text.expressions):
        for change in ("+ 8", "- 8"):
            yield Edit(f"registers {change}", ((match.span(1), f"{match[1]} {change}"),))


def flag_flipped(text: Text) -> Iterator[Edit]:
    """A choice made the other way: a flag among template arguments, or the condition of `?`."""
    for match in FLAG.finditer(text.expressions):
        other = {"true": "false", "false": "true"}.get(match[0], f"!{match[0]}".removeprefix("!!"))
        yield Edit(f"`{match[0]}` is `{other}`", ((match.span(), other),))
    for match in CHOICE.finditer(text.expressions):
        yield Edit(f"`{match[1]}` is false where it is true", ((match.span(1), f"!({match[1]})"),))


OPERATORS: dict[str, Operator] = {
    "copy removed": copy_removed,
    "arrival doubled": arrival_doubled,
    "parity flipped": parity_flipped,
    "bytes changed": bytes_changed,
    "ring changed": ring_changed,
    "tile off by one": tile_off_by_one,
    "swizzle changed": swizzle_changed,
    "descriptor changed": descriptor_changed,
    "accumulation changed": accumulation_changed,
    "registers changed": registers_changed,
    "choice flipped": flag_flipped,
}


def _last_arguments(text: Text, calls: re.Pattern[str]) -> Iterator[tuple[re.Match[str], Span]]:
    for match in calls.finditer(text.expressions):
        yield match, arguments(text.code, match.end())[-1]
