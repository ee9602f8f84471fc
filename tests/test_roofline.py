"""Rooflines: the article's figures reproduced, and the words that say when the model fails."""

from dataclasses import replace

import pytest

from tilewright.arch import get_arch
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import UnknownName
from tilewright.facts.counts import counts
from tilewright.facts.roofline import CARDS, card_of_arch, get_card, roofline
from tilewright.problem import Problem
from tilewright.record import Row

CUBE = Problem(m=4096, n=4096, k=4096)
K08 = rung_config(all_rungs().find("k08"))
ARTICLES = get_card("RTX 5080")


def test_the_articles_figures_for_warp_tiling():
    roof = roofline(K08, CUBE, ARTICLES)
    assert roof.flops == pytest.approx(137.44e9, rel=1e-4)
    assert roof.requested_bytes == pytest.approx(6.44e9, rel=1e-3)
    assert roof.flop_per_byte == pytest.approx(21.3, abs=0.05)
    assert roof.memory_flops == pytest.approx(20486e9, rel=1e-3)
    assert roof.memory_floor_ms == pytest.approx(6.71, abs=0.005)
    assert roof.band_bytes == 2 * 2**20 and roof.l2_bytes == 64 * 2**20
    published_flops = roof.flops / (K08.rung.published.time_ms / 1e3)
    assert published_flops / roof.memory_flops == pytest.approx(1.43, abs=0.005)


def test_the_articles_access_counts():
    oblong, square = (
        counts(K08, CUBE),
        counts(rung_config(all_rungs().find("k08"), {"BN": 128, "WN": 64, "TN": 8}), CUBE),
    )
    assert (oblong.global_loads_per_result, square.global_loads_per_result) == (96, 64)
    assert oblong.shared_loads_per_result == 4096 / 4


def test_a_band_in_the_l2_breaks_the_premise_and_the_sizes_are_said():
    roof = roofline(K08, CUBE, ARTICLES)
    assert not roof.premise_holds
    assert "BM × K or 2 MiB, fits the L2 of 64 MiB" in roof.premise() and "192 MiB" in roof.premise()


def test_operands_in_the_l2_break_it_altogether():
    roof = roofline(K08, Problem(m=1024, n=1024, k=1024), ARTICLES)
    assert not roof.premise_holds and "all operands, 12 MiB, fit" in roof.premise()


def test_a_band_beyond_the_l2_leaves_it_standing():
    roof = roofline(K08, Problem(m=128, n=4096, k=2**20), get_card("RTX 3090"))
    assert roof.premise_holds and "exceed the L2 of 6 MiB" in roof.premise()


def test_c_counts_among_the_operands_when_it_is_read():
    without, with_c = (roofline(K08, Problem(m=256, n=256, k=256, beta=b), ARTICLES) for b in (0.0, 1.0))
    assert with_c.operand_bytes - without.operand_bytes == 256 * 256 * 4


@pytest.mark.parametrize(
    ("name", "tflops"),
    [("H200", 66.9), ("H100 SXM", 66.9), ("A100", 19.5), ("RTX 5080", 56.3), ("RTX 4090", 82.6), ("RTX 3090", 35.6)],
)
def test_peaks_are_the_datasheets(name, tflops):
    assert CARDS[name].peak_flops("float32") / 1e12 == pytest.approx(tflops, abs=0.05)


@pytest.mark.parametrize(
    ("name", "dtype", "tflops"),
    [
        ("A100", "bfloat16", 312),
        ("A100", "tfloat32", 156),
        ("RTX 3090", "bfloat16", 71),
        ("RTX 4090", "float16", 165.2),
        ("RTX 4090", "tfloat32", 82.6),
        ("RTX 5080", "bfloat16", 112.6),
    ],
)
def test_dense_tensor_core_peaks_with_float32_sums_are_the_datasheets(name, dtype, tflops):
    assert CARDS[name].peak_flops(dtype) / 1e12 == pytest.approx(tflops, rel=0.005)


BF16_CUBE = replace(CUBE, dtype="bfloat16", out_dtype="float32", layout="NT", lda=0, ldb=0)
T04 = rung_config(all_rungs().find("t04"))


def test_the_compute_bound_of_16_bit_elements_is_the_measured_instruction_where_it_is_recorded():
    wgmma = Row(rung="ceiling_wgmma", problem={}, tflops=900.0, time_us=1.0)
    of_sheet, measured = (roofline(T04, BF16_CUBE, CARDS["H200"], ceiling) for ceiling in (None, wgmma))
    assert (of_sheet.peak_source, measured.peak_source) == ("datasheet", "ceiling_wgmma")
    assert of_sheet.peak_flops == pytest.approx(132 * 4096 * 1980e6) and measured.peak_flops == 900e12
    ffma = Row(rung="ceiling_ffma", problem={}, tflops=66.0, time_us=1.0)
    assert roofline(K08, CUBE, CARDS["H200"], ffma).peak_source == "datasheet"


def test_operands_count_in_their_own_types():
    roof = roofline(T04, BF16_CUBE, CARDS["H200"])
    assert roof.operand_bytes == 4096**2 * (2 + 2 + 4) and roof.band_bytes == 128 * 4096 * 2


def test_cards_are_found_by_name_and_by_architecture():
    assert get_card("rtx5080") is CARDS["RTX 5080"] is card_of_arch("sm_120a")
    assert all(get_arch(card.arch).name == card.arch for card in CARDS.values())
    assert card_of_arch("sm_103a") is None
    with pytest.raises(UnknownName, match="card 'RTX 1': not listed; there are H200, H100 SXM"):
        get_card("RTX 1")
