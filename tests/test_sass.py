"""SASS read and counted: from recorded text, from kernels compiled now, and from small ones written here."""

from pathlib import Path

import pytest

from tilewright.arch import archs_with, get_arch
from tilewright.compile.binary import Binary
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import Missing
from tilewright.facts import disassemble as disassembler
from tilewright.facts.disassemble import disassemble
from tilewright.facts.flow import Loop, blocks, loops, unavoidable
from tilewright.facts.mainloop import fmas, fmas_per_step, kind_of, main_loop
from tilewright.facts.predict import FMA_METRIC, METRICS, Range, predicted
from tilewright.facts.sass import parse
from tilewright.problem import Problem

DATA = Path(__file__).parent / "data"
PROBLEM = Problem(m=512, n=512, k=512)
K02, K04, K08 = (rung_config(all_rungs().find(name)) for name in ("k02", "k04", "k08"))
FINAL = {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 64, "WNITER": 2, "TM": 16, "TN": 4, "NUM_THREADS": 128}


def have_nvdisasm() -> bool:
    try:
        disassembler.nvdisasm()
    except Missing:
        return False
    return True


needs_nvdisasm = pytest.mark.skipif(not have_nvdisasm(), reason="needs nvdisasm: pip install 'tilewright[sass]'")


def recorded(name: str, entry: str):
    return parse((DATA / name).read_text(encoding="utf-8"), entry)


def written(*lines: str):
    """Instructions from 'OPCODE operands' lines, each 16 bytes on; 'NAME:' is a label."""
    text, address = [".text.k:"], 0
    for line in lines:
        if line.endswith(":"):
            text.append(f".L_{line}")
        else:
            text.append(f"        /*{address:04x}*/                   {line} ;")
            address += 16
    return parse("\n".join(text), "k")


def compiled(config, arch="sm_90a", problem=PROBLEM):
    return disassemble(compile_cubin(kernel_source(config, problem), get_arch(arch)))


def whole(mix) -> dict[str, int]:
    return {kind: int(count) for kind, count in mix.items() if kind not in ("branch", "other", "FFMA.reuse")}


def test_an_instruction_is_read_with_all_its_parts():
    code = recorded("k02_coalesced.sm_120a.sass", "k02_coalesced")
    assert [i.address for i in code] == sorted(i.address for i in code)
    first_load = next(i for i in code if i.opcode == "LDG")
    assert (first_load.modifiers, first_load.width_bits, first_load.line) == (("E",), 32, 19)
    skip, pad = next(i for i in code if i.opcode == "BRA"), code[-1]
    assert (skip.modifiers, skip.operands[0], skip.conditional) == (("U",), "!UP0", True)
    assert next(i for i in code if i.address == skip.target).opcode != "BRA"
    assert pad.target == pad.address and not pad.conditional
    assert sum(i.opcode == "STG" for i in code) == 1


def test_predicates_modifiers_and_reuse_are_told_apart():
    code = written(
        "@!PT LDS RZ, [RZ]",
        "LDS.128 R4, [R103+0x140]",
        "LDGSTS.E.BYPASS.128 [R39+0x1000], desc[UR10][R36.64], P4",
        "FFMA R29, R40.reuse, R39, R7",
        "@P0 STG.E.64 desc[UR4][R2.64], R4",
        "HFMA2.MMA R9, -RZ, RZ, 0, 0",
    )
    assert [kind_of(i) for i in code] == ["LDS.32", "LDS.128", "LDGSTS.128", "FFMA", "STG.64", "other"]
    assert [i.never_executes for i in code] == [True] + [False] * 5
    assert [i.reuses for i in code] == [0, 0, 0, 1, 0, 0]
    assert code[4].predicate == "@P0" and code[2].operands[-1] == "P4"


