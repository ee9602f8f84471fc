"""What a call costs the host: µs a call of the library's forms beside torch's own product, on a small problem.

The kernels are so small that the host is what is slow, and few calls are made between two synchronisations, so that
none waits for room among the driver's pending launches. Owns the rounds and the record; times of kernels are
`measure`'s.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.api.calls import gemm, matmul
from tilewright.api.gemm import Gemm
from tilewright.errors import Missing
from tilewright.lab.gpu_environment import gpu_environment
from tilewright.record import Record, Row
from tilewright.run.cuda import CudaBackend

SIZE, ROUNDS, CALLS, WARM_CALLS = 64, 200, 50, 200
BASELINE = "torch.mm(out=)"


def host_times_us(
    calls: Mapping[str, Callable[[], object]],
    synchronize: Callable[[], object],
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
    now_ns: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, list[float]]:
    """µs a call, one figure for each round; every round has all the calls in random order."""
    for call in calls.values():
        for _ in range(WARM_CALLS):
            call()
    rng, times_us = random.Random(seed), {name: list[float]() for name in calls}
    for _ in range(rounds):
        for name in rng.sample(list(calls), len(calls)):
            call = calls[name]
            synchronize()
            start_ns = now_ns()
            for _ in range(CALLS):
                call()
            times_us[name].append((now_ns() - start_ns) / CALLS / 1000)
    synchronize()
    return times_us


def ratios(times_us: Mapping[str, list[float]]) -> dict[str, float]:
    """For each form the median over the rounds of its time over the baseline's."""
    base = times_us[BASELINE]
    return {
        name: statistics.median(own / other for own, other in zip(times, base, strict=True))
        for name, times in times_us.items()
    }


def overhead_record(device: int = 0) -> Record:
    """Measure on a GPU. Raises NoDevice, and Missing without a torch that sees it."""
    with CudaBackend(device) as gpu:
        times_us = host_times_us(*_forms(device))
        environment = gpu_environment(gpu, None, "", data="ones")
    problem = {"m": SIZE, "n": SIZE, "k": SIZE, "dtype": "float32"}
    rows = [
        Row(rung=name, arm=name, problem=problem, backend="cuda", host_us=statistics.median(times), samples_us=times)
        for name, times in times_us.items()
    ]
    about = {"baseline": BASELINE, "calls": CALLS, "rounds": ROUNDS, "ratios_to_baseline": ratios(times_us)}
    return Record(command="overhead", environment=environment, rows=rows, about=about)


def _forms(device: int) -> tuple[dict[str, Callable[[], object]], Callable[[], object]]:
    try:
        import torch
    except ImportError as error:
        raise Missing("torch, whose product is the baseline: pip install torch") from error
    if not torch.cuda.is_available():
        raise Missing("torch sees no GPU: install a build of it for CUDA")
    a, b, out = (torch.ones((SIZE, SIZE), device=f"cuda:{device}") for _ in range(3))
    planned = Gemm(a, b, out=out)
    planned.plan()
    forms: dict[str, Callable[[], Any]] = {
        BASELINE: lambda: torch.mm(a, b, out=out),
        "torch.mm": lambda: torch.mm(a, b),
        "Gemm.execute": planned.execute,
        "matmul(out=)": lambda: matmul(a, b, out=out),
        "matmul": lambda: matmul(a, b),
        "gemm(out=)": lambda: gemm(a, b, out=out, alpha=2.0),
        "torch.ops.tilewright.matmul": _operator(a, b),
    }
    return forms, lambda: torch.cuda.synchronize(device)


def _operator(a: Any, b: Any) -> Callable[[], Any]:
    from tilewright.api.torch.operators import MATMUL

    return lambda: MATMUL(a, b)
