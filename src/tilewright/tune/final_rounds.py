"""The final rounds on a GPU: finalists checked at full size, then measured in the same rounds as cuBLAS.

Owns what takes part. Nothing compiles while rounds run: every binary is made before. The rounds are `measure`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.declare import Config
from tilewright.errors import WrongResult
from tilewright.measure import Baseline, CudaTimer, Samples, find_baseline, measure, open_clocks
from tilewright.measure.baseline import BASELINE, told
from tilewright.measure.baseline_check import baseline_verdict
from tilewright.measure.modes import COLD
from tilewright.measure.ring import OperandRing
from tilewright.measure.schedule import ReadClocks
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.verify.device import DeviceRuns
from tilewright.verify.layers import Case, make_case, require_right
from tilewright.verify.operands import make_operands

ROUNDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Finals:
    """What the final rounds gave: `samples` by label, and by label what was wrong with those that took no part.

    `baseline` is the library that BASELINE stands for, None without one. `no_clocks`
    and `no_baseline` say why there were none.
    """

    samples: Samples | None
    wrong: dict[str, str]
    baseline: str | None
    cache: str = COLD
    no_clocks: str = ""
    no_baseline: str = ""


def measure_on_gpu(problem: Problem, configs: Mapping[str, Config], device: int, seed: int, budget_s: float) -> Finals:
    """Check and measure configs, by label, on one GPU; `budget_s` is for the rounds.

    Raises LaunchFailed where one faults, and what a rule or the compiler refuses.
    """
    with CudaBackend(device) as gpu:
        case = make_case("integer", make_operands(problem, "integer"))
        wrong = _wrong(case, configs, DeviceRuns(gpu))
        sound = {label: config for label, config in configs.items() if label not in wrong}
        baseline, no_baseline = _sound_baseline(gpu, case)
        if not sound:
            return Finals(samples=None, wrong=wrong, baseline=None, no_baseline=no_baseline)
        clocks = open_clocks(uuid=str(gpu.device.uuid), pci_bus_id=str(gpu.device.pci_bus_id))
        ring = OperandRing(problem, gpu)
        samples = _measured(ring, sound, gpu, baseline, seed=seed, budget_s=budget_s, read_clocks=clocks.read)
        return Finals(
            samples=samples,
            wrong=wrong,
            baseline=told(baseline),
            cache=ring.cache,
            no_clocks=clocks.reason,
            no_baseline=no_baseline,
        )


def _sound_baseline(gpu: CudaBackend, case: Case) -> tuple[Baseline | None, str]:
    """The baseline if there is one that is right, or None and why."""
    baseline, why_none = find_baseline()
    if baseline is None:
        return None, why_none
    verdict = baseline_verdict(baseline, gpu, [case])
    return (baseline, "") if verdict.ok else (None, f"{baseline.name} is wrong: {verdict.failed[0]}")


def _wrong(case: Case, configs: Mapping[str, Config], runs: DeviceRuns) -> dict[str, str]:
    """Which of the configs are not right at the size that is measured, and how. Compiles every binary."""
    wrong = {}
    for label, config in configs.items():
        try:
            require_right(runs.of(config), case)
        except WrongResult as error:
            wrong[label] = str(error)
    return wrong


def _measured(
    ring: OperandRing,
    configs: Mapping[str, Config],
    gpu: CudaBackend,
    baseline: Baseline | None,
    *,
    seed: int,
    budget_s: float,
    read_clocks: ReadClocks,
) -> Samples:
    arms = [ring.config_arm(label, config) for label, config in configs.items()]
    with gpu.current():
        if baseline is not None:
            arms.append(ring.baseline_arm(BASELINE, baseline))
        return measure(
            arms,
            CudaTimer(gpu.stream),
            rounds=ROUNDS,
            seed=seed,
            budget_s=budget_s,
            slots=ring.slots,
            baseline=BASELINE if baseline is not None else None,
            read_clocks=read_clocks,
        )
