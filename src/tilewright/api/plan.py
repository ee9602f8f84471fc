"""What a call will do, as a value that says so: copies, launches and their configs, where the result goes first.

Owns the choice among the orientations: the first that some kernel supports. It touches no array.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import mul
from typing import Protocol

from tilewright.api.operands import MOST_ALIGNMENT_BYTES, Product, Shape
from tilewright.api.orientation import Orientation, candidate_orientations
from tilewright.api.split import LaunchGroup, Steps, split_into_launches
from tilewright.arch import ArchSpec
from tilewright.declare import Config
from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem
from tilewright.select import Choice, choose


@dataclass(frozen=True, slots=True)
class Copy:
    """An input that is copied before it is multiplied: its name, the reason, and whether by columns.

    `repeated` are axes of the array along which it repeats itself, of which the copy holds one index alone.
    """

    name: str
    reason: str
    by_columns: bool = False
    repeated: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Launches of one problem by one config; `offsets` are added to the operands' addresses, in bytes."""

    problem: Problem
    choice: Choice
    offsets: tuple[Steps, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a call but its arrays.

    `swapped`: the transposed product Bᵀ·Aᵀ is computed, so that A is the kernel's B. `temporary` says why the result is
    computed apart and copied to `out` then, if it is. `out_dtype` and `result_shape` are the result's. `library` says
    why the framework's own product is taken instead, if it is. An empty result has no parts.
    """

    result_shape: Shape
    out_dtype: str
    parts: tuple[Part, ...] = ()
    copies: tuple[Copy, ...] = ()
    swapped: bool = False
    temporary: str | None = None
    library: str | None = None

    def __str__(self) -> str:
        """A line for every launch, copy and detour."""
        if not self.parts:
            return f"result {self.result_shape}: empty, nothing to launch"
        lines = [line for part in self.parts for line in _part_lines(part)]
        if self.swapped:
            lines.append("out: stored by columns, so its transpose is computed: Bᵀ·Aᵀ")
        lines += [
            f"{copy.name}: copied{', by columns' if copy.by_columns else ''}: {copy.reason}" for copy in self.copies
        ]
        if self.library:
            lines.append(f"the framework's own product is taken in its place: {self.library}")
        if self.temporary:
            lines.append(f"out: computed apart and copied: {self.temporary}")
        return "\n".join(lines)


def _part_lines(part: Part) -> list[str]:
    choice, launches = part.choice, len(part.offsets)
    times = f", {launches} launches" if launches > 1 else ""
    aligned = f"aligned to {part.problem.alignment_bytes} bytes"
    lines = [
        f"{part.problem}, {aligned}{times}: {choice.config.rung.name} {choice.config}",
        f"  {choice.why}",
    ]
    if choice.expected_us is not None:
        lines.append(f"  expected: {choice.expected_us:.3g} µs")
    if choice.runner_up is not None:
        lines.append(f"  next: {choice.runner_up.rung.name} {choice.runner_up}")
    return lines


class Target(Protocol):
    """What a plan must know of the device."""

    @property
    def arch(self) -> ArchSpec:
        """Its architecture."""
        ...

    @property
    def sm_count(self) -> int:
        """Its streaming multiprocessors."""
        ...

    @property
    def card(self) -> str | None:
        """Its name where that is listed."""
        ...


def make_plan(product: Product, target: Target, *, own: bool = False, config: Config | None = None) -> Plan:
    """The plan for `product` on `target`.

    `own` keeps the framework's product out; `config` is what the caller named, and is not chosen then. Raises
    InvalidProblem, with the rungs' reasons, where none supports it.
    """
    if 0 in product.result_shape:
        return Plan(product.result_shape, product.out_dtype)
    refusals = []
    for orientation in candidate_orientations(product):
        groups = split_into_launches(orientation)
        try:
            parts = tuple(_part(orientation, group, target, own, config) for group in groups)
        except InvalidProblem as error:
            refusals.append(error)
            continue
        return Plan(
            product.result_shape,
            product.out_dtype,
            parts,
            tuple(_copies(orientation)),
            orientation.swapped,
            orientation.temporary,
            None if orientation.temporary is not None else _library(parts),
        )
    raise refusals[0]


def _library(parts: tuple[Part, ...]) -> str | None:
    """Why the framework's product is taken: it is expected to be faster than every launch."""
    return parts[0].choice.library if all(part.choice.library for part in parts) else None


def _part(orientation: Orientation, group: LaunchGroup, target: Target, own: bool, config: Config | None) -> Part:
    product, matrices, is_batched = orientation.product, group.matrices, group.batch > 1
    problem = Problem(
        m=matrices.m,
        n=matrices.n,
        k=matrices.k,
        batch=group.batch,
        dtype=product.dtype,
        out_dtype=product.out_dtype,
        layout=matrices.layout,
        **{f"ld{name}": ld for name, ld in group.leading_dimensions.items()},
        **({f"batch_stride_{name}": step for name, step in group.batch_steps._asdict().items()} if is_batched else {}),
        alpha=product.alpha,
        beta=product.beta,
        epilogue=product.epilogue,
        alignment_bytes=_alignment(orientation, group.offsets),
    )
    if config is None:
        choice = choose(problem, target.arch, target.sm_count, kernels="own" if own else "all", card=target.card)
    else:
        config.require_arch(target.arch)
        config.require_problem(problem)
        choice = Choice(config, "named by the call")
    sizes = Steps(*(ITEMSIZE_BYTES[product.dtype],) * 2, *(ITEMSIZE_BYTES[product.out_dtype],) * 2)
    return Part(problem, choice, tuple(Steps(*map(mul, offset, sizes)) for offset in group.offsets))


def _alignment(orientation: Orientation, offsets: list[Steps]) -> int:
    """What every address of the launches is a multiple of.

    By the alignment that all arrays of the call have, used or not: with that alone known, the plan is right again.
    Where one isn't even aligned to its elements, by the addresses that are used.
    """
    product, bits = orientation.product, MOST_ALIGNMENT_BYTES
    if product.is_aligned:
        bits |= product.alignment_bytes
    else:
        for name in (*("ab" if orientation.k else ""), "c", "d", "bias"):
            placement = orientation.operands[name]
            if placement.operand is not None and placement.reason is None:
                bits |= placement.operand.address
    sizes = Steps(*(ITEMSIZE_BYTES[product.dtype],) * 2, *(ITEMSIZE_BYTES[product.out_dtype],) * 2)
    for offset in offsets:
        for step, size in zip(offset, sizes, strict=True):
            bits |= abs(step) * size
    return bits & -bits


def _copies(orientation: Orientation) -> Iterator[Copy]:
    batch_axes = len(orientation.batch)
    for name, placement in orientation.operands.items():
        operand = placement.operand
        if operand is None or placement.reason is None:
            continue
        axes = batch_axes if name == "c" else max(len(operand.shape) - 2, 0)
        letter = dict(zip("ab", orientation.layout, strict=True)).get(name, "N")
        by_columns = len(operand.shape) == axes + 2 and (letter == "T") != orientation.swapped
        repeated = tuple(i for i in range(axes) if operand.shape[i] > 1 and operand.strides_bytes[i] == 0)
        yield Copy(operand.name, placement.reason, by_columns, repeated)
