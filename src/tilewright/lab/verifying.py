"""Verifying a config on a backend: a Run that compiles per problem, and the sweep of problems and schedules.

The checks themselves are `verify`'s; this module only brings kernel, problem and backend together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary
from tilewright.compile.host import compile_host, host_source, rolled
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import FIELD_SCALAR, kernel_source
from tilewright.declare import Config
from tilewright.emulator.memory import Placement
from tilewright.emulator.process import Completion, Schedule
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem, ProblemKind
from tilewright.run.args import field61_args, launch_args
from tilewright.run.call import grid_of
from tilewright.run.cuda import CudaBackend
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Backend
from tilewright.verify.certificate import FieldRun, Scales, certificate
from tilewright.verify.device import run_with
from tilewright.verify.layers import Check, checks
from tilewright.verify.operands import Operands, Result, Run
from tilewright.verify.problems import covering_kinds, deep_problem, problem_set

SCHEDULES: tuple[Schedule, ...] = ("default", "reverse", "random")
COMPLETIONS: tuple[Completion, ...] = ("latest", "earliest", "random")
PLACEMENTS: tuple[Placement, ...] = ("end", "start")


def host_binary(config: Config, problem: Problem) -> Binary:
    """`config` compiled for the emulator, specialised for `problem`."""
    return compile_host(rolled(host_source(kernel_source(config, problem))))


def cubin(config: Config, problem: Problem, arch: ArchSpec) -> Binary:
    """`config` compiled for `arch`, specialised for `problem`."""
    return compile_cubin(kernel_source(config, problem), arch)


def emulator_run(config: Config, backend: EmulatorBackend) -> Run:
    """A Run of `config` on the emulator, compiled for each problem as it comes."""
    return backend_run(config, backend, lambda problem: host_binary(config, problem), sm_count=backend.sm_count)


def cuda_run(config: Config, backend: CudaBackend) -> Run:
    """A Run of `config` on a GPU, compiled for each problem as it comes."""
    return backend_run(config, backend, lambda problem: cubin(config, problem, backend.arch), sm_count=backend.sm_count)


def backend_run(config: Config, backend: Backend, binary: Callable[[Problem], Binary], *, sm_count: int) -> Run:
    """A Run of `config` on `backend`, with `binary` compiling it for each problem."""

    def launch(problem: Problem, addresses: dict[str, int]) -> None:
        config.require_problem(problem)
        grid = grid_of(config, problem, sm_count=sm_count)
        backend.launch(binary(problem), grid, launch_args(config, problem, backend, **addresses))

    return run_with(backend, launch)


def field_run(config: Config, backend: EmulatorBackend) -> FieldRun:
    """A FieldRun of `config` on the emulator, with `Field61` for its scalar."""

    def run(problem: Problem, operands: Operands, scales: Scales) -> Result:
        built_for = problem
        if config.rung.tensor_maps:  # there are none of such elements: as for rows that TMA does not take
            built_for = replace(problem, alignment_bytes=ITEMSIZE_BYTES[problem.dtype])
        binary = compile_host(rolled(host_source(kernel_source(config, built_for, scalar=FIELD_SCALAR))))
        grid = grid_of(config, problem, sm_count=backend.sm_count)
        wider = operands.a.itemsize // ITEMSIZE_BYTES[problem.dtype]
        grid = replace(grid, dynamic_smem_bytes=grid.dynamic_smem_bytes * wider)

        def launch(problem: Problem, addresses: dict[str, int]) -> None:
            args = field61_args(config, problem, backend, alpha=scales[0], beta=scales[1], **addresses)
            backend.launch(binary, grid, args)

        return run_with(backend, launch)(problem, operands)

    return run


def problems_for(config: Config) -> list[Problem]:
    """The covering set of problems for a config: primes where it is guarded, multiples of its tile otherwise.

    They are of the kinds that the config takes: its tile may suit some layouts alone.
    """
    requires = config.rung.requires
    kinds = [*covering_kinds(requires.layouts, requires.dtypes, requires.out_dtypes), *requires.also]
    kinds = [kind for kind in kinds if _takes(config, kind)]
    return problem_set(
        guarded=config.rung.unguarded_when is not None,
        tile=config.tile,
        stages=config.stages,
        kinds=kinds,
        row_bytes=requires.row_bytes,
    )


def _takes(config: Config, kind: ProblemKind) -> bool:
    """Whether `config` takes a product of this kind whose sizes and alignment nobody would refuse."""
    rows, cols, depth = (16 * size for size in config.tile)
    try:
        config.require_problem(Problem(m=rows, n=cols, k=depth, **kind._asdict()))
    except InvalidProblem:
        return False
    return True


def certified_problems(config: Config, *, deep: bool = True) -> list[Problem]:
    """Of the covering set the first, of several CTAs, and the last, a batch; before them, if asked for, a deep one."""
    covering = problems_for(config)
    deepest = deep_problem(guarded=config.rung.unguarded_when is not None, tile=config.tile)
    return [*([deepest] if deep else []), covering[0], covering[-1]]


@dataclass(frozen=True)
class Setting:
    """How the emulator or the GPU is set up for one sweep; `label` says it in words.

    `deep` asks for the certificate at a large k, which no schedule changes: once is enough.
    """

    label: str
    open: Callable[[], AbstractContextManager[EmulatorBackend] | AbstractContextManager[CudaBackend]]
    deep: bool = False


def emulator_settings(schedule: str, seed: int) -> list[Setting]:
    """The emulator under the schedule named, or under all; arrays at the end and at the start of guarded pages.

    Asynchronous copies land as late as they may, as early as they may, and in between. Raises InvalidConfig for
    another schedule.
    """
    chosen = [name for name in SCHEDULES if schedule in (name, "all")]
    if not chosen:
        raise InvalidConfig(f"--schedule {schedule}: must be one of {', '.join(SCHEDULES)} or all")
    named = chosen * len(COMPLETIONS) if len(chosen) == 1 else chosen
    return [
        replace(_emulator_setting(name, PLACEMENTS[i % 2], completion, seed), deep=i == 0)
        for i, (name, completion) in enumerate(zip(named, COMPLETIONS, strict=True))
    ]


def _emulator_setting(schedule: Schedule, placement: Placement, completion: Completion, seed: int) -> Setting:
    seeded = f", seed {seed}" if "random" in (schedule, completion) else ""
    label = f"emulator, {schedule} schedule{seeded}, copies {completion}, arrays at the {placement} of their pages"
    return Setting(
        label,
        lambda: EmulatorBackend(placement=placement, schedule=schedule, seed=seed, async_completion=completion),
    )


def sweep(config: Config, setting: Setting) -> Iterator[Check]:
    """Every check of every layer over the covering problems, under one setting; in the emulator the certificate too."""
    with setting.open() as backend:
        run = cuda_run(config, backend) if isinstance(backend, CudaBackend) else emulator_run(config, backend)
        yield from checks(run, problems_for(config))
        if isinstance(backend, EmulatorBackend) and config.rung.is_scalar_generic:
            yield from certificate(field_run(config, backend), certified_problems(config, deep=setting.deep))
