"""What samples say of two arms, in one word.

Owns the words and the rule for each. It knows nothing of builds: that a comparison is confounded is said elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import InvalidInput
from tilewright.measure.samples import Samples, control_name
from tilewright.measure.stats import CONFIDENCE, Interval

EQUIVALENCE = 0.005


@dataclass(frozen=True, slots=True)
class Outcome:
    """faster, slower, equivalent, inconclusive, throttled or invalid; reference time over arm time; why this word."""

    word: str
    ratio: Interval | None
    reason: str


def judge(samples: Samples, arm: str, reference: str, *, equivalence: float = EQUIVALENCE) -> Outcome:
    """Whether `arm` is faster than `reference`. A word must hold against its A/A control as well, if it has one.

    Equivalent: the whole interval of the ratio lies within 1 ± `equivalence`. Faster or slower: it doesn't, and lies
    wholly on one side of 1. Inconclusive: neither. Throttled: too many rounds fell to slowdowns. Invalid: one of the
    two wasn't measured. Raises InvalidInput for an arm against itself or a margin outside of 0 to 1.
    """
    if arm == reference or not 0.0 < equivalence < 1.0:
        raise InvalidInput(f"{arm!r} against {reference!r} within {equivalence}: must be two arms and a margin below 1")
    for name in (arm, reference):
        if name not in samples.times_us:
            return Outcome("invalid", None, f"{name} was not measured")
    ratios = [samples.ratio(arm, name) for name in _references(samples, reference)] if samples.rounds else []
    ratio = ratios[0] if ratios else None
    if samples.stop == "throttled" or ratio is None:
        return Outcome(
            "throttled", ratio, f"{samples.rejected_rounds} rounds fell to slowdowns and {samples.rounds} counted"
        )
    if ratio.coverage < CONFIDENCE:
        return Outcome("inconclusive", ratio, f"too few independent rounds for a 95% interval in {samples.rounds}")
    return _judged(ratio, ratios, equivalence)


def _references(samples: Samples, reference: str) -> list[str]:
    return [reference, *([control_name(reference)] if reference == samples.baseline else [])]


def _judged(ratio: Interval, ratios: list[Interval], equivalence: float) -> Outcome:
    words = {_word(each, equivalence) for each in ratios}
    spread = f"[{ratio.low:.4f}, {ratio.high:.4f}]"
    if len(words) > 1:
        return Outcome("inconclusive", ratio, f"{spread}, and the reference's A/A control says otherwise")
    (word,) = words
    reasons = {
        "equivalent": f"{spread} lies within 1 ± {equivalence:g}",
        "inconclusive": f"{spread} holds 1 and reaches beyond 1 ± {equivalence:g}",
    }
    return Outcome(word, ratio, reasons.get(word, f"{spread} lies on one side of 1"))


def _word(ratio: Interval, equivalence: float) -> str:
    if ratio.low >= 1.0 / (1.0 + equivalence) and ratio.high <= 1.0 + equivalence:
        return "equivalent"
    return "faster" if ratio.low > 1.0 else "slower" if ratio.high < 1.0 else "inconclusive"
