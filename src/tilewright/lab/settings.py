"""What a person typed, turned into rungs, configs and problems, or refused in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.declare import Config, Registry, Rung, rung_config
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import Problem, ProblemKind

Sizes = tuple[int | None, int | None, int | None]
"""m, n and k as typed; None where a size was left out."""
DEFAULT_SIZES = (4096, 4096, 4096)
"""What is meant on a GPU, and of one, where a size was left out."""


def sized_problem(sizes: Sizes, default: tuple[int, int, int], kind: ProblemKind) -> Problem:
    """A problem with something to compute; a size left out is the default's. Raises InvalidProblem, also for k = 0."""
    m, n, k = (usual if size is None else size for size, usual in zip(sizes, default, strict=True))
    if k == 0:
        raise InvalidProblem("k=0: leaves nothing to multiply; sizes must be at least 1")
    return Problem(m=m, n=n, k=k, **kind._asdict())


def usual_kind(rungs: Sequence[Rung]) -> ProblemKind:
    """The kind of problem that all the rungs usually take. Raises InvalidConfig where they don't agree."""
    kinds = {rung.requires.usual: rung.name for rung in rungs}
    if len(kinds) > 1:
        told = ", ".join(f"{name} takes {kind.dtype} {kind.layout}" for kind, name in kinds.items())
        raise InvalidConfig(
            f"{told}: they have no product in common to be held against each other; name rungs of one track"
        )
    return next(iter(kinds))


def parse_settings(texts: Iterable[str], rungs: Iterable[Rung], registry: Registry) -> dict[str, dict[str, int]]:
    """`NAME=VALUE` or `RUNG.NAME=VALUE` texts as settings by rung.

    Raises InvalidConfig for another form, and for a bare NAME when it isn't one rung that is meant.
    """
    chosen = [rung.name for rung in rungs]
    settings: dict[str, dict[str, int]] = {}
    for text in texts:
        rung_text, name, value = _split(text)
        if rung_text:
            rung = registry.find(rung_text).name
        elif len(chosen) == 1:
            rung = chosen[0]
        else:
            raise InvalidConfig(f"--set {text}: {len(chosen)} rungs are meant; write --set RUNG.{text}, or add --rung")
        if rung not in chosen:
            raise InvalidConfig(f"--set {text}: {rung} is not among the rungs that run; add --rung {rung}")
        settings.setdefault(rung, {})[name] = value
    return settings


def parse_side_settings(
    texts: Iterable[str], first: Rung, second: Rung, registry: Registry
) -> tuple[dict[str, int], dict[str, int]]:
    """`A.NAME=VALUE` and `B.NAME=VALUE` texts as settings of two sides; a rung's name stands for its side.

    Raises InvalidConfig for another form, and where it isn't one side that is meant.
    """
    sides: tuple[dict[str, int], dict[str, int]] = ({}, {})
    names = (first.name, second.name)
    for text in texts:
        side, name, value = _split(text)
        wanted = [i for i, letter in enumerate("AB") if side == letter]
        if side and not wanted:
            rung = registry.find(side).name
            wanted = [i for i, candidate in enumerate(names) if candidate == rung]
        if len(wanted) != 1:
            raise InvalidConfig(
                f"--set {text}: must say which side is meant: A.{name}={value} for the first or B.{name}={value} for "
                f"the second"
            )
        sides[wanted[0]][name] = value
    return sides


def parse_sides(texts: Iterable[str], option: str) -> tuple[list[str], list[str]]:
    """`A=VALUE` and `B=VALUE` texts as the values of two sides, in order. Raises InvalidConfig for another form."""
    sides: dict[str, list[str]] = {"A": [], "B": []}
    for text in texts:
        side, equals, value = text.partition("=")
        if side not in sides or not equals or not value:
            raise InvalidConfig(f"{option} {text}: must be A=VALUE for the first or B=VALUE for the second")
        sides[side].append(value)
    return sides["A"], sides["B"]


def _split(text: str) -> tuple[str, str, int]:
    """What stands before the dot (empty: nothing), the name and the value of one setting. Raises InvalidConfig."""
    left, equals, value = text.partition("=")
    before, dot, name = left.rpartition(".")
    if not equals or not name or (dot and not before) or not value.strip().lstrip("+-").isdigit():
        raise InvalidConfig(f"--set {text}: must be NAME=INTEGER or RUNG.NAME=INTEGER, as in --set k08.WM=64")
    return before, name, int(value)


def configs_of(rungs: Iterable[Rung], settings: dict[str, dict[str, int]]) -> list[Config]:
    """Each rung's config under `settings`. Raises InvalidConfig."""
    return [rung_config(rung, settings.get(rung.name)) for rung in rungs]
