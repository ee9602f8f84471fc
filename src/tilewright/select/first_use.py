"""Tuning at a problem's first use, where the environment asks for it.

Owns when that is. Whether the moment is right, outside of a graph's capture, the caller knows; the search, which checks
every config on odd sizes before it keeps one, is `tune`'s.
"""

from __future__ import annotations

from tilewright.problem import Problem
from tilewright.select.choice import Choice
from tilewright.select.mode import ON, autotune_mode
from tilewright.tune import Machine, Request, tune


def tuned_at_first_use(problem: Problem, choice: Choice, machine: Machine) -> bool:
    """Search the chosen rung's configs unless that was done before; whether a choice made now may be another one.

    Takes seconds to minutes where $TILEWRIGHT_AUTOTUNE is on, and does nothing where it isn't. The framework's own
    product is not tuned. Raises as `tune` does.
    """
    if autotune_mode() != ON or choice.tuned or choice.library:
        return False
    tune(choice.config.rung, problem, Request(effort="quick"), machine=machine)
    return True
