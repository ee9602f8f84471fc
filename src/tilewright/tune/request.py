"""What is asked of a search, and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.compile.batch import usable_cores
from tilewright.declare import Config
from tilewright.errors import InvalidInput
from tilewright.problem import Problem
from tilewright.tune.final_rounds import Finals, measure_on_gpu
from tilewright.tune.process import Limits
from tilewright.tune.space import Only, Space

GUIDED_SHARE, GUIDED_LEAST = 0.1, 200
"""How much of a space a guided search of full effort tries."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Trials at most (None: as many as the strategy has use for), seconds for them and for the final rounds."""

    trials: int | None
    sweep_s: float
    finals_s: float


EFFORTS = {"none": Effort(0, 0.0, 0.0), "quick": Effort(100, 120.0, 20.0), "full": Effort(None, 3600.0, 60.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for. `trials` and `budget_s` replace the effort's own; `again` tries anew what is known."""

    strategy: str = "model"
    effort: str = "quick"
    trials: int | None = None
    budget_s: float | None = None
    seed: int = 0
    only: Only | None = None
    again: bool = False

    @property
    def limits(self) -> Effort:
        """The effort in numbers. Raises InvalidInput for one that doesn't exist, or numbers below 0."""
        if self.effort not in EFFORTS:
            raise InvalidInput(f"effort {self.effort!r}: no such effort; there are {', '.join(EFFORTS)}")
        for name, value in (("trials", self.trials), ("budget_s", self.budget_s)):
            if value is not None and not value >= 0:
                raise InvalidInput(f"{name}={value}: must be at least 0")
        usual = EFFORTS[self.effort]
        return Effort(
            usual.trials if self.trials is None else self.trials,
            usual.sweep_s if self.budget_s is None else self.budget_s,
            usual.finals_s,
        )

    def most_trials(self, space: Space) -> int:
        """How many of the space's configs to try, those known already counted."""
        size, wanted = len(space.configs), self.limits.trials
        if wanted is None and self.strategy == "model":
            wanted = max(GUIDED_LEAST, round(GUIDED_SHARE * size))
        return size if wanted is None else min(wanted, size)


MeasureFinals = Callable[[Problem, Mapping[str, Config], int, int, float], Finals]
"""Takes the problem, configs by label, device, seed and seconds. See `final_rounds.measure_on_gpu`."""
BUILD_LIMITS = Limits(job_s=120.0)
SCREEN_LIMITS = Limits(job_s=30.0, memory_bytes=16 * 2**30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where a search runs: its GPUs by number, what its workers are and may take."""

    devices: tuple[int, ...] = (0,)
    builder: str = "tilewright.tune.build:Builder"
    screen: str = "tilewright.tune.gpu:GpuScreen"
    measure_finals: MeasureFinals = measure_on_gpu
    build_limits: Limits = BUILD_LIMITS
    screen_limits: Limits = SCREEN_LIMITS

    @property
    def on_gpu(self) -> bool:
        """Whether the final rounds run on a GPU of this machine."""
        return self.measure_finals is measure_on_gpu

    @property
    def builders(self) -> int:
        """Compiling processes: every core but one for each device."""
        return max(1, usable_cores() - len(self.devices))
