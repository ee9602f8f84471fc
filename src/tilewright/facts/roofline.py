"""The roofline of a config on a card, from datasheet figures, and where it stops holding.

The model takes every requested byte to come from DRAM. Caches break that premise, so the sizes that decide it stand
beside both bounds. The compute bound is the FMA lanes' for float32. For other elements it is what the card's fastest
tensor-core instruction was measured to do, where that is recorded. Nothing is measured here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.arch import get_arch
from tilewright.declare.config import Config
from tilewright.errors import UnknownName
from tilewright.problem import ITEMSIZE_BYTES, Problem

if TYPE_CHECKING:
    from tilewright.record import Row

MIB = 2**20


class Card(NamedTuple):
    """One product by its datasheet: SMs, boost clock, DRAM bandwidth and L2 size."""

    name: str
    arch: str
    sms: int
    boost_mhz: int
    dram_gb_per_s: int
    l2_mib: int

    def peak_flops(self, dtype: str) -> float:
        """FLOP a second at the boost clock, for elements of `dtype`: of all FP32 lanes, or all tensor cores."""
        return self.sms * get_arch(self.arch).fmas_per_sm(dtype) * 2 * self.boost_mhz * 1e6


CARDS = {
    card.name: card
    for card in (
        Card("H200", "sm_90a", 132, 1980, 4800, 60),
        Card("H100 SXM", "sm_90a", 132, 1980, 3350, 50),
        Card("A100", "sm_80", 108, 1410, 2039, 40),
        Card("RTX 5080", "sm_120a", 84, 2617, 960, 64),
        Card("RTX 4090", "sm_89", 128, 2520, 1008, 72),
        Card("RTX 3090", "sm_86", 82, 1695, 936, 6),
    )
}


def get_card(name: str) -> Card:
    """The card called `name`, whatever its case and spaces. Raises UnknownName with the list."""
    wanted = _squeezed(name)
    for card in CARDS.values():
        if _squeezed(card.name) == wanted:
            return card
    raise UnknownName(f"card {name!r}: not listed; there are {', '.join(CARDS)}")


def _squeezed(name: str) -> str:
    return "".join(name.split()).lower()


def card_of_device(device_name: str) -> Card | None:
    """The listed card that the driver's name of a device holds, as 'NVIDIA H200' does, or None."""
    return next((card for card in CARDS.values() if card.name.lower() in device_name.lower()), None)


def card_of_arch(arch_name: str) -> Card | None:
    """The first listed card of an architecture, or None."""
    return next((card for card in CARDS.values() if card.arch == arch_name), None)


class Roofline(NamedTuple):
    """Both forms of the memory bound, the compute bound and its source, and the sizes that say if the model holds.

    `requested_bytes` are the global loads as the kernel makes them; `operand_bytes` are A, B, D and, when it is read,
    C, once each; `band_bytes` the rows of A that one row of CTA tiles reads, None for a rung without BM.
    """

    card: str
    flops: int
    requested_bytes: int
    operand_bytes: int
    band_bytes: int | None
    l2_bytes: int
    dram_bytes_per_s: float
    peak_flops: float
    peak_source: str

    @property
    def flop_per_byte(self) -> float:
        """Arithmetic intensity against the requested bytes."""
        return self.flops / self.requested_bytes

    @property
    def memory_flops(self) -> float:
        """FLOP a second that the DRAM bandwidth allows at this intensity."""
        return self.flop_per_byte * self.dram_bytes_per_s

    @property
    def memory_floor_ms(self) -> float:
        """The time that the requested bytes take at the DRAM bandwidth."""
        return 1e3 * self.requested_bytes / self.dram_bytes_per_s

    @property
    def operand_floor_ms(self) -> float:
        """The time that the operands take when each comes from DRAM once, however often it is asked for."""
        return 1e3 * self.operand_bytes / self.dram_bytes_per_s

    @property
    def compute_floor_ms(self) -> float:
        """The time that the FLOPs take at the peak."""
        return 1e3 * self.flops / self.peak_flops

    @property
    def roof_flops(self) -> float:
        """The lower of both ceilings."""
        return min(self.memory_flops, self.peak_flops)

    @property
    def premise_holds(self) -> bool:
        """Whether requested bytes may be taken for DRAM bytes: neither the operands nor a band of A fit the L2."""
        smallest = self.operand_bytes if self.band_bytes is None else min(self.operand_bytes, self.band_bytes)
        return smallest > self.l2_bytes

    def premise(self) -> str:
        """In words, with the sizes, whether requested bytes are DRAM bytes here."""
        l2 = f"the L2 of {_mib(self.l2_bytes)}"
        if self.operand_bytes <= self.l2_bytes:
            return f"Not so here: all operands, {_mib(self.operand_bytes)}, fit {l2}, so DRAM sees each byte once."
        if self.band_bytes is not None and self.band_bytes <= self.l2_bytes:
            return (
                f"Not so here: a row band of A, BM × K or {_mib(self.band_bytes)}, fits {l2}, so most of "
                f"the CTAs that share it are served on chip. All operands, {_mib(self.operand_bytes)}, don't fit."
            )
        band = "" if self.band_bytes is None else f" and a row band of A, {_mib(self.band_bytes)},"
        return f"That may be so here: all operands, {_mib(self.operand_bytes)},{band} exceed {l2}."

    def to_json(self) -> dict[str, Any]:
        """Inputs and bounds as JSON types."""
        bounds = ("flop_per_byte", "memory_flops", "memory_floor_ms", "operand_floor_ms", "compute_floor_ms")
        return {**self._asdict(), **{name: getattr(self, name) for name in (*bounds, "premise_holds")}}


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.3g} MiB"


def roofline(config: Config, problem: Problem, card: Card, ceiling: Row | None = None) -> Roofline:
    """The roofline of `config` for `problem` on `card`, from the declared global loads.

    `ceiling` is the recorded one of the problem's elements on this card, if any.
    """
    from tilewright.facts.counts import counts

    peak_flops, peak_source = card.peak_flops(problem.dtype), "datasheet"
    if problem.dtype != "float32" and ceiling is not None and ceiling.tflops is not None:
        peak_flops, peak_source = 1e12 * ceiling.tflops, ceiling.rung
    element_bytes = ITEMSIZE_BYTES[problem.dtype]
    loads = counts(config, problem).global_loads_per_result * problem.m * problem.n * problem.batch
    rows = config.constants.get("BM")
    return Roofline(
        card=card.name,
        flops=problem.flops,
        requested_bytes=int(loads * element_bytes),
        operand_bytes=problem.operand_bytes,
        band_bytes=None if rows is None else rows * problem.k * element_bytes,
        l2_bytes=card.l2_mib * MIB,
        dram_bytes_per_s=card.dram_gb_per_s * 1e9,
        peak_flops=peak_flops,
        peak_source=peak_source,
    )
