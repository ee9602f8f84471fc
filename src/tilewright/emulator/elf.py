"""The static shared arrays of a host-compiled kernel, read from its symbol table.

A `__shared__` array is thread-local storage there. Nothing else of a kernel is but the compiler's own guards, which say
whether an array of a class type has been constructed. Owns as much of ELF as that takes (64-bit, little-endian).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

SYMBOL_TABLE, THREAD_LOCAL = 2, 6
HEADER, SECTION, SYMBOL = struct.Struct("<16s2HI3QI6H"), struct.Struct("<2I4Q2I2Q"), struct.Struct("<I2BH2Q")


GUARD_PREFIX = "_ZGV"


@dataclass(frozen=True, slots=True)
class SharedArray:
    """One array: its name in the source, where it lies in the kernel's static shared memory, its size.

    `is_guard`: no array of the source's but the guard of one.
    """

    name: str
    offset: int
    nbytes: int
    is_guard: bool = False


def shared_arrays(payload: bytes) -> list[SharedArray]:
    """The arrays and guards by offset. Empty for a file without a symbol table."""
    if payload[:6] != b"\x7fELF\x02\x01":
        return []
    header = HEADER.unpack_from(payload)
    sections_at, section_count = header[6], header[12]
    sections = [SECTION.unpack_from(payload, sections_at + i * SECTION.size) for i in range(section_count)]
    tables = [section for section in sections if section[1] == SYMBOL_TABLE]
    found = [array for table in tables for array in _symbols(payload, sections, table)]
    return sorted(found, key=lambda array: array.offset)


def _symbols(payload: bytes, sections: list[tuple[int, ...]], table: tuple[int, ...]) -> Iterator[SharedArray]:
    start, nbytes, names_at = table[4], table[5], sections[table[6]][4]
    for at in range(start, start + nbytes, SYMBOL.size):
        name_at, info, _, _, value, size = SYMBOL.unpack_from(payload, at)
        if info & 15 == THREAD_LOCAL and size:
            begin = names_at + name_at
            symbol = payload[begin : payload.index(b"\0", begin)].decode()
            yield SharedArray(_plain(symbol), value, size, symbol.startswith(GUARD_PREFIX))


def _plain(symbol: str) -> str:
    """The variable's own name: the last length-prefixed word of a mangled one, `As` of `_ZZ6kernelE2As_0`."""
    for match in re.finditer(r"\d+", symbol):
        for start in range(match.start(), match.end()):
            length = int(symbol[start : match.end()])
            name, rest = symbol[match.end() : match.end() + length], symbol[match.end() + length :]
            if len(name) == length and re.fullmatch(r"(_\d*|__\d+_|\.\d+)?", rest):
                return name
    return symbol.split(".")[0]
