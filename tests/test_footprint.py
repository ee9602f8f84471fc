"""The shape of one warp's accesses, against figures derived by hand and patterns counted on hardware."""

import dataclasses
import random

import pytest

from tilewright.declare import all_rungs, enumerate_configs, footprint, rung_config
from tilewright.errors import InvalidDeclaration
from tilewright.facts.footprint import lane_offsets, warp_accesses
from tilewright.problem import Problem

PROBLEM = Problem(m=4096, n=4096, k=4096)
K08 = all_rungs().find("k08")


def access(config, name: str, kind: str, problem=PROBLEM):
    return next(a for a in warp_accesses(config, problem) if (a.name, a.kind) == (name, kind))


def declared(rung_name: str, name: str, kind: str):
    return access(rung_config(all_rungs().find(rung_name)), name, kind)


def shared(offset: str, *, elements: int = 1, kind: str = "shared load"):
    """A warp's access to shared memory at `offset`, which may name k08's constants."""
    rung = dataclasses.replace(K08, footprints=(footprint("x", kind, offset, elements=str(elements)),))
    return access(rung_config(rung), "x", kind)


def test_the_uncoalesced_operand_takes_32_sectors_and_the_coalesced_one_4():
    strided, neighbours = declared("k01", "A", "global load"), declared("k02", "B", "global load")
    assert (strided.sectors, neighbours.sectors) == (32, 4)
    assert strided.distinct_bytes == neighbours.distinct_bytes == neighbours.span_bytes == 128
    assert strided.span_bytes == 31 * 4096 * 4 + 4
    assert declared("k01", "D", "global store").sectors == 32
    assert declared("k02", "D", "global store").sectors == 4


@pytest.mark.parametrize(("rung", "name"), [("k01", "B"), ("k02", "A")])
def test_one_element_for_all_lanes_is_one_sector(rung, name):
    broadcast = declared(rung, name, "global load")
    assert (broadcast.sectors, broadcast.distinct_bytes, broadcast.span_bytes) == (1, 4, 4)


def test_a_warp_tiles_reads_span_its_sub_tile_an_eighth_of_the_cta_tile():
    config = rung_config(K08)
    b, a = access(config, "Bs", "shared load"), access(config, "As", "shared load")
    assert b.span_bytes == b.distinct_bytes == 4 * config.constants["WSUBN"] == 64
    assert a.span_bytes == a.distinct_bytes == 4 * config.constants["WSUBM"] == 128
    smeared = shared("tx % 16 * 8", elements=4)  # 16 threads across all 128 columns, 8 each, no warp tile
    assert smeared.span_bytes == (15 * 8 + 4) * 4
    assert 128 * 4 // b.span_bytes == 8


@pytest.mark.parametrize(
    ("stride", "banks", "ways"),
    [("BM", 8, 4), ("(BM + 2)", 32, 1), ("(BM + 4)", 16, 2)],
)
def test_padding_decides_the_banks_of_the_transposed_store(stride, banks, ways):
    store = shared(f"tx % 4 * 4 * {stride} + tx // 4", kind="shared store")
    assert (store.banks, store.conflict_ways, store.wavefronts) == (banks, ways, ways)


def test_the_declared_store_is_that_conflict():
    store = declared("k08", "As", "shared store")
    assert (store.banks, store.conflict_ways) == (8, 4)


@pytest.mark.parametrize(
    ("offset", "elements", "wavefronts", "ways"),
    [
        ("lane", 1, 1, 1),
        ("0 * lane", 1, 1, 1),
        ("lane * 32", 1, 32, 32),
        ("lane * 2", 1, 2, 2),
        ("lane * 2", 2, 2, 1),
        ("lane * 4", 4, 4, 1),
        ("lane * 8", 4, 8, 2),
        ("lane // 2 * 4", 4, 2, 1),  # neighbours share: two groups of eight lanes at once
        ("lane // 4 * 4", 4, 2, 1),
        ("lane % 4 * 4", 4, 4, 1),  # sharing lanes are four apart: no groups join
    ],
)
def test_wavefronts_of_shared_loads(offset, elements, wavefronts, ways):
    load = shared(offset, elements=elements)
    assert (load.wavefronts, load.conflict_ways) == (wavefronts, ways)


def test_leading_dimensions_count_in_global_memory():
    config = rung_config(all_rungs().find("k01"))
    close = access(config, "A", "global load", Problem(m=64, n=64, k=4))
    assert (close.sectors, close.span_bytes) == (16, 31 * 16 + 4)


def test_a_narrow_block_puts_several_rows_in_a_warp():
    config = rung_config(all_rungs().find("k02"), {"BN": 8})
    assert lane_offsets(config.rung.footprints[0], config, PROBLEM) == [lane // 8 * 4096 for lane in range(32)]


def test_lanes_own_different_results_in_every_config():
    for config in random.Random(1).sample(list(enumerate_configs(K08)), 40):
        written = access(config, "D", "global store")
        assert written.distinct_bytes == 32 * written.lane_bytes
        assert access(config, "As", "shared store").distinct_bytes == 128


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (("x", "shared load", "row"), "footprint x: 'row' names row"),
        (("x", "shared load", "tx * lda"), "names lda"),
        (("x", "local load", "tx"), "kind 'local load' must be one of global load"),
    ],
)
def test_a_footprint_that_cannot_be_evaluated_is_refused(fields, words):
    with pytest.raises(InvalidDeclaration, match=words):
        dataclasses.replace(K08, footprints=(footprint(*fields),))


def test_a_warps_reads_of_bs_are_eight_times_narrower_on_rung_8_than_on_rung_7():
    """All the accesses of one patch together: 128 columns of the tile, and WSUBN = 16 of them."""
    spans = {}
    for query in ("k07", "k08"):
        config = rung_config(all_rungs().find(query))
        read = access(config, "Bs", "shared load")
        spans[query] = (read.span_bytes - read.lane_bytes) // 4 + config.constants["TN"]
    assert spans == {"k07": 128, "k08": 16}
