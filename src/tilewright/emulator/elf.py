"""The static shared arrays of a host-compiled kernel, read from its symbol table.

A `__shared__` array is thread-local storage there, and nothing else of a kernel is. Owns as much of the ELF format
as that takes (64-bit, little-endian).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

SYMBOL_TABLE, THREAD_LOCAL = 2, 6
HEADER, SECTION, SYMBOL = struct.Struct("<16s2HI3QI6H"), struct.Struct("<2I4Q2I2Q"), struct.Struct("<I2BH2Q")


@dataclass(frozen=True, slots=True)
class SharedArray:
    """One array: its name in the source, where it lies in the kernel's static shared memory, its size."""

    name: str
    offset: int
    nbytes: int


def shared_arrays(payload: bytes) -> list[SharedArray]:
    """The arrays by offset. Empty for a file without a symbol table."""
    if payload[:6] != b"\x7fELF\x02\x01":
        return []
    header = HEADER.unpack_from(payload)
    sections_at, section_count = header[6], header[12]
    sections = [SECTION.unpack_from(payload, sections_at + i * SECTION.size) for i in range(section_count)]
    found = [
        array for section in sections if section[1] == SYMBOL_TABLE for array in _symbols(payload, sections, section)
    ]
    return sorted(found, key=lambda array: array.offset)


def _symbols(payload: bytes, sections: list[tuple[int, ...]], table: tuple[int, ...]) -> Iterator[SharedArray]:
    start, nbytes, names_at = table[4], table[5], sections[table[6]][4]
    for at in range(start, start + nbytes, SYMBOL.size):
        name_at, info, _, _, value, size = SYMBOL.unpack_from(payload, at)
        if info & 15 == THREAD_LOCAL and size:
            begin = names_at + name_at
            yield SharedArray(_plain(payload[begin : payload.index(b"\0", begin)].decode()), value, size)


def _plain(symbol: str) -> str:
    """The variable's own name: the last length-prefixed word of a mangled one, `As` of `_ZZ6kernelE2As_0`."""
    for match in re.finditer(r"\d+", symbol):
        for start in range(match.start(), match.end()):
            length = int(symbol[start : match.end()])
            name, rest = symbol[match.end() : match.end() + length], symbol[match.end() + length :]
            if len(name) == length and re.fullmatch(r"(_\d*|__\d+_|\.\d+)?", rest):
                return name
    return symbol.split(".")[0]
