"""`tilewright inspect`: one config explained, or a table of configs by architecture."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arch import ARCHS, ArchSpec, get_arch
from tilewright.declare import Rung, all_rungs
from tilewright.errors import InvalidConfig
from tilewright.facts.roofline import Card, card_of_arch, get_card
from tilewright.lab.inspect_table import print_table, table_rows
from tilewright.lab.inspect_view import print_inspection
from tilewright.lab.inspecting import inspect_config
from tilewright.lab.output import print_json, standard_error, standard_output
from tilewright.lab.settings import DEFAULT_SIZES, Sizes, configs_of, parse_settings, sized_problem, usual_kind
from tilewright.record import Record, environment

DEFAULT_ARCH = "sm_90a"
EVERY = "all"


@dataclass(frozen=True)
class InspectRequest:
    """What was typed. `rung` and `arch` may be 'all'; `arch` None is the card's, or sm_90a."""

    rung: str
    settings: list[str]
    arch: str | None
    card: str | None
    sizes: Sizes


def run_inspect(request: InspectRequest, *, as_json: bool) -> int:
    """Print what is known of what was asked for. Returns the exit status."""
    chosen = list(all_rungs().values()) if request.rung == EVERY else [all_rungs().find(request.rung)]
    card = get_card(request.card) if request.card else None
    if request.rung == EVERY or request.arch == EVERY:
        return _many(request, chosen, card, as_json=as_json)
    arch = _arch(request.arch, card)
    config = configs_of(chosen, parse_settings(request.settings, chosen, all_rungs()))[0]
    problem = sized_problem(request.sizes, DEFAULT_SIZES, usual_kind(chosen))
    found = inspect_config(config, arch, problem, card or card_of_arch(arch.name))
    if as_json:
        print_json(Record(command="inspect", environment=environment(arch=arch.name), rows=[found.row]).to_json())
    else:
        print_inspection(standard_output(), found)
    return 2 if found.row.failure else 0


def _arch(name: str | None, card: Card | None) -> ArchSpec:
    if name is None:
        return get_arch(card.arch if card else DEFAULT_ARCH)
    arch = get_arch(name)
    if card and card.arch != arch.name:
        raise InvalidConfig(f"--arch {arch.name}: {card.name} is {card.arch}; leave --arch out or name another card")
    return arch


def _many(request: InspectRequest, chosen: list[Rung], card: Card | None, *, as_json: bool) -> int:
    if card is not None:
        raise InvalidConfig(f"--card {card.name}: a roofline is shown for one rung on one architecture; name both")
    archs = list(ARCHS.values()) if request.arch == EVERY else [_arch(request.arch, None)]
    configs = configs_of(chosen, parse_settings(request.settings, chosen, all_rungs()))
    problems = [sized_problem(request.sizes, DEFAULT_SIZES, rung.requires.usual) for rung in chosen]
    with standard_error().status(f"compiling {len(configs) * len(archs)} kernels"):
        rows = table_rows(configs, archs, problems)
    if as_json:
        print_json(Record(command="inspect", environment=environment(), rows=rows).to_json())
    else:
        told = ", ".join(dict.fromkeys(str(problem) for problem in problems))
        print_table(standard_output(), rows, archs, told)
    return 0
