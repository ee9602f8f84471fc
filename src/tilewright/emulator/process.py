"""One launch in a child process: what the runner is told, and the one line it answers.

Owns the child, the text protocol (`runtime/launch.hpp` reads it) and the files the child needs. What a failure
means is `report`'s.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tilewright.compile.binary import Binary
from tilewright.compile.cache import trusted_dir
from tilewright.compile.host import runner
from tilewright.compile.own_folder import ExecutableFiles
from tilewright.emulator.memory import DeviceArray
from tilewright.errors import LaunchFailed, TimedOut

Schedule = Literal["default", "reverse", "random"]
Completion = Literal["latest", "earliest", "random"]
Index = tuple[int, int, int]
GRACE_S = 5.0
"""How much longer than its time limit a child may take to say where it was."""
_files = ExecutableFiles(lambda: (os.fspath(trusted_dir()),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch. `grid` and `block` count CTAs and threads; `workers` OS threads stand for SMs, one CTA each."""

    kernel: Binary
    grid: Index
    block: Index
    dynamic_smem_bytes: int
    workers: int
    schedule: Schedule
    seed: int
    async_completion: Completion
    arrays: Sequence[DeviceArray]
    args: bytes
    timeout_s: float

    def text(self) -> bytes:
        """The launch as the runner reads it from standard input."""
        lines = [
            f"grid {self.grid[0]} {self.grid[1]} {self.grid[2]}",
            f"block {self.block[0]} {self.block[1]} {self.block[2]}",
            f"dynamic_smem {self.dynamic_smem_bytes}",
            f"workers {self.workers}",
            f"schedule {self.schedule} {self.seed}",
            f"async {self.async_completion}",
            f"time_limit {round(self.timeout_s * 1000)}",
            *(
                f"map {a.map_address} {a.descriptor} {a.mapped_bytes} {'ro' if a.read_only else 'rw'}"
                for a in self.arrays
            ),
            f"args {self.args.hex()}",
        ]
        return b"kernel " + os.fsencode(binary_file(self.kernel)) + b"\n" + "\n".join(lines).encode()


@dataclass(frozen=True, slots=True)
class More:
    """Another runner than the fast one, with the lines it is told besides and the descriptors they name."""

    runner: Binary
    lines: Sequence[str]
    descriptors: Sequence[int]


def binary_file(binary: Binary) -> Path:
    """The binary as a file that this process alone owns. Raises Missing where no folder takes such files."""
    return _files.file(binary.key, binary.payload)


def run(launch: Launch, *, more: More | None = None) -> dict[str, Any]:
    """Run the launch to its end and return the runner's report, whose 'ok' tells whether the kernel finished.

    What the kernel prints goes to standard error. Raises TimedOut, LaunchFailed if there is no report, and Missing
    where no folder takes the kernel's file.
    """
    name = launch.kernel.entry
    command = [os.fspath(binary_file(more.runner if more else runner()))]
    text = launch.text() + "".join(f"\n{line}" for line in (more.lines if more else ())).encode()
    try:
        answer = subprocess.run(
            command,
            input=text,
            capture_output=True,
            pass_fds=[*(array.descriptor for array in launch.arrays), *(more.descriptors if more else ())],
            timeout=launch.timeout_s + GRACE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        _forward(expired.stderr)
        raise TimedOut(f"{name}: did not end within timeout_s={launch.timeout_s:g}, nor say where it was") from None
    except OSError as error:
        fix = "; set TMPDIR to a folder whose files may be executed" if isinstance(error, PermissionError) else ""
        raise LaunchFailed(f"{name}: {command[0]} cannot be started ({error.strerror or error}){fix}") from error
    _forward(answer.stderr)
    try:
        report: dict[str, Any] = json.loads(answer.stdout.decode("utf-8", "replace"))
    except ValueError:
        raise LaunchFailed(f"{name}: the runner ended without a report, exit status {answer.returncode}") from None
    return report


def _forward(printed: bytes | None) -> None:
    if printed and sys.stderr is not None:
        sys.stderr.write(printed.decode("utf-8", "replace"))
