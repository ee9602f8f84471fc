"""What the checks of a traced launch found, in words.

Owns the wording: which array and index, which lines and threads, and for a race the order that is missing. What is a
finding is the tracing runner's (`runtime/trace/checker.hpp`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tilewright.emulator.trace import KINDS, SPACES, Finding

Json = dict[str, Any]
Index = tuple[int, int, int]
FLAWS = ("race", "uninitialised", "misaligned", "out_of_bounds", "padding", "index", "proxy")
NOTHING_FOUND = "no race, unfenced store, uninitialised read or misplaced access"
WARP, WARPGROUP = 32, 128
VERBS = {
    "load": "reads",
    "store": "writes",
    "copy load": "copies from",
    "copy store": "copies to",
    "atomic load": "atomically reads",
    "atomic": "atomically updates",
    "matrix load": "reads",
    "matrix store": "writes",
    "mbarrier init": "initialises",
    "mbarrier use": "uses",
    "TMA load": "reads",
    "TMA fill": "writes",
    "TMA count": "counts its bytes in",
    "TMA read": "reads",
    "TMA store": "writes",
    "wgmma read": "reads",
}
ASYNC_PROXY = {
    "TMA load": ("load", "mbarrier_wait"),
    "TMA fill": ("load", "mbarrier_wait"),
    "TMA count": ("load", "mbarrier_wait"),
    "TMA read": ("store", "tma_wait_read"),
    "TMA store": ("store", "tma_wait"),
    "wgmma read": ("product", "wgmma_wait"),
}
"""What makes an access of the asynchronous proxy, and the wait that ends it."""
UNTYPED = ("TMA", "wgmma", "mbarrier")
"""Begin the kinds of access whose place is told as a byte."""


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
        where = f"{self._actor(now)} of CTA {self._cta(now)} at {self._line_of(now['site'])}"
        if "type" in one:
            return f"index {one['index']} is beyond its dimension, of {name}: {where}"
        _, nbytes = self._array_of(one["space"], one["array"])
        element_bytes = min(one["bytes"], 4)
        element = f"{name}[{one['offset'] // element_bytes}]"
        if any(KINDS[one[deed]["kind"]].startswith(UNTYPED) for deed in ("before", "now") if deed in one):
            element = f"byte {one['offset']} of {name}"
        verb = VERBS[KINDS[now["kind"]]]
        match FLAWS[one["flaw"]]:
            case "race":
                return self._pair("race", one, element, self._missing_order(one))
            case "proxy":
                return self._pair("unfenced store", one, element, self._missing_fence(one))
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

    def _pair(self, what: str, one: Json, element: str, missing: str) -> str:
        before, now = one["before"], one["now"]
        cta = f" in CTA {self._cta(now)}" if before["cta"] == now["cta"] else ""
        return f"{what} on {element}{cta}: {self._side(before)}, {self._side(now)}, {missing}"

    def _side(self, deed: Json) -> str:
        kind = KINDS[deed["kind"]]
        copy = "a copy of " if kind.startswith("copy") else ""
        return f"{copy}{self._actor(deed)} {VERBS[kind]} it at {self._line_of(deed['site'])}"

    def _missing_order(self, one: Json) -> str:
        """The order that is missing between the two sides of a race."""
        before, now = one["before"], one["now"]
        kind = KINDS[before["kind"]]
        if before["cta"] != now["cta"]:
            return f"in CTA {self._cta(before)} and CTA {self._cta(now)}, and CTAs have no order"
        if kind in ASYNC_PROXY:
            what, wait = ASYNC_PROXY[kind]
            if not one["waited"]:
                return f"and no {wait} for the {what} between"
            return f"and no barrier or mbarrier_wait between the {what}'s {wait} and this"
        if kind.startswith("copy"):
            if before["thread"] == now["thread"]:
                return "and no cp_async_wait for the copy between"
            if not one["waited"]:
                return "and neither a cp_async_wait by the copy's thread nor a barrier after it between"
            return "and no barrier between the copy's cp_async_wait and this"
        if KINDS[now["kind"]] in ASYNC_PROXY:
            return "and no barrier or mbarrier_wait between"
        if before["thread"] // WARP == now["thread"] // WARP:
            return "and no barrier between (lanes of one warp, which need not run in step)"
        return "and no barrier between"

    def _missing_fence(self, one: Json) -> str:
        """How the second side, which the asynchronous proxy makes, would see the first."""
        if SPACES[one["space"]] == "global":
            return "and fence_proxy_async covers shared memory only: TMA takes what was stored before the launch"
        if KINDS[one["before"]["kind"]] == "mbarrier init":
            return "and no fence_mbarrier_init on the way: call it after mbarrier_init and before the barrier"
        return "and no fence_proxy_async on the way: call it after the store and before the barrier"

    def _actor(self, deed: Json) -> str:
        kind = KINDS[deed["kind"]]
        if kind not in ASYNC_PROXY:
            return self._thread(deed)
        if kind == "wgmma read":
            return f"wgmma of warpgroup {deed['thread'] // WARPGROUP}"
        return f"a TMA {ASYNC_PROXY[kind][0]} of {self._thread(deed)}"

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
