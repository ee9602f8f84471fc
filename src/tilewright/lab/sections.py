"""The sections of a report in a terminal: a coloured title, then indented lines. Plain text where output is piped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text


def heading(console: Console, words: str, more: str = "") -> None:
    """A section's title after an empty line, with what it is about."""
    console.print(Text.assemble("\n", (words, "cyan"), (f"{': ' if more else ''}{more}", "dim")), soft_wrap=True)


def print_words(console: Console, words: str) -> None:
    """A paragraph, wrapped to the console and indented."""
    lines = textwrap.wrap(words, max(console.width - 4, 40), break_on_hyphens=False)
    console.print(Text("\n".join(f"  {line}" for line in lines)), soft_wrap=True)


def print_pairs(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Name and value, one pair a line; an empty name continues the line above."""
    for name, value in pairs:
        console.print(Text(f"  {name:<14} {value}"), soft_wrap=True)
