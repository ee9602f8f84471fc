"""What the checks of a traced launch found, in words.

Owns the wording: which array and index, which lines and threads, and for a race the order that is missing. What is a
finding is the tracing runner's (`runtime/trace/checker.hpp`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tilewright.emulator.trace import KINDS, Finding

Json = dict[str, Any]
Index = tuple[int, int, int]
FLAWS = ("race", "uninitialised", "misaligned", "out_of_bounds", "padding", "index")
WARP = 32
VERBS = {
    "load": "reads",
    "store": "writes",
    "copy load": "copies from",
    "copy store": "copies to",
    "atomic load": "atomically reads",
    "atomic": "atomically updates",
    "matrix load": "reads",
}


class Wording:
    """Words for the findings of one launch.

    `line_of` gives a site's source line, `array_of` an array's name, size in bytes and shape in words.
    """

    def __init__(
        self, grid: Index, block: Index, line_of: Callable[[int], str], array_of: Callable[[int, int], tuple[str, int]]
    ) -> None:
        self._grid, self._block = grid, block
        self._line_of, self._array_of = line_of, array_of

    def findings(self, told: Iterable[Json]) -> tuple[Finding, ...]:
        """Each finding once for the same flaw, lines, array and kinds of access, in the order they were found.

        An index whose line accesses memory outside its array is told by that.
        """
        made: dict[tuple[object, ...], Finding] = {}
        for one in told:
            deeds = [one[name] for name in ("before", "now") if name in one]
            lines = tuple(self._line_of(deed["site"]) for deed in deeds)
            name = _spelt(one["type"]) if "type" in one else self._array_of(one["space"], one["array"])[0]
            key = (one["flaw"], lines, name, *(deed["kind"] for deed in deeds))
            if key not in made:
                made[key] = Finding(FLAWS[one["flaw"]], name, lines, self._text(one, name))
        outside = {finding.lines for finding in made.values() if finding.flaw == "out_of_bounds"}
        return tuple(finding for finding in made.values() if finding.flaw != "index" or finding.lines not in outside)

    def _text(self, one: Json, name: str) -> str:
        now = one["now"]
        where = f"{self._thread(now)} of CTA {self._cta(now)} at {self._line_of(now['site'])}"
        if "type" in one:
            return f"index {one['index']} is beyond its dimension, of {name}: {where}"
        _, nbytes = self._array_of(one["space"], one["array"])
        element_bytes = min(one["bytes"], 4)
        element = f"{name}[{one['offset'] // element_bytes}]"
        verb = VERBS[KINDS[now["kind"]]]
        match FLAWS[one["flaw"]]:
            case "race":
                return self._race(one, element)
            case "uninitialised":
                return f"{verb} {element}, which nobody has written: {where}"
            case "misaligned":
                what = f"misaligned {one['bytes']}-byte access, {verb} {name} at byte offset {one['offset']}"
                return f"{what}: {where}; the address must be a multiple of {one['bytes']}, or a GPU faults"
            case "padding":
                return f"{verb} {element}, which lies in the padding between the rows of {name}: {where}"
        side = "before the start" if one["offset"] < 0 else "past the end"
        return (
            f"{verb} {side} of {name}: byte offset {one['offset']} (element {one['offset'] // element_bytes}) "
            f"of {nbytes} bytes: {where}"
        )

    def _race(self, one: Json, element: str) -> str:
        before, now = one["before"], one["now"]
        cta = f" in CTA {self._cta(now)}" if before["cta"] == now["cta"] else ""
        return f"race on {element}{cta}: {self._side(before)}, {self._side(now)}, {self._missing(one)}"

    def _side(self, deed: Json) -> str:
        kind = KINDS[deed["kind"]]
        actor = f"{'a copy of ' if kind.startswith('copy') else ''}{self._thread(deed)}"
        return f"{actor} {VERBS[kind]} it at {self._line_of(deed['site'])}"

    def _missing(self, one: Json) -> str:
        """The order that is missing between the two sides of a race."""
        before, now = one["before"], one["now"]
        if before["cta"] != now["cta"]:
            return f"in CTA {self._cta(before)} and CTA {self._cta(now)}, and CTAs have no order"
        if KINDS[before["kind"]].startswith("copy"):
            if before["thread"] == now["thread"]:
                return "and no cp_async_wait for the copy between"
            if not one["waited"]:
                return "and neither a cp_async_wait by the copy's thread nor a barrier after it between"
            return "and no barrier between the copy's cp_async_wait and this"
        if before["thread"] // WARP == now["thread"] // WARP:
            return "and no barrier between (lanes of one warp, which need not run in step)"
        return "and no barrier between"

    def _thread(self, deed: Json) -> str:
        return f"thread {_index(deed['thread'], self._block)}"

    def _cta(self, deed: Json) -> str:
        return _index(deed["cta"], self._grid)


def _spelt(array_type: str) -> str:
    """`float[8]`, from `'float [8]'` or `'Element[8]' (aka 'float[8]')`."""
    return array_type.rstrip("')").rpartition("'")[2].replace(" [", "[")


def _index(linear: int, sizes: Index) -> str:
    row = linear // sizes[0]
    return f"({linear % sizes[0]},{row % sizes[1]},{row // sizes[1]})"
