"""Arms against their reference: each one's interval to scale around no difference, with the word for it."""

from __future__ import annotations

import math
from typing import Any

from tilewright.measure.verdict import EQUIVALENCE
from tilewright.record import Ratio, Row
from tilewright.report.html import Html, tag
from tilewright.report.parts import failed, full, time
from tilewright.report.reading import Source
from tilewright.report.svg import Scale, line, mark, rect

LEAST_RANGE = 0.015
SHAPES = {"faster": "up", "slower": "down", "equivalent": "diamond", "inconclusive": "circle"}


def intervals(source: Source) -> Html:
    """All arms of a record on one scale."""
    ratios = [row.ratio_to_reference for row in source.record.rows if row.ratio_to_reference is not None]
    if not ratios:
        return tag("p", "No arm of this record was timed against a reference.")
    most = max(LEAST_RANGE, *(abs(math.log(end)) for ratio in ratios for end in (ratio.low, ratio.high)))
    scale = Scale(math.exp(-most * 1.08), math.exp(most * 1.08), log=True)
    reference = (source.record.about or {}).get("reference")
    told = told_arms(source)
    shown = [row for row in source.record.rows if row.time_us is not None or row.failure is not None]
    arms = [_arm(row, scale, reference, told.get(full(row), {}).get("against")) for row in shown]
    ends = tag(
        "p", tag("span", f"← slower ×{scale.low:.3g}"), tag("span", f"faster ×{scale.high:.3g} →"), class_="ends"
    )
    return tag("figure", tag("ol", *arms, class_="bars arms"), ends, class_="arms-figure")


def _arm(row: Row, scale: Scale, reference: str | None, against: str | None) -> Html:
    if row.failure is not None:
        return failed(row)
    is_reference = reference is not None and reference in (row.arm, row.rung)
    return tag(
        "li",
        tag("span", full(row), class_="name"),
        _drawn(row, scale),
        tag("span", time(row), class_="time"),
        tag("span", "the reference" if is_reference else _said(row, reference, against), class_="share"),
        class_="best" if is_reference else None,
    )


def _said(row: Row, reference: str | None, against: str | None) -> str:
    """The ratio and its word; with what it was compared, where that is not the reference of all."""
    if row.ratio_to_reference is None:
        return "not compared"
    other = [f"(against {against})"] if against not in (None, reference) else []
    return " ".join([ratio_text(row.ratio_to_reference), row.outcome or "", *other])


def told_arms(source: Source) -> dict[str, dict[str, Any]]:
    """What the record says of its arms, by their names."""
    arms = (source.record.about or {}).get("arms", ())
    return {arm["arm"]: arm for arm in arms if isinstance(arm, dict) and "arm" in arm}


def ratio_text(ratio: Ratio) -> str:
    """A ratio of times with its interval."""
    return f"×{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def _drawn(row: Row, scale: Scale) -> Html:
    low, high = scale.at(1 - EQUIVALENCE), scale.at(1 + EQUIVALENCE)
    content = [rect(low, 0, high - low, 100, "band"), line(scale.at(1), 0, scale.at(1), 100, "at-baseline")]
    ratio = row.ratio_to_reference
    if ratio is not None:
        content.append(line(scale.at(ratio.low), 50, scale.at(ratio.high), 50, "interval"))
        shape = SHAPES.get(row.outcome or "", "cross")
        content.append(mark(shape, scale.at(ratio.median), 50, "called" if shape == "cross" else "point"))
    return tag("svg", *content, width="100%", height=20, aria_hidden="true", class_="image")
