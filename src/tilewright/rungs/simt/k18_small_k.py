from tilewright.declare import Expr, Lesson, Param, Requires, Rung, accesses, config_rule, derived, footprint, launch
from tilewright.declare.rules import binary_rule
from tilewright.rungs.simt.k13_multistage import aligned

RUNG = Rung(
    number=18,
    track="simt",
    builds_on="k13_multistage",
    title="small k",
    summary="Hold a warp's columns of B in registers, stream rows of A past them, and let nothing but D cost time.",
    lesson=Lesson(
        idea="""\
With a k of 16 a result is sixteen FMAs and four bytes to write: the time is that of writing D. So there are no tiles in
shared memory, no stages and no barriers. A warp loads a slice of B, all of k by 256 columns, into its registers; then,
a few rows at a time, all its lanes read the same elements of A and each has eight results. Stores say that D is not
read again, so that it does not push A out of the L2.""",
        prediction="""\
4096×4096×16 writes 64 MiB: 15.5 µs at the rate at which the H200 writes. Explored before: 19.2 µs where cuBLAS takes
35 and ordinary tiles 21.7; 30 against 48 for k = 32, 49 against 70 for k = 64.""",
        cost="""\
BK·TN registers for B, so that a larger k leaves fewer columns a lane, and beyond BK the slice is loaded again for every
few rows: right, and slow.""",
        expires="""\
From a k of about a hundred on FMAs are the limit, and tiles that are read from shared memory serve more of them.""",
    ),
    params=(
        Param("BM", 128, (32, 64, 128, 256), "rows of the CTA tile"),
        Param("BK", 16, (4, 8, 16, 32, 64), "depth of the slice of B that a warp holds"),
        Param("TM", 2, (1, 2, 4), "rows at a time"),
        Param("TN", 8, (4, 8, 16), "columns of a lane"),
        Param("NUM_THREADS", 128, (64, 128, 256), "threads of the CTA, whose warps share out the rows"),
    ),
    derived=(derived("BN", "32 * TN", "columns of the CTA tile: one warp's"),),
    from_problem=(
        derived("TRANSPOSED_A", "transposed_a", "whether A is stored k by m"),
        derived("TRANSPOSED_B", "transposed_b", "whether B is stored n by k"),
        derived("IS_HELD", "k <= BK", "whether a warp holds all of k"),
        derived(
            "WORD_A", f"1 + 3 * (not transposed_a and {aligned('a', 4)})", "elements of A in one load, by its alignment"
        ),
        derived(
            "WORD",
            f"1 + 3 * ({aligned('d', 4)} and (reads_c == 0 or {aligned('c', 4)}))",
            "neighbouring columns of a lane, by the alignment of D and C",
        ),
    ),
    rules=(
        config_rule("NUM_THREADS % 32 == 0", "so that every warp is full"),
        config_rule("BM % (NUM_THREADS // 32 * TM) == 0", "so that warps have the same count of rows"),
        config_rule("BK % 4 == 0", "so that A is loaded 16 bytes at a time"),
        config_rule("TN % 4 == 0", "so that D is stored 16 bytes at a time"),
        config_rule("BK * TN <= 128", "since the slice of B is held in registers"),
        binary_rule("spill_bytes == 0", "a build that spills is no candidate"),
    ),
    requires=Requires(layouts=("NN", "NT", "TN", "TT")),
    launch=launch(grid=("ceil_div(m, BM) * ceil_div(n, BN) * batch", "1", "1"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(k_step="BK", results="BM * BN", global_loads="BK * (BM * 32 + NUM_THREADS // 32 * BN)"),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % BK == 0"),
    footprints=(
        footprint("A", "global load", "0 * lane", elements="4"),
        footprint("B", "global load", "lane * 4"),
        footprint("D", "global store", "lane * 4", elements="4"),
    ),
)
