"""How patterns are launched, and what a launch counts: on a card by Nsight Compute, in the emulator by its trace.

The script that records counts and the tests that hold the emulator to them both launch by this.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from patterns.tables import LANES, REACH_BYTES, Pattern
from tilewright.compile.binary import Binary, KernelSource
from tilewright.emulator.trace import Trace
from tilewright.run.protocol import Backend, Grid

TEXT = Path(__file__).with_name("kernels.cu")
WORDS = {4: "float", 8: "float2", 16: "float4"}
ARGS_TYPE = "PatternArgs"


class PatternArgs(ctypes.Structure):
    _fields_ = (("offsets", ctypes.c_uint64), ("data", ctypes.c_uint64), ("out", ctypes.c_uint64))


def pattern_source(entry: str, width_bytes: int) -> KernelSource:
    """The kernel as both compilers take it."""
    text = TEXT.read_text(encoding="utf-8")
    word = f"using Word = {WORDS[width_bytes]};\n"
    before = f'#include "tilewright/platform.cuh"\n{word}#line 1 "{TEXT.name}"\n'
    return KernelSource(f"{entry} of {width_bytes} bytes", entry, before + text, TEXT.name)


def launch_patterns(backend: Backend, binary_of: Callable[[str, int], Binary], patterns: Sequence[Pattern]) -> None:
    """Launch each pattern once, in order. `binary_of` compiles an entry for a width in bytes."""
    tables = np.array([pattern.offsets for pattern in patterns], np.int32)
    offsets = backend.alloc(tables.nbytes, label="offsets", read_only=True)
    data, out = backend.alloc(REACH_BYTES, label="data"), backend.alloc(LANES * max(WORDS), label="out")
    backend.upload(offsets, tables.reshape(-1).view(np.uint8))
    backend.upload(data, np.zeros(REACH_BYTES, np.uint8))
    for number, pattern in enumerate(patterns):
        args = PatternArgs(offsets.address + number * tables[0].nbytes, data.address, out.address)
        grid = Grid((1, 1, 1), (LANES, 1, 1), REACH_BYTES)
        backend.launch(binary_of(pattern.entry, pattern.width_bytes), grid, args)
    backend.synchronize()


LOADS = ("load", "matrix load")
METRICS = {
    "smsp__inst_executed_op_shared_ld.sum": ("instructions", "shared", ("load",)),
    "smsp__inst_executed_op_shared_st.sum": ("instructions", "shared", ("store",)),
    "smsp__inst_executed_op_ldsm.sum": ("instructions", "shared", ("matrix load",)),
    "smsp__inst_executed_op_global_ld.sum": ("instructions", "global", ("load",)),
    "smsp__inst_executed_op_global_st.sum": ("instructions", "global", ("store",)),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("wavefronts", "shared", LOADS),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": ("wavefronts", "shared", ("store",)),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": ("conflicts", "shared", LOADS),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": ("conflicts", "shared", ("store",)),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": ("instructions", "global", ("load",)),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": ("instructions", "global", ("store",)),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("sectors", "global", ("load",)),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("sectors", "global", ("store",)),
}
"""Nsight Compute's names of the counts of a launch, and the figure of a trace's lines, by space and kinds."""


def emulated_counts(trace: Trace) -> dict[str, int]:
    """What the trace of a launch says Nsight Compute would count."""
    return {
        name: sum(getattr(line, field) for kind in kinds for line in trace.select(space=space, kind=kind))
        for name, (field, space, kinds) in METRICS.items()
    }
