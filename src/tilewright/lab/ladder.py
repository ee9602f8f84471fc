"""The ladder: every rung compiled, verified and, on a GPU, timed against cuBLAS; one row each.

Without a GPU the same kernels run in the emulator and no time is claimed. Rows are handed to an observer as they
become known, so that a person sees them grow; the record returned holds their final form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.arch import ArchSpec
from tilewright.compile.batch import in_parallel, usable_cores
from tilewright.compile.binary import Binary
from tilewright.compile.host import find_compiler, runner
from tilewright.compile.nvrtc import nvrtc_version
from tilewright.compile.traced import traced_runner
from tilewright.declare import Config
from tilewright.errors import InvalidProblem, TilewrightError, Unsupported
from tilewright.facts.static import bare_row, static_row
from tilewright.lab.inspecting import add_instructions
from tilewright.lab.tracing import count_memory
from tilewright.lab.verifying import cubin, emulator_run, host_binary
from tilewright.problem import Problem
from tilewright.record import Record, Row, environment
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify.layers import Case, Verdict, check_case, make_case
from tilewright.verify.operands import Run, make_operands

Observer = Callable[[Row], None]
CASES = 3
TENSOR = "tensor"
SLOWEST_FLOPS = 5e7
"""FLOP a second below which an emulated kernel is taken to hang: a tenth of the slowest rung's on one core."""


@dataclass(frozen=True)
class Plan:
    """What a ladder runs: one problem, configs in the ladder's order, the architecture compiled for."""

    problem: Problem
    configs: list[Config]
    arch: ArchSpec


def failed(row: Row, error: TilewrightError) -> Row:
    """`row` with the failure in it; a failure is a result, but what an architecture cannot run has not failed there."""
    row.verified = None if isinstance(error, Unsupported) else False
    row.failure, row.verdict = error.kind, str(error)
    return row


def judged(row: Row, verdict: Verdict) -> Row:
    """`row` with the verdict of its checks in it."""
    row.verified = verdict.ok
    if verdict.ok:
        row.verdict = f"integers bit-equal, error {verdict.worst_ratio:.2f} of the bound"
    else:
        row.failure, row.verdict = "WrongResult", str(verdict.failed[0])
    return row


def attempt(config: Config, problem: Problem, work: Callable[[], Row]) -> Row:
    """`work`'s row, or the failed row of what it raised."""
    try:
        return work()
    except TilewrightError as error:
        return failed(bare_row(config, problem), error)


def compiled_row(plan: Plan, config: Config) -> Row:
    """The static row of `config` for the plan's problem and architecture. Raises what a rule or NVRTC refuses."""
    config.require_arch(plan.arch)
    config.require_problem(plan.problem)
    return static_row(config, plan.problem, plan.arch, cubin(config, plan.problem, plan.arch))


def explained_row(plan: Plan, config: Config) -> Row:
    """`compiled_row` with, for a rung of the tensor track, the instructions that it is made of."""
    row = compiled_row(plan, config)
    if config.rung.track == TENSOR:
        add_instructions(row, config, cubin(config, plan.problem, plan.arch))
    return row


def cases_bytes(problem: Problem) -> int:
    """Host memory that `cases_at_size` takes: per case float32 operands, float64 reference and magnitude."""
    inputs = problem.total_extent("a") + problem.total_extent("b")
    outputs = problem.total_extent("c") + problem.total_extent("d")
    return CASES * (4 * (inputs + outputs) + 8 * outputs) + 16 * (inputs + outputs)


def require_memory(problem: Problem, need_bytes: int, free_bytes: int, where: str) -> None:
    """Raise InvalidProblem when the problem needs more memory than is free."""
    if need_bytes > free_bytes:
        need, free = (f"{size / 2**30:.1f} GiB" for size in (need_bytes, free_bytes))
        raise InvalidProblem(f"{problem}: needs {need} of {where} memory and {free} are free; use smaller sizes")


def cases_at_size(problem: Problem) -> list[Case]:
    """What a row is verified on, at its own size: integers exactly, and zero-mean and positive data within the bound.

    Operands and float64 reference are computed once and serve every rung.
    """
    bounded = [make_case("bound", make_operands(problem, data), exact=False) for data in ("zero_mean", "positive")]
    return [make_case("integer", make_operands(problem, "integer")), *bounded]


def verified_at_size(run: Run, cases: list[Case]) -> Verdict:
    """Every case launched once."""
    return Verdict(tuple(check_case(run, each) for each in cases))


def emulated_ladder(plan: Plan, on_row: Observer) -> Record:
    """Every config compiled for the plan's architecture and run in the emulator. Raises NoCompiler at once."""
    compiler = find_compiler()
    with EmulatorBackend() as backend:
        require_memory(
            plan.problem, cases_bytes(plan.problem) + plan.problem.operand_bytes, backend.free_bytes(), "host"
        )

    def build(config: Config) -> tuple[Row, Binary | None]:
        row = attempt(config, plan.problem, lambda: explained_row(plan, config))
        if row.failure is not None:
            return row, None
        count_memory(row, config)
        return row, host_binary(config, plan.problem)

    record = Record(
        command="ladder",
        environment=environment(
            backend="emulator",
            arch=plan.arch.name,
            nvrtc=nvrtc_version(),
            compiler=compiler.version,
            cores=usable_cores(),
        ),
    )
    cases = cases_at_size(plan.problem)
    list(in_parallel(lambda build_runner: build_runner(), (traced_runner, runner)))  # the slowest builds, side by side
    for config, (row, binary) in zip(plan.configs, in_parallel(build, plan.configs), strict=True):
        if binary is not None:
            row = attempt(config, plan.problem, lambda r=row, c=config: _emulated(r, c, cases))  # type: ignore[misc]
        record.rows.append(row)
        on_row(row)
    return record


def _emulated(row: Row, config: Config, cases: list[Case]) -> Row:
    row.backend = "emulator"
    with EmulatorBackend(timeout_s=60 + cases[0].operands.problem.flops / SLOWEST_FLOPS) as backend:
        return judged(row, verified_at_size(emulator_run(config, backend), cases))
