"""What a suite needs of a machine: operands placed, products checked, times taken. `suite_gpu` has a GPU for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tilewright.arch import ArchSpec
from tilewright.compile.binary import Binary
from tilewright.declare import Config
from tilewright.lab.measuring import Effort
from tilewright.measure import Samples
from tilewright.problem import Problem
from tilewright.tune.screen import Screened


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

    def complaint(self, problem: Problem, config: Config | None) -> str:
        """What is wrong with the product of `config`, or for None of the baseline, in words; empty where nothing is."""
        ...

    def has_baseline(self, problem: Problem) -> bool:
        """Whether there is a baseline that multiplies such elements."""
        ...

    def screen(self, problem: Problem, config: Config, best_us: float | None) -> Screened:
        """A quick time. See `tune.screen`."""
        ...

    def time(self, problem: Problem, arms: Mapping[str, Config], effort: Effort, *, with_baseline: bool) -> Samples:
        """Time the arms, by label, and the baseline in the same rounds."""
        ...

    def environment(self) -> dict[str, Any]:
        """What a record says of the machine."""
        ...
