import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.arch import ARCHS, get_arch
from tilewright.declare import (
    Config,
    Expr,
    Lesson,
    Param,
    Rung,
    accesses,
    all_rungs,
    config_rule,
    discover,
    enumerate_configs,
    launch,
    nearest_config,
    rung_config,
    shared,
    with_defaults,
)
from tilewright.declare.config import BETA_GENERAL, BETA_RUNTIME, BETA_ZERO
from tilewright.declare.registry import Registry
from tilewright.declare.space import config_failure
from tilewright.errors import InvalidConfig, InvalidDeclaration, InvalidInput, InvalidProblem, UnknownName
from tilewright.problem import Problem

K08 = all_rungs().find("k08")
TRAP = {"BM": 128, "BN": 256, "BK": 8, "WM": 32, "WN": 256, "WNITER": 1, "TM": 8, "TN": 4, "NUM_THREADS": 128}


def tiny(**fields) -> Rung:
    base = {
        "number": 1,
        "track": "simt",
        "builds_on": None,
        "title": "tiny",
        "summary": "Nothing.",
        "lesson": Lesson(idea="", prediction="", cost="", expires=""),
        "params": (
            Param("BM", 32, (16, 32), "rows"),
            Param("STAGES", 2, (1, 2, 4, 8), "stages"),
            Param("PAD", 4, (4,), "pad"),
        ),
        "launch": launch(grid=("ceil_div(m, BM)", "1", "batch"), block=("32", "1", "1")),
        "accesses": accesses(k_step="1", results="BM", global_loads="1"),
        "name": "k01_tiny",
    }
    return Rung(**{**base, **fields})


def test_the_trap_config_is_rejected_for_its_reason():
    with pytest.raises(InvalidConfig, match=r"WSUBM=4, TM=8: WSUBM % TM == 0 .* nearest valid config: "):
        rung_config(K08, TRAP)


def test_the_trap_becomes_valid_when_its_thread_tile_is_turned():
    assert rung_config(K08, {**TRAP, "TM": 4, "TN": 8}).constants["WSUBM"] == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"NUM_THREADS": 100}, "NUM_THREADS % 32 == 0"),  # group 1
        ({"WM": 48}, "BM % WM == 0"),
        ({"WN": 24}, "BN % WN == 0"),
        ({"NUM_THREADS": 256}, r"\(BM // WM\) \* \(BN // WN\) == NUM_THREADS // 32"),
        ({"TM": 16, "TN": 16}, "WMITER comes out whole"),  # group 2
        (TRAP, "WSUBM % TM == 0"),  # group 3
        ({"BK": 6}, "BK % 4 == 0"),  # group 4
        ({"TM": 2, "WNITER": 4}, "TM % 4 == 0"),
        ({"BK": 12}, "4 \\* NUM_THREADS % BK == 0"),  # group 5
        ({"BN": 96, "WN": 48, "TN": 6}, "TN % 4 == 0"),
        ({"BK": 4}, "BK % ROW_STRIDE_B == 0"),
    ],
)
def test_each_group_of_validity_names_its_rule(settings, words):
    with pytest.raises(InvalidConfig, match=words):
        rung_config(K08, settings)


def test_later_rungs_refuse_what_the_warp_tile_refuses():
    for query in ("k10", "k11", "k12"):
        rung = all_rungs().find(query)
        assert rung.rules[: len(K08.rules)] == K08.rules
        with pytest.raises(InvalidConfig, match=r"WSUBM % TM == 0"):
            rung_config(rung, TRAP)


