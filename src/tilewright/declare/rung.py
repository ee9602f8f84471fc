"""The declaration of one kernel: everything tilewright knows of it apart from its text.

A rung module holds one `RUNG = Rung(...)` beside a `.cu` of the same stem. Listing, config space, compile-time
constants, launch geometry, tests, tables and reports derive from it. This module owns the value types and their
own consistency; applying rules to a config is `config.py`, finding rungs is `registry.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tilewright.declare.expr import Expr
from tilewright.declare.footprint import LANE_NAMES, Footprint
from tilewright.declare.operand_map import OPERANDS, OperandMap
from tilewright.declare.rules import Kind, Rule
from tilewright.declare.scratch import Scratch
from tilewright.declare.step import Step
from tilewright.errors import InvalidDeclaration
from tilewright.problem import ProblemKind

PROBLEM_NAMES = frozenset(
    {"m", "n", "k", "batch", "lda", "ldb", "ldc", "ldd", "alignment_bytes"}
    | {"reads_c", "transposed_a", "transposed_b", "element_bytes", "out_bytes"}
    | {f"batch_stride_{operand}" for operand in "abcd"}
)
TENSOR_FEATURES = frozenset({"mma_sync", "wgmma", "tcgen05"})
SMEM_NAMES = frozenset({"threads", "smem_bytes", "static_smem_bytes", "dynamic_smem_bytes"})
BINARY_NAMES = frozenset({"registers", "spill_bytes", "stack_bytes"})


@dataclass(frozen=True)
class Param:
    """A compile-time constant a person or the tuner chooses: default, candidate values, meaning.

    `--set` takes any integer from `lowest` to `highest`; the rules decide. `values` is what enumeration tries.
    """

    name: str
    default: int
    values: tuple[int, ...]
    doc: str
    highest: int = 4096
    lowest: int = 1


def with_defaults(params: tuple[Param, ...], **defaults: int) -> tuple[Param, ...]:
    """`params` with other defaults, for a rung that differs in constants alone. Raises InvalidDeclaration."""
    unknown = set(defaults) - {p.name for p in params}
    if unknown:
        raise InvalidDeclaration(f"{', '.join(sorted(unknown))}: no such parameter to give a default")
    return tuple(replace(p, default=defaults.get(p.name, p.default)) for p in params)


class Derived(NamedTuple):
    """A constant computed from the parameters and from earlier derived values."""

    name: str
    expr: Expr
    doc: str


def derived(name: str, expr: str, doc: str) -> Derived:
    """`Derived` from text."""
    return Derived(name, Expr(expr), doc)


class Shared(NamedTuple):
    """One shared-memory array: elements of one stage, stages, and whether it is allocated dynamically."""

    name: str
    elements: Expr
    stages: Expr
    dynamic: bool


def shared(name: str, elements: str, *, stages: str = "1", dynamic: bool = False) -> Shared:
    """`Shared` from text. `elements` counts padding in."""
    return Shared(name, Expr(elements), Expr(stages), dynamic)


class Launch(NamedTuple):
    """Launch geometry: CTAs per grid dimension, threads per block dimension, CTAs per cluster dimension.

    Grid expressions may name the problem's sizes and `sm_count`, the SMs of the device it is planned for.
    """

    grid: tuple[Expr, Expr, Expr]
    block: tuple[Expr, Expr, Expr]
    cluster: tuple[Expr, Expr, Expr]

    @property
    def persistent(self) -> bool:
        """Whether there are as many CTAs as the device's SMs call for, each with several tiles to make."""
        return any("sm_count" in expr.names for expr in self.grid)


def launch(
    *,
    grid: tuple[str, str, str],
    block: tuple[str, str, str],
    cluster: tuple[str, str, str] = ("1", "1", "1"),
) -> Launch:
    """`Launch` from text."""
    triples = [(Expr(x), Expr(y), Expr(z)) for x, y, z in (grid, block, cluster)]
    return Launch(triples[0], triples[1], triples[2])


