"""The compiling worker's job: one config to a binary in the cache, and the facts the binary shows.

Owns which binaries a config needs, to be checked and to be timed. It launches nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from tilewright.arch import get_arch
from tilewright.compile.binary import Binary
from tilewright.compile.nvrtc import compile_cubin, nvrtc_version
from tilewright.compile.source import kernel_source
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.errors import InvalidConfig
from tilewright.facts.code import code_digest, code_of
from tilewright.facts.static import occupancy_of, resources_of
from tilewright.problem import Problem
from tilewright.tune.context import problem_from
from tilewright.verify.problems import problem_set


def check_problems(config: Config, problem: Problem) -> list[Problem]:
    """Small problems that the binary for `problem` must solve before it is timed: several CTAs, padded rows.

    Of the sizes that binary is made for, whole tiles or distinct primes; a config that takes both is checked on both.
    """
    guarded = bool(config.problem_constants(problem)["GUARDED"])
    sizes = [guarded] if config.rung.unguarded_when is None or guarded else [False, True]
    set_of = partial(problem_set, kinds=[problem.kind], row_bytes=config.rung.requires.row_bytes)
    rows, cols, depth = config.tile
    either_way = (max(rows, cols), max(rows, cols), depth)  # whole tiles, too, where a layout turns them round
    chosen = []
    for odd in sizes:
        tiles = (config.tile, either_way)
        problems = chain.from_iterable(set_of(guarded=odd, tile=tile, stages=config.stages) for tile in tiles)
        chosen.append(next(p for p in problems if bool(config.problem_constants(p)["GUARDED"]) == odd))
    return [replace(p, alpha=problem.alpha, beta=problem.beta, epilogue=problem.epilogue) for p in chosen]


class Builder:
    """Compiles configs of one rung for one problem and architecture. The setup names them."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self._rung = all_rungs()[setup["rung"]]
        self._problem = problem_from(setup["problem"])
        self._arch = get_arch(setup["arch"])

    def describe(self) -> dict[str, Any]:
        """The compiler. Raises Missing without one."""
        return {"nvrtc": nvrtc_version()}

    def evaluate(self, job: dict[str, Any]) -> dict[str, Any]:
        """The facts of `job["config"]`, with a failure beside them where a rule refuses the binary.

        Raises CompileFailed.
        """
        config = rung_config(self._rung, job["config"])
        binary = compile_cubin(kernel_source(config, self._problem), self._arch)
        for problem in check_problems(config, self._problem):
            compile_cubin(kernel_source(config, problem), self._arch)
        made = resources_of(binary)
        facts: dict[str, Any] = {
            "registers": made.registers,
            "spill_bytes": made.spill_bytes,
            "stack_bytes": made.stack_bytes,
            "smem_bytes": config.smem_bytes,
            "code_bytes": len(code_of(binary)),
            "binary": binary.key,
            "identity": _identity(config, self._problem, binary),
        }
        try:
            spilled = {"spill_bytes": made.spill_bytes, "stack_bytes": made.stack_bytes}
            config.require_binary(self._arch, registers=made.registers, **spilled)
            held = occupancy_of(config, self._arch, made)
        except InvalidConfig as refused:
            return {"failure": refused.kind, "message": str(refused), "facts": facts}
        return {"facts": {**facts, "occupancy": held.occupancy, "ctas_per_sm": held.ctas_per_sm}}


def _identity(config: Config, problem: Problem, binary: Binary) -> str:
    """What two configs share that are one kernel: instructions, and the launch."""
    launch = (config.grid(problem), config.block, config.cluster, config.scope["dynamic_smem_bytes"])
    return hashlib.sha256(f"{code_digest(binary)} {launch}".encode()).hexdigest()
