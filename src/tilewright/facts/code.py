"""A cubin's machine code: its size, and whether two kernels are the same instructions.

Owns the reading of sections; what instructions say is `sass.py`'s.
"""

from __future__ import annotations

import hashlib

from tilewright.compile.binary import Binary
from tilewright.emulator.elf import HEADER, SECTION


def code_of(binary: Binary) -> bytes:
    """The kernel's instructions as they lie in the cubin; empty where there are none of that name."""
    return _sections(binary.payload).get(f".text.{binary.entry}", b"")


def code_digest(binary: Binary) -> str:
    """A digest of instructions and constants. Debug information, names and unused launch bounds make no difference."""
    sections = _sections(binary.payload)
    digest = hashlib.sha256()
    for name in sorted(name for name in sections if name.startswith((".text.", ".nv.constant"))):
        digest.update(name.encode() + b"\0" + sections[name])
    return digest.hexdigest()


def _sections(payload: bytes) -> dict[str, bytes]:
    if payload[:6] != b"\x7fELF\x02\x01":
        return {}
    header = HEADER.unpack_from(payload)
    found = [SECTION.unpack_from(payload, header[6] + i * SECTION.size) for i in range(header[12])]
    names_at = found[header[13]][4]
    return {
        payload[names_at + name : payload.index(b"\0", names_at + name)].decode(): payload[start : start + nbytes]
        for name, _, _, _, start, nbytes, *_ in found
    }
