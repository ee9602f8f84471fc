"""From an instruction's offset in a kernel's shared object to its source line.

Asks addr2line, llvm-symbolizer, then pyelftools; without any of them it says so. Of inlined frames the innermost
that lies in a kernel's own text counts, not the header that it called.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Frame = tuple[str, int]
UNKNOWN_LINE = "an unknown line"
HEADER_SUFFIXES = (".cuh", ".hpp", ".h")


def locate(binary: Path, offset: int) -> str:
    """'k.cu:31' for the instruction at `offset`, or 'an unknown line (why)'."""
    if offset < 0:
        return f"{UNKNOWN_LINE} (outside the kernel's code)"
    file, line = locate_all(binary, [offset])[offset]
    return f"{file}:{line}" if line else file


def locate_all(binary: Path, offsets: Iterable[int]) -> dict[int, Frame]:
    """File name and line of each offset; ('an unknown line (why)', 0) where there is none."""
    wanted = sorted(set(offsets))
    found = _frames(binary, wanted) if wanted else {}
    if found is None:
        why = "none of addr2line, llvm-symbolizer and pyelftools is there to tell"
        return {offset: (f"{UNKNOWN_LINE} ({why})", 0) for offset in wanted}
    return {offset: _own(found.get(offset, [])) for offset in wanted}


def _own(frames: list[Frame]) -> Frame:
    """The innermost frame in a kernel's own text, else the innermost."""
    for file, line in [frame for frame in frames if not frame[0].endswith(HEADER_SUFFIXES)] or frames:
        return Path(file).name, line
    return f"{UNKNOWN_LINE} (the kernel has no line information there)", 0


def _frames(binary: Path, offsets: list[int]) -> dict[int, list[Frame]] | None:
    """Every offset's frames, innermost first."""
    addresses = "\n".join(map(hex, offsets)) + "\n"
    if tool := shutil.which("addr2line"):
        return _parse(_ask(addresses, tool, "-a", "-i", "-e", str(binary)))
    if tool := shutil.which("llvm-symbolizer"):
        return _parse(_ask(addresses, tool, "--print-address", "--inlines", f"--obj={binary}"))
    if importlib.util.find_spec("elftools") is not None:
        return _from_line_table(binary, offsets)
    return None


def _ask(addresses: str, *command: str) -> str:
    try:
        answer = subprocess.run(
            command,
            input=addresses,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=30,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout


def _parse(output: str) -> dict[int, list[Frame]]:
    """Frames by address, from lines that give an address and the lines `file:line` that follow it."""
    found: dict[int, list[Frame]] = {}
    frames: list[Frame] = []
    for line in output.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            frames = found.setdefault(int(line, 16), [])
        elif match := re.fullmatch(r"(.+?):(\d+)(?::\d+)?(?: \(discriminator \d+\))?", line):
            frames += [(match[1], int(match[2]))] if int(match[2]) else []
    return found


def _from_line_table(binary: Path, offsets: list[int]) -> dict[int, list[Frame]]:
    from elftools.elf.elffile import ELFFile

    found: dict[int, list[Frame]] = {}
    with binary.open("rb") as file:
        elf = ELFFile(file)
        if not elf.has_dwarf_info():
            return found
        dwarf: Any = elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            for start, end, frame in _rows(dwarf.line_program_for_CU(unit)):
                for offset in offsets[bisect_left(offsets, start) : bisect_left(offsets, end)]:
                    found.setdefault(offset, []).append(frame)
    return found


def _rows(program: Any) -> Iterator[tuple[int, int, Frame]]:
    """The line table's stretches of code: first address, the one past the last, frame."""
    first_file = 0 if program["version"] >= 5 else 1
    previous = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if previous is not None and previous.address < state.address:
            name = program["file_entry"][previous.file - first_file].name
            yield previous.address, state.address, (name.decode("utf-8", "replace"), int(previous.line))
        previous = None if state.end_sequence else state
