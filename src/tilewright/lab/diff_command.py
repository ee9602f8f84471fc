"""`tilewright diff` in a terminal: the texts as one unified difference, then the facts side by side."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from tilewright.lab.diffing import Comparison, Fact
from tilewright.lab.output import print_json, standard_output
from tilewright.lab.source_diff import Hunk, Line
from tilewright.record import Record, environment

CONTEXT = 3
STYLES = {
    "comment": "dim italic",
    "directive": "magenta",
    "string": "yellow",
    "keyword": "blue",
    "number": "cyan",
    "other": "",
}


def show(comparison: Comparison, *, as_json: bool) -> int:
    """Print a comparison, or its two rows as JSON. Returns the exit status."""
    if as_json:
        rows = [comparison.left.row, comparison.right.row]
        print_json(Record(command="diff", environment=environment(arch=comparison.arch.name), rows=rows).to_json())
        return 0
    console = standard_output()
    title = f"tilewright diff  {comparison.left.title} → {comparison.right.title}"
    console.print(Text(f"{title}, {comparison.problem}, {comparison.arch.name}", style="bold"), soft_wrap=True)
    for side in (comparison.left, comparison.right):
        console.print(Text(f"  {side.letter}  {side.config.rung.summary}", style="dim"), soft_wrap=True)
    _print_source(console, comparison)
    _print_facts(console, comparison)
    return 0


def _print_source(console: Console, comparison: Comparison) -> None:
    console.print("\nsource", style="cyan")
    if comparison.one_text:
        console.print("  one text for both: only the parameters below differ", style="dim")
        return
    last = len(comparison.hunks) - 1
    for index, hunk in enumerate(comparison.hunks):
        lines = _shared(hunk, first=index == 0, last=index == last) if hunk.same else _differing(hunk)
        for line in lines:
            console.print(line, soft_wrap=True)


def _shared(hunk: Hunk, *, first: bool, last: bool) -> Iterator[Text]:
    """The lines around a difference, and how many lie between."""
    count = len(hunk.left)
    head, tail = (0 if first else CONTEXT), (0 if last else CONTEXT)
    skipped = count - head - tail
    for at, line in enumerate(hunk.left):
        if at < head or at >= count - tail or skipped <= 1:
            yield _numbered(hunk.left_start + at, hunk.right_start + at, " ", line)
        elif at == head:
            yield Text(f"            ⋯ {skipped} lines the same", style="dim")


def _differing(hunk: Hunk) -> Iterator[Text]:
    for at, line in enumerate(hunk.left):
        yield _numbered(hunk.left_start + at, None, "-", line)
    for at, line in enumerate(hunk.right):
        yield _numbered(None, hunk.right_start + at, "+", line)


def _numbered(left: int | None, right: int | None, sign: str, line: Line) -> Text:
    numbers = "".join(f"{'' if number is None else number:>4}" for number in (left, right))
    colour = {"-": "red", "+": "green"}.get(sign, "")
    text = Text.assemble((f"  {numbers} ", "dim"), (f"{sign} ", colour))
    for token in line:
        style = f"bold underline {colour}" if token.changed and token.text.strip() else STYLES[token.kind]
        text.append(token.text, style)
    text.rstrip()
    return text


def _print_facts(console: Console, comparison: Comparison) -> None:
    left, right = comparison.left.title, comparison.right.title
    facts = [fact for group in comparison.groups for fact in group.facts]
    name_width = max(len(fact.name) for fact in facts) + 2
    widths = (
        max(len(left), *(len(fact.left) for fact in facts)),
        max(len(right), *(len(fact.right) for fact in facts)),
    )
    heading = f"\n{'':{name_width}}  {left:>{widths[0]}}  {right:>{widths[1]}}  {'B/A':>7}"
    console.print(Text(heading, style="bold"), soft_wrap=True)
    for group in comparison.groups:
        note = f"  {group.note}" if group.note else ""
        console.print(Text.assemble((group.title, "cyan"), (note, "dim")), soft_wrap=True)
        for fact in group.facts:
            console.print(_fact_line(fact, name_width, widths), soft_wrap=True)


def _fact_line(fact: Fact, name_width: int, widths: tuple[int, int]) -> Text:
    values = f"{fact.left:>{widths[0]}}  {fact.right:>{widths[1]}}  {fact.factor:>7}".rstrip()
    return Text(f"  {fact.name:<{name_width}}{values}", style="" if fact.differs else "dim")
