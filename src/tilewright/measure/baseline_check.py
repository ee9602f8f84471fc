"""Whether a baseline is right before it is timed: verified like a kernel.

It launches on the caller's GPU and times nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.measure.baseline import Baseline, prove_ieee, prove_tf32
from tilewright.problem import Problem
from tilewright.run.cuda import CudaBackend
from tilewright.verify.device import run_with
from tilewright.verify.layers import Case, Verdict, check_case


def baseline_verdict(baseline: Baseline, gpu: CudaBackend, cases: Sequence[Case]) -> Verdict:
    """Every case launched once, after the proof that float32 is not rounded to TF32 and TF32 is. Raises as they do."""

    def launch(problem: Problem, addresses: dict[str, int]) -> None:
        a, b, c, d = (addresses[x] for x in "abcd")
        baseline.gemm(problem, a, b, c, d, gpu.stream)

    with gpu.current():
        dtypes = {case.operands.problem.dtype for case in cases}
        for dtype, prove in (("float32", prove_ieee), ("tfloat32", prove_tf32)):
            if dtype in dtypes:
                prove(baseline, gpu, gpu.stream)
        run = run_with(gpu, launch)
        return Verdict(tuple(check_case(run, case) for case in cases))
