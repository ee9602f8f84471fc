"""What an experiment's outcomes say: of each claim, of each prediction, and in one sentence.

Every word is derived from rows; nothing is written beforehand. Owns no measuring and no verdict on a ratio.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilewright.arch import ARCHS
from tilewright.errors import TilewrightError
from tilewright.lab.candidate import Candidate
from tilewright.lab.experiment import Experiment, ExperimentArm
from tilewright.problem import Problem
from tilewright.record import Row

HOLDS, FAILS, EXPIRED, UNDECIDED = "holds", "does not hold", "expired", "undecided"
DECISIVE = ("faster", "slower", "equivalent")
PREMISE_WORDS = {"registers": "registers", "spill_bytes": "spilled bytes", "occupancy": "occupancy"}


def claim_verdict(arm: ExperimentArm, row: Row, reference: Row | None) -> str:
    """Whether the arm's claim holds here; empty where nothing is claimed, or nothing was measured that could tell.

    `expired` where the claim rests on a difference in what the compiler made, and there is none here.
    """
    if not arm.claim:
        return ""
    if reference is not None and arm.premise and _premise(arm, row) == _premise(arm, reference) is not None:
        return EXPIRED
    return _against_word(arm.claim, row.outcome)


def prediction_verdict(arm: ExperimentArm, row: Row) -> str:
    """Whether the prediction came true; empty where nothing was predicted or nothing measured."""
    return _against_word(arm.prediction, row.outcome) if arm.prediction else ""


def _premise(arm: ExperimentArm, row: Row) -> float | None:
    value: float | None = getattr(row, arm.premise)
    return value


def _against_word(expected: str, outcome: str | None) -> str:
    if outcome is None:
        return ""
    if outcome == expected:
        return HOLDS
    return FAILS if outcome in DECISIVE else UNDECIDED


def largest_gains(experiment: Experiment, rows: Mapping[str, Row]) -> list[str]:
    """The arms that gained most over what they are against, as many as were claimed; empty where one has no ratio."""
    judged = {arm.entrant.label: rows[arm.entrant.label] for arm in experiment.arms if arm.entrant.against is not None}
    gains = {
        label: row.ratio_to_reference.median for label, row in judged.items() if row.ratio_to_reference is not None
    }
    if len(gains) < len(judged):
        return []
    return sorted(gains, key=lambda label: -gains[label])[: len(experiment.largest)]


def overall(verdicts: Iterable[str]) -> str:
    """One word for several claims: theirs where they agree, `mixed` where they don't, empty where there is none."""
    words = {word for word in verdicts if word}
    return words.pop() if len(words) == 1 else "mixed" if words else ""


def arm_sentence(row: Row, against: str) -> str:
    """One arm against its reference in words; empty where nothing came of it."""
    ratio = row.ratio_to_reference
    if row.failure is not None:
        return f"{row.arm}: {row.failure}"
    if ratio is None:
        return f"{row.arm}: {row.outcome} against {against}" if row.outcome else ""
    measured = f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] × the speed of {against}"
    return f"{row.arm}: {row.outcome}, {measured}"


def premise_sentence(arm: ExperimentArm, row: Row, reference: Row) -> str:
    """What the compiler made of the two, where a claim rests on it."""
    figures = [_premise(arm, each) for each in (reference, row)]
    if None in figures:
        return ""
    same = "the same" if figures[0] == figures[1] else "not the same"
    shown = " and ".join(f"{figure:g}" for figure in figures if figure is not None)
    return f"{PREMISE_WORDS[arm.premise]} {shown} on {row.arch}: {same}"


def registers_by_arch(arm: Candidate, reference: Candidate, problem: Problem) -> dict[str, list[int]]:
    """Registers of reference and arm on every architecture that this compiler and the two know."""
    found = {}
    for arch in ARCHS.values():
        try:
            rows = [each.row(problem, arch) for each in (reference, arm)]
        except TilewrightError:
            continue
        found[arch.name] = [row.registers for row in rows if row.registers is not None]
    return found


def registers_sentence(found: Mapping[str, Sequence[int]]) -> str:
    """Where the registers differ, and where they don't."""
    moved = [f"{arch} ({pair[0]} → {pair[1]})" for arch, pair in found.items() if pair[0] != pair[1]]
    same = [arch for arch, pair in found.items() if pair[0] == pair[1]]
    parts = [f"the same on {', '.join(same)}"] if same else []
    parts += [f"others on {', '.join(moved)}"] if moved else []
    return f"registers: {'; '.join(parts)}"
