from dataclasses import replace

from tilewright.declare import Lesson, Rung, choice_rule, with_defaults
from tilewright.rungs.simt.k15_split_k import RUNG as K15

WIDTHS = ("BM", "BN", "WM", "WN")
PARAMS = tuple(
    replace(param, values=(8, 16, 32, 64, 128), lowest=4) if param.name in WIDTHS else param for param in K15.params
)

RUNG = Rung(
    number=16,
    track="simt",
    builds_on="k15_split_k",
    title="small m or n",
    summary="The same kernel for a few rows: all of them in every CTA, many slices, B read once at the rate of DRAM.",
    lesson=Lesson(
        idea="""\
No new code. With a few rows each element of B serves a few FMAs, and the time is that of reading B. A CTA has all the
rows and a narrow band of columns, so B is read once; many short slices of k put enough small CTAs on every SM to keep
DRAM busy, with a ring of stages in flight in each. A few columns are the same thing the other way round.""",
        prediction="""\
8×4096×4096 reads 64 MiB of B: 14.6 µs at the card's rate. Explored on an H200 before: 19.6 µs where cuBLAS takes 42,
and for 16 rows 20 where it takes 74, with sums added atomically, in no order. In order costs a few microseconds at
most. Beyond 64 rows FMAs are the limit and ordinary tiles do.""",
        cost="A workspace of SPLIT_K results, added up by the last CTA of each band; rows that only the tile has.",
        expires="One row is a matrix and a vector: a warp can read a stored row by itself, without shared memory.",
    ),
    params=with_defaults(PARAMS, BM=16, BN=128, BK=16, WM=16, WN=64, TM=8, TN=4, SPLIT_K=8, MIN_CTAS=4),
    derived=K15.derived,
    from_problem=K15.from_problem,
    rules=(*K15.rules, choice_rule("min(m, n) <= 8 * min(BM, BN)", "since larger tiles read less")),
    requires=K15.requires,
    shared=K15.shared,
    launch=K15.launch,
    scratch=K15.scratch,
    accesses=K15.accesses,
    unguarded_when=K15.unguarded_when,
    footprints=K15.footprints,
    kernel="k15_split_k",
)
