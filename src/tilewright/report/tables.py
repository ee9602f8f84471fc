"""Markdown tables from records. Never measures: every figure is a row's own, labelled with where it was taken."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.lab.outcomes import size_of
from tilewright.lab.render import duration, percent, share
from tilewright.record import Record, Row


def caption(record: Record) -> str:
    """Card, clocks, versions and commit of a record in one sentence."""
    env = record.environment
    device, measured, versions = env["device"], env["measurement"], env["versions"]
    return (
        f"{device['name']} ({device['sm_count']} SMs, median SM clock {measured['median_sm_mhz']:.0f} MHz), "
        f"{env['date']}, {measured['rounds']} rounds, NVRTC {versions['nvidia-cuda-nvrtc']}, "
        f"cuBLAS {versions['nvidia-cublas']} through {env['baseline'].split(', ')[1]}, commit `{env['commit']}`."
    )


def ladder_table(record: Record) -> str:
    """One ladder record as a Markdown table with its caption."""
    lines = [
        f"| {size_of(record.rows[0])} | time | TFLOP/s | % of cuBLAS [95% interval] | % of FP32 peak "
        "| × the rung below | registers | occupancy |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(_line(row) for row in record.rows if row.time_us is not None),
    ]
    return "\n".join([*lines, "", caption(record)])


def _line(row: Row) -> str:
    cells = (
        f"`{row.rung}`" if row.number is not None else row.rung,
        duration(row.time_us) if row.time_us is not None else "",
        f"{row.tflops:.2f}" if row.tflops is not None else "",
        share(row.ratio_to_baseline) if row.ratio_to_baseline is not None else "",
        percent(row.fraction_of_peak) if row.fraction_of_peak is not None else "",
        f"{row.gain_over_below:.2f}" if row.gain_over_below is not None else "",
        f"{row.registers}" if row.registers is not None else "",
        f"{100 * row.occupancy:.1f}%" if row.occupancy is not None else "",
    )
    return f"| {' | '.join(cells)} |"


def ladder_tables(records: Iterable[Record]) -> str:
    """Every ladder record that was timed, the largest problem first."""
    timed = [r for r in records if r.command == "ladder" and any(row.time_us is not None for row in r.rows)]
    timed.sort(key=lambda r: -r.rows[0].problem["m"])
    return "\n\n".join(ladder_table(record) for record in timed)
