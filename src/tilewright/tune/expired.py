"""Which tuned results and inherited constants may no longer be right, and whether they still are.

A stored winner is true of a card, a driver, a compiler and a source; a rung's defaults were chosen under a premise that
its lesson names. Owns what is listed and how a re-test decides; it knows other configs of a rung from the store and
from records alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tilewright.declare import Config, Registry, Rung, rung_config
from tilewright.errors import InvalidInput, TilewrightError
from tilewright.measure.samples import Samples
from tilewright.measure.stats import Interval
from tilewright.problem import Problem
from tilewright.record import Record, timed_rows
from tilewright.tune.context import source_digest
from tilewright.tune.finalists import TIE, label_of
from tilewright.tune.request import Machine
from tilewright.tune.rows import Choice
from tilewright.tune.trial import config_key

MOST_RIVALS = 7
RETEST_S = 20.0
Values = dict[str, int]
Held = Literal["holds", "no longer holds", "undecided", "cannot be tested"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """A config that was the best of its rung once. `rivals` are other configs of it that were best somewhere.

    `kind` is 'stored winner', 'recorded winner' or 'defaults'; `since` says when and where it was found, `changed` what
    is other now, `words` what the rung's lesson says of it.
    """

    kind: str
    rung: str
    problem: Problem
    config: Values
    rivals: tuple[Values, ...]
    since: str
    changed: tuple[str, ...]
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retested:
    """A premise measured again. `ratio` is its time over that of `rival`, the fastest of the others."""

    premise: Premise
    held: Held
    rival: Values | None = None
    ratio: Interval | None = None
    detail: str = ""


def premises(
    choices: Sequence[Choice], records: Iterable[Record], registry: Registry, now: Mapping[str, Any], problem: Problem
) -> list[Premise]:
    """What may have expired. `now` are this machine's fields of a context, without a device those it has.

    Stored winners under another context than `now`, where none under it stands for the same rung and problem; winners
    of tuning records with another card or compiler; every rung's defaults, for `problem`, where another config of it
    was chosen or recorded.
    """
    kept = list(records)
    known: dict[str, list[Values]] = {}
    for choice in choices:
        known.setdefault(choice.context.rung, []).append(choice.data["best"])
    for rung in registry:
        known.setdefault(rung, []).extend(row.config for _, row in timed_rows(kept, rung) if row.config is not None)
    found = [*_stored(choices, registry, now), *_recorded(kept, now), *_defaults(registry, known, problem)]
    return [premise for premise in found if premise.rung in registry]


def _stored(choices: Sequence[Choice], registry: Registry, now: Mapping[str, Any]) -> Iterator[Premise]:
    def changed(choice: Choice) -> tuple[str, ...]:
        rung = registry.get(choice.context.rung)
        source = {"source": source_digest(rung)} if rung is not None else {}
        return choice.context.changed({**now, **source})

    def about(choice: Choice) -> tuple[str, Problem]:
        return choice.context.rung, choice.context.problem

    current = {about(choice) for choice in choices if not changed(choice)}
    for choice in choices:
        if about(choice) in current:
            continue
        yield Premise(
            kind="stored winner",
            rung=choice.context.rung,
            problem=choice.context.problem,
            config=choice.data["best"],
            rivals=tuple(config for config in choice.data.get("ties", ()) if config != choice.data["best"]),
            since=f"{choice.made[:10]}, {choice.context.fields['device']['name']}",
            changed=changed(choice),
        )


def _recorded(records: Iterable[Record], now: Mapping[str, Any]) -> Iterator[Premise]:
    for record in records:
        about, changed = record.about or {}, _changed_since(record, now)
        if record.command != "tune" or about.get("best") is None or not changed:
            continue
        best = record.rows[about["best"]]
        names = ("m", "n", "k", "layout", "dtype", "out_dtype", "alpha", "beta")
        sizes = {name: best.problem[name] for name in names if name in best.problem}
        yield Premise(
            kind="recorded winner",
            rung=best.rung,
            problem=Problem(**sizes),
            config=best.config or {},
            rivals=tuple(record.rows[i].config or {} for i in about.get("ties", ()) if i != about["best"]),
            since=f"{record.environment.get('date')}, {record.environment.get('device', {}).get('name')}",
            changed=changed,
        )


def _changed_since(record: Record, now: Mapping[str, Any]) -> tuple[str, ...]:
    """Which of card and compiler are other now than the record's."""
    then = {"device": record.environment.get("device", {}).get("name"), "nvrtc": record.environment.get("nvrtc")}
    today = {"device": now["device"]["name"] if "device" in now else then["device"], "nvrtc": now["nvrtc"]}
    return tuple(name for name in then if then[name] != today[name])


def _defaults(registry: Registry, known: Mapping[str, Sequence[Values]], problem: Problem) -> Iterator[Premise]:
    for rung in registry.values():
        default = {p.name: p.default for p in rung.params}
        rivals = _distinct(config for config in known[rung.name] if config != default)
        if rivals:
            yield Premise(
                kind="defaults",
                rung=rung.name,
                problem=problem,
                config=default,
                rivals=rivals,
                since="chosen with the rung",
                changed=(),
                words=" ".join(rung.lesson.expires.split()),
            )


def _distinct(configs: Iterable[Values]) -> tuple[Values, ...]:
    return tuple({config_key(config): config for config in configs}.values())


def retest(premise: Premise, rung: Rung, machine: Machine, *, seed: int) -> Retested:
    """Measure the premise's config, its rivals and the rung's defaults in the same rounds, and say whether it holds."""
    default = {p.name: p.default for p in rung.params}
    others = [config for config in (*premise.rivals, default) if config != premise.config]
    try:
        own = rung_config(rung, premise.config)
        rivals = list(dict.fromkeys(_runnable(rung, others, premise.problem)))[:MOST_RIVALS]
        if not rivals:
            return _untested(premise, "there is no other config to hold it against")
        configs = {label_of(rung, config.values): config for config in (own, *rivals)}
        finals = machine.measure_finals(premise.problem, configs, machine.devices[0], seed, RETEST_S)
    except TilewrightError as error:
        return _untested(premise, str(error))
    mine = label_of(rung, own.values)
    if finals.samples is None or not finals.samples.rounds or mine in finals.wrong:
        return _untested(premise, finals.wrong.get(mine, "no round counted"))
    sound = {label: config for label, config in configs.items() if label not in finals.wrong and label != mine}
    return _judged(premise, mine, sound, finals.samples)


def _untested(premise: Premise, why: str) -> Retested:
    return Retested(premise=premise, held="cannot be tested", detail=why)


def _runnable(rung: Rung, configs: Iterable[Values], problem: Problem) -> Iterator[Config]:
    for values in configs:
        try:
            config = rung_config(rung, values)
            config.require_problem(problem)
        except InvalidInput:
            continue
        yield config


def _judged(premise: Premise, mine: str, rivals: Mapping[str, Config], samples: Samples) -> Retested:
    """No longer where a rival is faster by more than TIE for sure; still where none can be."""
    ratios = {label: samples.ratio(label, mine) for label in rivals}
    if not ratios:
        return _untested(premise, "every other config was wrong")
    label = max(ratios, key=lambda name: ratios[name].median)
    surely = any(ratio.low > 1.0 + TIE for ratio in ratios.values())
    possibly = any(ratio.high > 1.0 + TIE for ratio in ratios.values())
    held: Held = "no longer holds" if surely else "undecided" if possibly else "holds"
    return Retested(premise=premise, held=held, rival=rivals[label].values, ratio=ratios[label])
