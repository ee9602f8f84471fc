"""`tilewright ceilings`: a card's measured limits, told to a person or as JSON."""

from __future__ import annotations

from rich.text import Text

from tilewright.lab.ceilings import measured_ceilings
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.render import duration, percent
from tilewright.record import Record, Row
from tilewright.run.cuda import CudaBackend

WIDTHS = (22, 9, 14, 11, 13)
HEADINGS = (("", "", "", "% of", "bytes an SM"), ("ceiling", "time", "rate", "theoretical", "and clock"))


def run_ceilings(device_id: int, *, as_json: bool) -> int:
    """Measure and print every ceiling of one GPU. Returns the exit status. Raises NoDevice, WrongResult."""
    console = standard_error() if as_json else standard_output()
    with CudaBackend(device_id) as gpu:
        console.print(Text(f"tilewright ceilings  {gpu.device.name}, {gpu.sm_count} SMs", style="bold"), soft_wrap=True)
        record = measured_ceilings(gpu, lambda text: standard_error().print(Text(text, style="dim"), soft_wrap=True))
    if as_json:
        print_json(record.to_json())
    console.print(*ceiling_lines(record), sep="\n", soft_wrap=True)
    return 0


def rate(row: Row) -> str:
    """A ceiling's figure with its unit; nothing where the card doesn't have it."""
    if row.tflops is not None:
        return f"{row.tflops:.1f} TFLOP/s"
    return "" if row.tb_per_s is None else f"{row.tb_per_s:.2f} TB/s"


def bytes_per_sm_clock(row: Row, record: Record) -> float | None:
    """Bytes that one SM moves in one clock; None for FLOPs, and without clocks."""
    sm_mhz = record.environment["measurement"].get("median_sm_mhz")
    if row.tb_per_s is None or sm_mhz is None:
        return None
    return float(row.tb_per_s * 1e6 / record.environment["device"]["sm_count"] / sm_mhz)


def ceiling_lines(record: Record) -> list[Text]:
    """The record as lines: one of figures and one of words for each ceiling, then how they were taken."""
    lines = [Text(_cells(heading), style="cyan") for heading in HEADINGS]
    for row in record.rows:
        per_clock = bytes_per_sm_clock(row, record)
        fraction = "" if row.fraction_of_peak is None else percent(row.fraction_of_peak)
        time = "" if row.time_us is None else duration(row.time_us)
        lines.append(
            Text(_cells((row.rung, time, rate(row), fraction, "" if per_clock is None else f"{per_clock:.1f}")))
        )
        lines.append(Text(f"  {row.summary}", style="dim italic"))
        if row.failure is not None:
            lines.append(Text(f"  not here: {row.verdict}", style="yellow"))
    measured = record.environment["measurement"]
    told = f"\n{measured['rounds']} rounds, stopped by {measured['stop']}; medians"
    clocks = "".join(
        f", {name} {measured[key]:.0f} MHz"
        for name, key in (("SM", "median_sm_mhz"), ("memory", "median_memory_mhz"))
        if measured.get(key) is not None
    )
    lines.append(Text(told + clocks, style="dim"))
    lines.append(
        Text(
            "theoretical: SMs × FP32 lanes × 2 × clock; SMs × dense tensor-core FMAs with float32 sums × 2 × clock; "
            "SMs × 128 bytes × clock; bus width × 2 × memory clock; none is given for the L2",
            style="dim",
        )
    )
    return lines


def _cells(texts: tuple[str, ...]) -> str:
    first, *rest = (text.rjust(width) for text, width in zip(texts, WIDTHS, strict=True))
    return "  ".join([first.strip().ljust(WIDTHS[0]), *rest]).rstrip()
