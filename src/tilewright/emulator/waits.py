"""A deadlock in words: which threads wait at which line for what, and what is missing.

Owns the wording of waits. The runner knows threads, barriers and addresses; arrays come from `memory`.
"""

from __future__ import annotations

from typing import Any

from tilewright.emulator.memory import DeviceMemory

Json = dict[str, Any]
WARP_LANES = 32


def deadlock(report: Json, memory: DeviceMemory) -> str:
    """The report of a launch in which no thread can run, over one CTA or over all that wait for each other."""
    ctas = report["ctas"]
    if "places" in report:
        told = "; ".join(f"in CTA {index_text(cta['cta'])} {_waits(cta, memory)}" for cta in ctas)
        return f"deadlock between CTAs: {told}; {_residency(report)}"
    cta = ctas[0]
    at_barriers = all(wait["kind"] == "syncthreads" for wait in cta["waits"])
    cause = "barrier divergence" if at_barriers and not cta["exited"] else "deadlock"
    rule = "; all threads of a CTA must reach the same barrier" if at_barriers else ""
    return f"{cause} in CTA {index_text(cta['cta'])}: {_waits(cta, memory)}{rule}"


def is_damaged(report: Json) -> bool:
    """Whether threads stand still that wait for nothing: the kernel wrote over the runner's record of them."""
    return any(wait["kind"] == "none" for cta in report["ctas"] for wait in cta["waits"])


def index_text(index: list[int]) -> str:
    """'(1,0,0)'."""
    return f"({','.join(map(str, index))})"


def site_text(site: Json) -> str:
    """'k.cu:31'."""
    return f"{str(site['file']).rsplit('/', 1)[-1]}:{site['line']}"


def _waits(cta: Json, memory: DeviceMemory) -> str:
    waits = [_wait(wait, memory) for wait in cta["waits"]]
    exited = cta["exited"]
    if exited:
        waits.append(f"{_threads(exited)} {'has' if exited == 1 else 'have'} exited")
    return ", ".join(waits)


def _wait(wait: Json, memory: DeviceMemory) -> str:
    what, lacks = _object(wait, memory)
    verb = "waits" if wait["count"] == 1 else "wait"
    first = f"first: thread {index_text(wait['first'])}"
    return f"{_threads(wait['count'])} {verb} at {what} of {site_text(wait['site'])} ({first}){lacks}"


def _object(wait: Json, memory: DeviceMemory) -> tuple[str, str]:
    """What the wait is for, and what that still lacks."""
    match wait["kind"]:
        case "syncthreads":
            return "__syncthreads", ""
        case "named_barrier":
            return f"barrier {wait['id']}", f": {wait['arrived']} of {wait['expected']} arrivals"
        case "warp":
            return f"{wait['name']}", f": lanes {_lanes(wait['missing'])} of warp {wait['warp']} are missing"
        case "mbarrier":
            place = f"mbarrier at {wait['space']} shared offset {wait['offset']}, parity {wait['parity']},"
            return place, f": {wait['pending']} of {wait['expected']} arrivals pending{_bytes(wait['bytes'])}"
        case "warpgroup":
            missing = wait["expected"] - wait["arrived"]
            return "wgmma", f": {_threads(missing)} of warpgroup {wait['warpgroup']} are missing"
        case "registers":
            held = ", ".join(map(str, wait["held"]))
            lacks = f": the warp lacks {wait['lacking']} registers, {wait['free']} are free; warps hold {held} a thread"
            return f"acquire_registers<{wait['wanted']}>", lacks
    return _flag(wait, memory)


def _bytes(pending: int) -> str:
    """What a phase still waits for, when all copies that were issued have come."""
    if pending < 0:
        return f", {-pending} bytes more have come than were announced"
    return f", {pending} bytes to come and no TMA load under way" if pending else ""


def _flag(wait: Json, memory: DeviceMemory) -> tuple[str, str]:
    array = memory.find(wait["address"])
    name = f"{array.label}[{(wait['address'] - array.address) // 4}]" if array else f"{wait['address']:#x}"
    return f"wait_until {name}", f": it holds {wait['found']}, waited for is {wait['wanted']}"


def _residency(report: Json) -> str:
    places = report["places"]
    resident = f"{places} CTA{'s are' if places > 1 else ' is'} resident at once"
    count, named = report["not_started_count"], report["not_started"]
    if not count:
        return f"{resident}, and all have started"
    listed = ", ".join(index_text(cta) for cta in named) + (f" and {count - len(named)} more" * (count > len(named)))
    return f"{resident}, so CTA {listed} cannot start before one ends"


def _lanes(mask: int) -> str:
    """Set bits as ranges: '0-15, 31'."""
    set_bits = [lane for lane in range(WARP_LANES) if mask >> lane & 1]
    starts = [lane for lane in set_bits if lane - 1 not in set_bits]
    ends = [lane for lane in set_bits if lane + 1 not in set_bits]
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"
