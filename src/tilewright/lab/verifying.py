"""Verifying a config on a backend: a Run that compiles per problem, and the sweep of problems and schedules.

The checks themselves are `verify`'s; this module only brings kernel, problem and backend together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary
from tilewright.compile.host import compile_host
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import host_source, kernel_source
from tilewright.declare import Config
from tilewright.problem import Problem
from tilewright.run.call import grid_of
from tilewright.run.cuda import CudaBackend
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify.device import run_on
from tilewright.verify.layers import Check, checks
from tilewright.verify.operands import Run
from tilewright.verify.problems import problem_set

SCHEDULES = ("default", "reverse", "random")
PLACEMENTS = ("end", "start")


def host_binary(config: Config, problem: Problem) -> Binary:
    """`config` compiled for the emulator, specialised for `problem`."""
    return compile_host(host_source(kernel_source(config, problem)))


def cubin(config: Config, problem: Problem, arch: ArchSpec) -> Binary:
    """`config` compiled for `arch`, specialised for `problem`."""
    return compile_cubin(kernel_source(config, problem), arch)


def emulator_run(config: Config, backend: EmulatorBackend) -> Run:
    """A Run of `config` on the emulator."""

    def binary(problem: Problem) -> Binary:
        config.require_problem(problem)
        return host_binary(config, problem)

    return run_on(backend, binary, lambda problem: grid_of(config, problem))


def cuda_run(config: Config, backend: CudaBackend) -> Run:
    """A Run of `config` on a GPU."""

    def binary(problem: Problem) -> Binary:
        config.require_problem(problem)
        return cubin(config, problem, backend.arch)

    return run_on(backend, binary, lambda problem: grid_of(config, problem, sm_count=backend.sm_count))


def problems_for(config: Config) -> list[Problem]:
    """The covering set of problems for a config: primes where it is guarded, multiples of its tile otherwise."""
    scope = config.scope
    tile = (scope["BM"], scope["BN"], config.rung.accesses.k_step.evaluate(scope))
    return problem_set(guarded=config.rung.unguarded_when is not None, tile=tile)


@dataclass(frozen=True)
class Setting:
    """How the emulator or the GPU is set up for one sweep; `label` says it in words."""

    label: str
    open: Callable[[], AbstractContextManager[EmulatorBackend] | AbstractContextManager[CudaBackend]]


def emulator_settings(schedule: str, seed: int) -> list[Setting]:
    """The emulator under one schedule, or under all of them; arrays at the end and at the start of guarded pages."""
    chosen = SCHEDULES if schedule == "all" else (schedule,)
    pairs = [(name, PLACEMENTS[i % 2]) for i, name in enumerate(chosen)]
    if len(pairs) == 1:
        pairs = [(chosen[0], placement) for placement in PLACEMENTS]

    def setting(name: str, placement: str) -> Setting:
        label = f"{name} schedule" + (f", seed {seed}" if name == "random" else "") + f", arrays at page {placement}"
        return Setting(label, lambda: EmulatorBackend(placement=placement, schedule=name, seed=seed))

    return [setting(name, placement) for name, placement in pairs]


def sweep(config: Config, setting: Setting) -> Iterator[Check]:
    """Every check of every layer over the covering problems, under one setting."""
    with setting.open() as backend:
        run = cuda_run(config, backend) if isinstance(backend, CudaBackend) else emulator_run(config, backend)
        yield from checks(run, problems_for(config))
