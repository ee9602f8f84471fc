"""Where the names of points go in a plot, so that at the narrowest width no two cover each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.report.html import Html
from tilewright.report.svg import PLOT_PX, words

NARROWEST_PX = 245
CHARACTER_PX, LINE_PX, POINT_PX, STROKE_PX = 7.0, 13.0, 8.0, 2.0
STEPS = 60
"""Places along a line at which it is kept free."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that both cover, in square pixels."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0.0) * max(down, 0.0)


@dataclass(frozen=True, slots=True)
class Named:
    """A point at a place in per cent, from the upper left, with its name."""

    name: str
    x: float
    y: float


PLACES = (
    (9, 4, "start"),
    (-9, 4, "end"),
    (0, -9, "middle"),
    (0, 18, "middle"),
    (9, -8, "start"),
    (-9, -8, "end"),
    (9, 16, "start"),
    (-9, 16, "end"),
    (9, -20, "start"),
    (9, 28, "start"),
    (-9, -20, "end"),
    (-9, 28, "end"),
    (0, -24, "middle"),
    (0, 33, "middle"),
)
"""Offsets in pixels and anchors, the best first."""


Segment = tuple[float, float, float, float]
"""A line from one place to another, x and y of each in per cent from the upper left."""


def placed(points: Sequence[Named], lines: Sequence[Segment] = (), height_px: int = PLOT_PX) -> list[Html]:
    """The names, each at the first of PLACES that covers least of points, other names and `lines`.

    From right to left, since most names go to the right of their points.
    """
    points = sorted(gathered(points, height_px), key=lambda point: -point.x)
    taken = [_box(_pixels(point, height_px), POINT_PX, POINT_PX) for point in points]
    taken += [box for each in lines for box in _along(each, height_px)]
    texts = []
    for point in points:
        box, (dx, dy, anchor) = _free(point, taken, height_px)
        taken.append(box)
        texts.append(words(point.name, point.x, point.y, "label", dx=dx, dy=dy, anchor=anchor))
    return texts


def gathered(points: Sequence[Named], height_px: int = PLOT_PX) -> list[Named]:
    """Points that lie on one another become one, with the names of all."""
    groups: list[Named] = []
    for point in points:
        around = _box(_pixels(point, height_px), POINT_PX / 2, POINT_PX / 2)
        for index, group in enumerate(groups):
            if around.overlap(_box(_pixels(group, height_px), POINT_PX / 2, POINT_PX / 2)):
                groups[index] = Named(f"{group.name}, {point.name}", group.x, group.y)
                break
        else:
            groups.append(point)
    return groups


def _free(point: Named, taken: Sequence[Box], height_px: int) -> tuple[Box, tuple[float, float, str]]:
    boxes = [(_text_box(point, place, height_px), place) for place in PLACES]
    inside = [each for each in boxes if each[0].left >= -4 and each[0].right <= NARROWEST_PX + 4 and each[0].top >= 0]
    return min(inside or boxes, key=lambda each: sum(each[0].overlap(other) for other in taken))


def _text_box(point: Named, place: tuple[float, float, str], height_px: int) -> Box:
    dx, dy, anchor = place
    x, y = _pixels(point, height_px)
    width = len(point.name) * CHARACTER_PX
    left = x + dx - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return Box(left, y + dy + 2 - LINE_PX, left + width, y + dy + 2)


def _box(centre: tuple[float, float], width: float, height: float) -> Box:
    x, y = centre
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _along(segment: Segment, height_px: int) -> list[Box]:
    x1, y1, x2, y2 = segment
    shares = [step / (STEPS - 1) for step in range(STEPS)]
    places = [Named("", x1 + (x2 - x1) * share, y1 + (y2 - y1) * share) for share in shares]
    return [_box(_pixels(place, height_px), STROKE_PX, STROKE_PX) for place in places]


def _pixels(point: Named, height_px: int) -> tuple[float, float]:
    return point.x / 100 * NARROWEST_PX, point.y / 100 * height_px
