"""What a card can do at most, by measured ceilings or by its datasheet: the model's units.

Owns the figures and where they are from. It knows no kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tilewright.arch import ArchSpec, get_arch
from tilewright.facts.roofline import CARDS, Card, card_of_arch
from tilewright.problem import ITEMSIZE_BYTES

USUAL_MHZ = 1700
DRAM_GB_PER_S_OF_SM = 25
"""What an unlisted card is taken for."""
DRAM_SHARE, L2_BYTES_PER_CLOCK, SHARED_BYTES_PER_CLOCK = 0.9, 32, 128
"""Of the datasheet's bandwidth, and an SM's bytes a clock, where nothing was measured."""


class Rates(NamedTuple):
    """A card's ceilings: FLOP a µs by element type, bytes a µs of the whole card, and where they are from."""

    card: str
    sm_count: int
    flops_per_us: Mapping[str, float]
    shared_per_us: float
    l2_per_us: float
    dram_read_per_us: float
    dram_write_per_us: float
    source: str


def nominal_rates(card: Card) -> Rates:
    """What a card's datasheet promises, less what DRAM never gives."""
    clocks_per_us = float(card.boost_mhz)
    dram = card.dram_gb_per_s * 1e3 * DRAM_SHARE
    return Rates(
        card=card.name,
        sm_count=card.sms,
        flops_per_us={dtype: card.peak_flops(dtype) / 1e6 for dtype in ITEMSIZE_BYTES},
        shared_per_us=card.sms * SHARED_BYTES_PER_CLOCK * clocks_per_us,
        l2_per_us=card.sms * L2_BYTES_PER_CLOCK * clocks_per_us,
        dram_read_per_us=dram,
        dram_write_per_us=dram,
        source="the datasheet",
    )


def card_like(arch: ArchSpec, sm_count: int) -> Card:
    """The listed card of this architecture and size, or one made up from the nearest."""
    exact = next((card for card in CARDS.values() if (card.arch, card.sms) == (arch.name, sm_count)), None)
    if exact is not None:
        return exact
    near = card_of_arch(arch.name)
    name = f"{arch.name} with {sm_count} SMs"
    if near is None:
        dram = DRAM_GB_PER_S_OF_SM * sm_count
        return Card(name, get_arch(arch.name).name, sm_count, USUAL_MHZ, dram, 50)
    share = sm_count / near.sms
    return Card(name, arch.name, sm_count, near.boost_mhz, round(near.dram_gb_per_s * share), near.l2_mib)
