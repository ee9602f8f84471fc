"""The sweep: configs compiled ahead, checked and screened one by one, whatever becomes of each.

Owns what runs where and when: which worker gets what, how far compiling is ahead, twins that need no run of their own,
when to stop. It knows no compiler and no device: both are workers. Every trial is handed over as soon as it is known.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Literal

from tilewright.declare import Config
from tilewright.tune.process import Worker
from tilewright.tune.strategies import Strategy
from tilewright.tune.trial import Stage, Trial, config_key

AHEAD_PER_DEVICE = 8
Stop = Literal["exhausted", "evaluations", "budget", "interrupted"]
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a sweep is: trials made and wanted, the fastest so far, how many of them failed."""

    done: int
    most: int
    best: Trial | None
    failed: int


class Pool:
    """Workers of one kind and a thread for each."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = workers
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(max_workers=len(workers))

    def submit(self, job: dict[str, Any]) -> Future[Answer]:
        """Give the job to the next idle worker."""
        return self._threads.submit(self._run, job)

    def _run(self, job: dict[str, Any]) -> Answer:
        worker = self._idle.get()
        try:
            return worker.run(job)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End every process; a job under way comes to nothing."""
        for worker in self.workers:
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self.workers:
            worker.close()


@dataclass
class Sweep:
    """One search under way. `keep` is handed every new trial; `known` are those of earlier runs.

    `recalled` is how many of those belong to the space, `best` the fastest verified trial, `failed` how many failed.
    """

    strategy: Strategy
    builders: Pool
    screens: Pool
    keep: Callable[[Trial], None]
    on_progress: Callable[[Progress], None]
    known: Iterable[Trial] = ()
    trials: dict[str, Trial] = field(default_factory=dict)
    recalled: int = 0
    best: Trial | None = None
    failed: int = 0
    _running: dict[Future[Answer], tuple[Stage, Config, dict[str, Any]]] = field(default_factory=dict)
    _leader: dict[str, str] = field(default_factory=dict)
    _twins: defaultdict[str, list[tuple[Config, dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))
    _asked: int = 0
    _exhausted: bool = False

    def run(self, configs: Sequence[Config], *, most: int, end_s: float) -> Stop:
        """Try what the strategy asks for until nothing is left, `most` trials are made or the clock reaches `end_s`.

        `configs` are those of the space; what is known of them counts. `end_s` is of time.monotonic. Ctrl-C ends it as
        well: what is known then stays. Raises Missing or LaunchFailed where workers cannot start.
        """
        self._recall(configs)
        try:
            stop = self._loop(most, end_s)
            return "exhausted" if len(self.trials) == len(configs) else stop
        except KeyboardInterrupt:
            return "interrupted"
        finally:
            self.builders.close()
            self.screens.close()

    def _recall(self, configs: Iterable[Config]) -> None:
        space = {config_key(config.values): config for config in configs}
        for trial in self.known:
            if trial.key in space:
                self._count(trial)
                self.strategy.tell(space[trial.key], trial.time_us)
                if trial.outcome != "same" and "identity" in trial.facts:
                    self._leader.setdefault(trial.facts["identity"], trial.key)
        self._asked = self.recalled = len(self.trials)

    def _loop(self, most: int, end_s: float) -> Stop:
        while True:
            self._top_up(most)
            if not self._running:
                return "exhausted" if self._exhausted else "evaluations"
            if time.monotonic() >= end_s:
                return "budget"
            done, _ = wait(
                self._running, timeout=min(0.5, max(0.0, end_s - time.monotonic())), return_when=FIRST_COMPLETED
            )
            for future in done:
                stage, config, facts = self._running.pop(future)
                (self._built if stage == "compile" else self._screened)(config, facts, future.result())
            self.on_progress(Progress(len(self.trials), most, self.best, self.failed))

    def _top_up(self, most: int) -> None:
        """Have as many configs under way as keep every builder and device busy."""
        ahead = 2 * len(self.builders.workers) + AHEAD_PER_DEVICE * len(self.screens.workers)
        room = min(ahead - len(self._running), most - self._asked)
        if room <= 0 or self._exhausted:
            return
        asked = self.strategy.ask(room)
        self._exhausted = len(asked) < room
        self._asked += len(asked)
        for config in asked:
            self._running[self.builders.submit({"config": config.values})] = ("compile", config, {})

    def _built(self, config: Config, _: dict[str, Any], answer: Answer) -> None:
        facts = answer.get("facts", {})
        if "failure" in answer:
            self._record(config, _failed(config, "compile", answer, facts))
            return
        identity, key = facts["identity"], config_key(config.values)
        leader = self.trials.get(self._leader.setdefault(identity, key))
        if leader is not None:
            self._record(config, _twin(config, leader, facts))
        elif self._leader[identity] != key:
            self._twins[identity].append((config, facts))
        else:
            job = {"config": config.values, "best_us": self.best.time_us if self.best else None}
            self._running[self.screens.submit(job)] = ("run", config, facts)

    def _screened(self, config: Config, facts: dict[str, Any], answer: Answer) -> None:
        if "failure" in answer:
            trial = _failed(config, "run", answer, facts)
        else:
            trial = Trial(
                config=config.values,
                outcome="slow" if answer["slow"] else "timed",
                time_us=answer["time_us"],
                samples_us=tuple(answer["samples_us"]),
                facts=facts,
            )
        self._record(config, trial)
        for twin, twin_facts in self._twins.pop(facts["identity"], ()):
            self._record(twin, _twin(twin, trial, twin_facts))

    def _count(self, trial: Trial) -> None:
        self.trials[trial.key] = trial
        self.failed += trial.failure is not None
        if trial.outcome == "timed" and (self.best is None or (trial.time_us or 0.0) < (self.best.time_us or 0.0)):
            self.best = trial

    def _record(self, config: Config, trial: Trial) -> None:
        self._count(trial)
        self.keep(trial)
        self.strategy.tell(config, trial.time_us)


def _failed(config: Config, stage: Stage, answer: Answer, facts: dict[str, Any]) -> Trial:
    return Trial(
        config=config.values,
        outcome="failed",
        failure=answer["failure"],
        stage=stage,
        message=answer["message"],
        facts=facts,
    )


def _twin(config: Config, leader: Trial, facts: dict[str, Any]) -> Trial:
    return Trial(
        config=config.values,
        outcome="same",
        same_as=leader.config,
        time_us=leader.time_us,
        failure=leader.failure,
        stage=leader.stage,
        message=leader.message,
        facts=facts,
    )
