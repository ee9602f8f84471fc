"""Which ceilings there are, and the kernel text of each.

Owns names, constants and the argument struct. How large a launch is stands in `work`, what it must give in `check`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilewright.compile.binary import KernelSource

VECTOR_BYTES = 16
THREADS = 256
CONSTANTS = {"THREADS": THREADS, "IN_FLIGHT": 4, "CHAINS": 16, "STEPS": 32, "VECTORS": 1024, "LOADS": 8}
"""What every kernel's text may name; `pairs` of a ceiling comes to it as PAIRS."""
ARGS_TYPE = "CeilingArgs"
FOLDER = Path(__file__).resolve().parent

Limit = Literal["fma", "shared", "l2", "dram"]


class CeilingArgs(ctypes.Structure):
    """The one argument of every ceiling's kernel; `args.cuh` is its device side."""

    _fields_ = (
        ("source", ctypes.c_uint64),
        ("out", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("repeats", ctypes.c_uint32),
        ("seed", ctypes.c_uint32),
    )


@dataclass(frozen=True)
class Ceiling:
    """One limit of a card: the kernel that runs into it and which part of the card it is."""

    name: str
    kernel: str
    limit: Limit
    summary: str
    pairs: int | None = None

    @property
    def constants(self) -> dict[str, int]:
        """What stands before the kernel's text."""
        return CONSTANTS if self.pairs is None else {**CONSTANTS, "PAIRS": self.pairs}

    @property
    def source(self) -> KernelSource:
        """The complete text, as both compilers take it."""
        constants = "".join(
            f"[[maybe_unused]] constexpr int {name} = {value};\n" for name, value in self.constants.items()
        )
        before = (FOLDER / "args.cuh").read_text(encoding="utf-8").replace("#pragma once\n", "")
        text = (FOLDER / f"{self.kernel}.cu").read_text(encoding="utf-8")
        file = f"{self.kernel}.cu"
        return KernelSource(self.name, self.kernel, f'{constants}{before}#line 1 "{file}"\n{text}', file)


CEILINGS = (
    Ceiling("ceiling_ffma", "ffma", "fma", "FFMA, both factors from the operand cache", pairs=1),
    Ceiling("ceiling_ffma_no_reuse", "ffma", "fma", "FFMA, three registers read each time", pairs=16),
    Ceiling("ceiling_shared_read", "shared_read", "shared", "shared memory read, 16 bytes a lane, no bank conflicts"),
    Ceiling("ceiling_l2_read", "global_read", "l2", "a third of the L2 read again and again, past the L1"),
    Ceiling("ceiling_dram_read", "global_read", "dram", "an array far larger than the L2 read once"),
    Ceiling("ceiling_dram_write", "global_write", "dram", "the same array written"),
    Ceiling("ceiling_dram_copy", "global_copy", "dram", "one such array copied to another, both directions counted"),
)
