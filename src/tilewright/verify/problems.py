"""Problems that cover where GEMM kernels go wrong: a small covering set, not a product of cases.

Owns sizes, strides and scales. It knows a kernel only by its CTA tile, its stages and whether it guards tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, cycle, permutations
from typing import Any

from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, Problem, ProblemKind

SCALES = (1.0, 0.0, -1.0, 0.5, 2.0)
PADDING = {"a": 1, "b": 2, "c": 3, "d": 1}
VECTOR_BYTES = 16
DEEP_K, DEEP_TILE = 40009, 128 * 128
WIDE_LOADS_AT = 2
"""Which of several kinds of problem has rows and addresses aligned for the widest loads, tails or not."""


def problem_set(
    *,
    guarded: bool,
    tile: tuple[int, int, int],
    stages: int = 1,
    kinds: Sequence[ProblemKind] = (),
    row_bytes: int = 0,
) -> list[Problem]:
    """About 30 problems for a kernel with CTA tile (BM, BN, BK) and a pipeline of `stages`.

    Every size is near the tile's, so that a CPU runs them in milliseconds. Between them they have each pair of alpha
    and beta of {0, 1, -1, 0.5, 2}, k = 0, a batch, a broadcast operand, padded and unpadded rows. A guarded kernel
    gets all six orders of three distinct primes, tile ± 1, 1, k from 1 to stages·BK ± 1, rows one wider than they
    need be and addresses aligned to one element. Another one gets multiples of its tile, in all six orders of 1, 2
    and 3, with rows and addresses 16-byte aligned. `kinds` are layouts and dtypes that the problems have in turn;
    without them all are plain float32 products, and where there are several one problem has aligned rows. `row_bytes`,
    where it is more, is what rows and addresses are aligned to.

    Raises InvalidProblem for a tile or stages below 1.
    """
    if min(*tile, stages) < 1:
        raise InvalidProblem(f"tile={tile}, stages={stages}: sizes must be at least 1; give the CTA tile BM, BN, BK")
    sizes = _guarded_sizes(tile, stages) if guarded else _unguarded_sizes(tile, stages)
    nonzero = [(alpha, beta) for beta in SCALES for alpha in SCALES if alpha]
    sizes += [sizes[-1]] * max(0, len(nonzero) - len(sizes)) + [sizes[-1]] * len(SCALES)
    scales = [nonzero[index % len(nonzero)] for index in range(len(sizes) - len(SCALES))]
    scales += [(0.0, beta) for beta in SCALES]
    of_kind = cycle(kinds or [ProblemKind()])
    problems = []
    for index, ((m, n, k), (alpha, beta)) in enumerate(zip(sizes, scales, strict=True)):
        problem = Problem(m=m, n=n, k=k, alpha=alpha, beta=beta, **next(of_kind)._asdict())
        is_narrow = guarded and not (len(kinds) > 1 and index == WIDE_LOADS_AT)
        least_bytes = max(row_bytes, ITEMSIZE_BYTES[problem.dtype] if is_narrow else VECTOR_BYTES)
        granule = least_bytes // ITEMSIZE_BYTES[problem.dtype]
        padding = {name: rows * granule for name, rows in PADDING.items()}
        tight = index % 4 == 3
        problems.append(_with_rows(problem, dict.fromkeys("abcd", 0) if tight else padding, granule))
    batched = replace(problems[0], batch=3, batch_stride_a=-1, batch_stride_b=-1, batch_stride_c=-1, batch_stride_d=-1)
    granule = batched.alignment_bytes // ITEMSIZE_BYTES[batched.dtype]
    spread = _spread(replace(batched, alpha=1.0, beta=2.0), 3 * granule if guarded else granule)
    return [*problems, spread, replace(spread, batch_stride_b=0)]


def covering_kinds(layouts: Sequence[str], dtypes: Sequence[str], out_dtypes: Sequence[str]) -> list[ProblemKind]:
    """Kinds in which every two of layout, dtype and out_dtype stand together at least once; the first of each first.

    As many as there are layouts times the longer list of types: each layout meets every out_dtype, the dtypes turning.
    """
    turns = max(len(dtypes), len(out_dtypes))
    return [
        ProblemKind(layout, dtypes[(turn + row) % len(dtypes)], out_dtypes[turn % len(out_dtypes)])
        for row, layout in enumerate(layouts)
        for turn in range(turns)
    ]


def deep_problem(*, guarded: bool, tile: tuple[int, int, int]) -> Problem:
    """One CTA tile at a k of DEEP_K or little more; where the kernel guards its tails, with a tail along m, n and k.

    Tiles larger than DEEP_TILE go as much less deep as they are larger.
    """
    bm, bn, bk = tile
    deep = DEEP_K * DEEP_TILE // max(bm * bn, DEEP_TILE) | 1
    if guarded:
        return Problem(m=max(bm - 1, 1), n=max(bn - 1, 1), k=deep)
    return Problem(m=bm, n=bn, k=-(-deep // bk) * bk)


def _guarded_sizes(tile: tuple[int, int, int], stages: int) -> list[tuple[int, int, int]]:
    bm, bn, bk = tile
    deep = stages * bk
    largest = _next_prime(max(bm, bn) + 1)
    middle = _next_prime(max(bm, bn) // 2 + 1, avoid=(largest,))
    smallest = _next_prime(bk + 1, avoid=(largest, middle))
    ks = sorted({1, 2, bk - 1, bk, bk + 1, deep - 1, deep, deep + 1, deep + bk, 2 * deep + 1} - {0})
    return [
        *_orders(largest, middle, smallest),
        (bm - 1 or 1, bn + 1, bk + 1),
        (bm + 1, bn - 1 or 1, bk),
        (bm + 1, bn + 1, deep + 1),
        (bm, bn, deep),
        (1, 1, 1),
        (1, bn + 1, bk + 1),
        (bm + 1, 1, bk),
        (3, 5, 0),
        *((7, 11, k) for k in ks),
    ]


def _unguarded_sizes(tile: tuple[int, int, int], stages: int) -> list[tuple[int, int, int]]:
    bm, bn, bk = tile
    multiples = sorted({1, 2, stages, stages + 1, 2 * stages + 1})
    return [
        *((i * bm, j * bn, k * bk) for i, j, k in _orders(1, 2, 3)),
        (bm, bn, 0),
        *((bm, bn, k * bk) for k in multiples),
        (bm, bn, bk),
    ]


def _orders(x: int, y: int, z: int) -> list[tuple[int, int, int]]:
    return [(i, j, k) for i, j, k in permutations((x, y, z))]


def _with_rows(problem: Problem, padding: dict[str, int], granule: int) -> Problem:
    """The problem with rows `padding` elements wider, leading dimensions and addresses multiples of `granule`."""
    leading: dict[str, Any] = {
        f"ld{x}": -(-getattr(problem, f"ld{x}") // granule) * granule + padding[x] for x in "abcd"
    }
    strides: dict[str, Any] = {f"batch_stride_{x}": -1 for x in "abcd"}
    return replace(problem, **leading, **strides, alignment_bytes=granule * ITEMSIZE_BYTES[problem.dtype])


def _spread(problem: Problem, gap: int) -> Problem:
    """The same batch with `gap` to 2·gap - 1 unused elements between matrices, strides multiples of gap."""
    strides: dict[str, Any] = {f"batch_stride_{x}": (problem.extent(x) // gap + 2) * gap for x in "abcd"}
    return replace(problem, **strides)


def _next_prime(least: int, avoid: tuple[int, ...] = ()) -> int:
    candidates = (n for n in count(max(least, 2)) if n not in avoid and all(n % d for d in range(2, int(n**0.5) + 1)))
    return next(candidates)
