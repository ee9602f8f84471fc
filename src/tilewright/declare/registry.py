"""Finding rungs: every same-stem pair of `.py` and `.cu` in a folder, checked as a whole.

Discovery fails loudly: on half a pair, a duplicate number, a `builds_on` that isn't there, a kernel symbol that
isn't the stem. A search is a `.py` alone. Nothing lists rungs by hand.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from tilewright.declare.rung import Rung
from tilewright.declare.step import Search, Step
from tilewright.errors import InvalidDeclaration, InvalidInput, UnknownName

RUNGS_DIR = Path(__file__).resolve().parent.parent / "rungs"
_PACKAGE = "tilewright.rungs"
_HEADS = re.compile(r'extern "C" __global__ ([^;{]*)')
_CALLED = re.compile(r"\b(\w+)\(")


class Registry(Mapping[str, Rung]):
    """Rungs by name, in the order of the `builds_on` tree: each after what it builds on, then by number.

    The mapping holds the steps that have a kernel; `steps` are all of them, in the same order.
    """

    def __init__(self, steps: Mapping[str, Rung | Search]) -> None:
        self.steps = tuple(_ordered(dict(steps)))
        self._rungs = {step.name: step for step in self.steps if isinstance(step, Rung)}

    def __getitem__(self, name: str) -> Rung:
        return self._rungs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rungs)

    def __len__(self) -> int:
        return len(self._rungs)

    def find(self, query: str) -> Rung:
        """The rung called `query`: its name, the part before the first underscore or, on the first track, its number.

        Raises UnknownName with the closest names, and InvalidInput for a step that has no kernel.
        """
        step = self.find_step(query)
        if isinstance(step, Rung):
            return step
        raise InvalidInput(
            f"{step.name}: searches {step.builds_on}'s parameters and has no kernel of its own; run {step.builds_on}, "
            f"with --set for another of its configs, or read `tilewright rungs {query}`"
        )

    def find_step(self, query: str) -> Rung | Search:
        """The step called `query`, with a kernel or without. Raises UnknownName with the closest names."""
        first = self.steps[0].track if self.steps else ""
        matches = [s for s in self.steps if query in (s.name, s.name.split("_")[0])]
        matches += [s for s in self.steps if s.track == first and query == str(s.number)]
        if len(matches) == 1:
            return matches[0]
        import difflib

        names = [step.name for step in self.steps]
        close = difflib.get_close_matches(query, names, n=3, cutoff=0.4) or names
        raise UnknownName(f"rung {query!r}: no such rung; try {', '.join(close)}")


def _ordered(steps: dict[str, Rung | Search]) -> list[Rung | Search]:
    ordered: list[Rung | Search] = []
    pending = sorted(steps.values(), key=lambda s: (s.track, s.number))
    while pending:
        placed = {s.name for s in ordered}
        ready = [s for s in pending if s.builds_on is None or s.builds_on in placed]
        if not ready:
            raise InvalidDeclaration(f"{', '.join(s.name for s in pending)}: builds_on goes round in a circle")
        ordered.append(ready[0])
        pending.remove(ready[0])
    return ordered


def discover(folder: Path) -> Registry:
    """Every rung under `folder` (recursively; `include/` is left out). Raises InvalidDeclaration."""
    files = sorted(folder.rglob("*.[cp][uy]"))
    declared = [p for p in files if p.suffix == ".py" and p.stem != "__init__"]
    kernels = {p.stem: p for p in files if p.suffix == ".cu"}
    steps: dict[str, Rung | Search] = {}
    for path in declared:
        if path.stem in steps:
            raise InvalidDeclaration(f"{path.stem}: declared twice")
        steps[path.stem] = _read(path, kernels)
    _check_tree(steps, kernels)
    return Registry(steps)


def _read(path: Path, kernels: Mapping[str, Path]) -> Rung | Search:
    rung = getattr(_module(path), "RUNG", None)
    if isinstance(rung, Search):
        return replace(rung, name=path.stem)
    if not isinstance(rung, Rung):
        raise InvalidDeclaration(f"{path.name}: must hold one value RUNG = Rung(...), or Search(...)")
    stem = rung.kernel or path.stem
    if stem not in kernels:
        raise InvalidDeclaration(f"{path.stem}: no {stem}.cu beside {path.name}; add it, or name another rung's kernel")
    source = kernels[stem].read_text(encoding="utf-8")
    if not any(stem in _CALLED.findall(head) for head in _HEADS.findall(source)):
        raise InvalidDeclaration(f'{stem}.cu: must define extern "C" __global__ void {stem}(...), its own stem')
    return replace(rung, name=path.stem, source=source)


def _module(path: Path) -> ModuleType:
    """The declaration's module: the package's own once, however many others build on it, and that of any other file."""
    if path.is_relative_to(RUNGS_DIR):
        return importlib.import_module(".".join((_PACKAGE, *path.relative_to(RUNGS_DIR).with_suffix("").parts)))
    spec = importlib.util.spec_from_file_location(f"tilewright_rung_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _check_tree(steps: Mapping[str, Rung | Search], kernels: Mapping[str, Path]) -> None:
    numbers: dict[tuple[str, int], str] = {}
    for name, step in steps.items():
        first = numbers.setdefault((step.track, step.number), name)
        if first != name:
            raise InvalidDeclaration(
                f"{name}: number {step.number} of track {step.track} is {first}'s; numbers are permanent"
            )
        if step.builds_on is not None:
            _check_below(step, steps.get(step.builds_on))
    used = {step.entry for step in steps.values() if isinstance(step, Rung)}
    for stem in kernels:
        if stem in used:
            continue
        if stem in steps:
            raise InvalidDeclaration(f"{stem}.cu: {stem} is a search and has no kernel; remove it, or declare a Rung")
        raise InvalidDeclaration(f"{stem}.cu: no declaration uses it; add {stem}.py")


def _check_below(step: Step, below: Step | None) -> None:
    if below is None:
        raise InvalidDeclaration(f"{step.name}: builds_on={step.builds_on!r}: no such rung")
    if isinstance(below, Search):
        raise InvalidDeclaration(f"{step.name}: builds_on={step.builds_on!r}: has no kernel; name the rung it searches")


@cache
def all_rungs() -> Registry:
    """The rungs that come with tilewright."""
    return discover(RUNGS_DIR)
