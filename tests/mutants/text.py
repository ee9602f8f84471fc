"""A text to be changed in one place, and enough of C++'s shape for it: comments, statements, operands.

Owns positions in a text. It knows no operator and no kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

# What is no code that runs: comments, directives, aliases, assertions, launch bounds, strings, namespaces.
NOT_CODE = re.compile(
    r"^\} *// namespace[^\n]*|^namespace[^{]*\{|//[^\n]*|^[ \t]*#[^\n]*|\b(?:using|static_assert)\b[^;]*;"
    r'|__launch_bounds__\([^)]*\)|"[^"\n]*"',
    re.MULTILINE,
)
OPENING, CLOSING = "([{", ")]}"
ENDS_OF_TERM = frozenset("+-,;?:<>=&|^!")
ENDS_OF_FACTOR = ENDS_OF_TERM | frozenset("*/%")

LOOP = re.compile(r"\bfor \(int (\w+) = ([^;]+); \1 < ([^;]+); (?:\+\+\1|\1 \+= ([^;)]+))\)")
OUTSIDE = re.compile(r"\A[^{]*\{|(?<=^\})[^{]*(?:\{|\Z)|^struct\b[^}]*\};", re.MULTILINE)
MEMBERS = re.compile(r"^[ ]*int \w+(?:, \w+)*;", re.MULTILINE)
ARRAYS = re.compile(r"(?<=[;{}\n])[ ]*(?:__shared__ |__align__\(\d+\) |alignas\(\d+\) )*[\w:<>]+ \w+\[[^;]*;")

Span = tuple[int, int]


@dataclass(frozen=True)
class Text:
    """A kernel's or a header's text, and `constants` that stand before it."""

    source: str
    constants: Mapping[str, int]

    @cached_property
    def code(self) -> str:
        """The text with all that is not code blanked."""
        return masked(self.source)

    @cached_property
    def expressions(self) -> str:
        """What functions compute: no heads of functions and loops, no declarations of arrays and members."""
        code = self.code
        for pattern in (OUTSIDE, LOOP, ARRAYS, MEMBERS):
            code = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)
        return code


@dataclass(frozen=True, slots=True)
class Edit:
    """Spans of a text to be replaced, and in words what that does; it counts as a change of the first span's line."""

    words: str
    spans: tuple[tuple[Span, str], ...]

    def applied(self, source: str) -> str:
        """The text as it is changed."""
        for (start, end), new in sorted(self.spans, reverse=True):
            source = source[:start] + new + source[end:]
        return source


Operator = Callable[[Text], Iterator[Edit]]


def masked(source: str) -> str:
    """`source` with everything that is not code blanked, position for position."""
    return NOT_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def without_comment(line: str) -> str:
    """What stands in a line, neither indented nor explained."""
    return re.sub(r"\s*//.*", "", line).strip()


def line_of(source: str, position: int) -> int:
    """The line number of a position, from 1."""
    return source.count("\n", 0, position) + 1


def operand_after(code: str, start: int, ends: frozenset[str]) -> Span:
    """The operand that begins at `start`, up to one of `ends` or a closing bracket."""
    while code[start] == " ":
        start += 1
    depth, at = 0, start
    while at < len(code):
        if code[at] in OPENING:
            depth += 1
        elif code[at] in CLOSING:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and code[at] in ends and not (code[at] == ":" and "::" in code[at - 1 : at + 2]):
            break
        at += 1
    return start, start + len(code[start:at].rstrip())


def operand_before(code: str, end: int, ends: frozenset[str]) -> Span:
    """The operand that ends at `end`, back to one of `ends` or an opening bracket."""
    while code[end - 1] == " ":
        end -= 1
    depth, at = 0, end
    while at > 0:
        before = code[at - 1]
        if before in CLOSING:
            depth += 1
        elif before in OPENING:
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and before in ends and not (before == ":" and "::" in code[at - 2 : at + 1]):
            break
        at -= 1
    while code[at] in " \n":
        at += 1
    return at + len("return ") * code.startswith("return ", at), end


def closing_of(code: str, opening: int) -> int:
    """The position of the bracket that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] in OPENING) - (code[at] in CLOSING)
        if depth == 0:
            return at
    raise ValueError(f"position {opening}: never closed")


def arguments(code: str, opening: int) -> list[Span]:
    """The arguments between the bracket at `opening` and the one that closes it."""
    end = closing_of(code, opening)
    found, at = [], opening + 1
    while at < end:
        span = operand_after(code, at, frozenset(","))
        found.append(span)
        at = code.find(",", span[1], end) + 1 or end
    return found


def opening_of(code: str, position: int) -> int | None:
    """The brace of the innermost block around `position`; None outside of any."""
    depth = 0
    for at in range(position - 1, -1, -1):
        depth += (code[at] == "}") - (code[at] == "{")
        if depth < 0:
            return at
    return None


def statements(code: str, opening: int) -> list[Span]:
    """The statements of the block whose brace is at `opening`; a loop or a branch is one."""
    end, at = closing_of(code, opening), opening + 1
    found: list[Span] = []
    while True:
        while at < end and code[at].isspace():
            at += 1
        if at >= end:
            return found
        stop = _end_of_statement(code, at)
        found.append((at, stop))
        at = stop


def _end_of_statement(code: str, start: int) -> int:
    at = start
    while code[at] != ";":
        if code[at] == "{" and not code[start:at].rstrip().endswith("="):
            return _after_else(code, closing_of(code, at) + 1)
        at = closing_of(code, at) + 1 if code[at] in OPENING else at + 1
    return _after_else(code, at + 1)


def _after_else(code: str, at: int) -> int:
    follows = re.match(r"\s*else\b", code[at:])
    return _end_of_statement(code, at + follows.end()) if follows else at


def is_body(code: str, opening: int) -> bool:
    """Whether the block at `opening` is a function's body, and no loop's or branch's."""
    return opening_of(code, opening) is None or _head(code, opening).startswith("extern")


def _head(code: str, opening: int) -> str:
    return re.split(r"[;{}]", code[:opening])[-1].strip()


def places_before(code: str, statement: Span) -> Iterator[int]:
    """Where `statement` may move up to, from the nearest on: over one more statement each, and out of its blocks."""
    start = statement[0]
    while (opening := opening_of(code, start)) is not None:
        before = [span for span in statements(code, opening) if span[1] <= start]
        for span in reversed(before):
            yield span[0]
        if is_body(code, opening):
            return
        start = _whole_statement(code, opening)[0]
        yield start


def places_after(code: str, statement: Span) -> Iterator[int]:
    """Where `statement` may move down to, likewise."""
    end = statement[1]
    while (opening := opening_of(code, end)) is not None:
        for span in statements(code, opening):
            if span[0] >= end:
                yield span[1]
        if is_body(code, opening):
            return
        end = _whole_statement(code, opening)[1]
        yield end


def _whole_statement(code: str, opening: int) -> Span:
    """The loop or branch whose block is at `opening`."""
    outer = opening_of(code, opening)
    assert outer is not None
    return next(span for span in statements(code, outer) if span[0] <= opening < span[1])
