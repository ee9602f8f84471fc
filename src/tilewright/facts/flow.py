"""Control flow of one kernel's SASS: basic blocks, loops, and which blocks cannot be avoided.

Knows branches and nothing of what the instructions compute. Calls count as falling through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.facts.sass import Instruction


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions `first` to `last` (indices, both included) that run one after the other, and the blocks after it.

    `exits` says that the kernel may end here.
    """

    first: int
    last: int
    following: tuple[int, ...]
    exits: bool

    def __contains__(self, index: int) -> bool:
        return self.first <= index <= self.last


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions `first` to `last` (indices, both included), the last of which branches back to the first."""

    first: int
    last: int

    def encloses(self, other: Loop) -> bool:
        """Whether `other` lies within this one and is smaller."""
        return self != other and self.first <= other.first and other.last <= self.last


def loops(code: Sequence[Instruction]) -> list[Loop]:
    """Every region with a branch back to its start that no way to the branch avoids.

    So neither a branch to itself, which pads a kernel's end, nor a return from code that the compiler has put far
    behind, such as a wait that has to be repeated, makes a loop.
    """
    at = {instruction.address: index for index, instruction in enumerate(code)}
    graph = blocks(code)
    number = {index: n for n, block in enumerate(graph) for index in (block.first, block.last)}
    last: dict[int, int] = {}
    for index, instruction in enumerate(code):
        first = at.get(instruction.target) if instruction.target is not None else None
        if first is not None and first < index and _dominates(graph, number[first], number[index]):
            last[first] = index
    return [Loop(first, end) for first, end in sorted(last.items())]


def _dominates(graph: Sequence[Block], number: int, other: int) -> bool:
    """Whether every way from the kernel's start to block `other` passes block `number`."""
    return number in (0, other) or not _reaches(graph, 0, {other}, set(range(len(graph))) - {number})


def blocks(code: Sequence[Instruction]) -> list[Block]:
    """The basic blocks in address order."""
    at = {instruction.address: index for index, instruction in enumerate(code)}
    starts = {0}
    for index, instruction in enumerate(code):
        if _ends_block(instruction) and index + 1 < len(code):
            starts.add(index + 1)
        if instruction.target in at:
            starts.add(at[instruction.target])
    firsts = sorted(starts)
    number = {first: i for i, first in enumerate(firsts)}
    found = []
    for i, first in enumerate(firsts):
        last = firsts[i + 1] - 1 if i + 1 < len(firsts) else len(code) - 1
        found.append(_block(code, first, last, number, at))
    return found


def _ends_block(instruction: Instruction) -> bool:
    return instruction.opcode == "EXIT" or instruction.target is not None


def _block(code: Sequence[Instruction], first: int, last: int, number: dict[int, int], at: dict[int, int]) -> Block:
    end = code[last]
    exits = end.opcode == "EXIT"
    following = [number[at[end.target]]] if end.target in at else []
    falls_through = not _ends_block(end) or end.conditional
    if falls_through and last + 1 in number:
        following.append(number[last + 1])
    return Block(first, last, tuple(following), exits)


def unavoidable(graph: Sequence[Block], start: int, goals: set[int], within: set[int]) -> set[int]:
    """The blocks of `within` that every way from block `start` to one of `goals` passes, staying within."""
    return {
        number
        for number in within
        if number == start or not _reaches(graph, start, goals - {number}, within - {number})
    }


def reachable(graph: Sequence[Block], start: int) -> set[int]:
    """The blocks that may run after block `start` has begun, itself included."""
    seen, waiting = {start}, [start]
    while waiting:
        fresh = [n for n in graph[waiting.pop()].following if n not in seen]
        seen.update(fresh)
        waiting += fresh
    return seen


def _reaches(graph: Sequence[Block], start: int, goals: set[int], within: set[int]) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        number = waiting.pop()
        if number in goals:
            return True
        fresh = [n for n in graph[number].following if n in within and n not in seen]
        seen.update(fresh)
        waiting += fresh
    return False
