"""What is said of a row in a terminal, figure by figure, and which figures each kind of run has as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.errors import Unsupported
from tilewright.record import Ratio, Record, Row, recorded_best

UNSUPPORTED = Unsupported.__name__


@dataclass(frozen=True)
class Column:
    """A heading of at most two lines, a width, and how to say it of a row. Empty text: not claimed."""

    heading: str
    width: int
    say: Callable[[Row], str]
    style: str = ""


def duration(time_us: float) -> str:
    """A time with three significant digits in µs or ms."""
    return f"{time_us / 1000:.3g} ms" if time_us >= 999.5 else f"{time_us:.3g} µs"


def percent(fraction: float) -> str:
    """A fraction as per cent, without the sign: one decimal, two below ten."""
    return f"{100 * fraction:.1f}" if fraction >= 0.0995 else f"{100 * fraction:.2f}"


def share(ratio: Ratio) -> str:
    """A ratio with its interval, in per cent."""
    return f"{percent(ratio.median)} [{percent(ratio.low)}, {percent(ratio.high)}]"


def _optional(value: float | None, form: str, scale: float = 1.0) -> str:
    return "" if value is None else form.format(value * scale)


def _verified(row: Row) -> str:
    if row.failure == UNSUPPORTED:
        return "– skipped"
    return {None: "", True: "✓ exact", False: f"✗ {row.failure}"}[row.verified]


def _registers(row: Row) -> str:
    spilled = f" +{row.spill_bytes} B spilled" if row.spill_bytes else ""
    by_role = "".join(f"{'/' if at else ': '}{role['registers']}" for at, role in enumerate(row.roles or []))
    return "" if row.registers is None else f"{row.registers}{by_role}{spilled}"


def _ratio(row: Row) -> str:
    return "" if row.ratio_to_baseline is None else share(row.ratio_to_baseline)


INSTRUCTIONS = {
    "ceiling_ffma": "FFMA",
    "ceiling_wmma": "WMMA",
    "ceiling_mma_sync": "mma.sync",
    "ceiling_wgmma": "wgmma",
    "ceiling_wgmma_tf32": "TF32 wgmma",
}
"""What a compute ceiling is of."""
TENSOR_KINDS = ("HMMA", "HGMMA", "LDSM", "STSM", "LDGSTS", "UTMALDG", "UTMASTG")


def _tensor_instructions(row: Row) -> str:
    """What a rung of the tensor track is made of: in its loops for a step along K, and beside them in brackets."""
    in_loops = dict(row.sass or {})
    elsewhere: dict[str, int | float] = {}
    for role in row.roles or []:
        in_loops |= {kind: count for kind, count in role["loop"].items() if kind not in in_loops}
        elsewhere |= role["elsewhere"]
    beside = _told({kind: count for kind, count in elsewhere.items() if kind not in in_loops})
    return _told(in_loops) + (f" ({beside})" if beside else "")


def _told(counts: dict[str, int | float]) -> str:
    return ", ".join(f"{kind} {count:g}" for kind, count in counts.items() if kind.partition(".")[0] in TENSOR_KINDS)


def _shared(row: Row) -> str:
    if row.smem_bytes is None:
        return ""
    return f"{row.smem_bytes / 1024:g} KiB" + (f" in {row.stages}" if row.stages and row.stages > 1 else "")


NAME = Column("rung", 20, lambda r: r.rung, "bold")
VERIFIED = Column("verified", 9, _verified)
RESOURCES = (
    Column("registers", 9, _registers),
    Column("occupancy", 9, lambda r: _optional(r.occupancy, "{:.1f}%", 100)),
)
COUNTS = (
    Column("global load\nbytes/FLOP", 11, lambda r: _optional(r.global_load_bytes_per_flop, "{:.3f}")),
    Column("shared loads\nper result", 12, lambda r: _optional(r.shared_loads_per_result, "{:g}")),
)
TRACED = (
    Column("sectors\na request", 9, lambda r: _optional(r.sectors_per_request, "{:.3g}")),
    Column("wavefronts\nan access", 10, lambda r: _optional(r.wavefronts_per_access, "{:.3g}")),
)
TIMES = (
    Column("time", 9, lambda r: "" if r.time_us is None else duration(r.time_us)),
    Column("TFLOP/s", 8, lambda r: _optional(r.tflops, "{:.2f}")),
)
OF_BASELINE = Column("% of cuBLAS\n[95% interval]", 19, _ratio)
OF_PEAK = Column("% of FP32\npeak", 9, lambda r: "" if r.fraction_of_peak is None else percent(r.fraction_of_peak))
GAIN = Column("× the rung\nbelow", 10, lambda r: _optional(r.gain_over_below, "{:.2f}"))
TENSOR_RESOURCES = (
    Column("registers:\nby role", 12, _registers),
    RESOURCES[1],
    Column("shared memory\nin stages", 13, _shared),
    Column("instructions a K-tile\n(beside the loops)", 40, _tensor_instructions, "dim"),
)


def ceiling_column(ceiling: Row) -> Column:
    """TFLOP/s as a share of what the card was measured to do at most."""

    def say(row: Row) -> str:
        return "" if row.tflops is None or not ceiling.tflops else percent(row.tflops / ceiling.tflops)

    return Column(f"% of measured\n{INSTRUCTIONS[ceiling.rung]}", 13, say)


def recorded_column(records: Sequence[Record]) -> Column:
    """Recorded times, labelled as such and dimmed, since they are not this run's."""

    def say(row: Row) -> str:
        found = recorded_best(records, row.rung, row.config)
        if found is None or found.row.time_us is None:
            return ""
        p, ratio = found.row.problem, found.row.ratio_to_baseline
        of_baseline = f", {percent(ratio.median)}% of cuBLAS" if ratio is not None else ""
        size = f"{p['m']}³" if p["m"] == p["n"] == p["k"] else f"{p['m']}×{p['n']}×{p['k']}"
        return f"{duration(found.row.time_us)}{of_baseline} ({found.device.removeprefix('NVIDIA ')}, {size})"

    return Column("recorded elsewhere,\nnot this run", 38, say, "dim")


def emulator_columns(records: Sequence[Record], *, tensor: bool = False) -> tuple[Column, ...]:
    """What the emulator can say, and beside it what was recorded on a card; more of rungs of the `tensor` track."""
    resources = TENSOR_RESOURCES if tensor else RESOURCES
    return (NAME, VERIFIED, *COUNTS, *TRACED, *resources, recorded_column(records))


def gpu_columns(*, with_baseline: bool, tensor: bool = False, ceiling: Row | None = None) -> tuple[Column, ...]:
    """What a GPU run says; without a baseline it compares with none, nor with a `ceiling` where none is recorded."""
    shares = [*([OF_BASELINE] if with_baseline else []), *([] if tensor else [OF_PEAK])]
    if ceiling is not None:
        shares.append(ceiling_column(ceiling))
    return (NAME, VERIFIED, *TIMES, *shares, GAIN, *(TENSOR_RESOURCES if tensor else RESOURCES))
