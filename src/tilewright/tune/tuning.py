"""`tune`: from a rung and a problem to its best config on this machine, with everything that was tried.

Owns the order of things: what is known, the sweep, the final rounds, the choice. What each does is its own module's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from tilewright.arch import get_arch
from tilewright.declare import Config, Rung
from tilewright.errors import InvalidInput
from tilewright.measure.baseline import BASELINE
from tilewright.problem import Problem
from tilewright.tune.context import context_of, machine_fields, problem_fields
from tilewright.tune.final_rounds import Finals
from tilewright.tune.finalists import Finalist, finalists, label_of, ranked
from tilewright.tune.process import Worker
from tilewright.tune.request import Machine, Request
from tilewright.tune.result import TuneResult, choice_data
from tilewright.tune.space import Space, space_of
from tilewright.tune.store import Store
from tilewright.tune.strategies import strategy_named
from tilewright.tune.sweep import Pool, Progress, Sweep
from tilewright.tune.trial import Trial

FORCE_ENVIRONMENT = "TILEWRIGHT_FORCE_TUNE"


def tune(
    rung: Rung,
    problem: Problem,
    request: Request | None = None,
    *,
    machine: Machine | None = None,
    store: Store | None = None,
    on_start: Callable[[Space, Mapping[str, Any]], None] = lambda space, device: None,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> TuneResult:
    """Search `rung`'s configs for `problem`. Every trial goes to the store as it is made.

    What is known isn't made again. Ctrl-C ends it with what is known by then. `on_start` is told the space and the
    device. Raises Missing without a GPU or compiler, InvalidInput for what cannot be asked, LaunchFailed where workers
    don't start.
    """
    request, machine = request or Request(), machine or Machine()
    limits = request.limits
    with ExitStack() as stack:
        opened = store or stack.enter_context(Store())
        screens = [_screen_worker(machine, rung, problem, device) for device in machine.devices]
        for worker in screens:
            stack.callback(worker.close)
        device = _described(screens)
        space = space_of(rung, problem, get_arch(device["arch"]), request.only)
        on_start(space, device)
        context = context_of(rung, problem, device)
        known = [] if request.again or _forced() else opened.trials(context)
        sweep = Sweep(
            strategy=strategy_named(request.strategy, space, seed=request.seed, sm_count=device["sm_count"]),
            builders=Pool(_build_workers(machine, space)),
            screens=Pool(screens),
            keep=lambda trial: opened.add_trial(context, trial),
            on_progress=on_progress,
            known=known,
        )
        stop = sweep.run(space.configs, most=request.most_trials(space), end_s=time.monotonic() + limits.sweep_s)
        result = TuneResult(
            space=space,
            request=request,
            context=context,
            device=device,
            trials=tuple(sweep.trials.values()),
            known=sweep.recalled,
            stop=stop,
            finals=None,
            ranking=(),
        )
        if stop != "interrupted" and limits.finals_s > 0 and result.best is not None:
            result = _with_finals(result, machine, opened)
        if limits.finals_s > 0 and result.best is not None:
            opened.add_choice(context, choice_data(result))
        return result


def _with_finals(result: TuneResult, machine: Machine, store: Store) -> TuneResult:
    """The result with its finalists measured; one that is wrong at full size is a failed trial."""
    space, request = result.space, result.request
    chosen = {label_of(space.rung, trial.config): trial for trial in finalists(result.trials)}
    configs = {label: Config(space.rung, trial.config) for label, trial in chosen.items()}
    try:
        finals = machine.measure_finals(
            space.problem, configs, machine.devices[0], request.seed, request.limits.finals_s
        )
    except KeyboardInterrupt:
        return replace(result, stop="interrupted")
    trials = {trial.key: trial for trial in result.trials}
    for label, message in finals.wrong.items():
        failed = _wrong_after_all(chosen.pop(label), message)
        trials[failed.key] = failed
        store.add_trial(result.context, failed)
    ranking = tuple(_ranked(chosen, finals))
    return replace(result, trials=tuple(trials.values()), finals=finals, ranking=ranking)


def _ranked(chosen: Mapping[str, Trial], finals: Finals) -> Sequence[Finalist]:
    if finals.samples is None:
        return ()
    return ranked(chosen, finals.samples, BASELINE if finals.baseline is not None else None)


def _wrong_after_all(trial: Trial, message: str) -> Trial:
    return replace(
        trial, outcome="failed", time_us=None, samples_us=(), failure="WrongResult", stage="run", message=message
    )


def _screen_worker(machine: Machine, rung: Rung, problem: Problem, device: int) -> Worker:
    setup = {"rung": rung.name, "problem": problem_fields(problem), "device": device}
    return Worker(machine.screen, setup, machine.screen_limits)


def _build_workers(machine: Machine, space: Space) -> list[Worker]:
    setup = {"rung": space.rung.name, "problem": problem_fields(space.problem), "arch": space.arch.name}
    return [Worker(machine.builder, setup, machine.build_limits) for _ in range(machine.builders)]


def _described(screens: Sequence[Worker]) -> dict[str, Any]:
    """What the workers say of their devices. Raises InvalidInput unless those could share results."""
    described = [worker.start() for worker in screens]
    for other in described[1:]:
        if machine_fields(other) != machine_fields(described[0]):
            raise InvalidInput(f"devices: {described[0]['name']} and {other['name']} differ; tune each by itself")
    return described[0]


def _forced() -> bool:
    return os.environ.get(FORCE_ENVIRONMENT, "") not in ("", "0")
