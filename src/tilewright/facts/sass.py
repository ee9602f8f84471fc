"""SASS as values: nvdisasm's text of one kernel read into instructions.

Owns the reading only. Getting the text is `disassemble.py`, what instructions mean for a kernel is `mainloop.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INSTRUCTION_BYTES = 16
BRANCHES = frozenset({"BRA", "BRX", "JMP", "EXIT", "RET", "CALL", "BSSY", "BSYNC", "BREAK", "WARPSYNC"})

_LINE = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_LABEL = re.compile(r"^(?P<label>\.L_\w+):")
_INSTRUCTION = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:(?P<predicate>@!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;]*?)\s*;"
)
_TARGET = re.compile(r"`?\(?(?P<label>\.L_\w+)\)?")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `opcode` is its first word ('LDS'), `modifiers` the rest ('128').

    `line` is the line of the kernel's own file that it comes from, the innermost where its functions were inlined into
    each other. `target` is where a branch goes.
    """

    address: int
    opcode: str
    modifiers: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    predicate: str = ""
    line: int | None = None
    target: int | None = None

    @property
    def never_executes(self) -> bool:
        """Whether its predicate is the constant false, as on the dummy loads that compilers leave behind."""
        return self.predicate == "@!PT"

    @property
    def conditional(self) -> bool:
        """Whether a branch or exit may not be taken: by a predicate before it or among its operands."""
        return bool(self.predicate) or any(re.fullmatch(r"!?U?P\d", operand) for operand in self.operands)

    @property
    def width_bits(self) -> int:
        """Bits that a memory instruction moves for one thread."""
        return next((int(m) for m in self.modifiers if m in ("64", "128", "256")), 32)

    @property
    def reuses(self) -> int:
        """Operands kept in the operand cache for the next instruction."""
        return sum(operand.endswith(".reuse") for operand in self.operands)


def parse(text: str, entry: str) -> tuple[Instruction, ...]:
    """The instructions of kernel `entry` in what `nvdisasm -c -gi` prints. Empty when it isn't there."""
    lines = _section(text, entry)
    labels = _labels(lines)
    found: list[Instruction] = []
    line: int | None = None
    chain_begins = True
    for row in lines:
        comment = _LINE.search(row)
        if comment:
            inner = None if chain_begins else line
            line = inner or (int(comment["line"]) if comment["file"].endswith(".cu") else None)
            chain_begins = False
            continue
        match = _INSTRUCTION.match(row)
        if match:
            found.append(_instruction(match, line, labels))
            chain_begins = True
    return tuple(found)


def _section(text: str, entry: str) -> list[str]:
    lines = text.splitlines()
    try:
        start = lines.index(f".text.{entry}:")
    except ValueError:
        return []
    rest = lines[start + 1 :]
    end = next((index for index, row in enumerate(rest) if row.startswith("//-----")), len(rest))
    return rest[:end]


def _labels(lines: list[str]) -> dict[str, int]:
    labels: dict[str, int] = {}
    waiting: list[str] = []
    for row in lines:
        label, match = _LABEL.match(row), _INSTRUCTION.match(row)
        if label:
            waiting.append(label["label"])
        elif match:
            labels.update(dict.fromkeys(waiting, int(match["address"], 16)))
            waiting.clear()
    return labels


def _instruction(match: re.Match[str], line: int | None, labels: dict[str, int]) -> Instruction:
    opcode, *modifiers = match["opcode"].split(".")
    operands = tuple(part.strip() for part in match["operands"].split(",") if part.strip())
    target = _TARGET.search(operands[-1]) if operands and opcode == "BRA" else None
    return Instruction(
        address=int(match["address"], 16),
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=operands,
        predicate=match["predicate"] or "",
        line=line,
        target=labels.get(target["label"]) if target else None,
    )
