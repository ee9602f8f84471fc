"""Verifying a config on a backend: a Run that compiles per problem, and the sweep of problems and schedules.

The checks themselves are `verify`'s; this module only brings kernel, problem and backend together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary
from tilewright.compile.host import compile_host, host_source
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Config
from tilewright.emulator.memory import Placement
from tilewright.emulator.process import Completion, Schedule
from tilewright.errors import InvalidConfig
from tilewright.problem import Problem
from tilewright.run.args import gemm_args
from tilewright.run.call import grid_of
from tilewright.run.cuda import CudaBackend
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.protocol import Backend
from tilewright.verify.device import run_with
from tilewright.verify.layers import Check, checks
from tilewright.verify.operands import Run
from tilewright.verify.problems import problem_set

SCHEDULES: tuple[Schedule, ...] = ("default", "reverse", "random")
COMPLETIONS: tuple[Completion, ...] = ("latest", "earliest", "random")
PLACEMENTS: tuple[Placement, ...] = ("end", "start")


def host_binary(config: Config, problem: Problem) -> Binary:
    """`config` compiled for the emulator, specialised for `problem`."""
    return compile_host(host_source(kernel_source(config, problem)))


def cubin(config: Config, problem: Problem, arch: ArchSpec) -> Binary:
    """`config` compiled for `arch`, specialised for `problem`."""
    return compile_cubin(kernel_source(config, problem), arch)


def emulator_run(config: Config, backend: EmulatorBackend) -> Run:
    """A Run of `config` on the emulator, compiled for each problem as it comes."""
    return _run(config, backend, lambda problem: host_binary(config, problem), sm_count=1)


def cuda_run(config: Config, backend: CudaBackend) -> Run:
    """A Run of `config` on a GPU, compiled for each problem as it comes."""
    return _run(config, backend, lambda problem: cubin(config, problem, backend.arch), sm_count=backend.sm_count)


def _run(config: Config, backend: Backend, binary: Callable[[Problem], Binary], *, sm_count: int) -> Run:
    def launch(problem: Problem, addresses: dict[str, int]) -> None:
        config.require_problem(problem)
        grid = grid_of(config, problem, sm_count=sm_count)
        backend.launch(binary(problem), grid, gemm_args(problem, **addresses))

    return run_with(backend, launch)


def problems_for(config: Config) -> list[Problem]:
    """The covering set of problems for a config: primes where it is guarded, multiples of its tile otherwise."""
    scope = config.scope
    tile = (scope["BM"], scope["BN"], config.rung.accesses.k_step.evaluate(scope))
    stages = max((array.stages.evaluate(scope) for array in config.rung.shared), default=1)
    return problem_set(guarded=config.rung.unguarded_when is not None, tile=tile, stages=stages)


@dataclass(frozen=True)
class Setting:
    """How the emulator or the GPU is set up for one sweep; `label` says it in words."""

    label: str
    open: Callable[[], AbstractContextManager[EmulatorBackend] | AbstractContextManager[CudaBackend]]


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
        _emulator_setting(name, PLACEMENTS[i % 2], completion, seed)
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
    """Every check of every layer over the covering problems, under one setting."""
    with setting.open() as backend:
        run = cuda_run(config, backend) if isinstance(backend, CudaBackend) else emulator_run(config, backend)
        yield from checks(run, problems_for(config))
