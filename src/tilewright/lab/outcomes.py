"""What the records say became of a rung, in rows and in words. Claims nothing of its own."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.declare import all_rungs
from tilewright.lab.render import duration, percent, share
from tilewright.record import Record, Row, timed_rows


def size_of(row: Row) -> str:
    """The row's problem size, short; and its kind, unless that is a plain float32 product."""
    m, n, k = (row.problem[name] for name in "mnk")
    size = f"{m}³" if m == n == k else f"{m}×{n}×{k}"
    dtype, layout = row.problem.get("dtype", "float32"), row.problem.get("layout", "NN")
    return size if dtype == "float32" else f"{size} {dtype} {layout}"


def outcomes(records: Iterable[Record], rung: str) -> list[tuple[Record, Row]]:
    """Recorded, verified rows of a rung with a time, the largest problem first."""
    return sorted(timed_rows(records, rung), key=lambda pair: -pair[1].problem["m"])


def outcome_sentence(record: Record, row: Row) -> str:
    """One recorded row in words."""
    assert row.time_us is not None
    parts = [f"{size_of(row)} on an {record.environment['device']['name']}: {duration(row.time_us)}"]
    if row.ratio_to_baseline is not None:
        parts.append(f"{share(row.ratio_to_baseline)} % of cuBLAS")
    if row.fraction_of_peak is not None:
        parts.append(f"{percent(row.fraction_of_peak)} % of FP32 peak")
    if row.gain_over_below is not None:
        parts.append(f"{row.gain_over_below:.2f} × the rung below")
    if changed := changed_settings(row):
        parts.append("with " + " ".join(f"{name}={value}" for name, value in changed.items()))
    return ", ".join(parts) + "."


def changed_settings(row: Row) -> dict[str, int]:
    """The row's settings that are not its rung's defaults."""
    defaults = _defaults(row.rung)
    return {name: value for name, value in (row.config or {}).items() if value != defaults.get(name)}


def _defaults(rung: str) -> dict[str, int]:
    return {p.name: p.default for p in all_rungs()[rung].params} if rung in all_rungs() else {}
