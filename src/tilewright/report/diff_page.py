"""A comparison of two configs as one page.

Facts in panels, then the texts in two columns; on a narrow screen one below the other, hunk by hunk. Compares nothing.
"""

from __future__ import annotations

from tilewright.lab.diffing import Comparison, Side
from tilewright.lab.source_diff import Hunk, Line
from tilewright.report.html import escaped, page, table

FOLDED_FROM, CONTEXT = 12, 3
STYLE = """
.source { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; font-size: 12.5px; }
.hunk { display: grid; grid-template-columns: 1fr 1fr; } .hunk > div { min-width: 0; padding: 0 .4rem 0 0; }
.hunk > div + div { border-left: 1px solid var(--line); }
.row { display: grid; grid-template-columns: 3.2em 1fr; }
.row i { color: var(--dim); font-style: normal; text-align: right; padding-right: .8em; user-select: none; }
.row code { font: inherit; white-space: pre-wrap; overflow-wrap: anywhere; min-width: 0; }
.changed > .old:not(:empty) { background: var(--old); } .changed > .new:not(:empty) { background: var(--new); }
.old mark { background: var(--old-mark); color: inherit; } .new mark { background: var(--new-mark); color: inherit; }
.comment { color: var(--comment); font-style: italic; } .keyword { color: var(--keyword); }
.number { color: var(--number); } .string { color: var(--string); } .directive { color: var(--directive); }
summary { color: var(--dim); cursor: pointer; padding: .2rem .8rem; background: var(--panel); }
@media (max-width: 900px) { .hunk { grid-template-columns: 1fr; } .same > .new { display: none; }
  .hunk > div + div { border-left: 0; } .row { grid-template-columns: 2.6em 1fr; } }
"""


def diff_page(comparison: Comparison) -> str:
    """The page as text."""
    left, right = comparison.left, comparison.right
    title = f"{left.title} → {right.title}"
    panels = "".join(f'<div class="panel">{_facts(comparison, index)}</div>' for index in range(len(comparison.groups)))
    body = (
        f"<h1>{escaped(title)}</h1>"
        f'<p class="dim">{escaped(f"{comparison.problem}, {comparison.arch.name}; written by tilewright diff")}</p>'
        f'<div class="panels">{_side(left)}{_side(right)}</div>'
        f'<h2>Facts</h2><div class="panels">{panels}</div>'
        f"<h2>Source</h2>{_source(comparison)}"
    )
    return page(title, STYLE, body)


def _side(side: Side) -> str:
    return (
        f'<div class="panel"><p><b>{escaped(side.title)}</b></p><p>{escaped(side.config.rung.summary)}</p>'
        f'<p class="dim">{escaped(str(side.config))}</p></div>'
    )


def _facts(comparison: Comparison, index: int) -> str:
    group = comparison.groups[index]
    rows = [("" if f.differs else "same", (f.name, f.left, f.right, f.factor)) for f in group.facts]
    return table(group.title, group.note, ("", "A", "B", "B/A") if rows else (), rows)


def _source(comparison: Comparison) -> str:
    note = '<p class="dim">One text for both: only the parameters differ.</p>' if comparison.one_text else ""
    last = len(comparison.hunks) - 1
    parts = (
        _shared(hunk, first=at == 0, last=at == last) if hunk.same else _hunk(hunk, "changed")
        for at, hunk in enumerate(comparison.hunks)
    )
    return f'{note}<div class="source">{"".join(parts)}</div>'


def _shared(hunk: Hunk, *, first: bool, last: bool) -> str:
    """Shared lines; of many, those far from any difference are folded away."""
    count = len(hunk.left)
    head, tail = (0 if first else CONTEXT), (0 if last else CONTEXT)
    if count < FOLDED_FROM:
        return _hunk(hunk, "same")
    folded = _hunk(_part(hunk, head, count - tail), "same")
    summary = f"{count - head - tail} lines the same"
    return (
        f"{_hunk(_part(hunk, 0, head), 'same')}<details><summary>{summary}</summary>{folded}</details>"
        f"{_hunk(_part(hunk, count - tail, count), 'same')}"
    )


def _part(hunk: Hunk, start: int, stop: int) -> Hunk:
    return Hunk(True, hunk.left_start + start, hunk.left[start:stop], hunk.right_start + start, hunk.right[start:stop])


def _hunk(hunk: Hunk, kind: str) -> str:
    old = "".join(_row(hunk.left_start + at, line) for at, line in enumerate(hunk.left))
    new = "".join(_row(hunk.right_start + at, line) for at, line in enumerate(hunk.right))
    return f'<div class="hunk {kind}"><div class="old">{old}</div><div class="new">{new}</div></div>'


def _row(number: int, line: Line) -> str:
    code = "".join(_token(token.text, token.kind, changed=token.changed) for token in line)
    return f'<div class="row"><i>{number}</i><code>{code}</code></div>'


def _token(text: str, kind: str, *, changed: bool) -> str:
    shown = escaped(text)
    if kind != "other":
        shown = f'<span class="{kind}">{shown}</span>'
    return f"<mark>{shown}</mark>" if changed else shown
