from tilewright.declare import (
    INDICES,
    Lesson,
    Param,
    Rung,
    Scratch,
    config_rule,
    derived,
    launch,
    problem_rule,
    scratch,
    shared,
    with_defaults,
)
from tilewright.rungs.simt.k13_multistage import RUNG as K13
from tilewright.rungs.simt.k13_multistage import TILES

SLICE_GROUP = derived("SLICE_GROUP", "16 + 16 * (SPLIT_K > 256)", "slices that one CTA adds up, where there are more")
WHOLE_GROUPS = config_rule("SPLIT_K <= SLICE_GROUP or SPLIT_K % SLICE_GROUP == 0", "so that groups of slices are whole")

INDEXED_SLICES = problem_rule(
    f"(SPLIT_K - 1) * ceil_div(ceil_div(k, BK), SPLIT_K) * BK < {INDICES}",
    "since the k at which the last slice begins, empty or not, is counted in 32 bits",
)


def slice_scratch(outputs: str, size: str) -> Scratch:
    """What slices of such outputs need: sums, and for each output a flag, or one a group and one for the groups."""
    flags = "((SPLIT_K > 1) + (SPLIT_K > SLICE_GROUP) * SPLIT_K // SLICE_GROUP)"
    return scratch(sums=f"{outputs} * SPLIT_K * {size} * (SPLIT_K > 1)", flags=f"{outputs} * {flags}")


RUNG = Rung(
    number=15,
    track="simt",
    builds_on="k13_multistage",
    title="split k",
    summary="Give one tile of D to several CTAs, each with a slice of k, and add their sums in a fixed order.",
    lesson=Lesson(
        idea="""\
A small product has fewer tiles than the card has SMs. k is cut into slices, one CTA each. Their sums go to a workspace;
each CTA then adds one to a counter, and the one that finds all others there adds up the slices, first to last, applies
the epilogue and stores. Nobody waits for anybody, so any number of CTAs may be resident. Since the order is that of the
slices and not of arrival, the same bits come every time, which atomic additions could not promise.""",
        prediction="""\
1024³ is 64 tiles of 128×128 on 132 SMs: two slices nearly double what works. Explored on an H200 before, with slices
added within a cluster: 1.10 of cuBLAS. The workspace is 8 MiB there, written and read within the L2, a few microseconds
beside some fifty. At 4096³ nothing is gained and the workspace costs.""",
        cost="""\
Sums written and read once more, a counter a tile, memory that somebody must provide. A tile is done when its slowest
slice is, and the last CTA adds up alone. It reads no faster than one SM does, some 20 µs for 128 slices of 64×64: so
more than 16 are added in groups, and then the groups.""",
        expires="""\
Whole slices divide evenly only by chance. Dealing out steps along k to as many CTAs as there are SMs fills the last
wave for any size.""",
    ),
    params=(
        *with_defaults(K13.params, BM=128, BN=128, WM=64, WN=32, TM=8, TN=8),
        Param("SPLIT_K", 2, (2, 3, 4, 6, 8, 16), "slices of k, each a CTA's", highest=1024),
        Param(
            "MIN_CTAS",
            0,
            (0, 1, 2, 4),
            "CTAs an SM must hold, by launch bounds; 0 leaves it open",
            highest=32,
            lowest=0,
        ),
    ),
    derived=(*K13.derived, SLICE_GROUP),
    from_problem=K13.from_problem,
    rules=(*K13.rules, WHOLE_GROUPS, INDEXED_SLICES),
    requires=K13.requires,
    shared=(*K13.shared, shared("arrived", "1", dynamic=True)),
    launch=launch(grid=(f"{TILES} * SPLIT_K", "1", "1"), block=("NUM_THREADS", "1", "1")),
    scratch=slice_scratch(TILES, "BM * BN"),
    accesses=K13.accesses,
    unguarded_when=K13.unguarded_when,
    footprints=K13.footprints,
)
