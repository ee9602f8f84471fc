"""What a call will do, as a value that says so: copies, launches, and where the result goes first."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.api.pieces import Steps
from tilewright.api.shapes import Shape
from tilewright.problem import Problem
from tilewright.select import Choice


@dataclass(frozen=True, slots=True)
class Copy:
    """An input that is copied before it is multiplied: its name, the reason, and whether the copy lies by columns.

    `repeated` are axes of the array along which it repeats itself, of which the copy holds one index alone.
    """

    name: str
    reason: str
    by_columns: bool = False
    repeated: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Launches of one problem by one config; `offsets` are added to the operands' addresses, in elements."""

    problem: Problem
    choice: Choice
    offsets: tuple[Steps, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a call but its arrays.

    `swapped`: the transposed product Bᵀ·Aᵀ is computed, so that A is the kernel's B. `temporary` says why the result
    is computed apart and copied to `out` then; empty where it isn't. `out_dtype` and `result_shape` are the result's.
    An empty result has no parts.
    """

    result_shape: Shape
    out_dtype: str
    parts: tuple[Part, ...] = ()
    copies: tuple[Copy, ...] = ()
    swapped: bool = False
    temporary: str = ""

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

    @property
    def library(self) -> str:
        """Why the framework's own product is taken in place of the one launch, in words; empty where it isn't."""
        is_one_launch = len(self.parts) == 1 and len(self.parts[0].offsets) == 1
        return self.parts[0].choice.library if is_one_launch and not (self.copies or self.temporary) else ""

    @property
    def copied(self) -> frozenset[str]:
        """The names of the inputs that are copied."""
        return frozenset(copy.name for copy in self.copies)


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
