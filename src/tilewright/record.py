"""One row type for every result, and the environment it was obtained in.

A field that is None was not claimed and does not appear in JSON. A record is an environment with its rows; recorded
runs that come with the package lie in `records/`. Owns the shape of results, not how they are come by.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.errors import InvalidInput

SCHEMA = "tilewright/1"
RECORDS_DIR = Path(__file__).resolve().parent / "records"
PACKAGES = ("tilewright", "numpy", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "torch", "nvidia-cublas")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A paired ratio with its interval, as fractions (1.0: equal)."""

    low: float
    median: float
    high: float


@dataclass(slots=True, kw_only=True)
class Row:
    """One rung (or baseline, or ceiling), one problem, one config, and what was found. Names carry their units.

    `fraction_of_peak` is of the card's own figure at the clocks of the run: FP32 for a rung, a ceiling's own limit for
    a ceiling. Where a record has several rows of a rung, `arm` tells them apart. In a comparison `ratio_to_reference`
    is the reference arm's time over this one's, `outcome` the word for it, `causes` what its build differs in.
    `launch` says how timed launches were queued: one by one on a 'stream', or from a 'graph'; where it is absent, as in
    older records, it was not said. `counters` are a profiler's, by its own names, of one launch of `kernel`. Of a
    suite's shape, `shape_class` is the class it counts in, `expected_us` what was expected beforehand, `floor_us` the
    least that bytes and FLOPs allow.
    """

    rung: str
    problem: dict[str, Any]
    arm: str | None = None
    number: int | None = None
    track: str | None = None
    summary: str | None = None
    config: dict[str, int] | None = None
    arch: str | None = None
    backend: str | None = None
    verified: bool | None = None
    verdict: str | None = None
    failure: str | None = None
    time_us: float | None = None
    samples_us: list[float] | None = None
    inner: int | None = None
    launch: str | None = None
    host_us: float | None = None
    tflops: float | None = None
    tb_per_s: float | None = None
    ratio_to_baseline: Ratio | None = None
    ratio_to_reference: Ratio | None = None
    outcome: str | None = None
    causes: list[dict[str, Any]] | None = None
    fraction_of_peak: float | None = None
    gain_over_below: float | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    stack_bytes: int | None = None
    smem_bytes: int | None = None
    stages: int | None = None
    occupancy: float | None = None
    ctas_per_sm: int | None = None
    limiters: list[str] | None = None
    global_load_bytes_per_flop: float | None = None
    shared_loads_per_result: float | None = None
    binary: str | None = None
    sectors_per_request: float | None = None
    wavefronts_per_access: float | None = None
    memory: list[dict[str, Any]] | None = None
    findings: list[str] | None = None
    sass: dict[str, int | float] | None = None
    sass_unit: str | None = None
    sass_missing: str | None = None
    roles: list[dict[str, Any]] | None = None
    kernel: str | None = None
    counters: dict[str, float] | None = None
    footprints: list[dict[str, Any]] | None = None
    roofline: dict[str, Any] | None = None
    waves: dict[str, Any] | None = None
    shape_class: str | None = None
    source: str | None = None
    expected_us: float | None = None
    floor_us: dict[str, float] | None = None

    def __post_init__(self) -> None:
        if self.time_us is not None and not (math.isfinite(self.time_us) and self.time_us > 0):
            raise InvalidInput(f"{self.rung}: time_us={self.time_us}: a time must be finite and above 0")

    def to_json(self) -> dict[str, Any]:
        """The claimed fields as JSON types."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Row:
        """The inverse of `to_json`."""
        ratios = {name: Ratio(**data[name]) for name in ("ratio_to_baseline", "ratio_to_reference") if data.get(name)}
        return cls(**{**data, **ratios})


@dataclass(slots=True, kw_only=True)
class Record:
    """Rows with the command and the environment that gave them; `about` is what was asked, where a command asks more.

    An experiment has its name, question and prediction there, tuning its space and strategy.
    """

    command: str
    environment: dict[str, Any]
    rows: list[Row] = field(default_factory=list)
    about: dict[str, Any] | None = None
    schema: str = SCHEMA

    def to_json(self) -> dict[str, Any]:
        """The record as one JSON object."""
        rows = [row.to_json() for row in self.rows]
        about = {} if self.about is None else {"about": self.about}
        return {"schema": self.schema, "command": self.command, "environment": self.environment, **about, "rows": rows}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Record:
        """The inverse of `to_json`. Raises InvalidInput for another schema."""
        if data.get("schema") != SCHEMA:
            raise InvalidInput(f"schema={data.get('schema')!r}: this version reads {SCHEMA}")
        rows = [Row.from_json(row) for row in data["rows"]]
        return cls(command=data["command"], environment=data["environment"], rows=rows, about=data.get("about"))


def environment(**more: Any) -> dict[str, Any]:
    """Versions, machine, date and commit, with `more` (device, clocks, compilers) added; None values dropped."""
    import platform
    from datetime import UTC, datetime
    from importlib import metadata

    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    base = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
        "commit": commit(),
    }
    return {name: value for name, value in {**base, **more}.items() if value is not None}


@cache
def commit() -> str | None:
    """The commit of the checkout this package runs from, or $TILEWRIGHT_COMMIT, or None."""
    named = os.environ.get("TILEWRIGHT_COMMIT")
    if named:
        return named
    import subprocess

    git = ("git", "-C", str(Path(__file__).resolve().parent), "describe", "--always", "--dirty", "--abbrev=12")
    try:
        done = subprocess.run(git, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def read_record(path: Path) -> Record:
    """The record in a file. Raises InvalidInput, naming the file."""
    try:
        return Record.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}; name a file that can be read") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{path}: not a record ({error}); `tilewright ladder --json` prints one") from error


def load_records(folder: Path = RECORDS_DIR) -> list[Record]:
    """Every record in `folder`, by file name. A file that isn't one is passed over with a word on standard error."""
    records = []
    for path in sorted(folder.glob("*.json")):
        try:
            records.append(Record.from_json(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{path.name}: not a record ({error})", file=sys.stderr)
    return records


def timed_rows(records: Iterable[Record], rung: str) -> Iterator[tuple[Record, Row]]:
    """Every recorded, verified row of `rung` that has a time, with its record.

    Of a tuning run the winner alone, none of a suite, whose shapes are its own, and of rounds back to back only.
    """
    for record in records:
        for row in _settled_rows(record):
            if row.rung == rung and row.time_us is not None and row.verified:
                yield record, row


def is_steady(record: Record) -> bool:
    """Whether its times are of rounds back to back; in the other modes the card runs at other clocks."""
    measurements = [record.environment.get("measurement"), *(record.about or {}).get("measurements", ())]
    return all(each.get("mode", "steady") == "steady" for each in measurements if each)


def tries_every(record: Record) -> bool:
    """Whether it is of a suite in which all candidates were tried, beside what was chosen."""
    return record.command == "bench" and bool((record.about or {}).get("every"))


def _settled_rows(record: Record) -> list[Row]:
    """The rows whose times stand by themselves: most of a tuning run's only order its configs."""
    if record.command == "bench" or not is_steady(record):
        return []
    if record.command != "tune":
        return record.rows
    best = (record.about or {}).get("best")
    return [] if best is None else [record.rows[best]]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded row with the name of the device it was measured on."""

    device: str
    row: Row


def recorded_best(records: Iterable[Record], rung: str, config: dict[str, int] | None) -> Recorded | None:
    """The recorded, verified time of `rung` with `config` on the largest problem, or None."""
    found = [
        Recorded(record.environment.get("device", {}).get("name", "unknown device"), row)
        for record, row in timed_rows(records, rung)
        if row.config == config
    ]
    return max(found, key=lambda r: r.row.problem["m"] * r.row.problem["n"] * r.row.problem["k"], default=None)


def ceiling(records: Iterable[Record], device: str, name: str) -> Row | None:
    """The newest recorded ceiling `name` ('ceiling_ffma') of the device called `device`, or None."""
    found = [
        (record.environment.get("date", ""), row)
        for record, row in timed_rows(records, name)
        if record.command == "ceilings" and record.environment.get("device", {}).get("name") == device
    ]
    return max(found, key=lambda dated: dated[0])[1] if found else None


OWN_CEILINGS = {"float32": ("ceiling_ffma",), "tfloat32": ("ceiling_wgmma_tf32",)}
TENSOR_CEILINGS = ("ceiling_wgmma", "ceiling_mma_sync", "ceiling_wmma")
"""Of 16-bit elements, whichever they are."""


def compute_ceiling(records: Iterable[Record], device: str, dtype: str) -> Row | None:
    """The fastest recorded way in which the device multiplies elements of `dtype`, or None where none is recorded.

    The FMA pipe for float32, a tensor-core instruction for others.
    """
    known = list(records)
    found = [ceiling(known, device, name) for name in OWN_CEILINGS.get(dtype, TENSOR_CEILINGS)]
    return max((row for row in found if row is not None), key=lambda row: row.tflops or 0.0, default=None)
