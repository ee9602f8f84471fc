"""What a suite needs of a machine: operands placed, products checked, times taken. `suite_gpu` has a GPU for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.api.plan import Plan
from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary
from tilewright.declare import Config
from tilewright.lab.measuring import Effort
from tilewright.measure import Samples
from tilewright.problem import Problem
from tilewright.tune.screen import Screened


@dataclass(frozen=True, slots=True)
class Call:
    """`tilewright.matmul(a, b, out=out, kernels=kernels)` on torch tensors: what a user gets."""

    kernels: str


Launched = Config | Call
"""What an arm launches: our kernel alone, or the library call."""


class SuiteMachine(Protocol):
    """A machine for all of a suite's shapes, one after the other."""

    @property
    def arch(self) -> ArchSpec: ...  # noqa: D102
    @property
    def sm_count(self) -> int: ...  # noqa: D102
    @property
    def card(self) -> str | None:
        """The listed card it is, or None."""
        ...

    def binary(self, config: Config, problem: Problem) -> Binary:
        """`config` compiled for `problem`; from several threads at once."""
        ...

    def open(self, problem: Problem) -> None:
        """Place the problem's operands, for all further calls about it. Raises InvalidProblem where they don't fit."""
        ...

    def complaint(self, problem: Problem, launched: Launched | None) -> str:
        """What is wrong with the product, or for None with the baseline's, in words; empty where nothing is."""
        ...

    def has_baseline(self, problem: Problem) -> bool:
        """Whether there is a baseline that multiplies such elements."""
        ...

    def plan(self, problem: Problem, call: Call) -> Plan:
        """What the library call will do with the problem."""
        ...

    def screen(self, problem: Problem, config: Config, best_us: float | None, launch: str) -> Screened:
        """A quick time in that launch mode. See `tune.screen`."""
        ...

    def time(self, problem: Problem, arms: Mapping[str, Launched], effort: Effort, *, with_baseline: bool) -> Samples:
        """Time the arms, by label, and the baseline in the same rounds."""
        ...

    def environment(self) -> dict[str, Any]:
        """What a record says of the machine."""
        ...
