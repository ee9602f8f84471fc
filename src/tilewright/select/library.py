"""Where the framework's own product is taken in place of our kernel. Says it in words; empty where it isn't.

Only A·B counts, with nothing added and in the operands' type: that is what was measured. Our kernels are taken unless
the framework's was measured to be faster, and for 16-bit elements, for which no suite has been measured yet, only where
ours was: there a bias may be added too.
"""

from __future__ import annotations

from tilewright.problem import Problem, storage_dtype
from tilewright.select.calibration import SELDOM_MEASURED, Calibration, shape_class
from tilewright.select.stored import Tuned


def faster_than_tuned(problem: Problem, found: Tuned) -> str:
    """By the final rounds of the tuning that found the config for this very problem."""
    ratio = found.ratio_to_library
    if not _is_plain(problem) or (ratio is not None and ratio >= 1.0):
        return ""
    if ratio is None:
        return _unmeasured(problem) if problem.dtype in SELDOM_MEASURED else ""
    return f"it took {ratio:.3f} of the tuned kernel's time at most when both were measured"


def faster_in_class(problem: Problem, calibration: Calibration, card: str | None) -> str:
    """By the records of this very card, for every shape of the problem's class."""
    learned = calibration.learned.get(problem.dtype) if card == calibration.rates.card else None
    if learned is None or not _is_plain(problem):
        return ""
    ratio = learned.library.get(shape_class(problem))
    return "" if ratio is None else f"it took {ratio:.3f} of the chosen kernel's time for such shapes on {card}"


def not_known_slower(problem: Problem, calibration: Calibration, card: str | None) -> str:
    """For 16-bit elements, unless records of this very card say that a kernel of ours is faster for such shapes.

    With a bias too, of which there is no record: it is what a linear layer adds.
    """
    if problem.dtype not in SELDOM_MEASURED or not (_is_plain(problem) or _adds_a_bias(problem)):
        return ""
    learned = calibration.learned.get(problem.dtype) if card == calibration.rates.card else None
    known = learned is not None and _is_plain(problem) and shape_class(problem) in learned.own
    return "" if known else _unmeasured(problem)


def _unmeasured(problem: Problem) -> str:
    return f"no record says that a kernel of ours is faster for such {problem.dtype} shapes on this card"


def _is_plain(problem: Problem) -> bool:
    return _is_unscaled(problem) and not problem.epilogue.ops


def _adds_a_bias(problem: Problem) -> bool:
    return _is_unscaled(problem) and problem.epilogue.ops == ("bias",)


def _is_unscaled(problem: Problem) -> bool:
    return problem.alpha == 1.0 and not problem.reads_c and problem.out_dtype == storage_dtype(problem.dtype)
