"""A worker process seen from outside: started when needed, given a job and a time limit, replaced when it is lost.

A process that dies, hangs or grows beyond its memory is an answer like any other. Owns the process, its pipes and its
limits; what jobs mean is not known here.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tilewright.errors import LaunchFailed, Missing
from tilewright.tune.trial import CRASHED, OUT_OF_MEMORY, TIMED_OUT

WATCH_S = 0.1
_TAIL_CHARACTERS = 400
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from tilewright.tune.worker import main; main()"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker may take: seconds to start and for a job, bytes of host memory beyond what it had when ready."""

    start_s: float = 180.0
    job_s: float = 30.0
    memory_bytes: int = 4 * 2**30


class Worker:
    """One evaluator in a process of its own. Use from one thread at a time."""

    def __init__(self, factory: str, setup: dict[str, Any], limits: Limits) -> None:
        self._factory, self._setup, self._limits = factory, setup, limits
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._pending = b""
        self._most_bytes = 0
        self._killed = False
        self.starts = 0

    def start(self) -> dict[str, Any]:
        """Start the process if there is none, and say what its evaluator works with.

        Raises Missing for what the machine lacks, LaunchFailed where it does not get ready.
        """
        if self._killed:
            raise LaunchFailed("a worker was ended")
        if self._process is None:
            self._spawn()
            answer = self._ask({"factory": self._factory, "setup": self._setup}, self._limits.start_s)
            if "ready" not in answer:
                self.close()
                error = Missing if answer.get("missing") else LaunchFailed
                raise error(f"a worker did not start: {answer['message']}")
            self._description: dict[str, Any] = answer["ready"]
            self._most_bytes = self._resident_bytes() + self._limits.memory_bytes
        return self._description

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer to one job; with `failure` and `message` where it failed or took the process with it.

        Raises as `start` does, and Missing where the job does.
        """
        self.start()
        answer = self._ask(job, self._limits.job_s)
        if answer.get("broken"):
            self.close()
        if answer.get("missing"):
            raise Missing(answer["message"])
        return answer

    def kill(self) -> None:
        """End the process from another thread; the job under way then fails. Not started again."""
        self._killed = True
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _spawn(self) -> None:
        self.starts += 1
        self._pending, self._most_bytes = b"", sys.maxsize
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )

    def _ask(self, request: dict[str, Any], limit_s: float) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        end_s = time.monotonic() + limit_s
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return self._lost()
        while b"\n" not in self._pending:
            ready, _, _ = select.select([process.stdout], [], [], WATCH_S)
            if ready:
                part = os.read(process.stdout.fileno(), 65536)
                if not part:
                    return self._lost()
                self._pending += part
            elif self._resident_bytes() > self._most_bytes:
                return self._ended(OUT_OF_MEMORY, f"grew by more than {self._limits.memory_bytes / 2**30:.3g} GiB")
            elif time.monotonic() > end_s:
                return self._ended(TIMED_OUT, f"no end within {limit_s:g} s")
        line, _, self._pending = self._pending.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ended(self, failure: str, message: str) -> dict[str, Any]:
        self.close()
        return {"failure": failure, "message": f"{message}, and was ended"}

    def _lost(self) -> dict[str, Any]:
        """The answer where the process has ended by itself: how, and the last it said."""
        assert self._process is not None and self._errors is not None
        code = self._process.wait()
        how = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()[-_TAIL_CHARACTERS:]
        self.close()
        return {"failure": CRASHED, "message": f"its process ended by itself, {how}{': ' if said else ''}{said}"}

    def _resident_bytes(self) -> int:
        """Host memory of the process; 0 where the system doesn't say."""
        assert self._process is not None
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")
