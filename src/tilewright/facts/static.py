"""What is known of a kernel without running it: resources, occupancy, access counts, as a result row."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tilewright.arch import ArchSpec, Occupancy, occupancy
from tilewright.compile.binary import Binary, Resources
from tilewright.declare.config import Config
from tilewright.errors import InvalidConfig
from tilewright.facts.counts import counts
from tilewright.problem import Problem
from tilewright.record import Row


def resources_of(binary: Binary) -> Resources:
    """The resources of GPU code. Raises InvalidConfig for host code, which has none."""
    if binary.resources is None:
        raise InvalidConfig(
            f"{binary.entry} for {binary.target}: host code has no registers to report; compile for a GPU"
        )
    return binary.resources


def occupancy_of(config: Config, arch: ArchSpec, resources: Resources) -> Occupancy:
    """CTAs of `config` an SM of `arch` holds at once."""
    smem_bytes = resources.smem_bytes + config.scope["dynamic_smem_bytes"]
    return occupancy(arch, threads_per_cta=config.threads, registers=resources.registers, smem_bytes=smem_bytes)


def problem_fields(problem: Problem) -> dict[str, Any]:
    """The problem as a row has it."""
    sizes = {"m": problem.m, "n": problem.n, "k": problem.k, "layout": problem.layout, "dtype": problem.dtype}
    out = {"out_dtype": problem.out_dtype} if problem.out_dtype != "float32" else {}
    return {**sizes, **out, "alpha": problem.alpha, "beta": problem.beta}


def bare_row(config: Config, problem: Problem) -> Row:
    """A row that names rung, config and problem and claims nothing."""
    rung = config.rung
    return Row(
        rung=rung.name,
        number=rung.number,
        track=rung.track,
        summary=rung.summary,
        problem=problem_fields(problem),
        config=dict(config.values),
    )


def static_row(config: Config, problem: Problem, arch: ArchSpec, binary: Binary) -> Row:
    """The row of a compiled config: everything but results.

    A binary that a rule refuses, for its registers or spills, is a row with those figures and the failure in it.
    """
    resources = resources_of(binary)
    spilled = {"spill_bytes": resources.spill_bytes, "stack_bytes": resources.stack_bytes}
    held = occupancy_of(config, arch, resources)
    made = asdict(counts(config, problem))
    row = bare_row(config, problem)
    row.arch, row.binary = arch.name, binary.key
    row.registers, row.smem_bytes, row.stages = resources.registers, config.smem_bytes, config.stages
    row.spill_bytes, row.stack_bytes = resources.spill_bytes, resources.stack_bytes
    row.occupancy, row.ctas_per_sm, row.limiters = held.occupancy, held.ctas_per_sm, list(held.limiters)
    row.global_load_bytes_per_flop = float(made["global_load_bytes_per_flop"])
    row.shared_loads_per_result = float(made["shared_loads_per_result"])
    try:
        config.require_binary(arch, registers=resources.registers, **spilled)
    except InvalidConfig as refused:
        row.verified, row.failure, row.verdict = False, refused.kind, str(refused)
    return row
