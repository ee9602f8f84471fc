"""The arms of a trial as a person reads them: a line of figures each, what it differs in, and what was expected.

Computes nothing that it shows. Figures that were not taken leave no column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from tilewright.lab.render import duration, share
from tilewright.record import Ratio, Row

STYLES = {"faster": "green", "slower": "red", "confounded": "bold red", "invalid": "bold red", "throttled": "yellow"}
SHORT = 100


def ratio_text(ratio: Ratio | None) -> str:
    """A ratio of speeds with its interval."""
    return "" if ratio is None else f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def print_trial(console: Console, rows: Sequence[Row], arms: Sequence[Mapping[str, Any]]) -> None:
    """The rows as a table; `arms` is what the record tells of each arm, by its name."""
    cells = [_cells(row) for row in rows]
    used = [name for name in cells[0] if any(each[name] for each in cells)]
    widths = {name: max(len(name), *(len(each[name]) for each in cells)) for name in used}
    heading = "  ".join(_aligned(name, name, widths[name]) for name in used)
    console.print(Text(heading.rstrip(), style="cyan"), soft_wrap=True)
    told = {arm["arm"]: arm for arm in arms}
    for row, each in zip(rows, cells, strict=True):
        line = Text()
        for name in used:
            style = {"arm": "bold", "outcome": STYLES.get(each[name], "")}.get(name, "")
            line.append(_aligned(name, each[name], widths[name]) + "  ", style)
        line.rstrip()
        console.print(line, soft_wrap=True)
        for note in _notes(row, told.get(row.arm or "", {})):
            console.print(note, soft_wrap=True)


def registers_text(row: Row) -> str:
    """Registers a thread, and what spilled beside them."""
    spilled = f" +{row.spill_bytes} B spilled" if row.spill_bytes else ""
    return "" if row.registers is None else f"{row.registers}{spilled}"


def loads_text(row: Row) -> str:
    """Bytes that are asked of global memory for one FLOP, by the declaration's count."""
    return "" if row.global_load_bytes_per_flop is None else f"{row.global_load_bytes_per_flop:.3f}"


def _cells(row: Row) -> dict[str, str]:
    return {
        "arm": row.arm or row.rung,
        "time": "" if row.time_us is None else duration(row.time_us),
        "% of cuBLAS": "" if row.ratio_to_baseline is None else share(row.ratio_to_baseline),
        "× its reference": ratio_text(row.ratio_to_reference),
        "outcome": row.outcome or "",
        "load bytes/FLOP": loads_text(row),
        "registers": registers_text(row),
        "CTAs an SM": "" if row.ctas_per_sm is None else str(row.ctas_per_sm),
        "occupancy": "" if row.occupancy is None else f"{row.occupancy:.1%}",
    }


def _aligned(name: str, text: str, width: int) -> str:
    return text.ljust(width) if name in ("arm", "outcome") else text.rjust(width)


def _notes(row: Row, told: Mapping[str, Any]) -> Iterator[Text]:
    """What stands below an arm: its failure, its causes and their consequences, and what was expected of it."""
    if row.failure is not None:
        yield Text(f"    ✗ {row.failure}: {row.verdict}", style="red")
    for name, causes in (("differs in", row.causes or []), ("which brings", told.get("consequences", []))):
        if causes:
            yield Text(f"    {name} {'; '.join(cause_text(cause) for cause in causes)}", style="dim")
    if "bundle" in told:
        yield Text(f"    judged as one: {told['bundle']}", style="dim")
    if "confounded" in told:
        yield Text(f"    confounded: {told['confounded']}", style="red")
    for name in ("claim", "prediction"):
        if name in told:
            came = told.get(f"{name}_verdict")
            yield Text(f"    {name}: {told[name]}{f', {came}' if came else ''}", style="dim italic")


def cause_text(cause: Mapping[str, str]) -> str:
    """A cause on one line, its passages cut short."""
    sides = (cause["reference"], cause["arm"])
    return f"{cause['kind']} {cause['what']}: {' → '.join(s if len(s) <= SHORT else s[:SHORT] + '…' for s in sides)}"
