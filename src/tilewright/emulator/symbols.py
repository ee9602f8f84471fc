"""From an instruction's offset in a kernel's shared object to its source line.

Asks addr2line, llvm-symbolizer, then pyelftools; without any of them it says so. Of inlined frames the innermost
that lies in a kernel's own text counts, not the header that it called.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Frame = tuple[str, int]
UNKNOWN_LINE = "an unknown line"
HEADER_SUFFIXES = (".cuh", ".hpp", ".h")


def locate(binary: Path, offset: int) -> str:
    """'k.cu:31' for the instruction at `offset`, or 'an unknown line (why)'."""
    if offset < 0:
        return f"{UNKNOWN_LINE} (outside the kernel's code)"
    frames = _frames(binary, offset)
    if frames is None:
        return f"{UNKNOWN_LINE} (none of addr2line, llvm-symbolizer and pyelftools is there to tell)"
    own = [frame for frame in frames if not frame[0].endswith(HEADER_SUFFIXES)]
    for file, line in own or frames:
        return f"{Path(file).name}:{line}"
    return f"{UNKNOWN_LINE} (the kernel has no line information there)"


def _frames(binary: Path, offset: int) -> list[Frame] | None:
    if tool := shutil.which("addr2line"):
        return _parse(_ask(tool, "-i", "-e", str(binary), hex(offset)))
    if tool := shutil.which("llvm-symbolizer"):
        return _parse(_ask(tool, "--inlines", f"--obj={binary}", hex(offset)))
    if importlib.util.find_spec("elftools") is not None:
        return list(_from_line_table(binary, offset))
    return None


def _ask(*command: str) -> str:
    try:
        answer = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout


def _parse(output: str) -> list[Frame]:
    found = re.findall(r"^(.+?):(\d+)(?::\d+)?(?: \(discriminator \d+\))?$", output, re.MULTILINE)
    return [(file, int(line)) for file, line in found if int(line) > 0]


def _from_line_table(binary: Path, offset: int) -> Iterator[Frame]:
    from elftools.elf.elffile import ELFFile

    with binary.open("rb") as file:
        elf = ELFFile(file)
        if not elf.has_dwarf_info():
            return
        dwarf: Any = elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            yield from _rows_at(dwarf.line_program_for_CU(unit), offset)


def _rows_at(program: Any, offset: int) -> Iterator[Frame]:
    first_file = 0 if program["version"] >= 5 else 1
    previous = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if previous is not None and previous.address <= offset < state.address:
            name = program["file_entry"][previous.file - first_file].name
            yield name.decode("utf-8", "replace"), int(previous.line)
        previous = None if state.end_sequence else state
