from tilewright.declare import (
    Expr,
    Lesson,
    Param,
    Requires,
    Rung,
    accesses,
    binary_rule,
    choice_rule,
    config_rule,
    derived,
    footprint,
    launch,
    shared,
    whole_tiles_indexed,
)
from tilewright.rungs.simt.k13_multistage import aligned
from tilewright.rungs.simt.k15_split_k import SLICE_GROUP, WHOLE_GROUPS, slice_scratch

BANDS = "ceil_div(max(m, n), BN) * min(m, n) * batch"
ALONG_K = "((n >= m and transposed_b) or (n < m and not transposed_a))"
MOST_PARTS = derived("MOST_PARTS", "max(32, NUM_THREADS // 32 * 128 // min(BN, 128))", "sums of one output at most")

RUNG = Rung(
    number=17,
    track="simt",
    builds_on="k15_split_k",
    title="matrix and vector",
    summary="For one row or column of D, read the matrix along its stored rows straight into FMAs, many loads at once.",
    lesson=Lesson(
        idea="""\
With a single row or column no element of the matrix is used twice, so shared memory has nothing to give, and the vector
is so small that the L1 has it. A warp reads 512 bytes of a stored row at once. Where rows run along k, the lanes' sums
of one output are added at the end; where they run across, lanes have outputs of their own and warps share out k. Either
way all of a warp's loads of a step are on their way together, no warp waits for another, and where outputs are too few
for all SMs, slices of k keep them busy.""",
        prediction="""\
1×4096×4096 reads 64 MiB: 14.6 µs at the rate of the card's DRAM, some 17 with a beginning and an end. The larger tiles
of the rung before reach nearly that where rows run across k, and not where B would have to be transposed.""",
        cost="""\
For a second row or column the matrix is read again. Sums in an order of their own: over lanes, warps, slices.""",
        expires="From a few rows on, one reading of the matrix can serve them all: tiles again.",
    ),
    params=(
        Param("BN", 128, (4, 8, 16, 32, 64, 128, 256), "outputs of a CTA"),
        Param("BK", 128, (128, 256, 512, 1024), "elements of k of a step"),
        Param("NUM_THREADS", 128, (64, 128, 256), "threads of the CTA"),
        Param("SPLIT_K", 8, (1, 2, 4, 8, 16, 32), "slices of k, each a CTA's", highest=64),
        Param("MIN_CTAS", 2, (1, 2, 4), "CTAs an SM must hold, by launch bounds: fewer leave registers for more loads"),
    ),
    derived=(derived("BM", "1", "rows or columns of D of a CTA"), SLICE_GROUP, MOST_PARTS),
    from_problem=(
        derived("TRANSPOSED_A", "transposed_a", "whether A is stored k by m"),
        derived("TRANSPOSED_B", "transposed_b", "whether B is stored n by k"),
        derived("IS_ROW", "n >= m", "whether a CTA's outputs are a row's, B the matrix; else a column's, and A"),
        derived("ALONG_K", ALONG_K, "whether the matrix's stored rows run along k"),
        derived(
            "WORD",
            f"1 + 3 * ((n >= m and {aligned('b', 4)}) or (n < m and {aligned('a', 4)}))",
            "elements of the matrix in one load, by its alignment",
        ),
    ),
    rules=(
        config_rule("NUM_THREADS % 32 == 0", "so that every warp is full"),
        config_rule("BN % 4 == 0", "so that four outputs are added up by one thread"),
        config_rule("BK % 128 == 0", "so that a warp's words cover a step along k without a rest"),
        config_rule("BN % min(BN, 128) == 0 and 128 % min(BN, 128) == 0", "so that a warp's words cover whole rows"),
        config_rule("BN % (NUM_THREADS // 32) == 0", "so that warps have the same count of outputs"),
        config_rule("BK % (NUM_THREADS // 32 * 128 // min(BN, 128)) == 0", "so that lanes have the same count of k"),
        config_rule("BN // 4 <= NUM_THREADS", "so that each four outputs have a thread"),
        config_rule("BN * BK // NUM_THREADS <= 128", "so that a thread has registers for all its loads of a step"),
        WHOLE_GROUPS,
        whole_tiles_indexed("k", "BK", "elements of k"),
        choice_rule("min(m, n) <= 64", "since the matrix is read for each row or column again"),
        binary_rule("spill_bytes == 0", "a build that spills is no candidate"),
    ),
    requires=Requires(layouts=("NN", "NT", "TN", "TT")),
    shared=(shared("partial", "MOST_PARTS * (BN + 4)"), shared("arrived", "1")),
    launch=launch(grid=(f"{BANDS} * SPLIT_K", "1", "1"), block=("NUM_THREADS", "1", "1")),
    scratch=slice_scratch(BANDS, "BN"),
    accesses=accesses(
        k_step="BK",
        results="BN",
        global_loads="BK * (BN + 1)",
        shared_loads="0",
        shared_stores="0",
    ),
    unguarded_when=Expr("max(m, n) % BN == 0 and k % BK == 0"),
    footprints=(
        footprint("B", "global load", "lane * 4", elements="4"),
        footprint("D", "global store", "lane * 4"),
    ),
)
