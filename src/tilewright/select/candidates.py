"""Which configs are worth a look: every rung's default, a few more that are written down, those that searches found.

Owns `candidates.json`, by rung what is always considered beside its default and what `tilewright bench --every` times,
each without the parameters that keep their defaults, and the set that a choice is made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tilewright.arch import ArchSpec
from tilewright.declare import Config, Expr, Rung, all_rungs, rung_config
from tilewright.declare.expr import ExpressionError
from tilewright.declare.rules import first_failure
from tilewright.declare.rung import PROBLEM_NAMES
from tilewright.errors import InvalidConfig, InvalidInput, InvalidProblem
from tilewright.problem import Problem
from tilewright.select.calibration import Calibration, Learned
from tilewright.select.model import PARTIAL_BYTES, Constants, Terms, predict
from tilewright.select.traits import Traits, pieces_of, traits_of

FILE = Path(__file__).with_name("candidates.json")
MOST_WORKSPACE_BYTES = 2**28


class Candidate(NamedTuple):
    """A config with all that the model needs of it.

    `calibrated`: runs of its rung stand behind the constants. `rules` are those of the problem's that name nothing
    which the rung derives from a problem: the quick ones; `suits` are those for choosing, each with the constants that
    it names, and behind a key of both. `fastest` are the shape classes for which it was measured so.
    """

    config: Config
    traits: Traits
    constants: Constants
    calibrated: bool
    rules: tuple[Expr, ...]
    suits: tuple[tuple[str, Expr, Mapping[str, int]], ...]
    fastest: Sequence[str] = ()

    def is_suited(self, names: Mapping[str, int], found: dict[str, bool]) -> bool:
        """Whether the rules for choosing let a problem of these names pass; `found` keeps what was decided for it."""
        for key, rule, constants in self.suits:
            if key not in found:
                found[key] = bool(rule.evaluate({**constants, **names}))
            if not found[key]:
                return False
        return True

    def may_take(self, problem: Problem, names: Mapping[str, int]) -> bool:
        """Whether kind and quick rules let the problem pass; `refusal` has the last word, and the reasons."""
        known = {**self.config.constants, **names}
        try:
            passes = all(rule.evaluate(known) for rule in self.rules)
        except ExpressionError:  # what an earlier rule that isn't quick would have stopped
            return True
        return passes and not self.config.rung.requires.refusal(problem.kind)

    def expected(
        self,
        problem: Problem,
        names: Mapping[str, int],
        calibration: Calibration,
        through_dram_us: float | None = None,
    ) -> Terms:
        """What the model expects of it for a problem that it takes; `names` are `names_of` the problem."""
        pieces = pieces_of(self.config, self.traits, problem, names)
        return predict(self.traits, pieces, self.constants, problem, calibration.rates, through_dram_us)


def written_down() -> tuple[Config, ...]:
    """Every rung's default and the configs of `candidates.json`, in the ladder's order; each once.

    Raises InvalidInput for an entry that no rung takes.
    """
    return tuple(config for rung in all_rungs().values() for config in _written_down_of(rung.name))


@cache
def _written_down_of(name: str) -> tuple[Config, ...]:
    rung, configs = all_rungs()[name], []
    configs.append(rung_config(rung))
    for settings in _file().get(name, []):
        try:
            configs.append(rung_config(rung, settings))
        except InvalidConfig as error:
            raise InvalidInput(f"{FILE.name}: {settings}: {error}") from error
    return tuple(dict.fromkeys(configs))


@cache
def _file() -> Mapping[str, Any]:
    more: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    for name in more:
        if name not in all_rungs():
            raise InvalidInput(f"{FILE.name}: {name}: no such rung; name one as `tilewright rungs` does")
    return more


@cache
def candidates_for(arch: ArchSpec, dtype: str, calibration: Calibration) -> tuple[Candidate, ...]:
    """The candidates for products of an element type on an architecture, in the ladder's order."""
    learned = calibration.of(dtype)
    rungs = [
        rung
        for rung in all_rungs().values()
        if dtype in rung.requires.every_dtype and rung.requires.features <= arch.features
    ]
    configs = [config for rung in rungs for config in _written_down_of(rung.name)]
    if learned is not None:
        configs += _found_fastest(learned, {rung.name: rung for rung in rungs})
    return tuple(_candidate(config, arch, learned) for config in dict.fromkeys(configs) if config.has_room_on(arch))


def refusal(config: Config, problem: Problem, sm_count: int) -> str:
    """Why `config` doesn't take `problem` or is never the fastest for it, in words; empty where it may be chosen."""
    choice_rules = config.rung.rules_of("choice")
    unsuited = first_failure(choice_rules, config.problem_scope(problem)) if choice_rules else None
    if unsuited is not None:
        return f"{config.rung.name}: {unsuited}"
    try:
        config.require_problem(problem)
        config.grid(problem, sm_count=sm_count)
        sums, _ = config.scratch(problem, sm_count=sm_count) or (0, 0)
    except (InvalidProblem, InvalidConfig) as error:
        return str(error)
    except ExpressionError as error:
        return f"{config.rung.name}: {error}: more CTAs than can be launched"
    if sums * PARTIAL_BYTES > MOST_WORKSPACE_BYTES:
        needs = f"a workspace of {sums * PARTIAL_BYTES >> 20} MiB"
        most = f"at most {MOST_WORKSPACE_BYTES >> 20} are set aside for each stream"
        return f"{config.rung.name}: {problem} needs {needs}: {most}; use fewer slices of k"
    return ""


def _found_fastest(learned: Learned, rungs: Mapping[str, Rung]) -> list[Config]:
    """The configs of `rungs` that were measured fastest for some class of shapes and that are still allowed today."""
    found = []
    for known in learned.configs:
        if not known.fastest or known.rung not in rungs:
            continue
        try:
            found.append(rung_config(rungs[known.rung], known.settings))
        except InvalidInput:
            continue
    return found


def _candidate(config: Config, arch: ArchSpec, learned: Learned | None) -> Candidate:
    constants, ctas_per_sm, calibrated, known = Constants(), None, False, None
    if learned is not None:
        calibrated = config.rung.name in learned.rungs
        constants = learned.rungs.get(config.rung.name, constants)
        known = learned.known(config)
        if known is not None:
            constants, ctas_per_sm = constants._replace(efficiency=known.efficiency), known.ctas_per_sm
    known_names = PROBLEM_NAMES | config.constants.keys()
    rules = tuple(rule.expr for rule in config.rung.rules_of("problem") if rule.expr.names <= known_names)
    suits = []
    for rule in config.rung.rules_of("choice"):
        named = {name: config.constants[name] for name in rule.expr.names & config.constants.keys()}
        suits.append((f"{rule.expr.text}, {named}", rule.expr, named))
    fastest = () if known is None else known.fastest
    return Candidate(config, traits_of(config, arch, ctas_per_sm), constants, calibrated, rules, tuple(suits), fastest)
