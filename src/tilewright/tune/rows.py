"""The rows of the store as values, checked as they are read.

A store outlives versions and lies where others may write, so a row that tuning doesn't write is left out and said so,
once for each store and process. Owns what a sound row is and that word; reading files is `store`'s and `reading`'s.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from tilewright.tune.context import Context
from tilewright.tune.trial import Trial, require, require_config, require_time

T = TypeVar("T")
UNSOUND = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError)
"""What parsing a row that isn't one may raise."""
_said: set[str] = set()


@dataclass(frozen=True, slots=True)
class Choice:
    """What a tuning run chose: `data` as `result.choice_data` makes it, with its context and date."""

    context: Context
    made: str
    data: dict[str, Any]

    @classmethod
    def from_json(cls, fields: Any, made: Any, data: Any) -> Choice:
        """The choice that these JSON types describe. Raises one of UNSOUND where they don't."""
        require(isinstance(made, str), "made", made, "a date")
        require(isinstance(data, dict), "data", data, "an object")
        require_config("best", data.get("best"))
        require_time("time_us", data.get("time_us"))
        require(isinstance(data.get("ties", []), list), "ties", data.get("ties"), "a list of configs")
        for config in data.get("ties", []):
            require_config("ties", config)
        ratio = data.get("ratio_to_baseline")
        require(
            ratio is None or (isinstance(ratio, list) and len(ratio) == 3), "ratio_to_baseline", ratio, "three numbers"
        )
        for bound in ratio or ():
            require_time("ratio_to_baseline", bound)
        return cls(Context.from_json(fields), made, data)


def trial_of(text: str) -> Trial:
    """The trial that a row's text describes. Raises one of UNSOUND where it doesn't."""
    return Trial.from_json(json.loads(text))


def choice_of(fields: str, made: str, text: str) -> Choice:
    """The choice that a row's texts describe. Raises one of UNSOUND where they don't."""
    return Choice.from_json(json.loads(fields), made, json.loads(text))


def sound(path: Any, rows: Iterable[tuple[Any, ...]], value_of: Callable[..., T]) -> Iterator[tuple[int, T]]:
    """Each row's number, its first column, with the value of the others; those that aren't sound are left out."""
    for number, *columns in rows:
        try:
            value = value_of(*columns)
        except UNSOUND as error:
            say_once(path, f"row {number} is not what tuning writes ({error!r:.200}); such rows are left out")
        else:
            yield number, value


def say_once(path: Any, words: str) -> None:
    """A warning in the log about the store at `path`, the first of each process alone."""
    if str(path) not in _said:
        import logging

        _said.add(str(path))
        logging.getLogger("tilewright").warning("%s: %s", path, words)
