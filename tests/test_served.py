"""Traced lines by K-tile, at the widths of the binary: merging, matching, and the card's own counts."""

import gzip
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest

from tilewright.compile.binary import Binary
from tilewright.compile.host import host_source
from tilewright.compile.traced import compile_traced
from tilewright.declare import all_rungs, rung_config
from tilewright.emulator.recount import widened
from tilewright.emulator.trace import MemoryLine
from tilewright.emulator.tracing import Watch
from tilewright.errors import InvalidInput
from tilewright.facts.costs import Costs
from tilewright.facts.disassemble import disassemble
from tilewright.facts.mainloop import main_loop
from tilewright.facts.sass import parse
from tilewright.facts.served import served
from tilewright.lab.memory_lines import Launches
from tilewright.lab.tracing import small_problem
from tilewright.problem import Problem
from tilewright.run.tracing import TracingBackend

GOLDEN = Path(__file__).parent / "golden"
RECORD = json.loads((GOLDEN / "ncu-h200.json").read_text(encoding="utf-8"))
K04 = rung_config(all_rungs().find("k04"))
EVENTS = Watch(events=True)


def costs_of(query: str, problem: Problem | None = None) -> dict[tuple[str, str], Costs]:
    """Each traced line's costs by kind and array, of lines that no other shares them with."""
    config = rung_config(all_rungs().find(query))
    return {
        (c.whole.kind, c.whole.array): c
        for c in Launches(config, problem or small_problem(config), events=False).costs()
    }


# One step along K


def test_a_k_tile_of_the_warp_tile_costs_what_its_shape_says():
    costs = costs_of("k08")
    tile = {
        key: (c.per_warp("instructions"), c.per_warp("wavefronts"), c.per_warp("conflicts")) for key, c in costs.items()
    }
    assert tile["store", "As"] == (16, 64, 48)
    assert tile["store", "Bs"] == (2, 8, 0)
    assert tile["load", "As"] == (32, 64, 0)
    assert tile["load", "Bs"] == (32, 128, 0)
    assert tile["store", "D"] == (0, 0, 0)


def test_a_step_of_the_first_rungs_asks_for_32_sectors_or_for_4():
    assert costs_of("k01")["load", "A"].per_warp("sectors") == 32
    assert costs_of("k02")["load", "B"].per_warp("sectors") == 4


def test_a_tile_is_whole_whatever_is_left_over_at_the_end_of_k():
    whole = costs_of("k04")
    for k in (1, 32, 33, 100):
        some = costs_of("k04", Problem(m=64, n=64, k=k))
        for key in (("load", "As"), ("store", "As"), ("load", "B"), ("store", "D")):
            assert some[key].instructions == whole[key].instructions, (k, key)


# Merging


@pytest.fixture
def read_line(device_probe, launch_probe):
    """The trace of a warp's reads, all on line 4, and the counts of that line's loads from `array`."""

    def run(reads: str, array: str = "s", threads: int = 32):
        body = f"__shared__ __align__(16) float s[8192];\nfor (int i = t; i < 8192; i += {threads}) s[i] = i;\n"
        body += f"__syncthreads(); float sum = 0;\n{reads}\nargs.y[t] = sum;"
        with TracingBackend(EVENTS) as device:
            launch_probe(device, compile_traced(host_source(device_probe(body), args_type="Args")), threads=threads)
            trace = device.traces[-1]
        (line,) = trace.select(line=4, kind="load", array=array)
        return trace, line

    return run


