"""Finding rungs: every same-stem pair of `.py` and `.cu` in a folder, checked as a whole.

Discovery fails loudly: on half a pair, a duplicate number, a `builds_on` that isn't there, a kernel symbol that
isn't the stem. Nothing lists rungs by hand.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tilewright.declare.rung import Rung
from tilewright.errors import InvalidDeclaration, UnknownName

RUNGS_DIR = Path(__file__).resolve().parent.parent / "rungs"


class Registry(Mapping[str, Rung]):
    """Rungs by name, in the order of the `builds_on` tree: each after what it builds on, then by number."""

    def __init__(self, rungs: Mapping[str, Rung]) -> None:
        self._rungs = {r.name: r for r in _ordered(dict(rungs))}

    def __getitem__(self, name: str) -> Rung:
        return self._rungs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rungs)

    def __len__(self) -> int:
        return len(self._rungs)

    def find(self, query: str) -> Rung:
        """The rung called `query`: its name, its number or the part before the first underscore.

        Raises UnknownName with the closest names.
        """
        matches = [r for r in self.values() if query in (r.name, r.name.split("_")[0], str(r.number))]
        if len(matches) == 1:
            return matches[0]
        close = difflib.get_close_matches(query, list(self), n=3, cutoff=0.4) or list(self)
        raise UnknownName(f"rung {query!r}: no such rung; try {', '.join(close)}")


def _ordered(rungs: dict[str, Rung]) -> list[Rung]:
    ordered: list[Rung] = []
    pending = sorted(rungs.values(), key=lambda r: (r.track, r.number))
    while pending:
        placed = {r.name for r in ordered}
        ready = [r for r in pending if r.builds_on is None or r.builds_on in placed]
        if not ready:
            raise InvalidDeclaration(f"{', '.join(r.name for r in pending)}: builds_on goes round in a circle")
        ordered.append(ready[0])
        pending.remove(ready[0])
    return ordered


def discover(folder: Path) -> Registry:
    """Every rung under `folder` (recursively; `include/` is left out). Raises InvalidDeclaration."""
    declared = [p for p in sorted(folder.rglob("*.py")) if p.stem != "__init__"]
    kernels = {p.stem: p for p in sorted(folder.rglob("*.cu"))}
    rungs: dict[str, Rung] = {}
    for path in declared:
        if path.stem in rungs:
            raise InvalidDeclaration(f"{path.stem}: declared twice")
        rungs[path.stem] = _read(path, kernels)
    _check_tree(rungs, kernels)
    return Registry(rungs)


def _read(path: Path, kernels: Mapping[str, Path]) -> Rung:
    spec = importlib.util.spec_from_file_location(f"tilewright_rung_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rung = getattr(module, "RUNG", None)
    if not isinstance(rung, Rung):
        raise InvalidDeclaration(f"{path.name}: must hold one value RUNG = Rung(...)")
    stem = rung.kernel or path.stem
    if stem not in kernels:
        raise InvalidDeclaration(f"{path.stem}: no {stem}.cu beside {path.name}; add it, or name another rung's kernel")
    source = kernels[stem].read_text(encoding="utf-8")
    if not re.search(rf'extern "C" __global__ [^;{{]*\b{stem}\(', source):
        raise InvalidDeclaration(f'{stem}.cu: must define extern "C" __global__ void {stem}(...), its own stem')
    return rung.located(path.stem, source)


def _check_tree(rungs: Mapping[str, Rung], kernels: Mapping[str, Path]) -> None:
    numbers: dict[tuple[str, int], str] = {}
    for name, rung in rungs.items():
        first = numbers.setdefault((rung.track, rung.number), name)
        if first != name:
            raise InvalidDeclaration(
                f"{name}: number {rung.number} of track {rung.track} is {first}'s; numbers are permanent"
            )
        if rung.builds_on is not None and rung.builds_on not in rungs:
            raise InvalidDeclaration(f"{name}: builds_on={rung.builds_on!r}: no such rung")
    for stem in kernels:
        if stem not in {r.entry for r in rungs.values()}:
            raise InvalidDeclaration(f"{stem}.cu: no declaration uses it; add {stem}.py")


@cache
def rungs() -> Registry:
    """The rungs that come with tilewright."""
    return discover(RUNGS_DIR)
