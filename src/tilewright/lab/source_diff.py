"""Two kernel texts side by side: hunks of lines, lines of tokens, each token marked where it differs.

Owns the comparison of texts and the little that colouring needs to know of CUDA C++. It prints nothing.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["comment", "directive", "string", "keyword", "number", "other"]

_TOKEN = re.compile(
    r"""(?P<comment>//.*)
    |(?P<directive>\#\s*\w+)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<keyword>\b(?:auto|bool|break|case|const|constexpr|continue|do|else|enum|extern|false|float|for|if|inline|int|
        long|namespace|return|short|sizeof|static|static_assert|static_cast|struct|switch|template|true|typename|
        unsigned|using|void|while|__device__|__forceinline__|__global__|__grid_constant__|__launch_bounds__|__shared__|
        __align__|__syncthreads)\b)
    |(?P<number>\b(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)[a-zA-Z]*\b)
    |(?P<other>\w+|\s+|.)""",
    re.VERBOSE,
)
_SIMILAR = 0.5
"""The share of two lines' tokens that must agree for one to count as the other changed."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a line; `changed` where its counterpart in the other text is something else."""

    text: str
    kind: Kind
    changed: bool = False


Line = tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring lines that both texts share, or that differ; line numbers start at 1."""

    same: bool
    left_start: int
    left: tuple[Line, ...]
    right_start: int
    right: tuple[Line, ...]


def tokens(line: str) -> Line:
    """The tokens of one line; together they are the line."""
    return tuple(Token(match[0], match.lastgroup or "other") for match in _TOKEN.finditer(line))  # type: ignore[arg-type]


def hunks(left: str, right: str) -> list[Hunk]:
    """The two texts as hunks that alternate between same and different."""
    left_lines, right_lines = left.splitlines(), right.splitlines()
    matcher = difflib.SequenceMatcher(_blank, left_lines, right_lines, autojunk=False)
    found = []
    for kind, i0, i1, j0, j1 in matcher.get_opcodes():
        ours, theirs = [tokens(line) for line in left_lines[i0:i1]], [tokens(line) for line in right_lines[j0:j1]]
        if kind == "replace":
            ours, theirs = _marked(ours, theirs)
        found.append(Hunk(kind == "equal", i0 + 1, tuple(ours), j0 + 1, tuple(theirs)))
    return found


def _marked(left: list[Line], right: list[Line]) -> tuple[list[Line], list[Line]]:
    """Lines of a changed hunk with the tokens marked that differ between lines at the same place."""
    left, right = list(left), list(right)
    for at, (ours, theirs) in enumerate(zip(left, right, strict=False)):
        matcher = difflib.SequenceMatcher(_blank, [t.text for t in ours], [t.text for t in theirs], autojunk=False)
        blocks = matcher.get_matching_blocks()
        shared = sum(not _blank(t.text) for block in blocks for t in ours[block.a : block.a + block.size])
        if 2 * shared >= _SIMILAR * sum(not _blank(t.text) for t in (*ours, *theirs)):
            left[at] = _mark(ours, (i for block in blocks for i in range(block.a, block.a + block.size)))
            right[at] = _mark(theirs, (i for block in blocks for i in range(block.b, block.b + block.size)))
    return left, right


def _blank(text: str) -> bool:
    """Whether nothing is there to see: such lines and tokens don't make two places the same."""
    return not text.strip()


def _mark(line: Sequence[Token], same: Iterator[int]) -> Line:
    kept = set(same)
    return tuple(token if i in kept else replace(token, changed=True) for i, token in enumerate(line))