PLACES = ["4 * t", "0", "t / 2 * 4", "8 * t", "t % 4 * 4 + t / 4 * 128", "36 * t", "t / 16 * 1024 + t % 16 * 4"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("elements", [2, 4])
@pytest.mark.parametrize("array", ["s", "X"])
def test_merged_reads_cost_what_one_wide_read_costs(read_line, place, elements, array):
    start = f"&{'s' if array == 's' else 'args.x'}[({place}) % 992]"
    trace, narrow = read_line(f"for (int i = 0; i < {elements}; ++i) sum += ({start})[i];", array)
    assert (narrow.width_bytes, narrow.instructions) == (4, elements)
    (merged,) = widened(trace, narrow, 4 * elements)
    assert merged == read_line(f"sum += load{elements}({start})[0];", array)[1]


def test_reads_merge_across_others_and_again_in_the_next_tile(read_line):
    reads = "for (int tile = 0; tile < 3; ++tile) for (int k = 0; k < 4; ++k) for (int i = 0; i < 8; ++i) "
    trace, line = read_line(f"{reads} sum += s[t * 32 + i * 4 + k];", threads=64)
    (merged,) = widened(trace, line, 16)
    assert (line.instructions, merged.instructions, merged.lanes) == (2 * 3 * 32, 2 * 3 * 8, 64 * 3 * 8)


def test_rows_8_bytes_off_keep_their_width(read_line):
    trace, line = read_line(
        "for (int k = 0; k < 4; ++k) for (int i = 0; i < 4; i += 2) sum += load2(&s[k * 130 + i])[0];"
    )
    assert line.width_bytes == 8
    wide, rest = widened(trace, line, 16)
    assert (wide.width_bytes, wide.instructions) == (16, 2)
    assert (rest.width_bytes, rest.instructions) == (8, 4)


@pytest.mark.parametrize(
    "reads",
    [
        "for (int i = 0; i < 4; ++i) sum += s[32 * i + t];",
        "for (int i = 0; i < 4; ++i) sum += s[4 * t + i + 1];",
        "for (int i = 0; i < 3; ++i) sum += s[4 * t + i];",
        "for (int i = 0; i < 4; ++i) sum += s[5 * t + i];",
    ],
    ids=["no neighbours in a lane", "not aligned", "three", "not aligned in every lane"],
)
def test_what_no_wider_instruction_can_stand_for_is_not_merged(read_line, reads):
    assert widened(*read_line(reads), 16) == ()


def test_warps_do_not_share_a_wider_access(read_line):
    assert widened(*read_line("sum += s[4 * (t % 32) + t / 32];", threads=128), 16) == ()


def test_a_merged_launch_of_any_length_is_worked_out_from_two_short_ones():
    problem = Problem(m=64, n=64, k=7 * 32 + 5)
    launches = Launches(K04, problem, events=True)
    assert launches.short[0].k < problem.k
    costs = next(each for each in launches.costs() if (each.whole.kind, each.whole.array) == ("load", "As"))
    (merged,) = launches.widen(costs, 16)
    assert (merged.whole,) == widened(launches.trace, costs.whole, 16)


@pytest.mark.parametrize("k", [1, 32, 40, 64, 96, 100])
def test_the_short_launches_are_of_the_kernel_that_the_problem_has(k):
    problem = Problem(m=64, n=64, k=k)
    launches = Launches(K04, problem, events=False)
    assert {each.k % 32 for each in launches.short} == {k % 32}
    assert all(K04.problem_constants(each) == K04.problem_constants(problem) for each in launches.short)


def test_merging_needs_the_accesses_themselves():
    trace = Launches(K04, small_problem(K04), events=False).trace
    with pytest.raises(InvalidInput, match="events=True"):
        widened(trace, trace.lines[0], 16)


# The binary's instructions


def traced(line: int, instructions: int, width_bytes: int = 4, array: str = "As", kind="load") -> Costs:
    """A warp's shared accesses in one step of ten."""
    fields = {"file": "k.cu", "line": line, "space": "shared", "kind": kind, "array": array, "width_bytes": width_bytes}
    tile = MemoryLine(**fields, instructions=instructions, lanes=32 * instructions)
    return Costs(MemoryLine(**fields, instructions=10 * instructions, lanes=320 * instructions), tile, warps=1)


def code_and_loop(*inside: tuple[int, str], outside: tuple[tuple[int, str], ...] = ()):
    """A loop of one K-tile of k04, with these instructions of these lines."""
    rows = [".text.k:"]

    def add(line: int, words: str) -> None:
        rows.append(f'\t//## File "/x/k.cu", line {line}')
        rows.append(f"        /*{16 * sum('/*' in row for row in rows):04x}*/                   {words} ;")

    rows.append(".L_head:")
    for line, words in (*inside, *[(1, "FFMA R0, R1, R2, R0")] * 32, (1, "@P0 BRA `(.L_head)"), *outside, (1, "EXIT")):
        add(line, words)
    code = parse("\n".join(rows), "k")
    return code, main_loop(code, K04)


def merging(costs: Costs, width: int) -> list[Costs]:
    """All of a line's accesses merged, where they are not to Bs."""
    parts = width // costs.whole.width_bytes
    if costs.whole.array == "Bs" or costs.instructions % parts:
        return []
    return [traced(costs.whole.line, int(costs.instructions) // parts, width, costs.whole.array)]


def never(costs: Costs, width: int) -> list[Costs]:
    raise AssertionError("the widths as traced add up")


def test_instructions_that_are_what_was_traced_are_told_by_line():
    code, loop = code_and_loop((5, "LDS R0, [R1]"), (6, "LDS R0, [R1]"), (6, "LDS R0, [R1+0x4]"))
    found = served([traced(5, 1), traced(6, 2, array="Bs")], code, loop, never)
    assert [(each.main_loop, each.is_merged) for each in found] == [({"LDS.32": 1}, False), ({"LDS.32": 2}, False)]


def test_of_two_arrays_on_one_line_the_one_that_can_be_merged_is():
    code, loop = code_and_loop((5, "LDS.128 R0, [R1]"), *[(5, "LDS R0, [R2]")] * 4)
    found = served([traced(5, 4), traced(5, 4, array="Bs")], code, loop, merging)
    assert [(each.costs.whole.array, each.main_loop) for each in found] == [
        ("As", {"LDS.128": 1}),
        ("Bs", {"LDS.32": 4}),
    ]
    assert (found[0].traced_bytes, found[0].costs.whole.width_bytes, found[0].costs.whole.instructions) == (4, 16, 10)
    assert not any(each.unexplained for each in found)


def test_lines_that_the_line_table_blurs_are_taken_together():
    code, loop = code_and_loop(*[(6, "LDS.128 R0, [R1]")] * 3, (5, "LDS.128 R0, [R1]"))
    found = served([traced(5, 2, 16), traced(6, 2, 16, array="Bs")], code, loop, never)
    assert [each.main_loop for each in found] == [{"LDS.128": 2}, {"LDS.128": 2}]


@pytest.mark.parametrize(
    ("lines", "machine"),
    [
        ([traced(5, 4)], ["LDS.64 R0, [R1]", "LDS R0, [R1]"]),
        ([traced(5, 4)], []),
        ([traced(5, 4)], ["LDS R0, [R1]"] * 3),
        ([traced(5, 4), traced(5, 4, array="As2")], ["LDS.128 R0, [R1]", *["LDS R0, [R1]"] * 4]),
    ],
    ids=["widths that don't come out", "no instructions", "too few", "either of two"],
)
def test_what_does_not_come_out_exactly_is_said_and_left_as_traced(lines, machine):
    code, loop = code_and_loop(*[(5, words) for words in machine])
    for each in served(lines, code, loop, merging):
        assert not each.is_merged
        assert each.unexplained.startswith("the main loop has") and each.unexplained.endswith("line 5: not recounted")


def test_instructions_that_guards_switch_off_for_some_warps_are_no_riddle():
    code, loop = code_and_loop(*[(5, "LDS R0, [R1]")] * 4)
    (load,) = served([traced(5, 3)], code, loop, merging)
    assert (load.main_loop, load.unexplained) == ({"LDS.32": 4}, "")


def test_instructions_outside_the_main_loop_stand_apart():
    code, loop = code_and_loop((5, "STS [R0], R1"), outside=((5, "STS [R0], R1"), (5, "@!PT STS [R0], R1")))
    (store,) = served([traced(5, 1, kind="store")], code, loop, never)
    assert (store.main_loop, store.elsewhere) == ({"STS.32": 1}, {"STS.32": 1})


def test_other_widths_outside_the_main_loop_are_said():
    code, loop = code_and_loop(outside=((5, "STS.128 [R0], R4"),))
    (store,) = served([traced(5, 0, kind="store")], code, loop, never)
    assert store.unexplained == "outside the main loop the binary has STS.128 ×1 here, not recounted"


# The card


def golden(row) -> tuple:
    """What Nsight Compute counted on a card, and each line as the very cubin that ran there serves it."""
    config = rung_config(all_rungs().find(row["rung"]), row["config"])
    payload = gzip.decompress((GOLDEN / row["cubin"]).read_bytes())
    code = disassemble(Binary(row["entry"], RECORD["environment"]["arch"], payload, "", ""))
    launches = Launches(config, small_problem(config), events=False)
    return config, served(launches.costs(), code, main_loop(code, config), launches.widen)


@pytest.mark.usefixtures("with_nvdisasm")
@pytest.mark.parametrize("row", RECORD["rows"], ids=lambda row: row["rung"])
def test_wavefronts_and_sectors_of_a_k_tile_add_up_to_what_the_card_counted(row):
    config, lines = golden(row)
    assert not any(line.unexplained for line in lines)
    problem = Problem(**RECORD["problem"])
    steps = Fraction(problem.k, config.rung.accesses.k_step.evaluate(config.scope))
    warps = math.prod(config.grid(problem)) * config.threads // 32

    def total(space: str, name: str, *kinds: str) -> Fraction:
        chosen = [line.costs for line in lines if line.costs.whole.space == space and line.costs.whole.kind in kinds]
        return sum((costs.per_warp(name) for costs in chosen), Fraction(0)) * steps * warps

    counted = row["counts"]
    assert total("global", "sectors", "load", "copy load") == counted["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
    wavefronts = counted["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"]
    # The counter has cycles besides in which a load gave way.
    assert total("shared", "wavefronts", "load") <= wavefronts <= 1.001 * total("shared", "wavefronts", "load")


@pytest.mark.usefixtures("with_nvdisasm")
def test_the_tall_thread_tile_reads_96_times_16_bytes_and_stores_16_times_4_a_thread_and_k_tile():
    (row,) = (row for row in RECORD["rows"] if row["rung"] == "k12_tall_thread_tile")
    lines = [line for line in golden(row)[1] if line.costs.whole.space == "shared"]
    counts = [(kind, count) for line in lines for kind, count in line.main_loop.items()]
    assert sorted(counts) == [("LDGSTS.128", 4), ("LDS.128", 32), ("LDS.128", 64), ("STS.32", 16)]
