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
from tilewright.rungs.simt.k13_multistage import aligned, whole_copies
from tilewright.rungs.simt.k15_split_k import INDEXED_SLICES, SLICE_GROUP, WHOLE_GROUPS, slice_scratch

IS_B = "(transposed_b and (transposed_a or n >= m))"
LARGE, SMALL = f"(m + {IS_B} * (n - m))", f"(n + {IS_B} * (m - n))"
TILES = f"ceil_div({LARGE}, BN) * ceil_div({SMALL}, BM) * batch"

RUNG = Rung(
    number=20,
    track="simt",
    builds_on="k16_small_m",
    title="skinny, along k",
    summary="Keep the large operand of a skinny product as it is stored, along k, and read four k of a row at a time.",
    lesson=Lesson(
        idea="""\
x·Wᵀ with a few rows of x, and a matrix times a few columns, read a large matrix whose rows run along k. To lie in
shared memory with k outermost, each of its elements had to be copied by itself: four bytes a copy, at half the rate of
DRAM. But a thread needs the same elements whichever way they lie. Rows stay as they are, sixteen bytes a copy, and a
thread reads four k of a row at once: as many bytes from shared memory for as many FMAs, only grouped otherwise.""",
        prediction="""\
4096×16×4096, where the rung before takes 38.2 µs against 24.4 for A stored the other way, and cuBLAS 42.9: copies are
no longer the limit, so 24 to 26 µs, 1.7 of cuBLAS. For 32 columns FMAs begin to count: 28 µs.""",
        cost="""\
Fragments of four k at once take four times the registers of one k. The two factors of an FMA come from the same word
of sixteen bytes each, so often from one register bank: a kernel that is bound by FMAs would lose by this.""",
        expires="From some 64 rows or columns on FMAs are the limit, and tiles with k outermost serve them better.",
    ),
    params=(
        Param("BM", 16, (8, 16, 32, 64), "rows of the small operand in a CTA tile"),
        Param("BN", 128, (64, 128, 256), "rows of the large operand in a CTA tile"),
        Param("BK", 32, (16, 32, 64), "depth of one step along k"),
        Param("TM", 4, (4, 8, 16), "rows of the small operand of a thread"),
        Param("TN", 4, (2, 4, 8), "rows of the large operand of a thread"),
        Param("STAGES", 3, (2, 3, 4, 5, 6), "tiles in the ring", highest=8, lowest=2),
        Param("SPLIT_K", 8, (2, 4, 8, 16, 32), "slices of k, each a CTA's", highest=1024),
        Param("MIN_CTAS", 3, (1, 2, 3, 4), "CTAs an SM must hold, by launch bounds", highest=32),
    ),
    derived=(
        derived("LANES_M", "BM // TM", "lanes of a warp along the rows of the small operand"),
        derived("LANES_N", "32 // LANES_M", "lanes of a warp along the rows of the large operand"),
        derived("WN", "LANES_N * TN", "rows of the large operand of a warp"),
        derived("NUM_THREADS", "BN // WN * 32", "threads of the CTA"),
        SLICE_GROUP,
    ),
    from_problem=(
        derived("TRANSPOSED_A", "transposed_a", "whether A is stored k by m"),
        derived("TRANSPOSED_B", "transposed_b", "whether B is stored n by k"),
        derived(
            "LARGE_IS_B",
            IS_B,
            "whether B's columns are the large operand's rows; else A's rows are",
        ),
        derived(
            "SMALL_ALONG_K",
            "(LARGE_IS_B and not transposed_a) or (not LARGE_IS_B and transposed_b)",
            "whether the small operand is stored along k too",
        ),
        derived(
            "WORD_LARGE",
            f"1 + 3 * ((LARGE_IS_B and {aligned('b', 4)}) or (not LARGE_IS_B and {aligned('a', 4)}))",
            "elements of the large operand in one copy, by its alignment",
        ),
        derived(
            "WORD_SMALL",
            "1 + 3 * (SMALL_ALONG_K and "
            f"((LARGE_IS_B and {aligned('a', 4)}) or (not LARGE_IS_B and {aligned('b', 4)})))",
            "elements of the small operand in one copy, by layout and alignment",
        ),
    ),
    rules=(
        config_rule("BM % TM == 0", "so that lanes tile the small operand's rows"),
        config_rule("LANES_M <= 32 and 32 % LANES_M == 0", "so that lanes of a warp form a rectangle"),
        config_rule("BN % WN == 0", "so that warps tile the large operand's rows"),
        config_rule("BK % 4 == 0", "so that four k are read at once"),
        config_rule("32 <= NUM_THREADS <= 1024", "a warp at least, and the most threads a CTA may have"),
        *whole_copies("NUM_THREADS"),
        WHOLE_GROUPS,
        INDEXED_SLICES,
        whole_tiles_indexed("(m + LARGE_IS_B * (n - m))", "BN", "rows of the large operand"),
        whole_tiles_indexed("(n + LARGE_IS_B * (m - n))", "BM", "rows of the small operand"),
        choice_rule("min(m, n) <= 16 * BM", "since larger tiles read less"),
        binary_rule("spill_bytes == 0", "a build that spills is no candidate"),
    ),
    requires=Requires(layouts=("NN", "NT", "TT"), features=frozenset({"cp_async"})),
    shared=(
        shared("large", "BN * (BK + 4)", stages="STAGES", dynamic=True),
        shared("small", "BM * (BK + 4)", stages="STAGES", dynamic=True),
        shared("arrived", "1", dynamic=True),
    ),
    launch=launch(grid=(f"{TILES} * SPLIT_K", "1", "1"), block=("NUM_THREADS", "1", "1")),
    scratch=slice_scratch(TILES, "BM * BN"),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS * BK * (TM + TN)",
        shared_stores="BK * (BM + BN)",
        copies="BK * (BN // WORD_LARGE + BM // WORD_SMALL)",
    ),
    unguarded_when=Expr(f"{LARGE} % BN == 0 and {SMALL} % BM == 0 and k % BK == 0"),
    footprints=(
        footprint("A", "global load", "tx // (BK // 4) * lda + tx % (BK // 4) * 4", elements="4"),
        footprint("B", "global load", "tx // BM * ldb + tx % BM"),
        footprint("large", "shared load", "(lane // 2 % 2 + lane // (2 * LANES_M) * 2) * (BK + 4)", elements="4"),
        footprint("small", "shared load", "(lane % 2 + lane // 4 % (LANES_M // 2) * 2) * (BK + 4)", elements="4"),
        footprint(
            "D",
            "global store",
            "(lane // 2 % 2 + lane // (2 * LANES_M) * 2) * ldd + lane % 2 + lane // 4 % (LANES_M // 2) * 2",
        ),
    ),
)
