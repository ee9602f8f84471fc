"""A config bound to a problem and a device, once: compiled, loaded, geometry and arguments made. Then it is launched.

This is the one way from a config to a launch, wherever it is verified, timed, tuned or called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.source import FIELD_SCALAR, kernel_source
from tilewright.compile.variant import PLAIN, Variant
from tilewright.declare import Config
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.run.args import FIELD61_BYTES, field61_args, unbound_args
from tilewright.run.protocol import Backend, Grid, Launch
from tilewright.run.scratch import need_of

Compile = Callable[[KernelSource], Binary]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that can be launched: `launch(a, b, c, d, bias, stream)`, addresses and a raw stream handle, repeats it.

    A launch may be repeated with other addresses, of the alignment that the problem says, and from several threads.
    """

    config: Config
    problem: Problem
    device: Backend
    binary: Binary
    grid: Grid
    launch: Launch

    def __call__(self, *, a: int, b: int, c: int = 0, d: int, bias: int = 0, stream: Any = None) -> None:
        """Launch at these addresses, on the device's own stream unless another is given. Raises LaunchFailed."""
        self.launch(a, b, c, d, bias, self.device.stream_handle(stream))


def bind(
    config: Config,
    problem: Problem,
    device: Backend,
    *,
    variant: Variant = PLAIN,
    compiled: Compile | None = None,
    binary: Binary | None = None,
    sm_count: int | None = None,
) -> Kernel:
    """The kernel of `config` for `problem` on `device`.

    `variant` sets parts of the build apart, `compiled` compiles it in the place of the device's own compiler, and
    `binary` is the build where there is one already. `sm_count` SMs are what a persistent grid is planned for, by
    default the device's. Raises InvalidProblem and InvalidConfig for a problem that the
    config doesn't take, before anything is compiled; CompileFailed; what loading raises.
    """
    config.require_problem(problem)
    sm_count = device.sm_count if sm_count is None else sm_count
    grid = replace(grid_of(config, problem, sm_count=sm_count), dependent=variant.dependent)
    if binary is None:
        binary = (compiled or device.compile)(kernel_source(config, problem, variant))
    args = unbound_args(problem, has_maps=bool(config.rung.tensor_maps))
    maps, need = config.tensor_maps(problem), need_of(config, problem, sm_count=sm_count)
    return Kernel(config, problem, device, binary, grid, device.prepare(binary, grid, args, maps, need))


def bind_over_field(
    config: Config, problem: Problem, device: Backend, scales: tuple[int, int], *, compiled: Compile
) -> Kernel:
    """The same with `Field61` for its scalar: every element takes 8 bytes, and `scales` are α and β in the field."""
    config.require_problem(problem)
    itemsize = ITEMSIZE_BYTES[problem.dtype]
    has_maps = bool(config.rung.tensor_maps)
    # There are no tensor maps of such elements: the kernel is built as for rows that TMA does not take.
    built_for = replace(problem, alignment_bytes=itemsize) if has_maps else problem
    binary = compiled(kernel_source(config, built_for, scalar=FIELD_SCALAR))
    grid = grid_of(config, problem, sm_count=device.sm_count)
    grid = replace(grid, dynamic_smem_bytes=grid.dynamic_smem_bytes * FIELD61_BYTES // itemsize)
    args = field61_args(problem, has_maps=has_maps, scales=scales)
    need = need_of(config, problem, sm_count=device.sm_count, accumulator_bytes=FIELD61_BYTES)
    return Kernel(config, problem, device, binary, grid, device.prepare(binary, grid, args, {}, need))


def grid_of(config: Config, problem: Problem, *, sm_count: int) -> Grid:
    """The launch geometry of `config` for `problem` on a device of `sm_count` SMs. Raises InvalidProblem."""
    return Grid(
        grid=config.grid(problem, sm_count=sm_count),
        block=config.block,
        dynamic_smem_bytes=config.scope["dynamic_smem_bytes"],
        cluster=config.cluster,
    )