@pytest.mark.parametrize(
    ("query", "settings", "words"),
    [
        ("k03", {"BM": 64}, r"BM \* BN <= 1024"),
        ("k05", {"TM": 4}, r"BK \* TM == BN must hold, so that each thread stages one element of A"),
        ("k05", {"BM": 128}, r"BK \* TM == BM must hold, so that each thread stages one element of B"),
        ("k06", {"BM": 100}, r"BM % TM == 0"),
        ("k06", {"TM": 2, "TN": 4}, r"NUM_THREADS=2048: 32 <= NUM_THREADS <= 1024"),
        ("k06", {"BM": 32, "BN": 32, "TM": 16, "TN": 16}, r"NUM_THREADS=4"),
        ("k06", {"BK": 1, "BM": 64}, r"BM \* BK % NUM_THREADS == 0"),
        ("k07", {"TN": 2}, r"TN % 4 == 0"),
        ("k07", {"BM": 32, "BN": 256, "TM": 16, "TN": 16}, r"NUM_THREADS=32, BN=256: NUM_THREADS % \(BN // 4\) == 0"),
        ("k10", {"PAD": 3}, r"A_STRIDE=131: A_STRIDE % 2 == 0"),
    ],
)
def test_each_rung_names_the_rule_that_a_config_breaks(query, settings, words):
    with pytest.raises(InvalidConfig, match=words):
        rung_config(all_rungs().find(query), settings)


@pytest.mark.parametrize(("pad", "banks"), [(0, 8), (2, 32), (4, 16), (8, 8)])
def test_padding_spreads_a_warps_transposed_store_over_the_banks(pad, banks):
    c = rung_config(all_rungs().find("k10"), {"PAD": pad}).constants
    lanes = (divmod(lane, c["BK"] // 4) for lane in range(32))
    assert len({(4 * k * c["A_STRIDE"] + row) % 32 for row, k in lanes}) == banks


def test_a_parameter_may_start_at_zero_and_the_nearest_config_still_be_found():
    k10 = all_rungs().find("k10")
    assert rung_config(k10, {"PAD": 0}).constants["A_STRIDE"] == 128
    nearest = nearest_config(k10, {**rung_config(k10).values, "PAD": 0, "WM": 48})
    assert nearest is not None and (nearest.values["PAD"], nearest.values["WM"]) == (0, 64)


def test_a_rung_of_other_constants_shares_kernel_and_parameters():
    k11, k12 = all_rungs().find("k11"), all_rungs().find("k12")
    assert k12.entry == "k11_double_buffer" and k12.source == k11.source and k12.name == "k12_tall_thread_tile"
    assert [(p.name, p.values) for p in k12.params] == [(p.name, p.values) for p in k11.params]
    with pytest.raises(InvalidDeclaration, match="BMM: no such parameter"):
        with_defaults(k11.params, BMM=1)


def test_every_result_has_one_owner_in_every_enumerated_config():
    for config in random.Random(0).sample(list(enumerate_configs(K08)), 60):
        assert owners(config) == config.values["BM"] * config.values["BN"]


def owners(config: Config) -> int:
    """Distinct results written by all threads, by the kernel's own indexing."""
    c = config.constants
    seen = set()
    for thread in range(c["NUM_THREADS"]):
        warp, lane = divmod(thread, 32)
        warp_row, warp_col = warp // (c["BN"] // c["WN"]) * c["WM"], warp % (c["BN"] // c["WN"]) * c["WN"]
        lane_row, lane_col = lane // (c["WSUBN"] // c["TN"]) * c["TM"], lane % (c["WSUBN"] // c["TN"]) * c["TN"]
        for i in range(c["WMITER"] * c["TM"]):
            for j in range(c["WNITER"] * c["TN"]):
                row = warp_row + lane_row + i // c["TM"] * c["WSUBM"] + i % c["TM"]
                col = warp_col + lane_col + j // c["TN"] * c["WSUBN"] + j % c["TN"]
                assert row < c["BM"] and col < c["BN"]
                assert (row, col) not in seen
                seen.add((row, col))
    return len(seen)


@given(st.fixed_dictionaries({p.name: st.sampled_from(p.values) for p in K08.params}))
def test_enumeration_has_exactly_the_valid_configs(values):
    assert (config_failure(K08, values) is None) == (tuple(values[p.name] for p in K08.params) in ALL_K08)


ALL_K08 = {tuple(config.values.values()) for config in enumerate_configs(K08)}


def test_enumeration_is_what_brute_force_gives_on_a_smaller_space():
    small = dataclasses.replace(
        K08, params=tuple(dataclasses.replace(p, values=(p.default,)) for p in K08.params[:5]) + K08.params[5:]
    )
    found = {tuple(c.values.values()) for c in enumerate_configs(small)}
    import itertools

    names = [p.name for p in small.params]
    every = itertools.product(*(p.values for p in small.params))
    assert found == {v for v in every if config_failure(small, dict(zip(names, v, strict=True))) is None}
    assert found


@given(st.fixed_dictionaries({p.name: st.integers(1, 256) for p in K08.params[:4]}))
def test_the_nearest_config_is_valid_and_changes_least(some):
    values = {**{p.name: p.default for p in K08.params}, **some}
    nearest = nearest_config(K08, values)
    if nearest is not None:
        assert config_failure(K08, nearest.values) is None


def test_nearest_prefers_one_change_by_a_small_factor():
    nearest = nearest_config(K08, {**rung_config(K08).values, "WM": 48})
    assert nearest is not None and nearest.values == rung_config(K08).values


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"BMM": 64}, "BMM: no such parameter; there are BM, BN"),
        ({"BM": 0}, "BM=0: must be an integer from 1"),
        ({"BM": -32}, "BM=-32"),
        ({"BM": 10**9}, "BM=1000000000"),
        ({"BM": True}, "BM=True"),
    ],
)
def test_settings_that_no_rule_can_save(settings, words):
    with pytest.raises(InvalidConfig, match=words):
        rung_config(K08, settings)


