"""Records as one page, read without a browser. Experiments and tuning here are made up; the ladder is the package's."""

from __future__ import annotations

import itertools

from typer.testing import CliRunner

from tilewright.record import Ratio, Record, Row
from tilewright.report.roofs import Roofs

RUNNER = CliRunner()
VOID = {"meta", "br", "hr", "img", "input", "link"}
CUBE = {"m": 4096, "n": 4096, "k": 4096, "layout": "NN", "dtype": "float32", "alpha": 1.0, "beta": 0.0}
ROOFS = Roofs(dram_tb_per_s=4.0, l2_tb_per_s=8.0, ffma_tflops=60.0)


def made_up_environment(**measurement) -> dict:
    measured = {"rounds": 8, "rejected_rounds": 0, "stop": "precision", "mode": "steady", "cache": "cold"}
    clocks = {"sm_mhz": [1980, 1965, 1980, 1950, 1980, 1980, 1965, 1980], "power_w": [601.5] * 7 + [612.25]}
    return {
        "date": "2026-12-01",
        "commit": "0123456789ab",
        "versions": {"numpy": "2.5.2"},
        "device": {"name": "NVIDIA Made Up", "sm_count": 100, "l2_bytes": 50 * 2**20},
        "measurement": {**measured, **clocks, "aa_floor": 0.0011, **measurement},
    }


def made_up_experiment(**about) -> Record:
    def arm(name: str, ratio: Ratio | None, **fields) -> Row:
        samples = [2800.0, 2801.5, 2799.25, 2802.0, 2800.5, 2798.0, 2803.0, 2800.0]
        return Row(
            rung="k12_tall_thread_tile",
            problem=CUBE,
            arm=name,
            number=12,
            verified=True,
            **{"time_us": 2800.25, "samples_us": samples, "inner": 1, "registers": 206, "occupancy": 0.125, **fields},
            ratio_to_reference=ratio,
            ratio_to_baseline=Ratio(0.960, 0.961, 0.962),
        )

    rows = [
        arm("BK=16", None),
        arm("BK=8", Ratio(1.118, 1.1212, 1.124), outcome="faster"),
        arm("BK=32", Ratio(0.871, 0.8734, 0.876), outcome="slower"),
        arm("BK=16 again", Ratio(0.9991, 1.0003, 1.0014), outcome="equivalent"),
        arm("BK=12", Ratio(0.97, 1.004, 1.03), outcome="inconclusive"),
        arm(
            "BK=8, run-time β",
            Ratio(1.09, 1.1, 1.11),
            outcome="confounded",
            causes=[
                {"kind": "constant", "what": "BK", "reference": 16, "arm": 8},
                {"kind": "constant", "what": "BETA_MODE", "reference": 0, "arm": 2},
            ],
        ),
        Row(
            rung="k12_tall_thread_tile",
            problem=CUBE,
            arm="BK=64",
            verified=False,
            failure="InvalidConfig",
            verdict="BK=64: shared memory does not fit",
        ),
    ]
    asked = {
        "experiment": "made_up_k_depth",
        "question": "How deep should a K-tile be?",
        "claim": "Sixteen is best & eight < sixteen.",
        "prediction": "Eight wins by a tenth: the loop fits the instruction cache.",
        "reference": "BK=16",
        "arms": [row.arm for row in rows],
        "verdict": "confounded",
        "finding": "BK=8 is 1.121 times as fast as BK=16.",
        "holds_here": False,
    }
    return Record(command="experiment", environment=made_up_environment(), rows=rows, about={**asked, **about})


def made_up_tuning() -> Record:
    rows = []
    for bm, bn, bk, wniter, threads in itertools.product((64, 128), (64, 128, 256), (8, 16, 32), (1, 2, 4), (128, 256)):
        config = {"BM": bm, "BN": bn, "BK": bk, "WNITER": wniter, "NUM_THREADS": threads, "PAD": 0}
        common = {"rung": "k12_tall_thread_tile", "problem": CUBE, "number": 12, "config": config}
        if bm * bn // threads > 192:
            rows.append(Row(**common, verified=False, failure="CompileFailed", verdict="spills 512 bytes"))
            continue
        results = bm * bn / threads
        time_us = 2700 + 9000 / results + 40 * abs(bk - 8) + 130 * abs(wniter - 2) + 0.37 * (bm % 96) + 0.11 * bn
        rows.append(Row(**common, verified=True, time_us=time_us, registers=64 + int(results), occupancy=0.125))
    rows[7] = Row(
        **{**common, "config": rows[7].config}, verified=False, failure="LaunchFailed", verdict="illegal address"
    )
    order = sorted((i for i, row in enumerate(rows) if row.time_us), key=lambda i: rows[i].time_us)
    best, tie = order[0], order[1]
    rows[best].ratio_to_baseline, rows[tie].ratio_to_baseline = Ratio(0.967, 0.969, 0.97), Ratio(0.966, 0.967, 0.969)
    rows[best].samples_us, rows[best].inner = [rows[best].time_us, rows[best].time_us + 3.5], 1
    about = {
        "space": {"BM": [64, 128], "BK": [8, 16, 32]},
        "strategy": "exhaustive",
        "effort": "full",
        "seed": 7,
        "evaluations": len(rows),
        "best": best,
        "ties": [tie],
        "rejected": {"BM % WM == 0": 1234, "NUM_THREADS % 32 == 0": 56},
    }
    return Record(command="tune", environment=made_up_environment(), rows=rows, about=about)
