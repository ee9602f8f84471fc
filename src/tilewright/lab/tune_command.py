"""`tilewright tune`: the search told as it goes, its result as a table, a record or JSON; and the store's files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tilewright.declare import all_rungs
from tilewright.errors import InvalidConfig, InvalidInput
from tilewright.lab.gpu_environment import gpu_environment
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.settings import DEFAULT_SIZES, Sizes, sized_problem
from tilewright.lab.tune_record import tune_record
from tilewright.lab.tune_table import print_result, time_of
from tilewright.measure.ring import DATA
from tilewright.record import environment
from tilewright.run.cuda import CudaBackend
from tilewright.tune import Machine, Request, Space, Store, TuneResult, tune
from tilewright.tune.sweep import Progress as Sofar

INTERRUPTED = 130


@dataclass(frozen=True)
class TuneOptions:
    """The command's arguments. A size that is None is 4096."""

    rung: str
    sizes: Sizes
    only: list[str]
    strategy: str
    effort: str
    trials: int | None
    budget_s: float | None
    seed: int
    devices: list[int]
    again: bool
    out: Path | None

    def request(self) -> Request:
        """What to search, how. Raises InvalidConfig for an `only` that can't be read."""
        return Request(
            strategy=self.strategy,
            effort=self.effort,
            trials=self.trials,
            budget_s=self.budget_s,
            seed=self.seed,
            only=parse_only(self.only),
            again=self.again,
        )


def parse_only(texts: list[str]) -> dict[str, list[int]]:
    """`NAME=1,2` texts as values by parameter; one named twice has both. Raises InvalidConfig for another form."""
    only: dict[str, list[int]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        parts = values.split(",")
        if not name or not equals or not all(part.strip().isdigit() for part in parts):
            raise InvalidConfig(f"--only {text}: must be NAME=INTEGER,INTEGER…, as in --only BK=8,16")
        only.setdefault(name, []).extend(int(part) for part in parts)
    return only


def run_tune(options: TuneOptions, *, as_json: bool, machine: Machine | None = None) -> int:
    """Search and print. Returns the exit status: 0, 1 where no config was right, 130 where it was interrupted."""
    rung = all_rungs().find(options.rung)
    problem = sized_problem(options.sizes, DEFAULT_SIZES, rung.requires.usual)
    machine = machine or Machine(devices=tuple(options.devices) or (0,))
    console = standard_error() if as_json else standard_output()
    with _Progress(standard_error(), f"{rung.name}, {problem}") as shown:
        result = tune(rung, problem, options.request(), machine=machine, on_start=shown.start, on_progress=shown.update)
    record = tune_record(result, _environment(result, machine))
    print_result(console, result)
    if options.out is not None:
        text = json.dumps(record.to_json(), ensure_ascii=False)
        options.out.write_text(text.replace('{"rung"', '\n{"rung"') + "\n", encoding="utf-8")
    if as_json:
        print_json(record.to_json())
    if result.stop == "interrupted":
        return INTERRUPTED
    return 0 if result.best is not None or options.effort == "none" else 1


def export_store(path: Path) -> int:
    """Write the whole store as JSON."""
    with Store() as store:
        path.write_text(json.dumps(store.export(), ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def import_store(path: Path) -> int:
    """Add what an export holds and the store doesn't. Raises InvalidInput for a file that isn't one."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"--import {path}: cannot be read ({error}); give a file that --export wrote") from error
    with Store() as store:
        added = store.add_exported(data)
    standard_output().print(Text(f"{added} trials and choices added"))
    return 0


def _environment(result: TuneResult, machine: Machine) -> dict[str, Any]:
    """The record's environment: of the final rounds where there were any."""
    finals = result.finals
    if finals is None or finals.samples is None or not machine.on_gpu:
        return environment(backend="cuda", arch=result.space.arch.name, device=dict(result.device))
    with CudaBackend(machine.devices[0]) as gpu:
        return gpu_environment(
            gpu, finals.samples, finals.no_clocks, data=DATA, cache=finals.cache, baseline=finals.baseline
        )


class _Progress:
    """A bar on standard error while a search runs; on a pipe nothing but what was begun."""

    def __init__(self, console: Console, what: str) -> None:
        self._console, self._what = console, what
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("starting workers", total=None)

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def start(self, space: Space, device: Mapping[str, Any]) -> None:
        """Say what is searched."""
        self._space = space
        line = f"{self._what} on {device['name']}: {len(space.configs)} configs of {space.combinations} combinations"
        self._console.print(Text(line, style="dim"), soft_wrap=True)

    def update(self, sofar: Sofar) -> None:
        """How far it is and the best of it."""
        best = "" if sofar.best is None else f"best {time_of(sofar.best)}"
        failed = f", {sofar.failed} failed" if sofar.failed else ""
        self._bar.update(self._task, description=f"{best}{failed}", completed=sofar.done, total=sofar.most)