def test_stages_and_padding_count_in_the_shared_bytes():
    config = rung_config(
        tiny(shared=(shared("As", "BM * (8 + PAD)", stages="STAGES", dynamic=True), shared("Bs", "BM")))
    )
    assert config.scope["dynamic_smem_bytes"] == 32 * (8 + 4) * 2 * 4
    assert config.scope["static_smem_bytes"] == 32 * 4
    assert config.smem_bytes == 32 * 12 * 2 * 4 + 128


def test_architecture_limits_are_rules():
    static = rung_config(tiny(shared=(shared("As", "BM * 512"),)))
    with pytest.raises(InvalidConfig, match="static_smem_bytes=65536, arch_smem_static_bytes=49152"):
        static.require_arch(get_arch("sm_90a"))
    dynamic = rung_config(tiny(shared=(shared("As", "BM * 1024", dynamic=True),)))
    dynamic.require_arch(get_arch("sm_90a"))
    with pytest.raises(InvalidConfig, match="smem_bytes=131072, arch_smem_optin_bytes=101376"):
        dynamic.require_arch(get_arch("sm_86"))
    wide = rung_config(tiny(launch=launch(grid=("1", "1", "1"), block=("BM * 64", "1", "1"))))
    with pytest.raises(InvalidConfig, match="threads=2048, arch_max_threads_per_cta=1024"):
        wide.require_arch(get_arch("sm_90a"))


def test_binary_rules_refuse_registers_and_spills():
    config = rung_config(K08)
    arch = get_arch("sm_90a")
    config.require_binary(arch, registers=96, spill_bytes=0, stack_bytes=0)
    big = rung_config(K08, {"BM": 256, "BN": 128, "WM": 128, "WN": 64, "TM": 16, "TN": 16, "WNITER": 1})
    with pytest.raises(InvalidConfig, match="spill_bytes == 0"):
        big.require_binary(arch, registers=255, spill_bytes=8, stack_bytes=8)
    big.require_binary(arch, registers=255, spill_bytes=0, stack_bytes=0)
    full = rung_config(all_rungs().find("k02"))
    with pytest.raises(InvalidConfig, match="registers=72"):
        full.require_binary(arch, registers=72, spill_bytes=0, stack_bytes=0)


def test_features_are_required_by_name():
    needy = rung_config(tiny(requires=dataclasses.replace(K08.requires, features=frozenset({"wgmma"}))))
    with pytest.raises(InvalidConfig, match="needs wgmma, which sm_80 lacks"):
        needy.require_arch(get_arch("sm_80"))