@dataclass(frozen=True)
class Requires:
    """What the rung takes: layouts and dtypes of a problem, features of an architecture.

    Every layout goes with every type. `dtypes` are of one size, in which shared arrays are counted; the first layout
    and types are meant where none is named. `out_dtypes` left empty are `dtypes`. `also` are single kinds beyond these,
    of elements of any size. `row_bytes` is what rows and addresses must be aligned to beyond their elements.
    """

    layouts: tuple[str, ...] = ("NN",)
    dtypes: tuple[str, ...] = ("float32",)
    out_dtypes: tuple[str, ...] = ()
    row_bytes: int = 0
    also: tuple[ProblemKind, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "out_dtypes", self.out_dtypes or self.dtypes)

    @property
    def usual(self) -> ProblemKind:
        """The kind of problem that is meant where none is named."""
        return ProblemKind(self.layouts[0], self.dtypes[0], self.out_dtypes[0])

    @property
    def every_dtype(self) -> tuple[str, ...]:
        """The element types of all kinds it takes."""
        return tuple(dict.fromkeys([*self.dtypes, *(kind.dtype for kind in self.also)]))

    def refusal(self, kind: ProblemKind) -> str:
        """Why problems of `kind` aren't taken, in words; empty where they are."""
        if kind in self.also:
            return ""
        besides = f", and besides {', '.join(str(other) for other in self.also)}" if self.also else ""
        for name, takes in (("layout", self.layouts), ("dtype", self.dtypes), ("out_dtype", self.out_dtypes)):
            if getattr(kind, name) not in takes:
                return f"{name}={getattr(kind, name)}: takes {', '.join(takes)}{besides} only"
        return ""

    features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Accesses:
    """Element accesses of one CTA in one step of `k_step` along K, for `results` results.

    `math_threads` are those that multiply, where others only copy for them; None is all of them. `copies` are the
    asynchronous copies that threads make, each of a word; their widths may be the problem's choice.
    """

    k_step: Expr
    results: Expr
    global_loads: Expr
    shared_loads: Expr
    shared_stores: Expr
    math_threads: Expr | None = None
    copies: Expr | None = None


def accesses(
    *,
    k_step: str,
    results: str,
    global_loads: str,
    shared_loads: str = "0",
    shared_stores: str = "0",
    math_threads: str | None = None,
    copies: str | None = None,
) -> Accesses:
    """`Accesses` from text; every count but that of copies is in elements, by all threads of the CTA."""
    counts = (Expr(k_step), Expr(results), Expr(global_loads), Expr(shared_loads), Expr(shared_stores))
    threads, words = (None if text is None else Expr(text) for text in (math_threads, copies))
    return Accesses(*counts, math_threads=threads, copies=words)


