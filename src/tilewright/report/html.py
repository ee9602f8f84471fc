"""One HTML file that needs nothing else: the frame of every page, its style, and tables.

Owns escaping: `escaped` text is safe to put into a page, everything else must come through it. No script, no font, no
address outside the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from tilewright.errors import InvalidInput

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --dim: #667080; --line: #d8dee6; --panel: #f6f8fa;
  --old: #ffecec; --old-mark: #ffc4c4; --new: #e6f7ea; --new-mark: #b4e6c0;
  --keyword: #0b54b5; --number: #0a6c74; --string: #8a5a00; --directive: #8b2fa0; --comment: #667080; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --text: #dde3ea; --dim: #8b97a6; --line: #303842;
  --panel: #1b2027; --old: #38201f; --old-mark: #70302e; --new: #17301f; --new-mark: #28613a;
  --keyword: #7fb4ff; --number: #66c9d2; --string: #e0b060; --directive: #d090e6; --comment: #8b97a6; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 1400px; background: var(--back); color: var(--text);
  font: 14px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
h1 { font-size: 1.3rem; margin: 0 0 .5rem; overflow-wrap: anywhere; } h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
p { margin: .2rem 0; } .dim, caption, th { color: var(--dim); font-weight: normal; }
.panels { columns: 24rem; column-gap: 1rem; margin-top: .8rem; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .7rem;
  break-inside: avoid; margin-bottom: 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; padding-bottom: .3rem; }
caption b { color: var(--text); }
th, td { text-align: right; padding: .1rem 0 .1rem .8rem; vertical-align: top; overflow-wrap: normal; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: pre-wrap; }
tr.same td { color: var(--dim); }
@media (max-width: 700px) { body { padding: .5rem; font-size: 13px; } }
"""


def escaped(text: str) -> str:
    """`text` as HTML shows it, character for character; also inside a quoted attribute."""
    return escape(text, quote=True)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str | float | None) -> Html:
    """An element. Children that are not `Html` are escaped; an attribute that is None is left out.

    A trailing underscore avoids Python's own words (`class_`), others within a name stand for hyphens.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(child if isinstance(child, Html) else escaped(child) for child in children)
    return Html(f"<{name}{given}>{inner}</{name}>")


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def joined(parts: Iterable[str]) -> Html:
    """Parts one after the other; those that are not `Html` are escaped."""
    return Html("".join(part if isinstance(part, Html) else escaped(part) for part in parts))


def table(caption: str, note: str, headings: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table of texts; each row has a class of its own (or ''). The arguments are not HTML."""
    head = "".join(f"<th>{escaped(heading)}</th>" for heading in headings)
    body = "".join(
        f'<tr class="{escaped(kind)}">' + "".join(f"<td>{escaped(cell)}</td>" for cell in cells) + "</tr>"
        for kind, cells in rows
    )
    return (
        f"<table><caption><b>{escaped(caption)}</b> {escaped(note)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def page(title: str, style: str, body: str) -> str:
    """The whole file. `style` is added to STYLE; `body` is HTML, its texts escaped already; `title` is not HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{STYLE}{style}</style></head>\n<body>{body}</body></html>\n"
    )


def write_page(path: Path, text: str) -> None:
    """Write a page. Raises InvalidInput where the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}; name a file in a folder that can be written") from error
