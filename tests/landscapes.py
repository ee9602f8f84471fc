"""Times of rung 12's configs as a card might give them: an analytic model with interactions, cliffs and noise."""

from __future__ import annotations

import math
import random


def synthetic_us(config, seed: int) -> float | None:
    """Microseconds, or None where the binary would be refused. The same for the same config and seed."""
    v = config.values
    draw = random.Random(f"{seed} {config}")
    results, fragment = config.results_per_thread, (config.constants["WMITER"] * v["TM"] + v["WNITER"] * v["TN"])
    registers = results + 1.2 * fragment + v["BM"] * v["BK"] / v["NUM_THREADS"] + 34 + draw.randint(-3, 6)
    most = min(255, 65536 // v["NUM_THREADS"])
    if registers > most + 12 and results >= 128:
        return None
    spill = max(0.0, registers - most)
    held = max(1, min(65536 // (v["NUM_THREADS"] * 8 * math.ceil(registers / 8)), 2048 // v["NUM_THREADS"],
                      227 * 1024 // (config.smem_bytes + 1024)))  # fmt: skip
    warps = held * v["NUM_THREADS"] / 32
    compute = 2.05 * (1 + 0.9 * math.exp(-warps * (0.4 + results / 64) / 5))
    shared = 2.4 * fragment / results * 16 * (1.25 if v["TM"] == 16 and v["TN"] == 16 else 1.0)
    memory = 80.0 * (1 / v["BM"] + 1 / v["BN"])
    loop_kib = v["BK"] * results * 16 / 1024
    fetch = 1 + 0.12 * max(0.0, math.log2(loop_kib / 16))
    waves = (4096 // v["BM"]) * (4096 // v["BN"]) / (132 * held)
    tail = math.ceil(waves) / waves if waves > 1 else 1 / waves
    ordering = 1 + 0.05 * random.Random(f"{seed} {v['TM']} {v['TN']} {v['WNITER']} {v['BK']}").random()
    codegen = math.exp(draw.gauss(0, 0.008))
    together = (compute**4 + shared**4 + memory**4) ** 0.25
    return 1000 * together * fetch * (0.75 + 0.25 * tail) * ordering * codegen * (1 + 0.05 * spill)