@dataclass(frozen=True, kw_only=True)
class Rung(Step):
    """A step with a kernel.

    `from_problem` are constants that each problem chooses, such as what its layout and alignment allow.
    `unguarded_when` is the expression over sizes and constants under which no tail guard is needed: the kernel then
    sees GUARDED = 0, else 1. Without it the kernel has no guards and its problem rules say so. `kernel` names another
    rung's `.cu` where only constants differ. `footprints` are the accesses whose shape across a warp is worth knowing.
    `tensor_maps` are what its argument, `TmaArgs` then, holds beyond a plain product's. `scratch` is the global memory
    that its CTAs need beside the operands. `source` is the `.cu`'s text, filled in by discovery.
    """

    params: tuple[Param, ...]
    launch: Launch
    accesses: Accesses
    derived: tuple[Derived, ...] = ()
    rules: tuple[Rule, ...] = ()
    shared: tuple[Shared, ...] = ()
    requires: Requires = field(default_factory=Requires)
    from_problem: tuple[Derived, ...] = ()
    unguarded_when: Expr | None = None
    footprints: tuple[Footprint, ...] = ()
    tensor_maps: tuple[OperandMap, ...] = ()
    scratch: Scratch | None = None
    kernel: str | None = None
    source: str = ""

    def __post_init__(self) -> None:
        constants = [p.name for p in self.params] + [d.name for d in (*self.derived, *self.from_problem)]
        for name in constants:
            if not name.isupper() or constants.count(name) > 1:
                raise InvalidDeclaration(f"{name}: constants are upper-case and stand once")
        self._check_names()
        for param in self.params:
            if param.default not in param.values:
                raise InvalidDeclaration(
                    f"{param.name}: default {param.default} must be among its values {param.values}"
                )

    def _check_names(self) -> None:
        known = set(p.name for p in self.params)
        for item in self.derived:
            self._require(item.expr, known, f"derived {item.name}")
            known.add(item.name)
        sizes = known | PROBLEM_NAMES
        for item in self.from_problem:
            self._require(item.expr, sizes, f"constant {item.name}")
            sizes = sizes | {item.name}
        allowed = {
            "config": known,
            "arch": known | SMEM_NAMES,
            "problem": sizes,
            "choice": sizes,
            "binary": known | SMEM_NAMES | BINARY_NAMES,
        }
        for rule in self.rules:
            self._require(rule.expr, allowed[rule.kind], f"{rule.kind} rule", arch=rule.kind in ("arch", "binary"))
        for array in self.shared:
            for expr in (array.elements, array.stages):
                self._require(expr, known, f"shared array {array.name}")
        for expr in self.launch.grid:
            self._require(expr, sizes | {"sm_count"}, "launch grid")
        self._check_accesses(known, sizes)
        for access in self.footprints:
            in_offset = (sizes if access.is_global else known) | LANE_NAMES
            self._require(access.offset, in_offset, f"footprint {access.name}")
            self._require(access.elements, known, f"footprint {access.name}")
        if self.unguarded_when is not None:
            self._require(self.unguarded_when, sizes, "unguarded_when")
        self._check_tensor_maps(sizes)
        self._check_scratch(sizes)

    def _check_accesses(self, known: set[str], sizes: set[str]) -> None:
        counts = self.accesses
        fixed: Iterable[Expr | None] = (
            *(*self.launch.block, *self.launch.cluster, counts.k_step, counts.results),
            *(counts.global_loads, counts.shared_loads, counts.shared_stores, counts.math_threads),
        )
        for expr in fixed:
            if expr is not None:
                self._require(expr, known, "launch block, cluster or accesses")
        if counts.copies is not None:
            self._require(counts.copies, sizes, "copies")

    def _check_tensor_maps(self, known: set[str]) -> None:
        mapped = [item.operand for item in self.tensor_maps]
        for item in self.tensor_maps:
            if item.operand not in OPERANDS or mapped.count(item.operand) > 1:
                raise InvalidDeclaration(f"tensor map of {item.operand!r}: a, b and d can be mapped, once each")
            for expr in item.exprs:
                self._require(expr, known, f"tensor map of {item.operand}")

    def _check_scratch(self, known: set[str]) -> None:
        for expr in () if self.scratch is None else (self.scratch.sums, self.scratch.flags):
            self._require(expr, known | {"sm_count"}, "scratch")

    def _require(self, expr: Expr, known: set[str], where: str, *, arch: bool = False) -> None:
        if expr.names <= known:
            return
        unknown = {n for n in expr.names - known if not (arch and n.startswith("arch_"))}
        if unknown:
            raise InvalidDeclaration(
                f"{where}: {expr.text!r} names {', '.join(sorted(unknown))}, which is not known there"
            )

    def rules_of(self, kind: Kind) -> tuple[Rule, ...]:
        """The rules of one kind, in the order they are checked."""
        return tuple(rule for rule in self.rules if rule.kind == kind)

    @property
    def entry(self) -> str:
        """The kernel's `extern "C"` symbol: the stem of its `.cu`."""
        return self.kernel or self.name

    @property
    def can_wait(self) -> bool:
        """Whether its kernel, built with DEPENDENT = 1, waits for the one before it, so that it may begin early."""
        return "  wait_for_previous_kernel();\n" in self.source

    @property
    def is_scalar_generic(self) -> bool:
        """Whether another trait can stand in for its element: it multiplies by `Scalar::fma`, not on tensor cores."""
        return not self.requires.features & TENSOR_FEATURES
