"""The roles into which a kernel parts its warps, read off its SASS: registers by setmaxnreg, and what each does.

A role is what only its warps can reach: the code behind its USETMAXREG and behind no other one's. Owns that reading;
the loop in which consumers multiply is found by `mainloop.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tilewright.facts.flow import Block, Loop, blocks, loops, reachable
from tilewright.facts.mainloop import Executed, MainLoop, fmas, mix, plain
from tilewright.facts.sass import Instruction

SETTING = "USETMAXREG"
COPIES = ("UTMALDG", "LDGSTS")
CONSUMER, PRODUCER, OTHER = "consumer", "producer", "other"
UNNAMED = ("other", "branch")


@dataclass(frozen=True, slots=True)
class Role:
    """One role: what it does, registers of each of its threads, and its instructions by kind.

    `loop` is a trip of a producer's copying loop, or what `mainloop` counts for one step along K of a consumer's main
    loop. `elsewhere` is what the role has beside that, as it stands in the code.
    """

    name: str
    registers: int
    loop: dict[str, Fraction]
    elsewhere: dict[str, Fraction]

    def to_json(self) -> dict[str, Any]:
        """The role as JSON types, without instructions that nothing is said of by name."""
        counts = {"loop": self.loop, "elsewhere": self.elsewhere}
        told = {
            name: {kind: plain(n) for kind, n in sorted(mixed.items()) if kind not in UNNAMED}
            for name, mixed in counts.items()
        }
        return {"role": self.name, "registers": self.registers, **told}


def roles(code: Sequence[Instruction], main: MainLoop | None) -> list[Role]:
    """The roles of a kernel, producers first; empty where its warps don't part by setmaxnreg."""
    graph = blocks(code)
    starts = [n for n, block in enumerate(graph) if any(i.opcode == SETTING for i in _code(code, block))]
    reached = [reachable(graph, start) for start in starts]
    found = []
    for index, start in enumerate(starts):
        others = set().union(*(each for at, each in enumerate(reached) if at != index))
        own = reached[index] - others
        setting = next(i for i in _code(code, graph[start]) if i.opcode == SETTING)
        found.append(_role(code, graph, own, int(setting.operands[-1], 16), main))
    order = (PRODUCER, CONSUMER, OTHER)
    return sorted(found, key=lambda role: order.index(role.name))


def _role(
    code: Sequence[Instruction], graph: Sequence[Block], own: set[int], registers: int, main: MainLoop | None
) -> Role:
    inside = {index for n in own for index in range(graph[n].first, graph[n].last + 1)}
    if main is not None and main.loop.first in inside:
        return Role(CONSUMER, registers, main.mix, _standing(code, inside - _indices(main.loop)))
    copying = _copying_loop(code, [loop for loop in loops(code) if loop.first in inside])
    if copying is None:
        name = CONSUMER if fmas(code[index] for index in inside) else OTHER
        return Role(name, registers, {}, _standing(code, inside))
    here = _indices(copying)
    return Role(PRODUCER, registers, _standing(code, here), _standing(code, inside - here))


def _copying_loop(code: Sequence[Instruction], found: Iterable[Loop]) -> Loop | None:
    """The loop with the most copies to shared memory, the smallest where several have as many."""
    copies = {loop: sum(code[i].opcode in COPIES for i in _indices(loop)) for loop in found}
    most = max(copies.values(), default=0)
    return min((loop for loop in copies if copies[loop] == most), key=_length) if most else None


def _length(loop: Loop) -> int:
    return loop.last - loop.first


def _indices(loop: Loop) -> set[int]:
    return set(range(loop.first, loop.last + 1))


def _standing(code: Sequence[Instruction], indices: Iterable[int]) -> dict[str, Fraction]:
    return mix(Executed(code[index], Fraction(1)) for index in indices)


def _code(code: Sequence[Instruction], block: Block) -> Sequence[Instruction]:
    return code[block.first : block.last + 1]