def test_an_inlined_instruction_belongs_to_the_innermost_line_of_the_kernels_own_file():
    text = """.text.k:
\t//## File "/x/memory.cuh", line 54 inlined at "/x/k.cu", line 19
\t//## File "/x/k.cu", line 19 inlined at "/x/k.cu", line 51
\t//## File "/x/k.cu", line 51
        /*0000*/                   LDG.E R0, desc[UR4][R2.64] ;
        /*0010*/                   LDG.E R1, desc[UR4][R4.64] ;
\t//## File "/x/memory.cuh", line 54
        /*0020*/                   STS [R0], R1 ;
\t//## File "/x/k.cu", line 52
        /*0030*/                   EXIT ;
"""
    assert [instruction.line for instruction in parse(text, "k")] == [19, 19, None, 52]


def test_another_kernels_section_is_left_alone():
    text = (DATA / "k02_coalesced.sm_120a.sass").read_text(encoding="utf-8")
    more = text + "//--------------------- .text.other\n.text.other:\n        /*0000*/      EXIT ;\n"
    assert len(parse(more, "k02_coalesced")) == len(parse(text, "k02_coalesced"))
    assert [i.opcode for i in parse(more, "other")] == ["EXIT"] and parse(text, "missing") == ()


def test_a_branch_to_itself_is_no_loop():
    code = written("head:", "FFMA R0, R1, R2, R0", "@P0 BRA `(.L_head)", "EXIT", "pad:", "BRA `(.L_pad)")
    assert loops(code) == [Loop(0, 1)]


def test_blocks_and_what_cannot_be_avoided():
    code = written(
        "@P0 BRA `(.L_skip)",
        "MOV R0, R1",
        "skip:",
        "STG.E desc[UR4][R2.64], R0",
        "@P1 EXIT",
        "MOV R1, R2",
        "EXIT",
    )
    graph = blocks(code)
    assert [(b.first, b.last, b.following, b.exits) for b in graph] == [
        (0, 0, (2, 1), False),
        (1, 1, (2,), False),
        (2, 3, (3,), True),
        (4, 5, (), True),
    ]
    assert unavoidable(graph, 0, {2, 3}, {0, 1, 2, 3}) == {0, 2}


def test_a_loop_the_compiler_unrolled_is_counted_for_one_step():
    loop = main_loop(recorded("k02_coalesced.sm_120a.sass", "k02_coalesced"), K02)
    assert loop.how == "one trip is 16 steps along K, unrolled by the compiler; counts are for one"
    assert (loop.unit, loop.steps_per_trip) == ("step along K", 16)
    assert whole(loop.mix) == {"FFMA": 1, "LDG.32": 2}


def test_a_loop_within_the_tile_loop_is_counted_with_its_trips():
    loop = main_loop(recorded("k04_shared_tile_rolled.sm_90a.sass", "k04_shared_tile"), K04)
    assert loop.how == "one trip is one K-tile of 32, with a loop inside taken 8 times"
    assert whole(loop.mix) == {"FFMA": 32, "LDS.32": 32, "LDS.64": 16, "LDG.32": 2, "STS.32": 2, "BAR": 2}


def test_trips_that_make_one_tile_together_are_added_up():
    loop = main_loop(written("head:", "LDS R0, [R1]", *["FFMA R0, R1, R2, R0"] * 8, "@P0 BRA `(.L_head)"), K04)
    assert loop.how == "4 trips make one K-tile of 32; counts are for all of them"
    assert loop.mix["FFMA"] == 32 and loop.mix["LDS.32"] == 4


def test_fmas_that_do_not_fit_the_declaration_are_counted_for_one_trip_and_said():
    loop = main_loop(written("head:", *["FFMA R0, R1, R2, R0"] * 20, "@P0 BRA `(.L_head)"), K04)
    assert loop.steps_per_trip is None and loop.mix["FFMA"] == 20
    assert loop.how.startswith("one trip holds 0.625 times the FMAs") and loop.unit == "trip"


def test_waiting_loops_and_constants_are_not_math():
    code = written(
        "spin:",
        "LDG.E R0, desc[UR4][R2.64]",
        "HFMA2.MMA R9, -RZ, RZ, 0, 0",
        "@P0 BRA `(.L_spin)",
        "head:",
        "@!PT LDS RZ, [RZ]",
        *["FFMA R0, R1, R2, R0"] * 32,
        "@P0 BRA `(.L_head)",
    )
    assert whole(main_loop(code, K04).mix) == {"FFMA": 32}
    assert main_loop(code[:3], K04) is None


