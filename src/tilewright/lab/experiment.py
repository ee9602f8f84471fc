"""An experiment as a value: one question, what was claimed, what is predicted, and the arms that answer it.

Read from a TOML file, of which `tilewright/experiments` holds one a question; nobody lists them by hand. An arm without
a rung is the arm it is against with what it sets apart. Owns the form of the file and refuses whatever doesn't fit it,
by name; running one is `experimenting`.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from tilewright.compile.variant import Edit
from tilewright.declare import all_rungs, rung_config
from tilewright.declare.config import BetaMode
from tilewright.errors import InvalidDeclaration, UnknownName
from tilewright.lab.candidate import Candidate
from tilewright.lab.trial import Entrant
from tilewright.problem import Problem

EXPERIMENTS_DIR = Path(__file__).resolve().parent.parent / "experiments"
WORDS = ("faster", "slower", "equivalent", "confounded", "invalid")
"""What may be claimed or predicted of an arm: the words of `measure.verdict` that say something, and the guard's."""
PREMISES = ("registers", "spill_bytes", "occupancy")
"""Outcomes of a build that a claim may rest on: where both arms have the same, it has nothing to stand on."""
DEFAULT_BUDGET_S = 6.0
_TOP = {"question", "claim", "prediction", "budget_s", "largest", "problem", "edits", "arms"}
_ARM = {
    *("name", "rung", "against", "set", "beta", "guarded", "options", "edits", "constants"),
    *("differs_in", "bundle", "may_spill", "claim", "prediction", "premise"),
}


@dataclass(frozen=True, kw_only=True)
class ExperimentArm:
    """An entrant with the word that was claimed of it and the one that is predicted; empty: none.

    `premise` names the outcome of the build in which arm and reference must differ for the claim to mean anything.
    """

    entrant: Entrant
    claim: str = ""
    prediction: str = ""
    premise: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A question with its arms. `claim` is what the documents this ladder began from say, in words; it may be empty.

    `largest` are the arms that are claimed to gain the most over what they are against, in any order.
    """

    name: str
    question: str
    claim: str
    prediction: str
    problem: Problem
    arms: tuple[ExperimentArm, ...]
    budget_s: float = DEFAULT_BUDGET_S
    largest: tuple[str, ...] = ()

    @property
    def entrants(self) -> tuple[Entrant, ...]:
        """The arms as a trial takes them."""
        return tuple(arm.entrant for arm in self.arms)


def read_experiment(path: Path) -> Experiment:
    """The experiment in `path`. Raises InvalidDeclaration naming file and arm, and what rungs and edits raise."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidDeclaration(f"{path.name}: cannot be read as TOML ({error})") from error
    _require_known(path.name, data, _TOP)
    missing = {"question", "prediction", "arms"} - set(data)
    if missing:
        raise InvalidDeclaration(f"{path.name}: must say its {', '.join(sorted(missing))}")
    edits = {name: Edit(**edit) for name, edit in data.get("edits", {}).items()}
    arms: dict[str, ExperimentArm] = {}
    for arm in data["arms"]:
        made = _arm(path.name, arm, arms, edits)
        arms[made.entrant.label] = made
    largest = tuple(data.get("largest", ()))
    if not set(largest) <= set(arms):
        raise InvalidDeclaration(f"{path.name}: largest={list(largest)}: must name arms; there are {', '.join(arms)}")
    return Experiment(
        name=path.stem,
        question=_prose(data["question"]),
        claim=_prose(data.get("claim", "")),
        prediction=_prose(data["prediction"]),
        problem=Problem(**{"m": 4096, "n": 4096, "k": 4096, **data.get("problem", {})}),
        arms=tuple(arms.values()),
        budget_s=float(data.get("budget_s", DEFAULT_BUDGET_S)),
        largest=largest,
    )


def _arm(
    file: str, data: Mapping[str, Any], earlier: Mapping[str, ExperimentArm], edits: Mapping[str, Edit]
) -> ExperimentArm:
    where = f"{file}, arm {data.get('name', '?')!r}"
    _require_known(where, data, _ARM)
    against = data.get("against")
    if against is None and "rung" not in data:
        raise InvalidDeclaration(f"{where}: must name its rung, or the arm it is against")
    if against is not None and against not in earlier:
        raise InvalidDeclaration(f"{where}: against={against!r}: must name an arm before it: {', '.join(earlier)}")
    if data.get("name", "") in ("", *earlier):
        raise InvalidDeclaration(f"{where}: must have a name of its own")
    if against is not None and "differs_in" not in data:
        raise InvalidDeclaration(f"{where}: must say by differs_in what sets it apart from {against!r}")
    for key, allowed in (("claim", WORDS), ("prediction", WORDS), ("premise", PREMISES)):
        if data.get(key, allowed[0]) not in allowed:
            raise InvalidDeclaration(f"{where}: {key}={data[key]!r}: must be one of {', '.join(allowed)}")
    base = None if against is None or "rung" in data else earlier[against].entrant.candidate
    entrant = Entrant(
        label=data["name"],
        candidate=_candidate(where, data, base, edits),
        against=against,
        named=tuple(data["differs_in"]) if "differs_in" in data else None,
        bundle=data.get("bundle", ""),
        may_spill=data.get("may_spill", False),
    )
    words = {key: data.get(key, "") for key in ("claim", "prediction", "premise")}
    return ExperimentArm(entrant=entrant, **words)


def _candidate(where: str, data: Mapping[str, Any], base: Candidate | None, edits: Mapping[str, Edit]) -> Candidate:
    """`base`, or the named rung as it is by default, with what the arm sets apart."""
    chosen = data.get("edits", [])
    unknown = [name for name in chosen if name not in edits]
    if unknown:
        raise InvalidDeclaration(f"{where}: edits={unknown}: not among the file's: {', '.join(edits)}")
    if base is None:
        base = Candidate(rung_config(all_rungs().find(data["rung"])))
    config, variant = base.config, base.variant
    variant = replace(
        variant,
        edits=(*variant.edits, *(edits[name] for name in chosen)),
        constants=tuple({**dict(variant.constants), **data.get("constants", {})}.items()),
        beta_mode=cast(BetaMode, data.get("beta", variant.beta_mode)),
        guarded=data.get("guarded", variant.guarded),
        options=(*variant.options, *data.get("options", ())),
    )
    return Candidate(rung_config(config.rung, {**config.values, **data.get("set", {})}), variant)


def _require_known(where: str, data: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(data) - known)
    if unknown:
        raise InvalidDeclaration(f"{where}: {', '.join(unknown)}: not known there; it takes {', '.join(sorted(known))}")


def _prose(words: str) -> str:
    return " ".join(words.split())


@cache
def all_experiments() -> dict[str, Experiment]:
    """The experiments that come with tilewright, by name."""
    return {path.stem: read_experiment(path) for path in sorted(EXPERIMENTS_DIR.glob("*.toml"))}


def find_experiment(query: str) -> Experiment:
    """The experiment called `query`, or in the TOML file of that path. Raises UnknownName with the closest names."""
    if query.endswith(".toml"):
        return read_experiment(Path(query))
    known = all_experiments()
    if query not in known:
        close = difflib.get_close_matches(query, known, n=3, cutoff=0.4) or list(known)
        raise UnknownName(f"experiment {query!r}: no such experiment; try {', '.join(close)}, or name a .toml file")
    return known[query]
