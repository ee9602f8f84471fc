"""A trial: arms built side by side, held against their confound guard, verified, timed in the same rounds, and judged.

What `compare`, `experiment` and `replay` have in common. Owns the order of these steps and what each leaves in an arm's
row; the GPU is a `Bench`'s, the word for a ratio `measure.verdict`'s, what two builds differ in `causes`'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.arch import ArchSpec
from tilewright.compile.batch import in_parallel
from tilewright.compile.cache import content_key
from tilewright.errors import InvalidInput, TilewrightError, UnknownName
from tilewright.lab.build_record import BuildRecord, build_record
from tilewright.lab.candidate import Candidate
from tilewright.lab.causes import Differences, confounded, differences
from tilewright.lab.ladder import failed, judged
from tilewright.lab.measuring import Effort, fill_times
from tilewright.measure import Samples
from tilewright.measure.baseline import BASELINE
from tilewright.measure.verdict import judge
from tilewright.problem import Problem
from tilewright.record import Ratio, Row
from tilewright.verify.layers import Verdict

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """One arm: a candidate under a label, and the earlier arm that it is judged against (None: against none).

    `named` are the causes its author says it differs in (None: whichever one there is), `bundle` what several are
    called as one. `may_spill` lets a build be timed that its rung's rules refuse for its spills.
    """

    label: str
    candidate: Candidate
    against: str | None = None
    named: tuple[str, ...] | None = None
    bundle: str = ""
    may_spill: bool = False


@dataclass(frozen=True)
class Trial:
    """Arms for one problem and architecture. Raises InvalidInput, UnknownName for labels that don't fit together."""

    problem: Problem
    arch: ArchSpec
    entrants: tuple[Entrant, ...]

    def __post_init__(self) -> None:
        seen: list[str] = [BASELINE]
        for entrant in self.entrants:
            if entrant.label in seen:
                raise InvalidInput(f"arm {entrant.label!r}: the name is taken; give each arm its own")
            if entrant.against is not None and entrant.against not in seen[1:]:
                raise UnknownName(f"arm {entrant.label!r}: against={entrant.against!r}: must name an arm before it")
            seen.append(entrant.label)


@dataclass
class Built:
    """An arm with its row, its build record, its cubin's hash, and what it differs in from its reference.

    The record is None where the build was refused, the hash empty where nothing was compiled.
    """

    entrant: Entrant
    row: Row
    record: BuildRecord | None
    cubin: str = ""
    found: Differences | None = None
    confounded: str = ""

    @property
    def sound(self) -> bool:
        """Whether nothing has failed so far."""
        return self.row.failure is None

    def about(self) -> dict[str, Any]:
        """What a record needs to tell and to rebuild this arm."""
        entrant = self.entrant
        told: dict[str, Any] = {"arm": entrant.label, "candidate": entrant.candidate.to_json()}
        if self.record is not None:
            told["build"] = {**self.record.to_json(), "cubin": self.cubin}
        if entrant.against is not None:
            told["against"] = entrant.against
        if entrant.bundle:
            told["bundle"] = entrant.bundle
        if self.found is not None and self.found.consequences:
            told["consequences"] = [each.to_json() for each in self.found.consequences]
        if self.confounded:
            told["confounded"] = self.confounded
        return told


class Bench(Protocol):
    """A machine that can verify and time candidates; `GpuBench` is the one with a GPU."""

    @property
    def arch(self) -> ArchSpec:
        """What it runs."""
        ...

    def check(self, candidate: Candidate, problem: Problem) -> Verdict:
        """Verify the binary that is to be timed. Raises what a rule, a compiler or a launch does."""
        ...

    def baseline_row(self, problem: Problem) -> Row | None:
        """The baseline's row, verified; None where there is no baseline."""
        ...

    def time(self, problem: Problem, arms: Mapping[str, Candidate], effort: Effort) -> Samples:
        """Time the arms and the baseline, if it is sound, in the same rounds; the first arm has an A/A control."""
        ...

    def peak_tflops(self, samples: Samples) -> float | None:
        """What the device could do at most at the clocks of the rounds."""
        ...

    def environment(self, samples: Samples | None) -> dict[str, Any]:
        """What a record says of the machine and the rounds."""
        ...


def build(trial: Trial) -> list[Built]:
    """Every arm compiled, on all cores; what is refused or doesn't compile is a row that says so."""
    built = list(in_parallel(lambda entrant: _build(trial, entrant), trial.entrants))
    by_label = {each.entrant.label: each for each in built}
    for each in built:
        if each.entrant.against is not None:
            _compare_builds(each, by_label[each.entrant.against])
    return built


def _build(trial: Trial, entrant: Entrant) -> Built:
    candidate = entrant.candidate
    row = candidate.bare_row(trial.problem)
    record, cubin = None, ""
    try:
        record = build_record(candidate, trial.problem, trial.arch)
        row = candidate.row(trial.problem, trial.arch)
        cubin = content_key([candidate.cubin(trial.problem, trial.arch).payload])
        if entrant.may_spill and row.spill_bytes:
            row.verified = row.failure = row.verdict = None
    except TilewrightError as error:
        failed(row, error)
    row.arm = entrant.label
    return Built(entrant, row, record, cubin)


def _compare_builds(each: Built, reference: Built) -> None:
    if each.record is None or reference.record is None:
        return
    each.found = differences(reference.record, each.record)
    each.confounded = confounded(each.found, named=each.entrant.named, bundle=each.entrant.bundle)
    each.row.causes = [cause.to_json() for cause in each.found.causes]
    if each.confounded:
        each.row.outcome = "confounded"


def run(trial: Trial, built: list[Built], bench: Bench, effort: Effort, say: Say) -> tuple[Row | None, Samples | None]:
    """Verify and time what was built, and judge each arm. Fills in the arms' rows.

    Returns the baseline's row and the samples, None where there is no baseline or nothing sound to time.
    """
    for each in built:
        if each.sound:
            say(f"verifying {each.entrant.label}")
            _check(each, trial.problem, bench)
    say(f"verifying {BASELINE}")
    baseline = bench.baseline_row(trial.problem)
    sound = {each.entrant.label: each.entrant.candidate for each in built if each.sound}
    samples = None
    if sound:
        say(f"measuring {len(sound)} arms, up to {effort.rounds} rounds or {effort.budget_s:g} s")
        samples = bench.time(trial.problem, sound, effort)
        peak = bench.peak_tflops(samples)
        rows = [each.row for each in built if each.sound]
        for row in [*rows, *([baseline] if baseline is not None and baseline.verified else [])]:
            fill_times(row, samples, trial.problem, peak)
    for each in built:
        if each.entrant.against is not None:
            _judge(each, samples)
    return baseline, samples


def _check(each: Built, problem: Problem, bench: Bench) -> None:
    each.row.backend = "cuda"
    try:
        judged(each.row, bench.check(each.entrant.candidate, problem))
    except TilewrightError as error:
        failed(each.row, error)


def _judge(each: Built, samples: Samples | None) -> None:
    """The word for an arm: `confounded` over whatever was measured, `invalid` where one of the two was not."""
    assert each.entrant.against is not None
    pair = (each.entrant.label, each.entrant.against)
    if samples is None or any(label not in samples.times_us for label in pair):
        each.row.outcome = "invalid"
        return
    found = judge(samples, *pair)
    if found.ratio is not None:
        each.row.ratio_to_reference = Ratio(found.ratio.low, found.ratio.median, found.ratio.high)
    each.row.outcome = each.row.outcome or found.word
