"""How a record's figures were taken, in a few lines for the terminal."""

from __future__ import annotations

from tilewright.measure.modes import STREAM
from tilewright.record import Record


def measurement_notes(record: Record) -> list[str]:
    """How the figures were taken, in a few lines."""
    measured = record.environment.get("measurement")
    if measured is None:
        return []
    launches = "launches on a stream" if measured["launch"] == STREAM else "CUDA graph replays"
    lines = [
        f"{measured['rounds']} rounds of {launches}, {measured['mode']}, operands {measured['cache']} over "
        f"{measured['buffer_sets']} buffer sets, stopped by {measured['stop']}; "
        "times are medians, % of cuBLAS the median of paired ratios of the same rounds"
    ]
    if measured["stop"] == "throttled":
        lines.append(f"no times: {measured['rejected_rounds']} rounds fell to thermal or hardware slowdown")
    if measured["aa"] is not None:
        aa = {name: f"{100 * value:.2f}" for name, value in measured["aa"].items()}
        lines.append(
            f"A/A floor {100 * measured['aa_floor']:.2f}%: {measured['reference']} ran twice a round and came out at "
            f"{aa['median']} [{aa['low']}, {aa['high']}] % of itself; smaller differences mean nothing"
        )
    if measured["median_sm_mhz"] is not None:
        lines.append(
            f"peak: SMs × FP32 lanes × 2 × {measured['median_sm_mhz']:.0f} MHz, the median clock of the rounds"
        )
    else:
        lines.append(f"no % of peak: {measured['no_clocks']}")
    return lines
