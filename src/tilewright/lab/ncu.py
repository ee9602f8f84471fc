"""Nsight Compute: where it is, how it is called, and what its output says. Knows no metric and no kernel."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import LaunchFailed, Missing, TimedOut

ENVIRONMENT = "TILEWRIGHT_NCU"
TIMEOUT_S = 600
FORBIDDEN = "ERR_NVGPUCTRPERM"
NOT_FOUND = re.compile(r"Failed to find metric (?:regex:\^)?([\w.]+?)(?:\\?\.\(|\$|\s|$)")


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch as ncu saw it; a metric it has no number for is not in `counters`."""

    kernel: str
    counters: dict[str, float]


def find_ncu() -> str:
    """The path of ncu: $TILEWRIGHT_NCU or the one on PATH. Raises Missing with how to get it."""
    named = os.environ.get(ENVIRONMENT)
    found = shutil.which(named or "ncu")
    if found is None:
        where = f"{ENVIRONMENT}={named}: no program there" if named else "no ncu on PATH"
        raise Missing(
            f"{where}: install Nsight Compute (it comes with the CUDA toolkit, or as the package nsight-compute), or "
            f"name it in {ENVIRONMENT}"
        )
    return found


def ncu_command(ncu: str, metrics: Sequence[str], log: Path) -> list[str]:
    """The arguments before the program to be profiled: `metrics` of every launch into `log`, clocks as they are."""
    counted = ["--clock-control", "none", "--target-processes", "all", "--metrics", ",".join(metrics)]
    return [ncu, *counted, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]


def profiled(ncu: str, metrics: Sequence[str], program: Sequence[str]) -> list[Launch]:
    """Run `program` under ncu and give what it launched between the profiler's start and stop, in order.

    Metrics that the card doesn't know are left out. Raises Missing where counting is not allowed, TimedOut, and
    LaunchFailed with ncu's words for anything else.
    """
    wanted = list(metrics)
    while True:
        said, status = _run(ncu, wanted, program)
        if FORBIDDEN in said:
            raise Missing(
                "the driver lets only administrators read performance counters (ERR_NVGPUCTRPERM): run as root, or set "
                "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module; a container needs --cap-add=SYS_ADMIN"
            )
        unknown = {name for name in wanted for found in NOT_FOUND.findall(said) if f"{name}.".startswith(f"{found}.")}
        if not unknown:
            break
        wanted = [name for name in wanted if name not in unknown]
    if status != 0 or '"ID"' not in said:
        raise LaunchFailed(f"ncu counted nothing (exit status {status}): {_last_words(said)}")
    return [_launch(row, wanted) for row in read_counts(said)]


def _run(ncu: str, metrics: Sequence[str], program: Sequence[str]) -> tuple[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [*ncu_command(ncu, metrics, log), "--profile-from-start", "off", *program]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise TimedOut(
                f"ncu: not done within {TIMEOUT_S} s; profile a smaller problem with -m, -n and -k"
            ) from error
        said = log.read_text(encoding="utf-8") if log.exists() else ""
        return said or done.stdout + done.stderr, done.returncode


def _last_words(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("==ERROR==")]
    return " ".join(errors or lines[-3:]) or "it said nothing"


def read_counts(text: str) -> list[dict[str, str]]:
    """The rows of ncu's raw page as CSV, one a launch, in the order of launching."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith('"ID"'))
    return [row for row in csv.DictReader(lines[start:]) if row["ID"].strip().isdigit()]


def _launch(row: dict[str, str], metrics: Sequence[str]) -> Launch:
    numbers = {name: _number(row.get(name, "")) for name in metrics}
    return Launch(row["Kernel Name"], {name: number for name, number in numbers.items() if number is not None})


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return None if value != value else value
