"""A candidate: one config of a rung with whatever its build sets apart, ready to be compiled and written down.

Owns the way from a candidate to its source, binary and row, and to JSON and back, so that a record is enough to build
the same again. What two candidates differ in is `causes`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary, KernelSource
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.compile.variant import PLAIN, Edit, Variant
from tilewright.declare import Config, all_rungs, rung_config
from tilewright.facts.static import bare_row, static_row
from tilewright.problem import Problem
from tilewright.record import Row


@dataclass(frozen=True)
class Candidate:
    """A config and how its build differs from the rung's."""

    config: Config
    variant: Variant = PLAIN

    def __str__(self) -> str:
        """The rung and what isn't as it is by default."""
        usual = {p.name: p.default for p in self.config.rung.params}
        parts = [f"{name}={value}" for name, value in self.config.values.items() if value != usual[name]]
        parts += [f"{name}={value}" for name, value in self.variant.constants]
        if self.variant.beta_mode != PLAIN.beta_mode:
            parts.append(f"β {self.variant.beta_mode}")
        if self.variant.guarded is not None:
            parts.append("guarded" if self.variant.guarded else "unguarded")
        if self.variant.text is not None or self.variant.edits:
            parts.append("edited")
        return " ".join([self.config.rung.name, *parts, *self.variant.options])

    def source(self, problem: Problem) -> KernelSource:
        """The complete text for `problem`. Raises InvalidConfig, InvalidProblem."""
        return kernel_source(self.config, problem, self.variant)

    def cubin(self, problem: Problem, arch: ArchSpec) -> Binary:
        """Compiled for `arch`, specialised for `problem`. Raises CompileFailed and as `source` does."""
        return compile_cubin(self.source(problem), arch)

    def row(self, problem: Problem, arch: ArchSpec) -> Row:
        """The static row of its build. Raises what a rule or NVRTC refuses."""
        self.config.require_arch(arch)
        self.config.require_problem(problem)
        return static_row(self.config, problem, arch, self.cubin(problem, arch))

    def bare_row(self, problem: Problem) -> Row:
        """A row that claims nothing."""
        return bare_row(self.config, problem)

    def provable(self, problem: Problem) -> Problem:
        """The problem on which a build for `problem` is verified: the very same binary must be right there.

        A build that reads C whatever β is breaks the BLAS rule at β = 0, where C may hold anything; it is verified with
        β = 1, where it owes the product like any other.
        """
        return replace(problem, beta=1.0) if self.variant.beta_mode == "always_read" else problem

    def to_json(self) -> dict[str, Any]:
        """Rung, config and every choice that isn't the rung's own, as JSON types."""
        usual = asdict(PLAIN)
        chosen = {name: value for name, value in asdict(self.variant).items() if value != usual[name]}
        if "constants" in chosen:
            chosen["constants"] = dict(self.variant.constants)
        return {"rung": self.config.rung.name, "config": dict(self.config.values), **chosen}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Candidate:
        """The inverse of `to_json`. Raises UnknownName, InvalidConfig."""
        config = rung_config(all_rungs().find(data["rung"]), data["config"])
        variant = Variant(
            text=data.get("text"),
            edits=tuple(Edit(**edit) for edit in data.get("edits", ())),
            constants=tuple(data.get("constants", {}).items()),
            beta_mode=data.get("beta_mode", PLAIN.beta_mode),
            guarded=data.get("guarded"),
            options=tuple(data.get("options", ())),
        )
        return cls(config, variant)
