"""What is mutated: every rung's kernel, under its default constants, and the headers that rungs compute with.

A new rung is one more subject. Owns how a changed text becomes configs that can run; what is changed is `operators`'.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mutants.operators import Mutant, mutants
from tilewright.compile.headers import INCLUDE_DIR
from tilewright.declare import Config, Rung, all_rungs, enumerate_configs, rung_config

INCLUDE = re.compile(r'#include "tilewright/([^"]+)"')
HEADERS = {
    "epilogue.cuh": ("k02", "k08", "t03"),
    "fragment.cuh": ("k08", "k10"),
    "tile.cuh": ("t01", "t03", "t04"),
    "tensor_tile.cuh": ("t03",),
}
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
        inlined = _inlined(rung.source, self.header, changed, set())
        assert inlined != rung.source, f"{rung.name} does not include {self.header}"
        return inlined


def _inlined(text: str, header: str, changed: str, there: set[str]) -> str:
    """`text` with `changed` in place of the header, in whichever header it is included; every one once, in `there`."""

    def body(match: re.Match[str]) -> str:
        name = match[1]
        if name != header and header not in _all_included(name):
            return match[0]
        if name in there:
            return ""
        there.add(name)
        return _inlined(changed if name == header else _text(name), header, changed, there)

    return INCLUDE.sub(body, text.replace("#pragma once\n", "\n"))


@functools.cache
def _text(header: str) -> str:
    return (INCLUDE_DIR / "tilewright" / header).read_text(encoding="utf-8")


@functools.cache
def _all_included(header: str) -> frozenset[str]:
    """The project's headers that a header includes, directly or through others."""
    direct = INCLUDE.findall(_text(header))
    return frozenset(direct).union(*(_all_included(name) for name in direct))


@functools.cache
def other_values(rung: str) -> dict[str, int]:
    """The config with the fewest threads and, of those, the most different constants: loops take several turns."""
    configs = enumerate_configs(all_rungs()[rung])
    return min(configs, key=lambda c: (c.threads, -len(set(c.constants.values())))).values


@functools.cache
def subjects() -> dict[str, Subject]:
    """Every subject by name, the rungs in the order of the ladder."""
    made = [Subject(rung.name, rung.source, (rung,)) for rung in all_rungs().values()]
    for header, queries in HEADERS.items():
        made.append(Subject(header, _text(header), tuple(all_rungs().find(query) for query in queries), header))
    return {subject.name: subject for subject in made}
