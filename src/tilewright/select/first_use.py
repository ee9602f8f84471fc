"""Tuning at a problem's first use, where the environment asks for it.

Owns when that is, and that nothing is searched twice in a process. That the moment is right, outside of a graph's
capture, is the caller's to know; the search, which checks every config on odd sizes before it keeps one, is `tune`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.errors import TilewrightError
from tilewright.locks import ForkSafeLock
from tilewright.problem import Problem
from tilewright.select.choice import Choice
from tilewright.select.mode import ON, autotune_mode

if TYPE_CHECKING:
    from tilewright.tune import Machine

_searching = ForkSafeLock()
_searched: set[tuple[Problem, Machine]] = set()


def is_first_use(choice: Choice) -> bool:
    """Whether the environment asks for a search before this choice, of which nothing is stored, is used."""
    return autotune_mode() == ON and not choice.tuned and (choice.untried or not choice.library)


def tune_first_use(problem: Problem, choice: Choice, device: int) -> None:
    """Search the chosen rung's configs on a GPU and store the best, unless this process did; takes up to minutes.

    One search runs at a time. Where it fails a warning says so, and the model's choice stands.
    """
    from tilewright.tune import Machine, Request, tune

    machine = Machine(devices=(device,))
    with _searching:
        if (problem, machine) in _searched:
            return
        _searched.add((problem, machine))
        try:
            tune(choice.config.rung, problem, Request(effort="quick"), machine=machine)
        except TilewrightError as error:
            import logging

            logging.getLogger("tilewright").warning("%s: not tuned at its first use: %s", problem, error)
