"""The problems that judge a mutant: few, small, and between them every branch of a kernel.

Owns sizes, layouts and alignments; which settings they run under is `judge`'s.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.declare import Config
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem
from tilewright.lab.verifying import problems_for
from tilewright.problem import ITEMSIZE_BYTES, Problem

ROW_PADDING = {"a": 1, "b": 2, "c": 3, "d": 1}
LEAST_LOAD, TMA_LOAD = 2, 16  # bytes that rows are aligned to
SM_COUNT = 2
"""What a persistent rung is told that there are."""


def judged_problems(config: Config) -> list[Problem]:
    """A batch with gaps comes first, and a k of 0 is among them; one epilogue and one alpha and beta for all."""
    problems = _tensor(config) if config.rung.track == "tensor" else _covering(config)
    return [replace(problem, alpha=1.0, beta=2.0, epilogue=Epilogue(("bias",))) for problem in problems]


def _covering(config: Config) -> list[Problem]:
    """Of the covering set a batch with gaps, several CTAs along both sides, a k of 0; one binary serves them all.

    And where the rung guards its tails, one without tails, whose binary has no guards.
    """
    covering = problems_for(config)
    widest = max((p for p in covering if p.batch == 1), key=lambda p: p.m * p.n)
    empty = next(p for p in covering if p.k == 0)
    whole = [p for p in covering if p.k and not config.problem_constants(p)["GUARDED"]][:1]
    return [covering[-2], widest, empty, *(whole if config.rung.unguarded_when is not None else [])]


def _tensor(config: Config) -> list[Problem]:
    """Each operand both ways, rows of the least and of full alignment, tails odd, even and of 16 bytes, and none.

    The ring of stages goes round more than once, also with tiles of one step. Rows and columns of tiles differ in
    number where there is a batch, and three rows are more than two that are walked together.
    """
    bm, bn, bk = config.tile
    deep = config.stages * bk
    least = max(LEAST_LOAD, config.rung.requires.row_bytes)
    ragged = _problem("NN", "bfloat16", (2 * bm + 1, bn + 8, 2 * deep + bk), TMA_LOAD)
    made = (
        _problem("NT", "bfloat16", (bm - 3, bn + 5, bk + 5), least, batch=3),
        _problem("NT", "bfloat16", (3, 5, 0), least),
        _problem("NT", "bfloat16", (1, 1, 1), least, batch=SM_COUNT * (config.stages + 1)),
        _problem("TN", "float32", (bm + 1, bn + 2, deep + 1), TMA_LOAD),
        replace(ragged, ldc=ragged.ldc + 1),  # no pairs of C, and D by TMA
        _problem("NN", "bfloat16", (2 * bm, bn, deep), TMA_LOAD),
    )
    return [problem for problem in made if _is_served(config, problem)]


def _problem(layout: str, out_dtype: str, size: tuple[int, int, int], row_bytes: int, batch: int = 1) -> Problem:
    """A product of bfloat16 whose rows are padded, in whole `row_bytes`, and whose batch entries lie apart."""
    m, n, k = size
    granule = row_bytes // ITEMSIZE_BYTES["bfloat16"]
    tight = Problem(m=m, n=n, k=k, layout=layout, dtype="bfloat16", out_dtype=out_dtype)
    leading = {
        f"ld{x}": (-(-tight.stored_shape(x)[1] // granule) + padding) * granule for x, padding in ROW_PADDING.items()
    }
    unset = dict.fromkeys((f"batch_stride_{x}" for x in ROW_PADDING), -1)
    padded = replace(tight, **leading, **unset, batch=batch, alignment_bytes=row_bytes)
    strides = {f"batch_stride_{x}": (padded.extent(x) // granule + 2) * granule for x in ROW_PADDING}
    return replace(padded, **strides)


def _is_served(config: Config, problem: Problem) -> bool:
    try:
        config.require_problem(problem)
    except InvalidProblem:
        return False
    return True
