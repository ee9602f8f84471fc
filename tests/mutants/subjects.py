"""What is mutated: the FP32 kernels up to `LAST`, under their default constants, and the headers they compute with.

Later rungs and those of the tensor track are not judged yet. Owns how a changed text becomes configs that can run; what
is changed is `operators`'.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mutants.operators import Mutant, mutants
from tilewright.compile.headers import INCLUDE_DIR
from tilewright.declare import Config, Rung, all_rungs, enumerate_configs, rung_config

LAST = 12
HEADERS = {"epilogue.cuh": ("k02", "k08"), "fragment.cuh": ("k08", "k10")}
"""Headers without a second body for the emulator, and rungs that between them use all of each."""


@dataclass(frozen=True)
class Subject:
    """A text with the rungs that show what becomes of it; `header` is its name where it is no rung's own."""

    name: str
    text: str
    rungs: tuple[Rung, ...]
    header: str = ""

    @functools.cached_property
    def mutants(self) -> list[Mutant]:
        """Every mutant of the text."""
        return mutants(self.text, {} if self.header else rung_config(self.rungs[0]).constants)

    def configs(self, changed: str) -> Iterator[Config]:
        """The rungs' default configs with the changed text, then another config of each."""
        rungs = [replace(rung, source=self._source(rung, changed)) for rung in self.rungs]
        yield from (rung_config(rung) for rung in rungs)
        yield from (rung_config(rung, other_values(rung.name)) for rung in rungs)

    def _source(self, rung: Rung, changed: str) -> str:
        if not self.header:
            return changed
        include = f'#include "tilewright/{self.header}"\n'
        before, found, after = rung.source.partition(include)
        assert found, f"{rung.name} does not include {self.header}"
        body = changed.replace("#pragma once\n", "\n")
        line = before.count("\n") + 2
        return f'{before}#line 1 "{self.header}"\n{body}#line {line} "{rung.entry}.cu"\n{after}'


@functools.cache
def other_values(rung: str) -> dict[str, int]:
    """The config with the fewest threads and, of those, the most different constants: loops take several turns."""
    configs = enumerate_configs(all_rungs()[rung])
    return min(configs, key=lambda c: (c.threads, -len(set(c.constants.values())))).values


@functools.cache
def subjects() -> dict[str, Subject]:
    """Every subject by name, the rungs in the order of the ladder."""
    judged = [rung for rung in all_rungs().values() if rung.track == "simt" and rung.number <= LAST]
    made = [Subject(rung.name, rung.source, (rung,)) for rung in judged]
    for header, queries in HEADERS.items():
        text = (INCLUDE_DIR / "tilewright" / header).read_text(encoding="utf-8")
        made.append(Subject(header, text, tuple(all_rungs().find(query) for query in queries), header))
    return {subject.name: subject for subject in made}
