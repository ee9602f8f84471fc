"""A `Run` on one GPU whose config can be changed, so that device arrays serve one config after the other.

Owns the way from config and problem to a launch. Binaries come from the cache, where they are compiled already.
"""

from __future__ import annotations

from tilewright.compile.binary import Binary
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Config
from tilewright.errors import WrongResult
from tilewright.problem import Problem
from tilewright.run.args import launch_args
from tilewright.run.call import grid_of
from tilewright.run.cuda import CudaBackend
from tilewright.verify.device import run_with
from tilewright.verify.layers import Case, check_case


class Launcher:
    """Checks configs on one GPU."""

    def __init__(self, gpu: CudaBackend) -> None:
        self._gpu = gpu
        self._config: Config | None = None
        self._run = run_with(gpu, self._launch)

    def binary(self, config: Config, problem: Problem) -> Binary:
        """`config` compiled for `problem` and the GPU."""
        return compile_cubin(kernel_source(config, problem), self._gpu.arch)

    def require_right(self, config: Config, case: Case) -> None:
        """Raise WrongResult unless `config` passes the case; LaunchFailed where it faults."""
        self._config = config
        check = check_case(self._run, case)
        if not check.ok:
            raise WrongResult(str(check))

    def _launch(self, problem: Problem, addresses: dict[str, int]) -> None:
        config = self._config
        assert config is not None
        config.require_problem(problem)
        grid = grid_of(config, problem, sm_count=self._gpu.sm_count)
        args = launch_args(config, problem, self._gpu, **addresses)
        self._gpu.launch(self.binary(config, problem), grid, args)
