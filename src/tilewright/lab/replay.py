"""Building and measuring what a record holds once more: reproduced, refuted, or expired.

A record has rung, config, variant, problem and what the build was made of. Where card, driver, compiler or source have
changed since, its premise has expired: it is measured all the same, and both are said. Owns the comparison of then and
now; building, verifying and timing are `trial`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.arch import ArchSpec, get_arch
from tilewright.compile.nvrtc import cubin_key, nvrtc_version
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import InvalidInput, TilewrightError
from tilewright.lab.candidate import Candidate
from tilewright.lab.measuring import Effort
from tilewright.lab.trial import Bench, Built, Entrant, Say, Trial, build, run
from tilewright.measure import median_interval
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.record import Ratio, Record, Row, environment

MARGIN = 0.01
"""How far apart the intervals of two sessions may lie: other cards of a kind, other neighbours, another day."""
REPRODUCED, REFUTED, EXPIRED, NOT_MEASURED = "reproduced", "refuted", "expired", "not measured"


@dataclass(frozen=True)
class Recorded:
    """One arm as it was recorded: its row, and what the record tells of it beside."""

    row: Row
    told: dict[str, Any]

    @property
    def label(self) -> str:
        """The arm's name; where rows have none, the rung's."""
        return self.row.arm or self.row.rung

    def entrant(self, labels: Iterable[str]) -> Entrant:
        """The arm to be built again, against the one it was against where that is among `labels`."""
        if "candidate" in self.told:
            candidate = Candidate.from_json(self.told["candidate"])
        else:
            candidate = Candidate(rung_config(all_rungs().find(self.row.rung), self.row.config))
        against = str(self.told.get("against"))
        return Entrant(
            label=self.label,
            candidate=candidate,
            against=against if against in labels else None,
            bundle="as recorded",
            may_spill=True,
        )


def recorded_arms(record: Record) -> list[Recorded]:
    """The arms of a record that have a time; of a tuning record its winner. Raises InvalidInput for none."""
    about = record.about or {}
    rows = [record.rows[about["best"]]] if isinstance(about.get("best"), int) else record.rows
    told = {arm["arm"]: arm for arm in about.get("arms", ()) if isinstance(arm, dict)}
    arms = [
        Recorded(row, told.get(row.arm or "", {}))
        for row in rows
        if row.rung != BASELINE and row.time_us is not None and row.verified and row.config is not None
    ]
    if not arms:
        raise InvalidInput(f"a record of `{record.command}` without a timed rung: there is nothing to replay")
    if len({arm.label for arm in arms}) < len(arms) or any(arm.row.problem != arms[0].row.problem for arm in arms):
        raise InvalidInput("the record's rows have the same name or different problems; replay one of them at a time")
    return arms


def replayed(record: Record, bench: Bench | None, effort: Effort, say: Say) -> Record:
    """The record's arms built again and, on a bench, measured; one row each, with what became of it as its outcome.

    Raises InvalidInput, and UnknownName or InvalidConfig where this version has no such rung or config.
    """
    arms = recorded_arms(record)
    arch = bench.arch if bench is not None else get_arch(record.environment["arch"])
    labels = {arm.label for arm in arms}
    trial = Trial(Problem(**arms[0].row.problem), arch, tuple(arm.entrant(labels) for arm in arms))
    say(f"compiling {len(arms)} arms for {arch.name}")
    built = build(trial)
    rows = [each.row for each in built]
    for row in rows:
        row.outcome = row.causes = None
    made = environment(arch=arch.name, nvrtc=nvrtc_version())
    if bench is not None:
        baseline, samples = run(trial, built, bench, effort, say)
        made = bench.environment(samples)
        for row, arm in zip(rows, arms, strict=True):
            row.outcome = outcome(arm.row, row)
        rows += [baseline] if baseline is not None else []
    changed = [
        *_changed_machine(record.environment, made, measured=bench is not None),
        *_changed_builds(arms, built, trial, record.environment),
    ]
    return Record(command="replay", environment=made, rows=rows, about=_about(record, arms, rows, changed))


def outcome(then: Row, now: Row) -> str:
    """`reproduced` where the figure's two intervals meet within the margin, `refuted` where they don't or it failed."""
    if now.failure is not None:
        return REFUTED
    pair = figures(then, now)
    if pair is None:
        return NOT_MEASURED
    _, old, new = pair
    meet = new.low <= old.high * (1 + MARGIN) and old.low <= new.high * (1 + MARGIN)
    return REPRODUCED if meet else REFUTED


def figures(then: Row, now: Row) -> tuple[str, Ratio, Ratio] | None:
    """The figure that both rows have and that depends on the session least: its name, then, now."""
    for name, words in (("ratio_to_baseline", "× cuBLAS"), ("ratio_to_reference", "× its reference")):
        old, new = getattr(then, name), getattr(now, name)
        if old is not None and new is not None:
            return words, old, new
    if then.samples_us and now.samples_us:
        old, new = (median_interval(samples) for samples in (then.samples_us, now.samples_us))
        return "µs", Ratio(old.low, old.median, old.high), Ratio(new.low, new.median, new.high)
    return None


def _changed_machine(then: dict[str, Any], now: dict[str, Any], *, measured: bool) -> Iterator[str]:
    """What the recorded figure rests on and is something else now; without a bench only the compiler can be."""
    pairs = [("NVRTC", then.get("nvrtc"), now.get("nvrtc"))]
    if measured:
        cards = (then.get("device", {}), now.get("device", {}))
        pairs += [
            (words, *(card.get(name) for card in cards))
            for name, words in (("name", "card"), ("sm_count", "SMs"), ("driver_cuda", "driver's CUDA"))
        ]
        pairs.append(("baseline", then.get("baseline"), now.get("baseline")))
    for words, old, new in pairs:
        if old != new:
            yield f"{words}: {old} → {new}"


def _changed_builds(arms: list[Recorded], built: list[Built], trial: Trial, then: dict[str, Any]) -> Iterator[str]:
    """What is no longer as it was in the arms' builds, with the arms of which that is so."""
    found: dict[str, list[str]] = {}
    for arm, each in zip(arms, built, strict=True):
        if what := _changed_build(arm, each, trial, then):
            found.setdefault(what, []).append(arm.label)
    yield from (f"{what} of {', '.join(labels)}" for what, labels in found.items())


