"""Verifying a config on a backend: a Run that compiles per problem, and the sweep of problems and schedules.

The checks themselves are `verify`'s; this module only brings kernel, problem and backend together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.host import compile_host, host_source, rolled
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Config
from tilewright.emulator.memory import Placement
from tilewright.emulator.process import Completion, Schedule
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import Problem, ProblemKind
from tilewright.run.cuda import CudaBackend
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.kernel import bind_over_field
from tilewright.verify.certificate import FieldRun, Scales, certificate
from tilewright.verify.device import DeviceRuns, run_with
from tilewright.verify.layers import Check, checks
from tilewright.verify.operands import Operands, Result, Run
from tilewright.verify.problems import covering_kinds, deep_problem, problem_set

SCHEDULES: tuple[Schedule, ...] = ("default", "reverse", "random")
COMPLETIONS: tuple[Completion, ...] = ("latest", "earliest", "random")
PLACEMENTS: tuple[Placement, ...] = ("end", "start")


def host_binary(config: Config, problem: Problem) -> Binary:
    """`config` compiled for the emulator, specialised for `problem`."""
    return rolled_binary(kernel_source(config, problem))


def rolled_binary(source: KernelSource) -> Binary:
    """`source` compiled for the emulator with its loops left as loops, which is quicker to compile."""
    return compile_host(rolled(host_source(source)))


def cubin(config: Config, problem: Problem, arch: ArchSpec) -> Binary:
    """`config` compiled for `arch`, specialised for `problem`."""
    return compile_cubin(kernel_source(config, problem), arch)


def emulator_run(config: Config, device: EmulatorBackend) -> Run:
    """A Run of `config` on the emulator, compiled for each problem as it comes, its loops left as loops."""
    return DeviceRuns(device).of(config, compiled=rolled_binary)


def field_run(config: Config, device: EmulatorBackend) -> FieldRun:
    """A FieldRun of `config` on the emulator, with `Field61` for its scalar."""

    def run(problem: Problem, operands: Operands, scales: Scales) -> Result:
        kernel = bind_over_field(config, problem, device, scales, compiled=rolled_binary)
        return run_with(device, lambda _, addresses: kernel(**addresses))(problem, operands)

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
        is_emulator = isinstance(backend, EmulatorBackend)
        run = DeviceRuns(backend).of(config, compiled=rolled_binary if is_emulator else None)
        yield from checks(run, problems_for(config))
        if isinstance(backend, EmulatorBackend) and config.rung.is_scalar_generic:
            yield from certificate(field_run(config, backend), certified_problems(config, deep=setting.deep))
