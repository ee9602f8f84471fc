"""Inline SVG that fits any width without scaling its text: places are per cent of the plot, sizes are pixels.

Owns scales, axes and the shapes of marks; colours, hatching and fonts are the style sheet's. Everything drawn has a
title and a description for those who don't see it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.report.html import Html, tag

PLOT_PX = 280
NICE_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
SHAPES = {
    "circle": "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0Z",
    "diamond": "M0-6.5L6.5 0L0 6.5L-6.5 0Z",
    "star": "M0-8L2.1-2.6L7.6-2.5L3.2 1L4.7 6.5L0 3.3L-4.7 6.5L-3.2 1L-7.6-2.5L-2.1-2.6Z",
    "up": "M0-6L6 5H-6Z",
    "down": "M0 6L6-5H-6Z",
    "cross": "M-5-3.5L-3.5-5L0-1.5L3.5-5L5-3.5L1.5 0L5 3.5L3.5 5L0 1.5L-3.5 5L-5 3.5L-1.5 0Z",
    "bar": "M-1.5-7H1.5V7H-1.5Z",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of values on one axis; `log` for equal ratios at equal distances."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value lies, 0 to 100 from low to high."""
        if self.log:
            return 100 * math.log(value / self.low) / math.log(self.high / self.low)
        return 100 * (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Round values within the range, at most `most` of them on a linear scale."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            return [10.0**d for d in decades if self.low <= 10.0**d <= self.high]
        step = next(s for s in _steps((self.high - self.low) / most) if (self.high - self.low) / s <= most)
        first = math.ceil(self.low / step - 1e-9)
        return [step * n for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _steps(least: float) -> Iterable[float]:
    decade = 10.0 ** math.floor(math.log10(least))
    return [decade * step for step in (*NICE_STEPS, 20.0)]


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale with what it measures; `unit` follows the number of every tick."""

    scale: Scale
    title: str
    unit: str = ""
    most_ticks: int = 5


def percent_of(value: float) -> str:
    """A place as SVG spells it."""
    return f"{value:.2f}%"


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """A straight line between two places."""
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    return tag("line", class_=class_, **{name: percent_of(value) for name, value in ends.items()})


def rect(x: float, y: float, width: float, height: float, class_: str) -> Html:
    """A rectangle from its upper left corner."""
    sides = {"x": x, "y": y, "width": width, "height": height}
    return tag("rect", class_=class_, **{name: percent_of(value) for name, value in sides.items()})


def mark(shape: str, x: float, y: float, class_: str, told: str = "") -> Html:
    """One of SHAPES at a place; `told` is shown where the pointer rests."""
    title = [tag("title", told)] if told else []
    return tag("use", *title, href=f"#mark-{shape}", x=percent_of(x), y=percent_of(y), class_=class_)


def words(text: str, x: float, y: float, class_: str, *, dx: float = 0, dy: float = 0, anchor: str = "start") -> Html:
    """A line of text, set off from its place by pixels."""
    place = {"x": percent_of(x), "y": percent_of(y)}
    return tag("text", text, **place, dx=dx, dy=dy, text_anchor=anchor, class_=class_)


def dots(places: Iterable[tuple[float, float]], class_: str) -> Html:
    """Many round dots as one path; their size is the stroke's width."""
    path = "".join(f"M{x:.5g} {y:.5g}h0" for x, y in places)
    return stretched(tag("path", d=path, class_=f"dots {class_}"))


def stretched(content: Html) -> Html:
    """Content drawn in a square of 100 that is stretched over the plot; strokes keep their widths."""
    whole = {"width": "100%", "height": "100%", "overflow": "visible"}
    return tag("svg", content, viewBox="0 0 100 100", preserveAspectRatio="none", **whole)


def image(ident: str, title: str, description: str, height_px: int, *content: Html) -> Html:
    """An SVG as wide as its surroundings."""
    return tag(
        "svg",
        tag("title", title, id=f"{ident}-title"),
        tag("desc", description, id=f"{ident}-desc"),
        *content,
        role="img",
        aria_labelledby=f"{ident}-title {ident}-desc",
        width="100%",
        height=height_px,
        class_="image",
    )


def plot(
    ident: str,
    title: str,
    description: str,
    axes: tuple[Axis, Axis],
    content: Sequence[Html],
    height_px: int = PLOT_PX,
) -> Html:
    """A framed plot with horizontal and vertical axis; the style sheet gives it room for their labels."""
    x, y = axes
    across = [(x.scale.at(tick), f"{tick:g}{x.unit}") for tick in x.scale.ticks(x.most_ticks)]
    up = [(100 - y.scale.at(tick), f"{tick:g}{y.unit}") for tick in y.scale.ticks(y.most_ticks)]
    grid = [line(at, 0, at, 100, "grid") for at, _ in across] + [line(0, at, 100, at, "grid") for at, _ in up]
    labels = [
        *(words(text, at, 100, "tick", dy=16, anchor="middle") for at, text in across),
        *(words(text, 0, at, "tick", dx=-6, dy=4, anchor="end") for at, text in up),
        words(x.title, 50, 100, "axis", dy=34, anchor="middle"),
        words(y.title, 0, 0, "axis", dx=-38, dy=-12),
    ]
    frame = rect(0, 0, 100, 100, "frame")
    drawn = image(ident, title, description, height_px, *grid, frame, *content, *labels)
    return tag("div", drawn, class_="plot")


def definitions() -> Html:
    """The marks and hatches that every image of the page refers to."""
    marks = [tag("path", id=f"mark-{name}", d=path) for name, path in SHAPES.items()]
    hatches = [
        tag(
            "pattern",
            tag("path", d="M0 0V7", class_="hatching"),
            id=f"hatch-{name}",
            width="5",
            height="7",
            patternUnits="userSpaceOnUse",
            patternTransform=f"rotate({turned})",
        )
        for name, turned in (("rising", "45"), ("falling", "-45"))
    ]
    return tag("svg", tag("defs", *marks, *hatches), width="0", height="0", class_="definitions", aria_hidden="true")
