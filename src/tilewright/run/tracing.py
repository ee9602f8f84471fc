"""The emulator as a microscope: the same device, every launch traced.

Owns which launches are traced and where their traces are kept. What a trace says is `emulator.trace`'s.
"""

from __future__ import annotations

from typing import Any

from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.host import host_source
from tilewright.compile.traced import compile_traced
from tilewright.emulator import process
from tilewright.emulator.trace import Trace
from tilewright.emulator.tracing import Watch, run_traced
from tilewright.run.emulator import EmulatorBackend


class TracingBackend(EmulatorBackend):
    """An EmulatorBackend that traces as `watch` says; its binaries come from `compile_traced`.

    `traces` holds one trace for each launch since the last `clear_traces`, a failed launch's too. With checks, CTAs
    run on one OS thread, whatever `workers` says: the checks see them in turn. Takes EmulatorBackend's options.
    """

    takes_traced = True

    def __init__(self, watch: Watch | None = None, **options: Any) -> None:
        self._watch = watch or Watch()
        super().__init__(**{**options, **({"workers": 1} if self._watch.checks or self._watch.events else {})})
        self.traces: list[Trace] = []

    def compile(self, source: KernelSource) -> Binary:
        """The kernel compiled with every access traced. Raises CompileFailed, NoCompiler."""
        return compile_traced(host_source(source))

    def clear_traces(self) -> None:
        """Forget the traces so far."""
        self.traces.clear()

    def _run(self, launch: process.Launch) -> dict[str, Any]:
        answer, trace = run_traced(launch, self._watch)
        self.traces.append(trace)
        return answer
