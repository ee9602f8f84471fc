"""A config: values for a rung's parameters, checked, with everything that follows from them.

Owns the binding of names to values (parameters, derived values, then problem, architecture and binary facts)
and the application of the four kinds of rules. Raises InvalidConfig or InvalidProblem before any launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from tilewright.arch import ArchSpec
from tilewright.declare.expr import Expr, ExpressionError
from tilewright.declare.nearest import advice
from tilewright.declare.operand_map import tensor_maps
from tilewright.declare.rules import Check, Rule, arch_rule, binary_rule, check, first_failure
from tilewright.declare.rung import Rung
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem

if TYPE_CHECKING:
    from tilewright.declare.tensor_map import TensorMap

BetaMode = Literal["specialised", "runtime", "always_read"]
BETA_ZERO, BETA_GENERAL, BETA_RUNTIME, BETA_ALWAYS_READ = range(4)
MAX_GRID = (2**31 - 1, 65535, 65535)

COMMON_RULES = (
    arch_rule("threads <= arch_max_threads_per_cta", "the most a CTA may have"),
    arch_rule("threads % arch_warp_size == 0", "so that every warp is full"),
    arch_rule("static_smem_bytes <= arch_smem_static_bytes", "the most that plain __shared__ arrays may take"),
    arch_rule("smem_bytes <= arch_smem_optin_bytes", "the most that one CTA may opt in to, stages and padding counted"),
    binary_rule(
        "threads // arch_warp_size * (ceil_div(registers * arch_warp_size, 256) * 256) <= arch_registers_per_sm",
        "so that at least one CTA's registers fit an SM",
    ),
)


class Scope(Mapping[str, int]):
    """Names to values, where derived values are computed on first use."""

    def __init__(self, values: Mapping[str, int], derived: Mapping[str, Expr]) -> None:
        self._values = dict(values)
        self._derived = derived

    def __getitem__(self, name: str) -> int:
        if name not in self._values:
            self._values[name] = self._derived[name].evaluate(self)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._values, **self._derived})

    def __len__(self) -> int:
        return len({**self._values, **self._derived})

    def with_values(self, more: Mapping[str, int], derived: Mapping[str, Expr] | None = None) -> Scope:
        """A scope that also binds `more`, and what is derived from it."""
        return Scope({**self._values, **more}, {**self._derived, **(derived or {})})


def scope_of(rung: Rung, values: Mapping[str, int]) -> Scope:
    """The scope of a rung's parameters, valid or not."""
    return Scope(values, {item.name: item.expr for item in rung.derived})


def _triple(exprs: tuple[Expr, Expr, Expr], scope: Scope) -> tuple[int, int, int]:
    return exprs[0].evaluate(scope), exprs[1].evaluate(scope), exprs[2].evaluate(scope)


