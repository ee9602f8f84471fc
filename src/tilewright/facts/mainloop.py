"""The main loop of a kernel in SASS, and its instruction mix for one step along K.

The main loop is the loop with the most FMAs, those of tensor cores included, the smallest where several have as many;
a loop around one that makes a whole step along K is none: it goes from tile to tile.
How many steps along K its body holds is not guessed: the declaration says how many FMAs a thread owes to one step.
Counts are a thread's, from the instructions as they stand; which of them a predicate switches off is not known here.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilewright.declare.config import Config
from tilewright.facts.flow import Loop, loops
from tilewright.facts.sass import BRANCHES, INSTRUCTION_BYTES, Instruction

FMAS = {"FFMA": 1, "FFMA2": 2}
WARPGROUP_THREADS = 128
HMMA_FMAS = {"16816": 16 * 8 * 16 // 32, "1688": 16 * 8 * 8 // 32}
"""One thread's share of what a warp's HMMA multiplies, by its shape; a warpgroup's HGMMA spells its shape out."""
HGMMA_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")
MEMORY = ("LDS", "STS", "LDG", "STG", "LDGSTS")
MATRICES = ("LDSM", "STSM")
BY_NAME = ("FFMA", "FFMA2", "HMMA", "HGMMA", "UTMALDG", "UTMASTG", "SYNCS", "BAR", "LDL", "STL")
"""Opcodes that are counted whatever their modifiers say."""


@dataclass(frozen=True, slots=True)
class Executed:
    """An instruction and how often it runs for one step along K, as far as control flow within the loop is fixed."""

    instruction: Instruction
    times: Fraction


@dataclass(frozen=True, slots=True)
class MainLoop:
    """The main loop's instructions, weighed so that they add up to one `unit`.

    `loop` is the whole region, an enclosing loop with what it does once a step included. `others` are further loops in
    it, counted as one pass since nothing says how often they are taken. `steps_per_trip` is how many steps along K one
    trip makes, or None where the FMAs don't add up to the declaration's; `unit` is then one trip. `how` says in words
    how the counts were come by.
    """

    loop: Loop
    others: tuple[Loop, ...]
    code_bytes: int
    executed: tuple[Executed, ...]
    steps_per_trip: Fraction | None
    unit: str
    how: str

    @property
    def mix(self) -> dict[str, Fraction]:
        """Instructions of each kind for one unit."""
        return mix(self.executed)


def plain(count: Fraction) -> int | float:
    """A count as JSON has it."""
    return count.numerator if count.denominator == 1 else float(count)


def kind_of(instruction: Instruction) -> str:
    """What an instruction counts as: 'FFMA', 'HGMMA', 'LDS.128', 'LDSM.x4', 'BAR', 'LDL', 'branch' or 'other'."""
    opcode = instruction.opcode
    if opcode in MEMORY:
        return f"{opcode}.{instruction.width_bits}"
    if opcode in MATRICES:  # how many one instruction moves
        return f"{opcode}.x{next((m for m in instruction.modifiers if m in ('2', '4')), '1')}"
    if opcode in BY_NAME:
        return opcode
    return "branch" if opcode in BRANCHES else "other"


def mix(executed: Iterable[Executed]) -> dict[str, Fraction]:
    """Counts by kind; 'FFMA.reuse' is those of the FMAs that keep an operand for the next instruction."""
    counted: defaultdict[str, Fraction] = defaultdict(Fraction)
    for item in executed:
        if item.instruction.never_executes:
            continue
        kind = kind_of(item.instruction)
        counted[kind] += item.times
        if kind in FMAS and item.instruction.reuses:
            counted[f"{kind}.reuse"] += item.times
    return dict(counted)


def fmas(code: Iterable[Instruction]) -> int:
    """FMAs that one thread makes in `code`, run once."""
    return sum(_fmas(instruction) for instruction in code)


