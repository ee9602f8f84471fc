"""The rows of a suite's shape: what was chosen, what was tried, the baseline, each verified before it is timed.

Owns what a row says. When each is made is `suite_bench`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.declare import Config
from tilewright.errors import LaunchFailed, TilewrightError
from tilewright.facts.static import bare_row, problem_fields, static_row
from tilewright.lab.candidate import Candidate
from tilewright.lab.ladder import failed
from tilewright.lab.suite_machine import Call, SuiteMachine
from tilewright.measure import Samples, control_name
from tilewright.measure.baseline import BASELINE
from tilewright.record import Ratio, Row
from tilewright.select import Choice
from tilewright.suite import Shape

CHOSEN, OWN, BEST = "chosen", "own", "best"
"""Arms: what the library runs; our kernel where that is another's; the fastest candidate where it is another one."""
KEPT = (
    *(
        "rung",
        "problem",
        "arm",
        "config",
        "verified",
        "verdict",
        "failure",
        "time_us",
        "samples_us",
        "launch",
        "outcome",
    ),
    *("registers", "spill_bytes", "ctas_per_sm", "shape_class", "floor_us"),
)
EXACT = "every element exact on integers"


@dataclass(slots=True)
class Entry:
    """A shape on its way: what was chosen, the candidates to try, and the rows made so far."""

    shape: Shape
    choice: Choice | None = None
    tried: Sequence[Config] = ()
    rows: list[Row] = field(default_factory=list)

    @property
    def own_arm(self) -> str:
        """What our chosen kernel's arm is called."""
        return OWN if self.choice is not None and self.choice.library else CHOSEN

    @property
    def config(self) -> Config:
        """Our chosen kernel's config."""
        assert self.choice is not None
        return self.choice.config

    def marked(self, row: Row, arm: str) -> Row:
        """The row with its arm and where its shape is from."""
        row.arm, row.shape_class, row.source = arm, self.shape.group, self.shape.source or None
        return row

    def failed_row(self, error: TilewrightError) -> Row:
        """The row of a shape of which nothing can be measured."""
        problem = self.shape.problem
        if self.choice is None:
            return self.marked(failed(Row(rung="none", problem=problem_fields(problem)), error), CHOSEN)
        return self.marked(failed(bare_row(self.config, problem), error), self.own_arm)

    def checked_row(self, config: Config, machine: SuiteMachine, arm: str = "") -> Row:
        """The row of a config, compiled and verified at this size. A failure is a result, but for a launch's."""
        problem, row = self.shape.problem, bare_row(config, self.shape.problem)
        try:
            row = static_row(config, problem, machine.arch, machine.binary(config, problem))
            row.backend, row.summary = "cuda", None
            if row.failure is None:
                _judge(row, machine.complaint(problem, config))
        except LaunchFailed:
            raise
        except TilewrightError as error:
            failed(row, error)
        return self.marked(row, arm or str(Candidate(config)))

    def called_row(self, call: Call, machine: SuiteMachine) -> Row:
        """The row of the library call, verified at this size: its kernel or the framework's product."""
        problem, plan = self.shape.problem, machine.plan(self.shape.problem, call)
        choice = plan.parts[0].choice
        row = Row(rung=BASELINE, problem=problem_fields(problem)) if plan.library else bare_row(choice.config, problem)
        row.backend, row.summary, row.expected_us = "cuda", str(plan), choice.expected_us
        _judge(row, machine.complaint(problem, call))
        return self.marked(row, CHOSEN)

    def baseline_row(self, machine: SuiteMachine) -> Row | None:
        """The baseline's row, verified; None where there is none for such elements."""
        problem = self.shape.problem
        if not machine.has_baseline(problem):
            return None
        row = Row(rung=BASELINE, problem=problem_fields(problem), backend="cuda")
        _judge(row, machine.complaint(problem, None))
        return self.marked(row, BASELINE)

    def library_row(self, samples: Samples) -> Row:
        """The framework's own product as what was chosen: the baseline's A/A control."""
        assert self.choice is not None
        control = control_name(BASELINE)
        ratio = samples.ratio(control, BASELINE)
        row = Row(
            rung=BASELINE,
            problem=problem_fields(self.shape.problem),
            backend="cuda",
            summary=f"the framework's own product: {self.choice.library}",
            verified=True,
            verdict=EXACT,
            time_us=samples.median_us(control),
            ratio_to_baseline=Ratio(ratio.low, ratio.median, ratio.high),
            launch=samples.launch,
        )
        return self.marked(row, CHOSEN)


def slim(row: Row) -> Row:
    """What is kept of a candidate, of which there are many."""
    return Row(**{name: getattr(row, name) for name in KEPT})


def _judge(row: Row, complaint: str) -> None:
    row.verified, row.verdict = not complaint, complaint or EXACT
    if complaint:
        row.failure = "WrongResult"


def told(samples: Samples) -> dict[str, Any]:
    """How a shape's rounds went, for the record."""
    return {
        "rounds": samples.rounds,
        "rejected_rounds": samples.rejected_rounds,
        "stop": samples.stop,
        "warm": samples.warm,
        "mode": samples.mode,
        "launch": samples.launch,
        "buffer_sets": samples.slots,
        "aa_floor": samples.aa_floor,
        "median_sm_mhz": samples.median_sm_mhz,
    }
