"""Where the framework's own product was measured to be faster than our kernel. Says it in words; empty where it wasn't.

Only A·B counts, with nothing added and in the operands' type: that is what was measured.
"""

from __future__ import annotations

from tilewright.problem import Problem, storage_dtype
from tilewright.select.calibration import Calibration, shape_class
from tilewright.select.stored import Tuned


def faster_than_tuned(problem: Problem, found: Tuned) -> str:
    """By the final rounds of the tuning that found the config for this very problem."""
    ratio = found.ratio_to_library
    if ratio is None or ratio >= 1.0 or not _is_plain(problem):
        return ""
    return f"it took {ratio:.3f} of the tuned kernel's time at most when both were measured"


def faster_in_class(problem: Problem, calibration: Calibration, card: str | None) -> str:
    """By the records of this very card, for every shape of the problem's class."""
    learned = calibration.learned.get(problem.dtype)
    if learned is None or card != calibration.rates.card or not _is_plain(problem):
        return ""
    ratio = learned.library.get(shape_class(problem))
    return "" if ratio is None else f"it took {ratio:.3f} of the chosen kernel's time for such shapes on {card}"


def _is_plain(problem: Problem) -> bool:
    adds_nothing = problem.alpha == 1.0 and not problem.reads_c and not problem.epilogue.ops
    return adds_nothing and problem.out_dtype == storage_dtype(problem.dtype)
