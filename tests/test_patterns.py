"""What the emulator counts of single accesses, against what Nsight Compute counted of the same on a card.

`scripts/ncu` writes the counts; the patterns and how they are launched are in `patterns/`.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from patterns.launches import ARGS_TYPE, emulated_counts, launch_patterns, pattern_source
from patterns.tables import IDLE, MATRIX_ROW_BYTES, PATTERNS, REACH_BYTES, Pattern
from tilewright.arch import get_arch
from tilewright.compile.host import host_source
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.traced import compile_traced
from tilewright.emulator.banks import wavefronts
from tilewright.facts.disassemble import disassemble
from tilewright.run.tracing import TracingBackend

GOLDEN = Path(__file__).parent / "golden"
KERNELS = sorted({(pattern.entry, pattern.width_bytes) for pattern in PATTERNS})
OPCODES = {"shared_load": "LDS", "shared_store": "STS", "global_load": "LDG", "global_store": "STG"}


def recorded() -> list:
    """For each card and kernel its patterns with their counts."""
    made = []
    for path in sorted(GOLDEN.glob("ncu-*-patterns.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        by_kernel = defaultdict(list)
        for row in record["rows"]:
            pattern = Pattern(row["pattern"], row["entry"], row["width_bytes"], tuple(row["offsets"]))
            counts = dict(zip(record["metrics"], row["counts"], strict=True))
            by_kernel[pattern.entry, pattern.width_bytes].append((pattern, counts))
        for (entry, width), rows in by_kernel.items():
            made.append(pytest.param(entry, width, rows, id=f"{path.stem} {entry} {width}"))
    assert made
    return made


@pytest.mark.parametrize(("entry", "width_bytes", "rows"), recorded())
def test_the_emulator_counts_what_the_card_counted(entry, width_bytes, rows):
    binary = compile_traced(host_source(pattern_source(entry, width_bytes), args_type=ARGS_TYPE))
    with TracingBackend(workers=1) as device:
        launch_patterns(device, lambda *_: binary, [pattern for pattern, _ in rows])
    emulated = [emulated_counts(trace) for trace in device.traces]
    differing = {
        f"{pattern.name}, {name}": f"emulated {mine[name]}, counted {count}"
        for (pattern, counts), mine in zip(rows, emulated, strict=True)
        for name, count in counts.items()
        if mine[name] != count
    }
    assert not differing


@pytest.mark.parametrize(("entry", "width_bytes", "rows"), recorded())
def test_pictures_show_as_many_wavefronts_as_the_card_counted(entry, width_bytes, rows):
    for pattern, counts in rows:
        if not entry.startswith(("shared", "matrix")):
            continue
        lanes = (
            width_bytes * 2 if entry.startswith("matrix") else len(pattern.offsets)
        )  # that point to a row of 16 bytes
        lane_bytes = MATRIX_ROW_BYTES if entry.startswith("matrix") else width_bytes
        offsets = {lane: at for lane, at in enumerate(pattern.offsets[:lanes]) if at != IDLE}
        served = wavefronts(offsets, lane_bytes, is_plain_load=entry == "shared_load")
        counted = sum(counts[f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum"] for kind in ("ld", "st"))
        assert len(served) == counted, pattern.name


def test_patterns_are_told_apart_by_their_names():
    assert len({str(pattern) for pattern in PATTERNS}) == len(PATTERNS)


def test_patterns_lie_aligned_within_the_memory_they_are_given():
    for pattern in PATTERNS:
        unit = MATRIX_ROW_BYTES if pattern.entry.startswith("matrix") else pattern.width_bytes
        assert len(pattern.offsets) == 32
        assert all(at % unit == 0 and 0 <= at <= REACH_BYTES - unit for at in pattern.offsets if at != IDLE), pattern


@pytest.mark.parametrize(("entry", "width_bytes"), KERNELS)
@pytest.mark.usefixtures("with_nvdisasm")
def test_a_pattern_is_one_instruction_of_its_width_on_a_gpu(entry, width_bytes):
    code = disassemble(compile_cubin(pattern_source(entry, width_bytes), get_arch("sm_90a")))
    accesses = [i for i in code if i.opcode in ("LDG", "STG", "LDS", "STS", "LDSM")]
    table, pattern, *results = accesses
    assert (table.opcode, table.width_bits) == ("LDG", 32)
    if entry.startswith("matrix"):
        count = width_bytes // 4
        matrices = "MT88" if entry.endswith("transposed") else "M88"
        assert (pattern.opcode, pattern.modifiers) == ("LDSM", ("16", matrices, *([str(count)] if count > 1 else [])))
    else:
        assert (pattern.opcode, pattern.width_bits) == (OPCODES[entry], 8 * width_bytes)
    assert [result.opcode for result in results] == ([] if entry.endswith("store") else ["STG"])
