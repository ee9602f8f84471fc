"""One warp instruction on shared memory as a picture: which bank serves which lane in which wavefront."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np
import numpy.typing as npt

from tilewright.emulator.banks import BANKS, WARP, Wavefront, wavefronts
from tilewright.emulator.trace import KINDS, SPACES, Trace
from tilewright.errors import InvalidInput, UnknownName

IDLE = "·"
CELL, LEFT, TOP = 26, 96, 48
HUES = 8
"""Lanes of one eighth of the warp share a colour."""


@dataclass(frozen=True, slots=True)
class BankMap:
    """`title` says which instruction; each wavefront maps banks to the lanes they serve."""

    title: str
    wavefronts: tuple[Wavefront, ...]


def bank_maps(trace: Trace, line: int) -> list[BankMap]:
    """The first warp instruction of each kind and array at a source line. Raises UnknownName where there is none."""
    events = trace.events
    if events is None:
        raise InvalidInput("a bank map needs the accesses themselves; trace with Watch(events=True)")
    shared = events[events["space"] != SPACES.index("global")]
    maps: dict[tuple[int, int, int], BankMap] = {}
    for site in sorted(site for site, place in trace.sites.items() if place.endswith(f":{line}")):
        at_site = shared[shared["site"] == site]
        if not len(at_site):
            continue
        first = at_site[at_site["instruction"] == at_site["instruction"][0]]
        key = (int(first["kind"][0]), int(first["space"][0]), int(first["array"][0]))
        if key not in maps:
            maps[key] = _map(trace, first, trace.sites[site])
    if not maps:
        lines = sorted({int(each.line) for each in trace.select(space="shared")})
        raise UnknownName(f"--line {line}: no access to shared memory there; lines with one: {lines or 'none'}")
    return list(maps.values())


def _map(trace: Trace, events: npt.NDArray[np.void], place: str) -> BankMap:
    first = events[0]
    width = int(first["width_bytes"])
    offsets = {int(event["thread"]) % WARP: int(event["offset"]) for event in events}
    served = tuple(wavefronts(offsets, width, is_plain_load=KINDS[int(first["kind"])] == "load"))
    banks = len({bank for wavefront in served for bank in wavefront})
    what = f"{KINDS[int(first['kind'])]} {trace.array_names[int(first['space']), int(first['array'])]}"
    count = f"{len(served)} wavefront{'s' if len(served) > 1 else ''}"
    warp = int(first["thread"]) // WARP
    return BankMap(f"{place}: {what}, {width} bytes a lane, warp {warp}: {count}, {banks} of {BANKS} banks", served)


def draw_text(bank_map: BankMap) -> str:
    """A row for each wavefront, a column for each bank, in it the first lane served."""
    rows = ["bank        " + "".join(f"{bank:3d}" for bank in range(BANKS))]
    for number, wavefront in enumerate(bank_map.wavefronts, 1):
        cells = (str(wavefront[bank][0]) if bank in wavefront else IDLE for bank in range(BANKS))
        rows.append(f"wavefront {number:<2}" + "".join(f"{cell:>3}" for cell in cells))
    return "\n".join(rows)


def draw_svg(maps: list[BankMap]) -> str:
    """The maps below one another as one SVG document."""
    parts, y = [], 0
    for bank_map in maps:
        drawn, height = _svg_rows(bank_map, y)
        parts += drawn
        y += height
    width = LEFT + BANKS * CELL + 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
        'font-family="monospace" font-size="11">'
    )
    return "\n".join([head, f'<rect width="{width}" height="{y}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _svg_rows(bank_map: BankMap, y: int) -> tuple[list[str], int]:
    parts = [f'<text x="4" y="{y + 16}" font-size="13">{escape(bank_map.title)}</text>', _label(4, y + 36, "bank")]
    parts += [_label(LEFT + bank * CELL + 6, y + 36, str(bank)) for bank in range(BANKS)]
    for row, wavefront in enumerate(bank_map.wavefronts):
        top = y + TOP + row * CELL
        parts.append(_label(4, top + 17, f"wavefront {row + 1}"))
        for bank in range(BANKS):
            lanes = wavefront.get(bank, ())
            x = LEFT + bank * CELL
            fill = f"hsl({lanes[0] * HUES // WARP * 360 // HUES},70%,80%)" if lanes else "#f4f4f4"
            lane_names = f"<title>bank {bank}: lanes {', '.join(map(str, lanes))}</title>" if lanes else ""
            parts.append(
                f'<rect x="{x}" y="{top}" width="{CELL - 2}" height="{CELL - 2}" fill="{fill}">{lane_names}</rect>'
            )
            parts += [_label(x + 5, top + 16, str(lanes[0]))] if lanes else []
    return parts, TOP + len(bank_map.wavefronts) * CELL + 16


def _label(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}">{text}</text>'
