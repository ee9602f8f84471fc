"""What is mutated: the kernels of the tensor track and of the FP32 ladder up to `LAST`, under their default constants,
and the headers that they compute with.

A new one is one more subject; later FP32 rungs are not judged yet. Owns how a changed text becomes configs that can
run; what is changed is `operators`'.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mutants import asynchrony
from mutants.operators import Mutant, mutants
from tilewright.compile.headers import INCLUDE_DIR
from tilewright.declare import Config, Rung, all_rungs, enumerate_configs, rung_config

LAST = 12
HEADERS = {
    "epilogue.cuh": ("k02", "k08"),
    "fragment.cuh": ("k08", "k10"),
    "pairs.cuh": ("t02", "t08"),
    "tile.cuh": ("t01", "t02", "t04"),
    "tensor_tile.cuh": ("t02",),
    "wgmma_tile.cuh": ("t05", "t07"),
    "ring.cuh": ("t06",),
    "raster.cuh": ("t07",),
}
"""Headers without a second body for the emulator, and rungs that between them use all of each."""
FURTHER_VALUES = {
    "t01_wmma": {"WN": 32},  # fewer fragments along n than along m
    "t04_multistage": {"BK": 64},  # more than two steps in a tile
    "t08_deferred_epilogue": {"BM": 256, "BN": 128},  # two blocks of rows a consumer
    "raster.cuh": {"GROUP_M": 2},  # fewer rows of tiles in a group than there are
    "wgmma_tile.cuh": {"BK": 128},  # two panels along k
    "tile.cuh": {"BM": 64, "BN": 64, "BK": 16, "WM": 16, "WN": 16},  # more threads than a tile has chunks
}
"""Of a subject's first rung, where it takes a third config to use all of the text."""
EVERYWHERE = ("removed", "weakened", *asynchrony.OPERATORS)
"""What is judged in each rung of the tensor track, even where the rung below has the same line."""
ONE_IN = 3
"""Of the other mutants of the tensor track, which take longer to compile and to run, so many are represented by one."""
INCLUDE = re.compile(r'^#include "tilewright/(.*)"\n', re.MULTILINE)


@dataclass(frozen=True)
class Subject:
    """A text with the rungs that show what becomes of it; `header` is its name where it is no rung's own."""

    name: str
    text: str
    rungs: tuple[Rung, ...]
    header: str = ""
    further: Mapping[str, int] = field(default_factory=dict)

    @functools.cached_property
    def mutants(self) -> list[Mutant]:
        """Every mutant of the text; on the tensor track all of EVERYWHERE, and some of those that are not below."""
        made = mutants(self.text, {} if self.header else rung_config(self.rungs[0]).constants)
        if self.rungs[0].track == "simt":
            return made
        below = self._keys_below()
        return [one for one in made if one.operator in EVERYWHERE or (one.key not in below and self._is_drawn(one))]

    def _is_drawn(self, mutant: Mutant) -> bool:
        return zlib.crc32(repr((self.name, mutant.key)).encode()) % ONE_IN == 0

    def _keys_below(self) -> set[tuple[str, str, str]]:
        below = None if self.header else self.rungs[0].builds_on
        if below is None:
            return set()
        rung = all_rungs()[below]
        return {mutant.key for mutant in mutants(rung.source, rung_config(rung).constants)}

    def configs(self, changed: str) -> Iterator[Config]:
        """The rungs' default configs with the changed text, then another config of each, then one that it asks for."""
        rungs = [
            with_headers(rung, {self.header: changed}) if self.header else with_headers(replace(rung, source=changed))
            for rung in self.rungs
        ]
        yield from (rung_config(rung) for rung in rungs)
        yield from (rung_config(rung, other_values(rung.name)) for rung in rungs)
        if self.further:
            yield rung_config(rungs[0], self.further)


def with_headers(rung: Rung, changed: Mapping[str, str] | None = None) -> Rung:
    """The rung with the HEADERS in its text, some of them changed: all its loops are there to be rolled."""
    texts = {name: header_text(name) for name in HEADERS} | dict(changed or {})
    included: set[str] = set()
    source = _inlined(rung.source, f"{rung.entry}.cu", texts, included)
    assert not changed or included >= changed.keys(), f"{rung.name} does not include {changed.keys() - included}"
    return replace(rung, source=source)


def header_text(name: str) -> str:
    """A header as it stands."""
    return (INCLUDE_DIR / "tilewright" / name).read_text(encoding="utf-8")


def _inlined(text: str, file: str, texts: Mapping[str, str], included: set[str]) -> str:
    def body(include: re.Match[str]) -> str:
        name = include[1]
        if name not in texts:
            return include[0]
        back = f'#line {text.count(chr(10), 0, include.end()) + 1} "{file}"\n'
        if name in included:
            return back
        included.add(name)
        own = texts[name].replace("#pragma once\n", "\n")
        return f'#line 1 "{name}"\n{_inlined(own, name, texts, included)}{back}'

    return INCLUDE.sub(body, text)


@functools.cache
def other_values(rung: str) -> dict[str, int]:
    """The config with the fewest threads and, of those, the most different constants: loops take several turns."""
    configs = enumerate_configs(all_rungs()[rung])
    return min(configs, key=lambda c: (c.threads, -len(set(c.constants.values())))).values


@functools.cache
def subjects() -> dict[str, Subject]:
    """Every subject by name, the rungs in the order of the ladder."""
    judged = [rung for rung in all_rungs().values() if rung.track == "tensor" or rung.number <= LAST]
    made = [Subject(rung.name, rung.source, (rung,)) for rung in judged]
    for header, queries in HEADERS.items():
        made.append(Subject(header, header_text(header), tuple(all_rungs().find(query) for query in queries), header))
    return {subject.name: replace(subject, further=FURTHER_VALUES.get(subject.name, {})) for subject in made}
