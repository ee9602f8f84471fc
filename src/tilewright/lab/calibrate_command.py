"""`tilewright calibrate`: fit the model of selection to records, say how well it holds, and write the calibration."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from tilewright.errors import InvalidInput
from tilewright.lab.output import standard_output
from tilewright.measure.modes import LAUNCHES
from tilewright.record import RECORDS_DIR, read_record
from tilewright.select.calibrating import calibrated
from tilewright.select.calibration import Calibration


def run_calibrate(paths: Sequence[Path], out: Path | None, seed: int, launch: str | None) -> int:
    """Fit, print and write. Raises InvalidInput for records that cannot be used together."""
    if launch is not None and launch not in LAUNCHES:
        raise InvalidInput(f"launch {launch!r}: must be one of {', '.join(LAUNCHES)}")
    files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    records = {_name(file): read_record(file) for file in files}
    calibration = calibrated(records, seed=seed, launch=launch)
    console = standard_output()
    for line in _lines(calibration):
        console.print(Text(line), soft_wrap=True)
    if out is not None:
        out.write_text(file_text(calibration), encoding="utf-8")
        console.print(Text(f"{out} is written"), soft_wrap=True)
    return 0


def _name(file: Path) -> str:
    """What the calibration calls a record: its place among the package's, or its own name."""
    path = file.resolve()
    return str(path.relative_to(RECORDS_DIR)) if path.is_relative_to(RECORDS_DIR) else file.name


def file_text(calibration: Calibration) -> str:
    """The calibration as JSON, one line for each config, figures rounded to what they tell."""
    data = _rounded(calibration.to_json())
    text = json.dumps(data, ensure_ascii=False, indent=1)
    return _folded(text) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _folded(text: str) -> str:
    """Objects and lists deeper than four levels on one line each."""
    lines: list[str] = []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        closes = line.lstrip()[0] in "]}" and depth == 4
        if lines and (depth > 4 or closes):
            joint = "" if lines[-1][-1] in "[{" or closes else " "
            lines[-1] += joint + line.lstrip()
        else:
            lines.append(line)
    return "\n".join(lines)


def _lines(calibration: Calibration) -> Iterator[str]:
    rates = calibration.rates
    yield f"{rates.card}: rates from {rates.source}"
    for dtype, learned in calibration.learned.items():
        fit = learned.fit
        yield (
            f"{dtype}: {len(learned.rungs)} rungs and {len(learned.configs)} configs from {fit['rows']} rows of "
            f"{fit['shapes']} shapes; off by a factor of {fit['error']:.3f}{_regret(fit, 'regret')}"
        )
        if fit["held_out_shapes"]:
            yield (
                f"  on {fit['held_out_shapes']} shapes that were kept out: off by {fit['held_out_error']:.3f}"
                f"{_regret(fit, 'held_out_regret')}"
            )
        else:
            yield "  too few shapes to keep any out"
        if learned.library:
            yield f"  the framework's own product was faster in {len(learned.library)} shape classes"


def _regret(fit: Any, name: str) -> str:
    return f", choosing by it costs {100 * (fit[name] - 1):.2f}% in the mean" if name in fit else ""
