"""Running an experiment: its trial built and, where there is a bench, measured; then what came of claim and prediction.

Makes the record, whose `about` holds question, claim, prediction and every arm's candidate: enough to read it by itself
and to build it again. Owns no printing.
"""

from __future__ import annotations

from typing import Any

from tilewright.arch import ArchSpec
from tilewright.compile.nvrtc import nvrtc_version
from tilewright.lab.experiment import Experiment, ExperimentArm
from tilewright.lab.findings import (
    EXPIRED,
    FAILS,
    HOLDS,
    arm_sentence,
    claim_verdict,
    largest_gains,
    overall,
    prediction_verdict,
    premise_sentence,
    registers_by_arch,
    registers_sentence,
)
from tilewright.lab.measuring import Effort
from tilewright.lab.trial import Bench, Built, Say, Trial, build, run
from tilewright.record import Record, Row, environment

SAID = {
    HOLDS: "The claim holds here.",
    FAILS: "The claim does not hold here.",
    EXPIRED: "The claim's premise has expired here.",
    "mixed": "The claim holds here in part.",
}
NOT_MEASURED = "not measured"


def built_experiment(experiment: Experiment, arch: ArchSpec, say: Say) -> Record:
    """The experiment as far as it goes without a GPU: builds, causes, and claims that a build can decide."""
    trial = Trial(experiment.problem, arch, experiment.entrants)
    say(f"compiling {len(trial.entrants)} arms for {arch.name}")
    built = build(trial)
    made = environment(arch=arch.name, nvrtc=nvrtc_version())
    return Record(command="experiment", environment=made, rows=[b.row for b in built], about=_about(experiment, built))


def measured_experiment(experiment: Experiment, bench: Bench, effort: Effort, say: Say) -> Record:
    """The experiment on a GPU: every arm and the baseline verified, and timed in the same rounds."""
    trial = Trial(experiment.problem, bench.arch, experiment.entrants)
    say(f"compiling {len(trial.entrants)} arms for {bench.arch.name}")
    built = build(trial)
    baseline, samples = run(trial, built, bench, effort, say)
    rows = [b.row for b in built] + ([baseline] if baseline is not None else [])
    made = bench.environment(samples)
    return Record(command="experiment", environment=made, rows=rows, about=_about(experiment, built))


def _about(experiment: Experiment, built: list[Built]) -> dict[str, Any]:
    rows = {b.entrant.label: b.row for b in built}
    candidates = {b.entrant.label: b.entrant.candidate for b in built}
    arms, sentences, verdicts = [], [], []
    for arm, each in zip(experiment.arms, built, strict=True):
        against = arm.entrant.against
        reference = rows[against] if against is not None else None
        told = _told(arm, each, reference)
        verdicts += [told.get("claim_verdict", NOT_MEASURED)] if arm.claim else []
        if against is not None and reference is not None:
            sentences.append(arm_sentence(each.row, against))
            if arm.premise and arm.premise != "registers":
                sentences.append(premise_sentence(arm, each.row, reference))
            if arm.premise == "registers":
                found = registers_by_arch(candidates[arm.entrant.label], candidates[against], experiment.problem)
                told["registers"] = found
                sentences.append(registers_sentence(found))
        arms.append(told)
    largest = largest_gains(experiment, rows)
    if largest:
        verdicts.append(HOLDS if set(largest) == set(experiment.largest) else FAILS)
        sentences.append(f"the largest gains: {', '.join(largest)}")
    verdict = NOT_MEASURED if NOT_MEASURED in verdicts else overall(verdicts)
    finding = ". ".join(sentence for sentence in sentences if sentence) or "Not measured"
    return {
        "experiment": experiment.name,
        "question": experiment.question,
        "claim": experiment.claim,
        "prediction": experiment.prediction,
        "reference": experiment.arms[0].entrant.label,
        "arms": arms,
        "verdict": verdict or "no claim",
        "finding": " ".join(part for part in (f"{finding}.", SAID.get(verdict, "")) if part),
    }


def _told(arm: ExperimentArm, each: Built, reference: Row | None) -> dict[str, Any]:
    """What a record says of one arm: its candidate and build, what was expected of it, and what came of that."""
    expected = {"claim": arm.claim, "prediction": arm.prediction, "premise": arm.premise}
    came = {
        "claim_verdict": claim_verdict(arm, each.row, reference),
        "prediction_verdict": prediction_verdict(arm, each.row),
    }
    return {**each.about(), **{name: word for name, word in {**expected, **came}.items() if word}}
