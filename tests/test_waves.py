"""How tiles fill a card: whole waves, the tail of the last one, and what is left of the card's speed."""

from dataclasses import replace

import pytest

from tilewright.declare import all_rungs, launch, rung_config
from tilewright.facts.roofline import Card, get_card
from tilewright.facts.waves import waves
from tilewright.problem import Problem

H200 = get_card("H200")
T04 = all_rungs().find("t04")
PERSISTENT = replace(
    T04,
    launch=launch(
        grid=("min(ceil_div(m, BM) * ceil_div(n, BN) * batch, sm_count)", "1", "1"), block=("NUM_THREADS", "1", "1")
    ),
)


def filled(rung, m: int, n: int, *, ctas_per_sm: int = 1, card: Card = H200, batch: int = 1):
    problem = Problem(m=m, n=n, k=64, batch=batch, layout="NT", dtype="bfloat16", out_dtype="bfloat16")
    return waves(rung_config(rung, {"BM": 128, "BN": 256, "WN": 128}), problem, card, ctas_per_sm)


def test_the_last_wave_is_what_whole_ones_leave():
    found = filled(T04, 4096, 4096)
    assert (found.tiles, found.ctas, found.slots, found.persistent) == (512, 512, 132, False)
    assert found.waves == pytest.approx(512 / 132) and found.tail == 512 - 3 * 132
    assert found.tail_efficiency == pytest.approx(116 / 132)
    assert found.utilisation == pytest.approx(512 / (4 * 132))


@pytest.mark.parametrize(("tile_rows", "tail", "utilisation"), [(132, 132, 1.0), (133, 1, 133 / 264), (1, 1, 1 / 132)])
def test_one_tile_more_than_fits_costs_a_wave(tile_rows, tail, utilisation):
    found = filled(T04, 128 * tile_rows, 256)
    assert found.tail == tail and found.utilisation == pytest.approx(utilisation)


def test_ctas_that_share_an_sm_are_one_wave():
    assert filled(T04, 4096, 4096, ctas_per_sm=2).slots == 264
    assert filled(T04, 4096, 4096, card=get_card("RTX 4090")).slots == 128


def test_ctas_of_a_persistent_kernel_take_several_tiles_each():
    found = filled(PERSISTENT, 4096, 4096)
    assert (found.tiles, found.ctas, found.slots, found.persistent) == (512, 132, 132, True)
    assert found.tiles_per_cta == (3, 4) and found.utilisation == pytest.approx(512 / 528)
    assert filled(PERSISTENT, 4096, 4096, ctas_per_sm=2) == found
    assert filled(PERSISTENT, 4096, 4096, batch=2).tiles == 1024


def test_fewer_tiles_than_sms_leave_the_others_idle():
    found = filled(PERSISTENT, 512, 512)
    assert (found.tiles, found.ctas, found.slots, found.tiles_per_cta) == (8, 8, 132, (1, 1))
    assert found.utilisation == found.tail_efficiency == pytest.approx(8 / 132)


def test_a_row_has_inputs_and_results():
    assert (
        filled(T04, 4096, 4096).to_json().items() >= {"card": "H200", "tiles": 512, "slots": 132, "tail": 116}.items()
    )