def _changed_build(arm: Recorded, each: Built, trial: Trial, then: dict[str, Any]) -> str:
    """What is no longer as it was in one arm's build; with the same source and compiler the binary is held as well."""
    if each.record is None:
        return "validity"
    build = arm.told.get("build")
    if build is None:
        same = arm.row.binary == _key(each.entrant.candidate, trial, then)
        return "" if same else "source, headers or options"
    now = {**each.record.to_json(), "cubin": each.cubin}
    names = [name for name in build if name not in ("compiler", "arch", "cubin") and build[name] != now.get(name)]
    if names:
        return ", ".join(names).replace("_", " ")
    same_compiler = (build["compiler"], build["arch"]) == (now["compiler"], now["arch"])
    return "binary, from the same source and compiler," if same_compiler and build["cubin"] != now["cubin"] else ""


def _key(candidate: Candidate, trial: Trial, then: dict[str, Any]) -> str:
    """The key that the recorded compiler would have given the candidate's source."""
    arch: ArchSpec = get_arch(then["arch"])
    try:
        return cubin_key(candidate.source(trial.problem), arch, version=then.get("nvrtc"))
    except TilewrightError as error:
        return str(error)


def _about(record: Record, arms: list[Recorded], rows: list[Row], changed: list[str]) -> dict[str, Any]:
    outcomes = {row.outcome for row in rows[: len(arms)]}
    figures_word = REFUTED if REFUTED in outcomes else REPRODUCED if outcomes == {REPRODUCED} else NOT_MEASURED
    verdict = figures_word if figures_word == NOT_MEASURED or not changed else EXPIRED
    told = [_figure_sentence(arm.row, row) for arm, row in zip(arms, rows, strict=False)]
    said = {
        REPRODUCED: "Every figure is what it was.",
        REFUTED: "Some figures are not what they were.",
        NOT_MEASURED: "Nothing was timed: only sources and binaries were compared.",
    }[figures_word]
    premise = f"Changed since: {'; '.join(changed)}." if changed else "Nothing it rests on has changed."
    then = record.environment
    return {
        "recorded": {name: then.get(name) for name in ("date", "commit", "nvrtc", "device") if name in then},
        "arms": [{"arm": arm.label, "figure": sentence} for arm, sentence in zip(arms, told, strict=True) if sentence],
        "changed": changed,
        "figures": figures_word,
        "verdict": verdict,
        "finding": f"{said} {premise}",
    }


def _figure_sentence(then: Row, now: Row) -> str:
    pair = figures(then, now)
    if pair is None:
        return ""
    words, old, new = pair
    shown = [f"{ratio.median:.4g} [{ratio.low:.4g}, {ratio.high:.4g}]" for ratio in (old, new)]
    return f"recorded {shown[0]}, now {shown[1]} {words}"