def test_loops_of_unknown_length_are_said_and_predict_nothing():
    code = written(
        "head:",
        "fill:",
        "STS [R0], R1",
        "@P1 BRA `(.L_fill)",
        "more:",
        "STS [R0], R1",
        "@P1 BRA `(.L_more)",
        *["FFMA R0, R1, R2, R0"] * 32,
        "@P0 BRA `(.L_head)",
        "EXIT",
    )
    loop = main_loop(code, K04)
    assert loop.how == "one trip is one K-tile of 32; 1 more inside, counted as one pass"
    assert predicted(code, K04, PROBLEM) == {}


@needs_nvdisasm
@pytest.mark.parametrize(
    ("rung", "arch"),
    [(rung, arch) for rung in all_rungs().values() for arch in archs_with(rung.requires.features)],
    ids=lambda x: getattr(x, "name", x),
)
def test_every_rungs_main_loop_has_the_fmas_of_its_declaration(rung, arch):
    config = rung_config(rung)
    problem = Problem(m=PROBLEM.m, n=PROBLEM.n, k=PROBLEM.k, **rung.requires.usual._asdict())
    loop = main_loop(compiled(config, arch, problem), config)
    assert loop.steps_per_trip is not None, loop.how
    made = sum(each.times * fmas([each.instruction]) for each in loop.executed)
    assert made == fmas_per_step(config)
    assert not {"LDL", "STL"} & set(loop.mix)


@needs_nvdisasm
def test_the_warp_tile_issues_what_its_shape_asks_for():
    assert whole(main_loop(compiled(K08), K08).mix) == {
        "FFMA": 1024,
        "LDS.128": 64,
        "STS.32": 16,
        "STS.128": 2,
        "LDG.128": 6,
        "BAR": 2,
    }


@needs_nvdisasm
def test_the_tall_thread_tile_feeds_2048_fmas_with_96_wide_loads():
    config = rung_config(all_rungs().find("k08"), FINAL)
    mix = whole(main_loop(compiled(config), config).mix)
    assert mix == {"FFMA": 2048, "LDS.128": 96, "STS.32": 16, "STS.128": 4, "LDG.128": 8, "BAR": 2}


@needs_nvdisasm
def test_memory_instructions_name_the_line_that_asks_for_them():
    source = K04.rung.source.splitlines()
    for instruction in compiled(K04):
        if kind_of(instruction) in ("STS.32", "BAR"):
            assert any(word in source[instruction.line - 1] for word in ("As[ty][tx]", "Bs[ty][tx]", "__syncthreads"))


@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("config", [K02, K04, K08], ids=lambda c: c.rung.name)
def test_predicted_memory_instructions_are_exact_and_follow_from_the_shape(config, arch):
    counts = predicted(compiled(config, arch), config, PROBLEM)
    made = {name.removeprefix("smsp__inst_executed_op_").removesuffix(".sum"): c for name, c in counts.items()}
    assert all(c.low == c.high for name, c in made.items() if name != "smsp__inst_executed")
    assert counts[FMA_METRIC].low == 512**3
    lanes, itemsize = 32, {"k08_warp_tile": 4}.get(config.rung.name, 1)
    assert made["global_st"].low == 512**2 // lanes // itemsize
    declared, scope = config.rung.accesses, config.scope
    ctas = 512**2 // declared.results.evaluate(scope)
    steps = 512 // declared.k_step.evaluate(scope)
    assert made["global_ld"].low == declared.global_loads.evaluate(scope) * steps * ctas // lanes // itemsize
    low, high = counts["smsp__inst_executed.sum"].low, counts["smsp__inst_executed.sum"].high
    assert 512**3 // lanes < low <= high < 1.02 * low