@pytest.mark.parametrize("arch", ARCHS.values(), ids=lambda a: a.name)
def test_enumeration_for_an_architecture_obeys_its_limits(arch):
    configs = list(enumerate_configs(all_rungs().find("k04"), arch))
    assert {c.values["BK"] for c in configs} == {8, 16, 32}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"m": 130}, "m % BM == 0"),
        ({"n": 100}, "n % BN == 0"),
        ({"k": 20}, "k % BK == 0"),
        ({"lda": 65}, "lda=65"),
        ({"ldd": 66}, "ldd=66"),
        ({"alignment_bytes": 4}, "alignment_bytes=4"),
        ({"lda": 2**24}, "BM \\* lda <= 2147483647"),
        ({"layout": "NT"}, "layout=NT"),
        ({"beta": 1.0, "ldc": 67}, "ldc=67"),
    ],
)
def test_an_unguarded_rung_refuses_what_it_would_get_wrong(fields, words):
    with pytest.raises(InvalidProblem, match=words):
        rung_config(K08).require_problem(Problem(**{"m": 128, "n": 64, "k": 64, **fields}))


def test_a_grid_beyond_the_launch_limit_is_refused():
    config = rung_config(all_rungs().find("k02"))
    with pytest.raises(InvalidProblem, match=r"grid\.y: at most 65535"):
        config.grid(Problem(m=2**22, n=32, k=1))


def test_guards_and_beta_follow_from_the_problem():
    config = rung_config(all_rungs().find("k04"))
    even, odd = Problem(m=64, n=64, k=64), Problem(m=64, n=64, k=65, beta=2.0)
    assert config.problem_constants(even) == {"BETA_MODE": BETA_ZERO, "DEPENDENT": 0, "GUARDED": 0}
    assert config.problem_constants(odd) == {"BETA_MODE": BETA_GENERAL, "DEPENDENT": 0, "GUARDED": 1}
    assert config.problem_constants(odd, beta_mode="runtime")["BETA_MODE"] == BETA_RUNTIME


@pytest.mark.parametrize(
    "fields",
    [
        {"rules": (config_rule("BM % WM == 0", "x"),)},
        {"rules": (config_rule("m % BM == 0", "sizes are for problem rules"),)},
        {"params": (Param("bm", 32, (32,), "lower case"),)},
        {"params": (Param("BM", 33, (32,), "default not among values"),)},
        {"unguarded_when": Expr("q == 0")},
        {"launch": launch(grid=("m // BM", "1", "1"), block=("m", "1", "1"))},
    ],
)
def test_a_declaration_that_contradicts_itself(fields):
    with pytest.raises(InvalidDeclaration):
        tiny(**fields)


def test_a_rule_without_a_value_and_nothing_before_it_is_the_declarations_fault():
    rung = tiny(rules=(config_rule("BM % (STAGES - STAGES) == 0", "x"),))
    with pytest.raises(InvalidDeclaration, match="divides by zero"):
        rung_config(rung)


MODULE = """
from tilewright.declare import *
RUNG = Rung(
    number={number}, track="simt", builds_on={builds_on!r}, title="", summary=".", params=(),
    lesson=Lesson(idea="", prediction="", cost="", expires=""),
    launch=launch(grid=("1", "1", "1"), block=("32", "1", "1")),
    accesses=accesses(k_step="1", results="1", global_loads="1"),
)
"""
SEARCH = """
from tilewright.declare import *
RUNG = Search(
    number={number}, track="simt", builds_on={builds_on!r}, title="", summary=".",
    lesson=Lesson(idea="", prediction="", cost="", expires=""),
)
"""
KERNEL = 'extern "C" __global__ void {name}(const __grid_constant__ GemmArgs args) {{}}\n'


def write_rung(folder, stem, *, number=1, builds_on=None, kernel=True, symbol=None):
    (folder / f"{stem}.py").write_text(MODULE.format(number=number, builds_on=builds_on))
    if kernel:
        (folder / f"{stem}.cu").write_text(KERNEL.format(name=symbol or stem))


