from tilewright.declare import (
    COUNTED_K,
    INDEXED_RESULTS,
    Expr,
    Lesson,
    Param,
    Requires,
    Rung,
    accesses,
    choice_rule,
    config_rule,
    derived,
    footprint,
    launch,
    shared,
)
from tilewright.declare.rules import binary_rule
from tilewright.rungs.simt.k13_multistage import TILES, aligned, whole_copies

RUNG = Rung(
    number=18,
    track="simt",
    builds_on="k13_multistage",
    title="small k",
    summary="Hold a warp's columns of B in registers, stream rows of A past them, and write D all the time.",
    lesson=Lesson(
        idea="""\
With a k of 32 a result is 32 FMAs and four bytes to write, and both take about as long. A kernel that first multiplies
a tile and then stores it does one at a time; and when all SMs do, the last tiles' stores, megabytes of them, have
nothing left to hide behind. So nothing is done in phases here. A warp loads a slice of B, all of k by some columns,
into its registers, and keeps it. Then rows of A come past, a few at a time, from a ring that the warp alone fills and
reads; every lane reads the same elements, and the results leave at once. A warp waits for nobody, and D is written from
the first microsecond to the last.""",
        prediction="""\
4096×4096×16: nothing, 22.4 µs as before, which is taken for the rate of writing and a launch; cuBLAS takes 35.9. For
k = 32 FMAs take 19 µs at their full rate, and a tenth more issue slots go to loads: 25 µs, where tiles take 32 and
cuBLAS 48. For k = 64 they take 38, and loads an eighth more: 47, where tiles take 53 and cuBLAS 70.""",
        cost="""\
BK·TN registers for B, so that a larger k leaves fewer columns a lane, and beyond BK the slice is loaded again for every
few rows: right, and slow.""",
        expires="""\
Beyond a k of 32 a lane has registers for two columns only: every read of A then serves few FMAs, and tiles in shared
memory serve more.""",
    ),
    params=(
        Param("BM", 512, (32, 64, 128, 256, 512), "rows of the CTA tile"),
        Param("BK", 16, (4, 8, 16, 32), "depth of the slice of B that a warp holds"),
        Param("TM", 4, (4, 8, 16), "rows at a time"),
        Param("TN", 8, (2, 4, 8, 16), "columns of a lane"),
        Param("WIDTH", 2, (1, 2, 4), "neighbouring columns of a lane, where D's alignment allows"),
        Param("STAGES", 4, (2, 3, 4, 6), "of rows in a warp's ring", lowest=2),
        Param("NUM_THREADS", 128, (64, 128, 256), "threads of the CTA, whose warps share out the rows"),
        Param("MIN_CTAS", 2, (1, 2, 3, 4), "CTAs an SM must hold, by launch bounds", highest=32),
    ),
    derived=(derived("BN", "32 * TN", "columns of the CTA tile: one warp's"),),
    from_problem=(
        derived("TRANSPOSED_A", "transposed_a", "whether A is stored k by m"),
        derived("TRANSPOSED_B", "transposed_b", "whether B is stored n by k"),
        derived("IS_HELD", "k <= BK", "whether a warp holds all of k"),
        derived(
            "WORD_A",
            f"1 + 3 * (transposed_a and {aligned('a', 4)})",
            "elements of A in one copy, by layout and alignment",
        ),
        derived(
            "WORD",
            f"1 + (WIDTH - 1) * (IS_HELD and {aligned('d', 4)} and (reads_c == 0 or {aligned('c', 4)}))",
            "neighbouring columns of a lane, by the alignment of D and C; one alone where registers are short",
        ),
    ),
    rules=(
        config_rule("NUM_THREADS % 32 == 0", "so that every warp is full"),
        config_rule("BM % (NUM_THREADS // 32 * TM) == 0", "so that warps have the same count of rows"),
        config_rule("WIDTH <= 4 and 4 % WIDTH == 0", "since a store has 4, 8 or 16 bytes"),
        config_rule("TN % WIDTH == 0", "so that a lane's columns come in whole words"),
        config_rule("TM % 4 == 0", "so that A is read 16 bytes at a time"),
        *whole_copies("32", tiles=("TM",)),
        config_rule("BK * TN <= 128", "since the slice of B is held in registers"),
        *INDEXED_RESULTS,
        COUNTED_K,
        choice_rule("k <= BK", "since else B is loaded again for every few rows"),
        binary_rule("spill_bytes == 0", "a build that spills is no candidate"),
    ),
    requires=Requires(layouts=("NN", "NT", "TN", "TT"), features=frozenset({"cp_async"})),
    shared=(shared("rings", "NUM_THREADS // 32 * BK * (TM + 4)", stages="STAGES"),),
    launch=launch(grid=(TILES, "1", "1"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + NUM_THREADS // 32 * BN)",
        shared_loads="BK * BM * 32",
        shared_stores="BK * BM",
        copies="BK * BM // WORD_A",
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % BK == 0"),
    footprints=(
        footprint("A", "global load", "lane // BK * lda + lane % BK"),
        footprint("B", "global load", "lane * WIDTH"),
        footprint("rings", "shared load", "0 * lane", elements="4"),
        footprint("D", "global store", "lane * WIDTH", elements="WIDTH"),
    ),
)
