"""What went into one build: everything that can make two kernels different, and nothing that came out of it.

Registers, spills and instructions are outcomes and have no place here. Owns the record and its digest; comparing two is
`causes`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.arch import ArchSpec
from tilewright.compile.cache import content_key
from tilewright.compile.headers import INCLUDE_DIR
from tilewright.compile.nvrtc import OPTIONS, nvrtc_version
from tilewright.compile.source import SCALARS
from tilewright.declare import Rung
from tilewright.declare.expr import Expr
from tilewright.errors import InvalidDeclaration
from tilewright.lab.candidate import Candidate
from tilewright.lab.source_diff import tokens
from tilewright.problem import Problem

BETA_MODES = ("β = 0, C not read", "β ≠ 0, C read", "decided by β at run time", "C read whatever β is")
_BOUNDS = re.compile(r"__launch_bounds__\(([^()]*)\)")
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Word:
    """One token of a kernel's text that a compiler heeds, and its line."""

    text: str
    line: int


@dataclass(frozen=True)
class BuildRecord:
    """One build: the candidate's rung, text and constants, and what it was compiled by, for and as."""

    rung: Rung
    text: str
    params: dict[str, int]
    derived: dict[str, int]
    own_constants: dict[str, int]
    problem_constants: dict[str, str]
    options: tuple[str, ...]
    arch: str
    compiler: str
    compute: str

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The text's tokens without comments, whitespace and the launch bounds' arguments, compared apart."""
        return _words(_BOUNDS.sub("__launch_bounds__()", self.text))

    @property
    def bounds(self) -> str:
        """The launch bounds as the compiler takes them: '(128, 1)'; an argument of 0 says nothing and is left out."""
        match = _BOUNDS.search(self.text)
        if match is None:
            return "none"
        values = [_value(text, {**self.params, **self.derived, **self.own_constants}) for text in match[1].split(",")]
        while len(values) > 1 and values[-1] == "0":
            values.pop()
        return f"({', '.join(values)})"

    @property
    def bounds_text(self) -> str:
        """The launch bounds as they are written, without spaces."""
        match = _BOUNDS.search(self.text)
        return "".join(match[1].split()) if match else ""

    def serves_bounds_alone(self, name: str) -> bool:
        """Whether the constant is named by the launch bounds and by nothing else of text or declaration."""
        launch = self.rung.launch
        geometry = (*launch.grid, *launch.block, *launch.cluster, *(item.expr for item in self.rung.derived))
        elsewhere = any(name in expr.names for expr in geometry) or any(word.text == name for word in self.words)
        return bool(re.search(rf"\b{name}\b", self.bounds_text)) and not elsewhere

    def to_json(self) -> dict[str, Any]:
        """The record with its texts as one digest each."""
        return {
            "source": content_key(word.text for word in self.words),
            "headers": headers_digest(self.text),
            "constants": {**self.params, **self.derived, **self.own_constants},
            "problem_constants": self.problem_constants,
            "launch_bounds": self.bounds,
            "options": [*OPTIONS, *self.options],
            "arch": self.arch,
            "compiler": self.compiler,
            "compute": self.compute,
        }


def build_record(candidate: Candidate, problem: Problem, arch: ArchSpec) -> BuildRecord:
    """The record of what `candidate.cubin(problem, arch)` is built from. Raises as `Candidate.source` does."""
    config, variant = candidate.config, candidate.variant
    chosen = variant.problem_constants(config, problem)
    return BuildRecord(
        rung=config.rung,
        text=variant.own_text(config),
        params=dict(config.values),
        derived={item.name: config.scope[item.name] for item in config.rung.derived},
        own_constants=dict(variant.constants),
        problem_constants={
            "BETA_MODE": BETA_MODES[chosen["BETA_MODE"]],
            "GUARDED": "on" if chosen["GUARDED"] else "off",
        },
        options=variant.options,
        arch=arch.name,
        compiler=f"NVRTC {nvrtc_version()}",
        compute=SCALARS[problem.dtype],
    )


def headers_digest(text: str) -> str:
    """A digest of the device headers that `text` includes, and they in turn, without comments and whitespace."""
    found: dict[str, str] = {}
    waiting = ["tilewright/scalar.cuh", "tilewright/args.cuh", *_INCLUDE.findall(text)]
    while waiting:
        name = waiting.pop()
        path = INCLUDE_DIR / name
        if name not in found and path.is_file():
            found[name] = path.read_text(encoding="utf-8")
            waiting += _INCLUDE.findall(found[name])
    return content_key(part for name in sorted(found) for part in (name, *(w.text for w in _words(found[name]))))


def _words(text: str) -> tuple[Word, ...]:
    return tuple(
        Word(token.text, number)
        for number, line in enumerate(text.splitlines(), start=1)
        for token in tokens(line)
        if token.kind != "comment" and token.text.strip()
    )


def _value(text: str, constants: dict[str, int]) -> str:
    """An argument of the launch bounds as a number, or as it is written where it is no expression of constants."""
    try:
        return str(Expr(text.strip().replace("/", "//")).evaluate(constants))
    except (InvalidDeclaration, KeyError, ArithmeticError):
        return text.strip()