def _fmas(instruction: Instruction) -> int:
    if instruction.opcode == "HMMA":
        return next((HMMA_FMAS[shape] for shape in instruction.modifiers if shape in HMMA_FMAS), 0)
    if instruction.opcode == "HGMMA":
        shapes = (HGMMA_SHAPE.fullmatch(modifier) for modifier in instruction.modifiers)
        return next((math.prod(map(int, shape.groups())) // WARPGROUP_THREADS for shape in shapes if shape), 0)
    return FMAS.get(instruction.opcode, 0)


def fmas_per_step(config: Config) -> Fraction:
    """FMAs that one thread that multiplies owes to one step along K, by the declaration."""
    declared, scope = config.rung.accesses, config.scope
    return Fraction(declared.results.evaluate(scope) * declared.k_step.evaluate(scope), config.math_threads)


def main_loop(code: Sequence[Instruction], config: Config) -> MainLoop | None:
    """The main loop of `config`'s kernel, or None when no loop holds an FMA."""
    owed, k_step = fmas_per_step(config), config.rung.accesses.k_step.evaluate(config.scope)
    found = loops(code)
    counted = {loop: fmas(code[loop.first : loop.last + 1]) for loop in found}
    whole = [loop for loop in found if counted[loop] >= owed]
    walks_tiles = {outer for outer in whole if any(outer.encloses(loop) for loop in whole)}
    left = {loop: count for loop, count in counted.items() if loop not in walks_tiles}
    most = max(left.values(), default=0)
    if most == 0:
        return None
    inner = min((loop for loop in left if left[loop] == most), key=lambda loop: loop.last - loop.first)
    around = [loop for loop in found if loop.encloses(inner) and counted[loop] == most]
    if most < owed and owed % most == 0 and around:
        return _nested(code, min(around, key=lambda loop: loop.last - loop.first), inner, int(owed / most), k_step)
    return _single(code, inner, Fraction(most) / owed, k_step)


def step_words(k_step: int, count: int = 1) -> str:
    """One step along K in words, or `count` of them."""
    plural = "" if count == 1 else "s"
    return f"step{plural} along K" if k_step == 1 else f"K-tile{plural} of {k_step}"


def _single(code: Sequence[Instruction], loop: Loop, steps: Fraction, k_step: int) -> MainLoop:
    unit = step_words(k_step)
    if steps == 1:
        body = f"one trip is one {unit}"
    elif steps.denominator == 1:
        body = f"one trip is {steps} {step_words(k_step, int(steps))}, unrolled by the compiler; counts are for one"
    elif steps.numerator == 1:
        body = f"{steps.denominator} trips make one {unit}; counts are for all of them"
    else:
        how = f"one trip holds {float(steps):.3g} times the FMAs that the declaration counts for one {unit}"
        return _made(code, loop, [Fraction(1)] * _length(loop), None, "trip", f"{how}; counts are for one trip")
    return _made(code, loop, [1 / steps] * _length(loop), steps, unit, body)


def _nested(code: Sequence[Instruction], outer: Loop, inner: Loop, trips: int, k_step: int) -> MainLoop:
    times = [
        Fraction(trips if inner.first <= index <= inner.last else 1) for index in range(outer.first, outer.last + 1)
    ]
    how = f"one trip is one {step_words(k_step)}, with a loop inside taken {trips} times"
    return _made(code, outer, times, Fraction(1), step_words(k_step), how)


def _length(loop: Loop) -> int:
    return loop.last - loop.first + 1


def _made(
    code: Sequence[Instruction], loop: Loop, times: list[Fraction], steps: Fraction | None, unit: str, how: str
) -> MainLoop:
    body = code[loop.first : loop.last + 1]
    executed = tuple(Executed(i, t) for i, t in zip(body, times, strict=True))
    others = tuple(each for each in loops(code) if loop.encloses(each) and not fmas(code[each.first : each.last + 1]))
    if others:
        how += f"; {len(others)} more inside, counted as one pass"
    return MainLoop(loop, others, INSTRUCTION_BYTES * len(body), executed, steps, unit, how)