@dataclass(frozen=True, eq=False)
class Config:
    """A valid config of `rung`. Make one with `rung_config`, which checks the config rules."""

    rung: Rung
    values: dict[str, int]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and (self.rung.name, self.values) == (other.rung.name, other.values)

    def __hash__(self) -> int:
        return hash((self.rung.name, tuple(self.values.items())))

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values.items())

    @cached_property
    def constants_scope(self) -> Scope:
        """Parameters and derived values by name, which is all that config rules may name."""
        return scope_of(self.rung, self.values)

    @cached_property
    def scope(self) -> Scope:
        """Parameters, derived values, threads and shared bytes by name."""
        scope = self.constants_scope
        x, y, z = _triple(self.rung.launch.block, scope)
        static = self._smem_bytes(scope, dynamic=False)
        dynamic = self._smem_bytes(scope, dynamic=True)
        return scope.with_values(
            {
                "threads": x * y * z,
                "static_smem_bytes": static,
                "dynamic_smem_bytes": dynamic,
                "smem_bytes": static + dynamic,
            }
        )

    def _smem_bytes(self, scope: Scope, *, dynamic: bool) -> int:
        element_bytes = ITEMSIZE_BYTES[self.rung.requires.dtypes[0]]
        arrays = (a for a in self.rung.shared if a.dynamic == dynamic)
        return sum(a.elements.evaluate(scope) * a.stages.evaluate(scope) * element_bytes for a in arrays)

    @property
    def constants(self) -> dict[str, int]:
        """Parameters and derived values, as the kernel sees them."""
        return {**self.values, **{item.name: self.scope[item.name] for item in self.rung.derived}}

    @property
    def threads(self) -> int:
        """Threads of one CTA."""
        return self.scope["threads"]

    @property
    def smem_bytes(self) -> int:
        """Shared bytes of one CTA, static and dynamic, all stages and padding."""
        return self.scope["smem_bytes"]

    @property
    def tile(self) -> tuple[int, int, int]:
        """Rows and columns of the CTA tile, and its step along k."""
        return self.scope["BM"], self.scope["BN"], self.rung.accesses.k_step.evaluate(self.scope)

    @property
    def stages(self) -> int:
        """Most stages of any shared array."""
        return max((array.stages.evaluate(self.scope) for array in self.rung.shared), default=1)

    @property
    def math_threads(self) -> int:
        """Threads of one CTA that multiply; the others copy for them."""
        declared = self.rung.accesses.math_threads
        return self.threads if declared is None else declared.evaluate(self.scope)

    @property
    def results_per_thread(self) -> int:
        """Results, so accumulators, of one thread that multiplies."""
        return self.rung.accesses.results.evaluate(self.scope) // self.math_threads

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads per block dimension."""
        return _triple(self.rung.launch.block, self.scope)

    @property
    def cluster(self) -> tuple[int, int, int]:
        """CTAs per cluster dimension."""
        return _triple(self.rung.launch.cluster, self.scope)

    def grid(self, problem: Problem, *, sm_count: int = 1) -> tuple[int, int, int]:
        """CTAs per grid dimension for `problem`. Raises InvalidProblem where a dimension is beyond CUDA's limit."""
        scope = self.problem_scope(problem).with_values({"sm_count": sm_count})
        try:
            grid = _triple(self.rung.launch.grid, scope)
        except ExpressionError as error:
            raise InvalidProblem(
                f"{self.rung.name}: {problem}: CTAs cannot be counted: {error}; split the product"
            ) from None
        for axis, count, limit in zip("xyz", grid, MAX_GRID, strict=True):
            if count > limit:
                raise InvalidProblem(
                    f"{self.rung.name}: {problem} needs {count} CTAs along grid.{axis}: at most {limit} can be "
                    f"launched; use a larger tile or split the product"
                )
        return grid

    def arch_checks(self, arch: ArchSpec) -> list[Check]:
        """Every architecture rule with its outcome, the rung's own before the common ones."""
        names = self.scope.with_values(arch.names())
        return [check(rule, names) for rule in self._arch_rules]

    def require_arch(self, arch: ArchSpec) -> None:
        """Raise Unsupported without the features this config needs, InvalidConfig without the room."""
        arch.require(self.rung.requires.features, self.rung.name)
        failure = self._arch_failure(arch)
        if failure is not None:
            fix = advice(self.rung, self.values, lambda trial: Config(self.rung, dict(trial)).fits(arch))
            raise InvalidConfig(f"{self.rung.name} on {arch.name}: {failure}; {fix}")

    def _arch_failure(self, arch: ArchSpec) -> Check | None:
        return first_failure(self._arch_rules, self.scope.with_values(arch.names()))

    @property
    def _arch_rules(self) -> list[Rule]:
        return [*self.rung.rules_of("arch"), *(r for r in COMMON_RULES if r.kind == "arch")]

    def fits(self, arch: ArchSpec) -> bool:
        """Whether config and architecture rules hold and the architecture has what the rung requires."""
        own = first_failure(self.rung.rules_of("config"), self.constants_scope)
        return own is None and self.has_room_on(arch)

    def has_room_on(self, arch: ArchSpec) -> bool:
        """Whether architecture rules hold and the architecture has what the rung requires, for a valid config."""
        return self.rung.requires.features <= arch.features and self._arch_failure(arch) is None

    def require_problem(self, problem: Problem) -> None:
        """Raise InvalidProblem unless this config can run `problem`."""
        failure = self.rung.requires.refusal(problem.kind) or first_failure(
            self.rung.rules_of("problem"), self.problem_scope(problem)
        )
        if failure:
            raise InvalidProblem(f"{self.rung.name}: {failure}")
        self.tensor_maps(problem)

    def tensor_maps(self, problem: Problem) -> dict[str, TensorMap]:
        """The tensor maps of a launch for `problem` by operand. Raises InvalidProblem for what cannot be mapped."""
        try:
            return tensor_maps(self.rung.tensor_maps, problem, self.problem_scope(problem))
        except InvalidProblem as error:
            raise InvalidProblem(f"{self.rung.name}: {error}") from None

    def scratch(self, problem: Problem, *, sm_count: int = 1) -> tuple[int, int] | None:
        """Accumulators of workspace and flags that a launch for `problem` needs, or None where the rung has neither."""
        if self.rung.scratch is None:
            return None
        scope = self.problem_scope(problem).with_values({"sm_count": sm_count})
        return self.rung.scratch.sums.evaluate(scope), self.rung.scratch.flags.evaluate(scope)

    def require_binary(self, arch: ArchSpec, *, registers: int, spill_bytes: int, stack_bytes: int) -> None:
        """Raise InvalidConfig unless what the compiler made of this config can be launched as meant."""
        made = {"registers": registers, "spill_bytes": spill_bytes, "stack_bytes": stack_bytes}
        rules = [*self.rung.rules_of("binary"), *(r for r in COMMON_RULES if r.kind == "binary")]
        failure = first_failure(rules, self.scope.with_values({**arch.names(), **made}))
        if failure is not None:
            raise InvalidConfig(f"{self.rung.name} on {arch.name}: {failure}")

    def problem_constants(
        self, problem: Problem, *, beta_mode: BetaMode = "specialised", dependent: bool = False
    ) -> dict[str, int]:
        """The constants chosen from the problem: BETA_MODE, DEPENDENT, GUARDED and the rung's own.

        `specialised` compiles β = 0 and β ≠ 0 apart; `runtime` decides in the kernel; `always_read` reads C even
        when β = 0, against the BLAS rule, and exists for experiments alone. `dependent` builds the kernel for a launch
        that may begin while the kernel before it ends; raises InvalidConfig where the rung cannot wait for that one.
        """
        if dependent and not self.rung.can_wait:
            raise InvalidConfig(
                f"{self.rung.name}: dependent=True: its kernel does not wait for the one before it; leave it at False"
            )
        specialised = BETA_GENERAL if problem.reads_c else BETA_ZERO
        mode = {"specialised": specialised, "runtime": BETA_RUNTIME, "always_read": BETA_ALWAYS_READ}[beta_mode]
        when, scope = self.rung.unguarded_when, self.problem_scope(problem)
        guarded = when is not None and not when.evaluate(scope)
        own = {item.name: scope[item.name] for item in self.rung.from_problem}
        return {"BETA_MODE": mode, "DEPENDENT": int(dependent), "GUARDED": int(guarded), **own}

    def problem_scope(self, problem: Problem) -> Scope:
        """Parameters, derived values, the problem's names and what the rung derives from them."""
        chosen = {item.name: item.expr for item in self.rung.from_problem}
        return self.scope.with_values(problem.names(), chosen)
