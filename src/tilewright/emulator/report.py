"""What a failed launch says: the runner's report in words, as the error that fits.

Owns the wording. The runner knows threads, waits and addresses; arrays come from `memory`, lines from `symbols`.
"""

from __future__ import annotations

import signal
from typing import Any

from tilewright.emulator.memory import DeviceArray, DeviceMemory
from tilewright.emulator.process import Launch, binary_file
from tilewright.emulator.symbols import UNKNOWN_LINE, locate
from tilewright.emulator.waits import deadlock, index_text, is_damaged, site_text
from tilewright.errors import Deadlock, LaunchFailed, OutOfBounds, TimedOut

Json = dict[str, Any]
ELEMENT_BYTES = 4
MISALIGNED = "its address must be a multiple of its size (or it is no address at all: look for garbage in a pointer)"
DAMAGED = (
    "writes over the emulator's own memory, by an index past the end of a shared or a local array; "
    "the checks of a traced launch (verify --races, trace) name its line"
)
VERBS = {"read": "reads", "write": "writes", "unknown": "accesses"}


def failure(report: Json, launch: Launch, memory: DeviceMemory) -> LaunchFailed:
    """The error for a report whose 'ok' is false; its message names kernel, thread, CTA, line and cause."""
    name = launch.kernel.entry
    match report["failure"]:
        case "deadlock" if is_damaged(report):
            return LaunchFailed(f"{name}: {DAMAGED}")
        case "deadlock":
            return Deadlock(f"{name}: {deadlock(report, memory)}")
        case "time_limit":
            where = f"it was at {_where(report, launch)}" if "cta" in report else "no CTA was running"
            advice = "look for a loop that waits for another thread without a barrier, or raise timeout_s"
            return TimedOut(f"{name}: did not end within timeout_s={launch.timeout_s:g}: {where}; {advice}")
        case "rule":
            return LaunchFailed(f"{name}: {report['text']}, {_where(report, launch)}")
        case "fault":
            kind, text = _fault(report, memory)
            return kind(f"{name}: {text}, {_where(report, launch)}")
        case "misaligned":
            text = _misaligned_copy(report) if "bytes" in report else MISALIGNED
            return LaunchFailed(f"{name}: misaligned vector access, {_where(report, launch)}: {text}")
        case "copy_size":
            size = f"source_bytes={report['source_bytes']}: must be 0 to {report['bytes']}"
            return LaunchFailed(f"{name}: cp_async_zfill, {_where(report, launch)}: {size}")
        case "args":
            sizes = f"takes {report['expected']} bytes of arguments, got {report['got']}"
            return LaunchFailed(f"{name}: {sizes}; pass the struct it declares")
    return LaunchFailed(f"{name}: {report['what']}: {report['detail']}")


def overwritten(array: DeviceArray, offset: int, launch: Launch) -> OutOfBounds:
    """The error for a write beside an array that only its poison shows, so no thread or line is known."""
    return OutOfBounds(
        f"{launch.kernel.entry}: writes {array.label} out of bounds: {_place(array, offset)}, seen after the launch in "
        "the alignment gap beside the data, so thread and line are unknown"
    )


def _misaligned_copy(report: Json) -> str:
    size = report["bytes"]
    return (
        f"both addresses of cp_async<{size}> must be multiples of {size}; the shared one is {report['smem'] % size} "
        f"and the global one {report['gmem'] % size} bytes off"
    )


def _fault(report: Json, memory: DeviceMemory) -> tuple[type[LaunchFailed], str]:
    number = report["signal"]
    if number == signal.SIGFPE:
        return LaunchFailed, "divides an integer by zero, or beyond its range"
    if number not in (signal.SIGSEGV, signal.SIGBUS):
        return LaunchFailed, f"stops with signal {signal.Signals(number).name}"
    if report.get("region") == "stack_guard":
        return LaunchFailed, "overflows its thread's stack of 128 KiB: keep local arrays and recursion smaller"
    verb = VERBS[report["access"]]
    if report.get("region") == "past_dynamic_smem":
        return OutOfBounds, f"{verb} past the end of dynamic shared memory"
    return OutOfBounds, _outside(report["address"], verb, memory)


def _outside(address: int, verb: str, memory: DeviceMemory) -> str:
    array = memory.find(address)
    if array is None:
        return f"{verb} address {address:#x}, which belongs to no array (a null or freed pointer, or a far overrun)"
    offset = address - array.address
    if array.read_only and 0 <= offset < array.nbytes:
        return f"{verb} to {array.label}, which is read-only: {_place(array, offset)}"
    return f"{verb} {array.label} out of bounds: {_place(array, offset)}"


def _place(array: DeviceArray, offset: int) -> str:
    side = "before its start" if offset < 0 else "past its end" if offset >= array.nbytes else "inside it"
    return (
        f"byte offset {offset} (element {offset // ELEMENT_BYTES}, of {ELEMENT_BYTES} bytes), {side} "
        f"({array.nbytes} bytes, {array.nbytes // ELEMENT_BYTES} elements)"
    )


def _where(report: Json, launch: Launch) -> str:
    if "cta" not in report:
        return "outside any thread"
    site = report.get("site")
    line = site_text(site) if site else locate(binary_file(launch.kernel), report["code_offset"])
    if line.startswith(UNKNOWN_LINE) and report.get("waited_at"):
        line = site_text(report["waited_at"])
    return f"thread {index_text(report['thread'])} of CTA {index_text(report['cta'])} at {line}"
