"""One traced launch: what the tracing runner is told besides, and what it answers.

Owns that text protocol (`runtime/trace/request.hpp` reads it) and the files the answers come in.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.compile.traced import traced_runner
from tilewright.emulator import process
from tilewright.emulator.elf import SharedArray, shared_arrays
from tilewright.emulator.findings import Wording
from tilewright.emulator.memory import BASE_ADDRESS, SLOT_BYTES, DeviceArray, shared_file
from tilewright.emulator.symbols import locate_all
from tilewright.emulator.trace import EVENT, KINDS, SPACES, MemoryLine, Trace, merged

GLOBAL, STATIC = 2, 0
DYNAMIC_NAME = "dynamic shared memory"


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix inside an array, in elements: what lies between its rows and batch entries is padding."""

    rows: int
    columns: int
    row_stride: int
    batch_stride: int = 0
    element_bytes: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What is traced: `counts` of wavefronts and sectors, `checks` for races and the like, raw `events`.

    `matrices` declares matrices by the label of their array, so that `checks` sees an access to the padding of rows.
    """

    counts: bool = True
    checks: bool = False
    events: bool = False
    matrices: Mapping[str, Matrix] | None = None


def run_traced(launch: process.Launch, watch: Watch) -> tuple[dict[str, Any], Trace]:
    """Run the launch to its end: the runner's report and the trace, which holds findings even of a failed launch.

    Raises TimedOut, and LaunchFailed if there is no report.
    """
    in_shared = shared_arrays(launch.kernel.payload)
    statics = [array for array in in_shared if not array.is_guard]
    output, events = shared_file("tilewright-trace"), shared_file("tilewright-events")
    try:
        more = process.More(traced_runner(), _request(launch, watch, in_shared, output, events), (output, events))
        report = process.run(launch, more=more)
        told = [json.loads(line) for line in _read(output).splitlines()]
        raw = np.frombuffer(_read(events), EVENT) if watch.events else None
    finally:
        os.close(output)
        os.close(events)
    return report, _trace(launch, statics, told, raw)


def _request(launch: process.Launch, watch: Watch, in_shared: list[SharedArray], output: int, events: int) -> list[str]:
    files = f"{output} {events if watch.events else -1}"
    wanted = f"{watch.counts or watch.events:d} {watch.checks:d}"
    matrices = watch.matrices or {}
    return [
        f"trace {files} {wanted} {BASE_ADDRESS} {SLOT_BYTES.bit_length() - 1}",
        *(f"{'guard' if array.is_guard else 'static'} {array.offset} {array.nbytes}" for array in in_shared),
        *(_array_line(array, matrices.get(array.label)) for array in launch.arrays),
    ]


def _array_line(array: DeviceArray, matrix: Matrix | None) -> str:
    mode = "ro" if array.read_only else "rw"
    shape = (0, 0, 1, 0)
    if matrix is not None:
        size = matrix.element_bytes
        shape = (matrix.batch_stride * size, matrix.rows, matrix.row_stride * size, matrix.columns * size)
    return f"array {array.address} {array.nbytes} {mode} {' '.join(map(str, shape))}"


def _read(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _trace(launch: process.Launch, statics: list[SharedArray], told: list[Any], raw: Any) -> Trace:
    counts = [one["count"] for one in told if "count" in one]
    found = [one["finding"] for one in told if "finding" in one]
    sites = {count["site"] for count in counts}
    sites |= {one[name]["site"] for one in found for name in ("before", "now") if name in one}
    frames = locate_all(process.binary_file(launch.kernel), sites)

    def line_of(site: int) -> str:
        return ":".join(map(str, frames[site]))

    array_of = functools.partial(_array, launch, statics)
    lines = merged(_line(count, frames[count["site"]], array_of(count["space"], count["array"])[0]) for count in counts)
    wording = Wording(launch.grid, launch.block, line_of, array_of)
    return Trace(
        lines=lines,
        findings=wording.findings(found),
        events=raw,
        sites={site: line_of(site) for site in sites},
        array_names={key: array_of(*key)[0] for key in {(count["space"], count["array"]) for count in counts}},
    )


def _line(count: dict[str, int], frame: tuple[str, int], array: str) -> MemoryLine:
    return MemoryLine(
        file=frame[0],
        line=frame[1],
        space=SPACES[count["space"]],
        kind=KINDS[count["kind"]],
        array=array,
        width_bytes=count["bytes"],
        instructions=count["instructions"],
        lanes=count["lanes"],
        wavefronts=count["wavefronts"],
        conflict_free_wavefronts=count["phases"],
        ways=count["ways"],
        banks=count["banks"],
        sectors=count["sectors"],
        fewest_sectors=count["fewest_sectors"],
        wanted_bytes=count["wanted_bytes"],
    )


def _array(launch: process.Launch, statics: list[SharedArray], space: int, number: int) -> tuple[str, int]:
    """Name and size in bytes of the array that the runner calls `number`."""
    if space == GLOBAL:
        found = next((array for array in launch.arrays if array.slot == number), None)
        return (found.label, found.nbytes) if found is not None else ("no array", 0)
    if space == STATIC and number < len(statics):
        return statics[number].name, statics[number].nbytes
    return DYNAMIC_NAME, launch.dynamic_smem_bytes
