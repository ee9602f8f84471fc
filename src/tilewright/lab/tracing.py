"""Rungs under the emulator's microscope: one launch of a config, traced, on a problem small enough to look at."""

from __future__ import annotations

from tilewright.declare import Config
from tilewright.emulator.trace import Trace
from tilewright.emulator.tracing import Matrix, Watch
from tilewright.errors import LaunchFailed
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.record import Row
from tilewright.run.tracing import TracingBackend
from tilewright.verify.device import DeviceRuns
from tilewright.verify.operands import make_operands

CTAS_ALONG = 2
LEAST_K = 64
"""Rows this long lie in different sectors even where a rung's step along k is 1."""


def small_problem(config: Config) -> Problem:
    """Four CTAs and at least two steps along k."""
    scope, k_step = config.scope, config.rung.accesses.k_step.evaluate(config.scope)
    steps = max(2, -(-LEAST_K // k_step))
    kind = config.rung.requires.usual
    return Problem(m=CTAS_ALONG * scope["BM"], n=CTAS_ALONG * scope["BN"], k=steps * k_step, **kind._asdict())


def declared_matrices(problem: Problem) -> dict[str, Matrix]:
    """The operands as matrices by array label, so that an access to their padding is seen.

    One whose batch entries overlap has no padding that is nobody's, and is left out.
    """
    made = {}
    for name in "abcd":
        if problem.batch > 1 and 0 < getattr(problem, f"batch_stride_{name}") < problem.extent(name):
            continue
        rows, columns = problem.stored_shape(name)
        made[name.upper()] = Matrix(
            rows=rows,
            columns=columns,
            row_stride=getattr(problem, f"ld{name}"),
            batch_stride=getattr(problem, f"batch_stride_{name}") if problem.batch > 1 else 0,
            element_bytes=ITEMSIZE_BYTES[problem.dtype if name in "ab" else problem.out_dtype],
        )
    return made


def trace_config(
    config: Config, problem: Problem, watch: Watch, *, schedule: str = "default", seed: int = 0
) -> tuple[Trace, LaunchFailed | None]:
    """The trace of one launch on random data, and why it failed if it did. Raises what compiling raises."""
    with TracingBackend(watch, schedule=schedule, seed=seed) as backend:
        try:
            DeviceRuns(backend).of(config, sm_count=1)(problem, make_operands(problem, "zero_mean"))
        except LaunchFailed as error:
            if not backend.traces:
                raise
            return backend.traces[0], error
        return backend.traces[0], None


def count_memory(row: Row, config: Config) -> None:
    """Put sectors a request and wavefronts an access into `row`; a kernel that fails has none."""
    trace, failure = trace_config(config, small_problem(config), Watch())
    if failure is None:
        row.sectors_per_request, row.wavefronts_per_access = trace.per_access("global"), trace.per_access("shared")
