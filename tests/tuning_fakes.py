"""Evaluators for worker processes without a GPU: times from a landscape, and configs planted to go wrong."""

from __future__ import annotations

import ctypes
import os
import time

from landscapes import synthetic_us
from tilewright.declare import all_rungs, rung_config
from tilewright.errors import CompileFailed, InvalidConfig, LaunchFailed, WrongResult
from tilewright.tune.trial import config_key

DEVICE = {
    "name": "Fake GPU",
    "uuid": "0",
    "arch": "sm_90a",
    "compute_capability": [9, 0],
    "sm_count": 132,
    "smem_optin_bytes": 232448,
    "driver": "580.00",
    "nvrtc": "13.5",
}


def crash():
    ctypes.string_at(0)


def grow():
    kept = []
    for _ in range(20):
        kept.append(b"x" * 2**26)
    time.sleep(60)


def fail(error):
    raise error


def lie():
    os.write(1, b'{"time_us": 1.0, "samples_us": [1.0], "slow": false}\n')  # a kernel's own print is no answer
    os._exit(3)


PLANTED = {
    "build": {
        "compile error": lambda: fail(CompileFailed("k12.cu(3): error: expected a ;")),
        "refused binary": lambda: fail(InvalidConfig("registers=255: may not spill to memory")),
        "compiler aborts": os.abort,
        "compiler hangs": lambda: time.sleep(60),
        "compiler grows": grow,
    },
    "screen": {
        "illegal address": lambda: fail(LaunchFailed("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")),
        "segmentation fault": crash,
        "hangs": lambda: time.sleep(60),
        "wrong": lambda: fail(WrongResult("integer: 3 of 64 differ")),
        "unforeseen": lambda: fail(RuntimeError("cannot happen")),
        "prints and leaves": lie,
    },
}


class Fake:
    """The setup, by environment: what is planted, by config key, and how long a job takes."""

    kind = ""

    def __init__(self, setup):
        import json

        self.rung = all_rungs()[setup["rung"]]
        self.planted = json.loads(os.environ.get("FAKE_PLANTED", "{}"))
        self.pause_s = float(os.environ.get("FAKE_PAUSE_S", "0"))

    def describe(self):
        return DEVICE

    def evaluate(self, job):
        time.sleep(self.pause_s)
        misfortune = PLANTED[self.kind].get(self.planted.get(config_key(job["config"]), ""))
        if misfortune is not None:
            misfortune()
        return self.answer(job)


class FakeBuilder(Fake):
    """Facts as if compiled; MIN_CTAS makes no difference to the instructions, as on some architectures."""

    kind = "build"

    def answer(self, job):
        same = {name: value for name, value in job["config"].items() if name != "MIN_CTAS"}
        return {"facts": {"registers": 128, "smem_bytes": 1024, "identity": config_key(same)}}


class FakeScreen(Fake):
    """Times of a synthetic landscape."""

    kind = "screen"

    def answer(self, job):
        time_us = synthetic_us(rung_config(self.rung, job["config"]), 0) or 50000.0
        if job["best_us"] is not None and time_us > 1.5 * job["best_us"]:
            return {"time_us": time_us, "samples_us": [time_us], "slow": True}
        return {"time_us": time_us, "samples_us": [time_us] * 3, "slow": False}
