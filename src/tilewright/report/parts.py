"""Pieces that several sections of a report are made of: tables that fold on a phone, folded parts, names of rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tilewright.lab.outcomes import changed_settings, size_of
from tilewright.lab.render import percent
from tilewright.record import Ratio, Row
from tilewright.report.html import Html, joined, tag
from tilewright.report.reading import Source

ABSENT = "–"
NUMBER = re.compile(r"×?[\d.]+%?(\s(ms|µs|TB/s|TFLOP/s))?( \[[\d.]+, [\d.]+\])?")


def sheet(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A table that becomes a list of named values where there is no room for columns.

    The roles are spelt out because such a style takes them from the elements.
    """
    known = [tuple(cells) for cells in rows]
    sides = ["number" if all(_is_number(cells[i]) for cells in known) else None for i in range(len(headings))]
    head = [
        tag("th", h, role="columnheader", scope="col", class_=side) for h, side in zip(headings, sides, strict=True)
    ]
    body = [
        tag(
            "tr",
            *(
                tag("td", cell or ABSENT, role="cell", data_label=heading, class_=side)
                for heading, cell, side in zip(headings, cells, sides, strict=True)
            ),
            role="row",
        )
        for cells in known
    ]
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
        class_="sheet",
    )


def _is_number(cell: str) -> bool:
    return not cell or NUMBER.fullmatch(cell) is not None


def folded(summary: str, *content: str) -> Html:
    """A part that opens when asked for."""
    return tag("details", tag("summary", summary), *content)


def pairs(items: Iterable[tuple[str, str]]) -> Html:
    """Names with their values."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in items))


def section(ident: str, title: str, lead: str, *content: str) -> Html:
    """A part of the report with its heading and a paragraph that says how to read it."""
    return tag("section", tag("h2", title), tag("p", lead, class_="lead"), *content, id=ident)


def plain(value: object) -> str:
    """Any JSON value as a person reads it."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {plain(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(plain(each) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def short(row: Row) -> str:
    """The rung's name up to its technique."""
    return row.rung.partition("_")[0]


def full(row: Row) -> str:
    """The arm's name, or the rung's with the settings that are not its defaults."""
    return row.arm if row.arm is not None else _with_settings(row.rung, row)


def named(row: Row) -> str:
    """The short name with the settings that are not the rung's defaults."""
    return _with_settings(short(row), row)


def _with_settings(name: str, row: Row) -> str:
    return " ".join([name, *(f"{setting}={value}" for setting, value in changed_settings(row).items())])


def sized(row: Row) -> str:
    """The problem's size, or nothing where the row has none."""
    return size_of(row) if all(name in row.problem for name in "mnk") else ""


def spread(ratio: Ratio, *, unit: str = "%") -> str:
    """A ratio as per cent with its interval."""
    return f"{percent(ratio.median)}{unit} [{percent(ratio.low)}, {percent(ratio.high)}]"


def figure(value: float | None, form: str = "{:g}", scale: float = 1.0) -> str:
    """A number in a form, or nothing where it is not claimed."""
    return "" if value is None else form.format(value * scale)


def time(row: Row) -> str:
    """The row's time, or nothing."""
    return "" if row.time_us is None else duration(row.time_us)


def failed(row: Row) -> Html:
    """A row among bars that has no bar: what went wrong with it."""
    said = f"✗ {row.failure}: {row.verdict or 'no more is known'}"
    return tag("li", tag("span", full(row), class_="name"), tag("span", said, class_="share"), class_="failed")


def verification(row: Row) -> str:
    """Whether the row was verified, and what the checks said."""
    return {None: "", True: "✓ ", False: "✗ "}[row.verified] + (row.verdict or "")


def duration(time_us: float) -> str:
    """A time with four significant digits, since arms of one record differ by less than a per cent."""
    number, unit = (time_us / 1000, "ms") if time_us >= 999.95 else (time_us, "µs")
    return f"{number:#.4g}\u00a0{unit}".replace(".\u00a0", "\u00a0")


def heading_of(source: Source) -> str:
    """What a record is of: sizes, type and card."""
    sizes = dict.fromkeys(sized(row) for row in source.record.rows if sized(row))
    dtypes = dict.fromkeys(str(row.problem["dtype"]) for row in source.record.rows if "dtype" in row.problem)
    told = [", ".join(sizes)] if len(sizes) < 4 else [f"{len(sizes)} sizes"]
    what = " ".join([*told, *(dtype for dtype in dtypes if dtype not in told[0])])
    return f"{what} on {source.device}" if what else source.device


def taken(source: Source) -> Html:
    """The line below every figure: file, card, date, rounds and how they ended, with the way to all the rest."""
    environment = source.record.environment
    measured = environment.get("measurement", {})
    words = [source.name, source.device, str(environment.get("date", "no date"))]
    words += [str(measured[name]) for name in ("mode", "launch", "cache") if name in measured]
    if "rounds" in measured:
        words.append(f"{measured['rounds']} rounds, stopped by {measured.get('stop')}")
    if measured.get("aa_floor") is not None:
        words.append(f"A/A floor {100 * measured['aa_floor']:.2f}%")
    if measured.get("median_sm_mhz") is not None:
        words.append(f"SM clock {measured['median_sm_mhz']:.0f} MHz")
    link = tag("a", "how it was taken", href=f"#{source.ident}-taken")
    return tag("p", joined([" · ".join(words), " · ", link]), class_="taken")
