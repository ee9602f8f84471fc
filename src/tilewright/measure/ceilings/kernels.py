"""Which ceilings there are, and the kernel text of each.

Owns names, constants and the argument struct. How large a launch is stands in `work`, what it must give in `check`.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilewright.arch import ArchSpec
from tilewright.compile.binary import KernelSource

VECTOR_BYTES = 16
DTYPES = {"BF16": "bfloat16", "F32": "tfloat32"}
"""What tensor cores take the elements of `scalar.cuh` for."""
WGMMA_ROW_BYTES = 128
"""Of an operand in shared memory along k: the widest swizzle."""
PRODUCTS_A_ROUND = 4
"""Steps along k, each of one tensor-core instruction for each chain."""
THREADS = 256
CONSTANTS = {"THREADS": THREADS, "IN_FLIGHT": 4, "CHAINS": 16, "STEPS": 32, "VECTORS": 1024, "LOADS": 8}
"""What every kernel's text may name, beside what a ceiling adds to it or sets apart."""
ARGS_TYPE = "CeilingArgs"
FOLDER = Path(__file__).resolve().parent

Limit = Literal["fma", "tensor", "shared", "l2", "dram"]


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
class Product:
    """The m×n×k product of one tensor-core instruction, which `threads` issue together.

    They keep `chains` of its sums apart, side by side along n. `element` is the trait of `scalar.cuh`.
    """

    m: int
    n: int
    k: int
    threads: int
    chains: int
    element: str = "BF16"

    @property
    def depth(self) -> int:
        """What a round of the kernel's loop adds along k."""
        return PRODUCTS_A_ROUND * self.k


@dataclass(frozen=True)
class Ceiling:
    """One limit of a card: the kernel that runs into it, which part of the card it is, and what that must have."""

    name: str
    kernel: str
    limit: Limit
    summary: str
    pairs: int | None = None
    product: Product | None = None
    dynamic_smem_bytes: int = 0
    features: frozenset[str] = frozenset()

    @property
    def dtype(self) -> str:
        """Elements that are multiplied."""
        return "float32" if self.product is None else DTYPES[self.product.element]

    @property
    def constants(self) -> dict[str, int]:
        """What stands before the kernel's text."""
        pairs = {} if self.pairs is None else {"PAIRS": self.pairs}
        product = self.product
        own = {} if product is None else {"CHAINS": product.chains, "STEP_K": product.k, "DEPTH": product.depth}
        return {**CONSTANTS, **pairs, **own}

    def require_arch(self, arch: ArchSpec) -> None:
        """Raise Unsupported where the architecture doesn't have what this is the limit of."""
        arch.require(self.features, self.name)

    @property
    def source(self) -> KernelSource:
        """The complete text, as both compilers take it."""
        constants = "".join(
            f"[[maybe_unused]] constexpr int {name} = {value};\n" for name, value in self.constants.items()
        )
        headers = ["args.cuh"] if self.product is None else ["args.cuh", "products.cuh"]
        before = "".join((FOLDER / name).read_text(encoding="utf-8").replace("#pragma once\n", "") for name in headers)
        if self.product is not None:
            before += f"using Element = tilewright::{self.product.element};\n"
        text = (FOLDER / f"{self.kernel}.cu").read_text(encoding="utf-8")
        file = f"{self.kernel}.cu"
        return KernelSource(self.name, self.kernel, f'{constants}{before}#line 1 "{file}"\n{text}', file)


CEILINGS = (
    Ceiling("ceiling_ffma", "ffma", "fma", "FFMA, both factors from the operand cache", pairs=1),
    Ceiling("ceiling_ffma_no_reuse", "ffma", "fma", "FFMA, three registers read each time", pairs=16),
    Ceiling(
        "ceiling_wmma",
        "wmma",
        "tensor",
        "WMMA 16×16×16, bfloat16, fragments in registers",
        product=Product(16, 16, 16, threads=32, chains=4),
        features=frozenset({"mma_sync"}),
    ),
    Ceiling(
        "ceiling_mma_sync",
        "mma_sync",
        "tensor",
        "mma.sync 16×8×16, bfloat16, fragments in registers",
        product=Product(16, 8, 16, threads=32, chains=8),
        features=frozenset({"mma_sync"}),
    ),
    Ceiling(
        "ceiling_wgmma",
        "wgmma",
        "tensor",
        "wgmma 64×256×16, bfloat16, both operands in shared memory",
        product=Product(64, 256, 16, threads=128, chains=1),
        dynamic_smem_bytes=(64 + 256) * WGMMA_ROW_BYTES,
        features=frozenset({"wgmma"}),
    ),
    Ceiling(
        "ceiling_wgmma_tf32",
        "wgmma",
        "tensor",
        "wgmma 64×256×8, TF32, both operands in shared memory",
        product=Product(64, 256, 8, threads=128, chains=1, element="F32"),
        dynamic_smem_bytes=(64 + 256) * WGMMA_ROW_BYTES,
        features=frozenset({"wgmma"}),
    ),
    Ceiling("ceiling_shared_read", "shared_read", "shared", "shared memory read, 16 bytes a lane, no bank conflicts"),
    Ceiling("ceiling_l2_read", "global_read", "l2", "a third of the L2 read again and again, past the L1"),
    Ceiling("ceiling_dram_read", "global_read", "dram", "an array far larger than the L2 read once"),
    Ceiling("ceiling_dram_write", "global_write", "dram", "the same array written"),
    Ceiling("ceiling_dram_copy", "global_copy", "dram", "one such array copied to another, both directions counted"),
)
