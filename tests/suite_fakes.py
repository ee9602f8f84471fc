"""A machine without a GPU for suites: times by the model with hidden constants, results right or as planted."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

from tilewright.api.plan import Part, Plan
from tilewright.arch import get_arch
from tilewright.compile.binary import Binary, Resources
from tilewright.errors import InvalidProblem
from tilewright.lab.suite_machine import Call
from tilewright.measure import Samples, control_name
from tilewright.measure.baseline import BASELINE
from tilewright.select import choose
from tilewright.select.calibration import calibration_for
from tilewright.select.model import Constants, predict
from tilewright.select.traits import names_of, pieces_of, traits_of
from tilewright.tune.screen import Screened

ROUNDS = 12


class FakeMachine:
    """An H200 whose rungs are as `hidden_us` says, and whose baseline takes `baseline_us` of a problem."""

    arch, sm_count, card = get_arch("sm_90a"), 132, "H200"
    choose = staticmethod(choose)

    def __init__(self, baseline_us=lambda problem: 50.0):
        self.baseline_us = baseline_us
        self.wrong, self.raises, self.opened, self.timed = {}, {}, [], []
        self.rates = calibration_for(self.arch, self.sm_count, self.card).rates

    def binary(self, config, problem):
        made = Resources(registers=64, spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0, smem_bytes=0, barriers=1)
        return Binary(config.rung.entry, "sm_90a", b"", f"{config.rung.name} {config}", "NVRTC", resources=made)

    def open(self, problem):
        if problem.m > 100_000:
            raise InvalidProblem(f"{problem}: needs 200 GiB")
        self.opened.append(problem)

    def has_baseline(self, problem):
        return self.baseline_us is not None

    def complaint(self, problem, launched):
        if problem in self.raises:
            raise self.raises[problem]
        if isinstance(launched, Call):
            return self.wrong.get("call", "")
        return self.wrong.get(BASELINE if launched is None else launched.rung.name, "")

    def plan(self, problem, call):
        choice = self.choose(problem, self.arch, self.sm_count, kernels=call.kernels, card=self.card)
        parts = (Part(problem, choice, ((0, 0, 0, 0),)),)
        return Plan((problem.m, problem.n), problem.out_dtype, parts, library=choice.library or None)

    def screen(self, problem, config, best_us, launch):
        us = self.hidden_us(config, problem)
        return Screened(us, (us,), slow=best_us is not None and us > 1.5 * best_us)

    def time(self, problem, arms, effort, *, with_baseline):
        self.timed.append((problem, dict(arms), effort))
        means = {label: self.hidden_us(self._config(problem, each), problem) for label, each in arms.items()}
        if with_baseline:
            means |= {BASELINE: self.baseline_us(problem), control_name(BASELINE): self.baseline_us(problem)}
        rng = random.Random(0)
        times = {label: tuple(us * rng.uniform(0.999, 1.001) for _ in range(ROUNDS)) for label, us in means.items()}
        return Samples(
            times_us=times,
            order=(tuple(times),) * ROUNDS,
            clocks=(None,) * ROUNDS,
            inner=dict.fromkeys(times, 1),
            slots=4,
            seed=0,
            stop="rounds",
            warm=True,
            rejected_rounds=0,
            baseline=BASELINE if with_baseline else None,
            launch=effort.launch_mode,
            host_us=dict.fromkeys(times, 3.5),
        )

    def environment(self):
        return {"device": {"name": "NVIDIA H200"}, "commit": "0123456789ab", "date": "2026-12-01"}

    def _config(self, problem, launched):
        return self.plan(problem, launched).parts[0].choice.config if isinstance(launched, Call) else launched

    def hidden_us(self, config, problem):
        """The model's time with constants of its own for each config, and a scatter that no constants explain."""
        traits = traits_of(config, self.arch, None)
        constants = Constants(
            efficiency=_drawn(0.5, 0.95, config.rung.name, config),
            latency_us=_drawn(0.4, 1.2, config.rung.name),
            fill_us=_drawn(0.5, 3.0, config.rung.name),
        )
        scatter = _drawn(0.96, 1.04, config.rung.name, config, replace(problem))
        pieces = pieces_of(config, traits, problem, names_of(problem, self.sm_count))
        return predict(traits, pieces, constants, problem, self.rates).total_us * scatter


def _drawn(low, high, *about):
    digest = hashlib.sha256(repr([str(each) for each in about]).encode()).digest()
    return low + (high - low) * int.from_bytes(digest[:4], "little") / 2**32
