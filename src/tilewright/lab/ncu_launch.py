"""The program that runs under Nsight Compute: a rung and cuBLAS, launched once each between profiler start and stop.

`python -m tilewright.lab.ncu_launch TASK` takes a task as JSON (`Task`) and leaves what only this process knows of the
machine in the task's file.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.declare import all_rungs, rung_config
from tilewright.lab.gpu_environment import gpu_environment
from tilewright.lab.verifying import cubin
from tilewright.measure import find_baseline
from tilewright.measure.baseline import told
from tilewright.measure.ring import DATA, OperandRing
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.run.driver import check


@dataclass(frozen=True, slots=True)
class Task:
    """A rung with its settings, the sizes, and the file for what is found out."""

    rung: str
    config: dict[str, int]
    m: int
    n: int
    k: int
    found: str

    def problem(self) -> Problem:
        """Of the kind that the rung usually takes."""
        kind = all_rungs()[self.rung].requires.usual
        return Problem(m=self.m, n=self.n, k=self.k, **kind._asdict())

    def to_text(self) -> str:
        """The task as the program's argument."""
        return json.dumps(asdict(self))


def launch(task: Task) -> None:
    """Launch each once to load it, then once to be counted, on the same operands."""
    config, problem = rung_config(all_rungs()[task.rung], task.config), task.problem()
    baseline, why_none = find_baseline()
    with CudaBackend() as gpu:
        ring = OperandRing(problem, gpu)
        arms = [ring.config_arm(task.rung, config, cubin(config, problem, gpu.arch))]
        if baseline is not None:
            arms.append(ring.baseline_arm(baseline.name, baseline))
        with gpu.current():
            _launch_all(gpu, arms)
            from cuda.bindings import driver

            check(driver.cuProfilerStart())
            _launch_all(gpu, arms)
            check(driver.cuProfilerStop())
        made = gpu_environment(gpu, None, "", data=DATA, baseline=told(baseline), no_baseline=why_none or None)
    Path(task.found).write_text(json.dumps(made), encoding="utf-8")


def _launch_all(gpu: CudaBackend, arms: list[Any]) -> None:
    for arm in arms:
        arm.launch(0, gpu.stream)
    gpu.synchronize()


if __name__ == "__main__":
    launch(Task(**json.loads(sys.argv[1])))