def test_left_over_steps_and_guards_are_not_predicted():
    code = recorded("k02_coalesced.sm_120a.sass", "k02_coalesced")
    assert predicted(code, K02, PROBLEM)["smsp__inst_executed_op_global_ld.sum"] == Range(2**23, 2**23)
    assert predicted(code, K02, Problem(m=512, n=512, k=520)) == {}
    assert predicted(code, K02, Problem(m=511, n=512, k=512)) == {}
    assert predicted(code, K02, Problem(m=512, n=512, k=512, beta=1.0)) == {}


def test_what_a_predicate_or_a_branch_may_skip_widens_the_range():
    code = written(
        "head:",
        "@P1 LDG.E R0, desc[UR4][R2.64]",
        "@P2 BRA `(.L_skip)",
        "LDS R0, [R1]",
        "skip:",
        *["FFMA R0, R1, R2, R0"] * 32,
        "@P0 BRA `(.L_head)",
        "STG.E desc[UR4][R2.64], R0",
        "EXIT",
    )
    counts = predicted(code, K04, Problem(m=32, n=32, k=64))
    warps, trips = 32, 2
    assert counts["smsp__inst_executed_op_global_ld.sum"] == Range(0, trips * warps)
    assert counts["smsp__inst_executed_op_shared_ld.sum"] == Range(0, trips * warps)
    assert counts["smsp__inst_executed_op_global_st.sum"] == Range(warps, warps)
    assert counts["smsp__inst_executed.sum"] == Range((trips * 34 + 2) * warps, (trips * 36 + 2) * warps)
    assert set(counts) == {FMA_METRIC, *METRICS}


def test_staging_that_the_last_trip_leaves_out_is_pinned_by_the_declared_loads():
    stage = ["LDGSTS.E [R0], desc[UR4][R2.64]", "LDG.E R0, desc[UR4][R2.64]", "STS [R0], R1"]
    code = written(
        *["@P3 BRA `(.L_none)", *stage, "none:", "head:", "@P1 BRA `(.L_last)", *stage, "last:"],
        *[*["FFMA R0, R1, R2, R0"] * 32, "@P0 BRA `(.L_head)", "EXIT"],
    )
    counts = predicted(code, K04, Problem(m=32, n=32, k=32 * 5))
    for name in ("ldgsts", "global_ld", "shared_st"):
        assert counts[f"smsp__inst_executed_op_{name}.sum"] == Range(5 * 32, 5 * 32)


def test_a_peeled_last_tile_counts_once():
    tile = ["LDS R0, [R1]", *["FFMA R0, R1, R2, R0"] * 32]
    code = written("LDG.E R0, desc[UR4][R2.64]", "head:", *tile, "@P0 BRA `(.L_head)", *tile, "EXIT")
    assert fmas(code) == 64
    counts = predicted(code, K04, Problem(m=32, n=32, k=32 * 5))
    assert counts["smsp__inst_executed_op_shared_ld.sum"] == Range(5 * 32, 5 * 32)
    assert counts["smsp__inst_executed_op_global_ld.sum"] == Range(32, 32)


def test_without_nvdisasm_what_installs_it_is_said(monkeypatch):
    disassembler.nvdisasm.cache_clear()
    monkeypatch.setattr("cuda.pathfinder.find_nvidia_binary_utility", lambda _: None)
    with pytest.raises(Missing, match=r"pip install 'tilewright\[sass\]'"):
        disassembler.nvdisasm()
    disassembler.nvdisasm.cache_clear()


@needs_nvdisasm
def test_a_cubin_that_cannot_be_read_is_said_and_not_kept(cold_cache):
    for payload in (b"no cubin", compile_cubin(kernel_source(K02, PROBLEM), get_arch("sm_80")).payload):
        with pytest.raises(Missing, match="nvdisasm"):
            disassemble(Binary("elsewhere", "sm_80", payload, "0", "NVRTC"))


@needs_nvdisasm
def test_a_kernel_is_disassembled_once(cold_cache, monkeypatch):
    first = compiled(K02)
    monkeypatch.setattr(disassembler, "_run", lambda _: pytest.fail("disassembled again"))
    assert compiled(K02) == first