def test_discovery_finds_pairs_in_the_tree_order(tmp_path):
    write_rung(tmp_path, "k02_b", number=2, builds_on="k05_a")
    write_rung(tmp_path, "k05_a", number=5)
    assert list(discover(tmp_path)) == ["k05_a", "k02_b"]


def test_a_search_is_a_step_and_no_rung(tmp_path):
    write_rung(tmp_path, "k01_a")
    (tmp_path / "k02_search.py").write_text(SEARCH.format(number=2, builds_on="k01_a"))
    found = discover(tmp_path)
    assert list(found) == ["k01_a"] and [step.name for step in found.steps] == ["k01_a", "k02_search"]
    assert found.find_step("2").name == "k02_search"
    with pytest.raises(InvalidInput, match=r"k02_search: searches k01_a's parameters and has no kernel.* run k01_a"):
        found.find("2")


@pytest.mark.parametrize(
    ("searches", "kernel", "words"),
    [
        ({"k02_s": None}, None, "a search builds on"),
        ({"k02_s": "k09_none"}, None, "no such rung"),
        ({"k02_s": "k01_a", "k03_s": "k02_s"}, None, "k03_s: builds_on='k02_s': has no kernel"),
        ({"k02_s": "k01_a"}, "k02_s", "k02_s is a search and has no kernel; remove it"),
    ],
)
def test_a_search_needs_a_rung_and_no_kernel(tmp_path, searches, kernel, words):
    write_rung(tmp_path, "k01_a")
    for number, (stem, builds_on) in enumerate(searches.items(), 2):
        (tmp_path / f"{stem}.py").write_text(SEARCH.format(number=number, builds_on=builds_on))
    if kernel:
        (tmp_path / f"{kernel}.cu").write_text(KERNEL.format(name=kernel))
    with pytest.raises(InvalidDeclaration, match=words):
        discover(tmp_path)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("k01_a", {"kernel": False})], "no k01_a.cu"),
        ([("k01_a", {}), ("k01_b", {})], "number 1 of track simt is k01_a's"),
        ([("k01_a", {"builds_on": "k00_none"})], "no such rung"),
        ([("k01_a", {"symbol": "k01_other"})], "its own stem"),
        ([("k01_a", {"builds_on": "k02_b"}), ("k02_b", {"number": 2, "builds_on": "k01_a"})], "circle"),
    ],
)
def test_discovery_fails_loudly(tmp_path, pairs, words):
    for stem, fields in pairs:
        write_rung(tmp_path, stem, **fields)
    with pytest.raises(InvalidDeclaration, match=words):
        discover(tmp_path)


def test_a_kernel_without_a_declaration_is_half_a_rung(tmp_path):
    write_rung(tmp_path, "k01_a")
    (tmp_path / "k02_b.cu").write_text(KERNEL.format(name="k02_b"))
    with pytest.raises(InvalidDeclaration, match=r"add k02_b\.py"):
        discover(tmp_path)


@pytest.mark.parametrize("query", ["k08_warp_tile", "k08", "8"])
def test_a_rung_is_found_by_name_prefix_or_number(query):
    assert all_rungs().find(query).name == "k08_warp_tile"


def test_an_unknown_rung_names_the_closest():
    with pytest.raises(UnknownName, match="k08_warp_tile"):
        all_rungs().find("k08_warp_tiles")


def test_the_registry_is_a_mapping():
    assert isinstance(all_rungs(), Registry) and len(all_rungs()) == len(list(all_rungs()))


def test_a_config_too_large_for_an_architecture_is_told_the_nearest_that_fits():
    wide = {"BM": 256, "BN": 256, "BK": 32, "WM": 128, "WN": 64, "NUM_THREADS": 256, "TM": 8, "TN": 8}
    with pytest.raises(InvalidConfig, match=r"static_smem_bytes=65536, .*nearest valid config: BK=16"):
        rung_config(K08, wide).require_arch(get_arch("sm_86"))
