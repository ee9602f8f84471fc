"""Which machine instructions serve the accesses that the emulator traced, line by line, in one step along K.

The emulator's accesses are those of the source; a GPU's compiler may merge neighbours into wider ones. The binary's
line table says which instructions come from a line, and their widths and number must come out exactly by merging that
line's accesses, or nothing is claimed. The table blurs lines that were inlined side by side: those that don't come out
one by one are taken together. Owns that reasoning; merging is `emulator.recount`'s, the instructions are `mainloop`'s.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tilewright.emulator.trace import Kind, Space
from tilewright.facts.costs import Costs, Mix, Served
from tilewright.facts.mainloop import Executed, MainLoop, kind_of, mix
from tilewright.facts.sass import Instruction

OPCODES: dict[tuple[Space, Kind], str] = {
    ("shared", "load"): "LDS",
    ("shared", "store"): "STS",
    ("shared", "copy store"): "LDGSTS",
    ("global", "load"): "LDG",
    ("global", "store"): "STG",
    ("global", "copy load"): "LDGSTS",
}

Widths = dict[int, Fraction]
"""Instructions of a thread by width in bytes."""


Widen = Callable[[Costs, int], Sequence[Costs]]
"""Costs with accesses merged to a width in bytes, and of those that cannot be; empty where none can."""


def served(traced: Sequence[Costs], code: Sequence[Instruction], loop: MainLoop, widen: Widen) -> list[Served]:
    """Every line of `traced` with what serves it. `widen` is asked only where the widths as traced don't add up."""
    rest = [*code[: loop.loop.first], *code[loop.loop.last + 1 :]]
    outside = [Executed(instruction, Fraction(1)) for instruction in rest]
    found = {costs.whole.place: [Served(costs, costs.whole.width_bytes)] for costs in traced}
    for (space, kind), opcode in OPCODES.items():
        lines = [costs for costs in traced if (costs.whole.space, costs.whole.kind) == (space, kind)]
        one_kind = _OneKind([Choices(costs) for costs in lines], _of(loop.executed, opcode), _of(outside, opcode))
        one_kind.solve(widen)
        found |= {choices.traced.whole.place: one_kind.result(choices) for choices in one_kind.lines}
    return [each for parts in found.values() for each in parts]


def _of(code: Iterable[Executed], opcode: str) -> list[Executed]:
    return [item for item in code if item.instruction.opcode == opcode and not item.instruction.never_executes]


@dataclass(slots=True)
class Choices:
    """The ways in which one line's accesses may be served, and the one that was found to be the binary's.

    A way is the line's costs, by width where only some of its accesses are merged.
    """

    traced: Costs
    ways: list[Sequence[Costs]] = field(init=False)
    found: Sequence[Costs] | None = None

    def __post_init__(self) -> None:
        self.ways = [[self.traced]]

    @property
    def line(self) -> int:
        """The source line."""
        return self.traced.whole.line


@dataclass(slots=True)
class _OneKind:
    """One kind of access, and the instructions inside and outside the main loop that can serve it."""

    lines: list[Choices]
    inside: list[Executed]
    outside: list[Executed]

    @property
    def unsolved(self) -> list[Choices]:
        return [choices for choices in self.lines if choices.traced.instructions and choices.found is None]

    def solve(self, widen: Widen) -> None:
        """Find the one way in which the lines' accesses make up the main loop's instructions."""
        left = self._solve_by_line(_by_line(self.inside))
        for choices in self.unsolved:
            for width in {width for widths in left.values() for width in widths}:
                if width > choices.traced.whole.width_bytes and (wider := widen(choices.traced, width)):
                    choices.ways.append(wider)
        self._solve_by_line(left)

    def _solve_by_line(self, machine: Mapping[int | None, Widths]) -> dict[int | None, Widths]:
        """Line by line, then those left together. Returns the instructions that no line has been found to make up."""
        left = dict(machine)
        for line in {choices.line for choices in self.unsolved}:
            if _match([choices for choices in self.unsolved if choices.line == line], left.get(line, {})):
                del left[line]
        return {} if _match(self.unsolved, _added(left.values())) else left

    def result(self, choices: Choices) -> list[Served]:
        traced, line = choices.traced, choices.line
        width, elsewhere = traced.whole.width_bytes, _mix(self.outside, line)
        if choices.found is not None:
            return [Served(part, width, {self._name(part): part.instructions}, elsewhere) for part in choices.found]
        if traced.instructions:
            return [Served(traced, width, _mix(self.inside, line), elsewhere, self._unexplained(line))]
        wider = {_width(item) for item in self.outside if item.instruction.line == line} - {width}
        why = f"outside the main loop the binary has {_words(elsewhere)} here, not recounted" if wider else ""
        return [Served(traced, width, {}, elsewhere, why)]

    def _unexplained(self, line: int) -> str:
        """Nothing where the line's instructions have the width that was traced, and guards switch some off."""
        here = [choices.traced for choices in self.unsolved if choices.line == line]
        machine, asked = _by_line(self.inside).get(line, {}), _widths([here])
        if machine.keys() == asked.keys() and all(asked[width] <= machine[width] for width in asked):
            return ""
        lines = sorted({choices.line for choices in self.unsolved})
        what = _words(mix(item for item in self.inside if item.instruction.line in lines)) or "nothing"
        return f"the main loop has {what} for line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}: not recounted"

    def _name(self, part: Costs) -> str:
        return next(kind_of(item.instruction) for item in self.inside if _width(item) == part.whole.width_bytes)


def _match(lines: Sequence[Choices], machine: Widths) -> bool:
    """Whether there is exactly one choice of widths with as many instructions of each as `machine`; if so, take it."""
    if not lines:
        return False
    ways = [way for way in itertools.product(*(choices.ways for choices in lines)) if _widths(way) == machine]
    if len(ways) != 1:
        return False
    for choices, found in zip(lines, ways[0], strict=True):
        choices.found = found
    return True


def _widths(ways: Iterable[Sequence[Costs]]) -> Widths:
    return _added({each.whole.width_bytes: each.instructions} for way in ways for each in way)


def _added(parts: Iterable[Widths]) -> Widths:
    total: defaultdict[int, Fraction] = defaultdict(Fraction)
    for part in parts:
        for width, count in part.items():
            total[width] += count
    return dict(total)


def _by_line(code: Iterable[Executed]) -> dict[int | None, Widths]:
    by_line: dict[int | None, Widths] = {}
    for item in code:
        line = item.instruction.line
        by_line[line] = _added([by_line.get(line, {}), {_width(item): item.times}])
    return by_line


def _width(item: Executed) -> int:
    return item.instruction.width_bits // 8


def _mix(code: Iterable[Executed], line: int) -> Mix:
    return mix(item for item in code if item.instruction.line == line)


def _words(counts: Mix) -> str:
    return ", ".join(f"{kind} ×{float(count):g}" for kind, count in sorted(counts.items()))
