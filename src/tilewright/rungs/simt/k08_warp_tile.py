from tilewright.declare import (
    Lesson,
    Param,
    Published,
    Rung,
    accesses,
    binary_rule,
    config_rule,
    derived,
    footprint,
    launch,
    problem_rule,
    shared,
)

RUNG = Rung(
    number=8,
    track="simt",
    builds_on="k04_shared_tile",
    title="warp tiling",
    summary="Give each warp a compact rectangle, each thread a patch in registers: FMAs, not loads, set the pace.",
    lesson=Lesson(
        idea="""\
Three levels of tiles. The CTA's lies in shared memory; each warp takes a contiguous WM × WN rectangle of the result;
each thread keeps WMITER × WNITER patches of TM × TN results in registers. Per step along k a thread reads
WMITER·TM + WNITER·TN shared elements and multiplies every one of A's with every one of B's, an outer product. WMITER is
not chosen: it is what is left once the other sizes are, and if it does not come out whole the kernel is not slow but
wrong, which is why the rules stand in the declaration and not in a comment.""",
        prediction="""\
The warp level decides which lanes ask together: one warp-wide read spans WSUBM rows or WSUBN columns, where dividing
`threadIdx` alone would smear it over the whole CTA tile. Smaller CTAs pack several to an SM, so one waits at its
barrier while others work. The access counts say that the oblong tile is worse; they do not model either of these.""",
        cost="Registers, hence occupancy; the transposed store of A conflicts in the banks.",
        expires="""\
The shape came out of a search over a kernel that stalls at every barrier, where many small CTAs help. Once copies run
ahead of the arithmetic, fewer and fatter threads win.""",
    ),
    params=(
        Param("BM", 128, (32, 64, 128, 256), "rows of the CTA tile"),
        Param("BN", 64, (32, 64, 128, 256), "columns of the CTA tile"),
        Param("BK", 16, (8, 16, 32), "depth of one step along k"),
        Param("WM", 64, (16, 32, 64, 128), "rows of the warp tile"),
        Param("WN", 32, (16, 32, 64, 128), "columns of the warp tile"),
        Param("WNITER", 2, (1, 2, 4), "sub-tiles of the warp tile along the columns"),
        Param("TM", 4, (4, 8, 16), "rows of the thread tile"),
        Param("TN", 4, (4, 8, 16), "columns of the thread tile"),
        Param("NUM_THREADS", 128, (64, 128, 256, 512), "threads of the CTA"),
    ),
    derived=(
        derived("WMITER", "WM * WN // (32 * TM * TN * WNITER)", "sub-tiles of the warp tile along the rows"),
        derived("WSUBM", "WM // WMITER", "rows of a sub-tile"),
        derived("WSUBN", "WN // WNITER", "columns of a sub-tile"),
        derived("ROW_STRIDE_A", "4 * NUM_THREADS // BK", "rows of A that one pass of all threads stages"),
        derived("ROW_STRIDE_B", "NUM_THREADS // (BN // 4)", "rows of B that one pass of all threads stages"),
    ),
    rules=(
        config_rule("NUM_THREADS % 32 == 0", "so that every warp is full"),
        config_rule("BM % WM == 0", "so that warps tile the CTA tile's rows"),
        config_rule("BN % WN == 0", "so that warps tile the CTA tile's columns"),
        config_rule("(BM // WM) * (BN // WN) == NUM_THREADS // 32", "so that each warp has one warp tile"),
        config_rule("WM * WN % (32 * TM * TN * WNITER) == 0", "so that WMITER comes out whole and at least 1"),
        config_rule("WM % WMITER == 0", "so that sub-tiles tile the warp tile's rows"),
        config_rule("WN % WNITER == 0", "so that sub-tiles tile the warp tile's columns"),
        config_rule("WSUBM % TM == 0", "so that thread tiles tile the sub-tile's rows"),
        config_rule("WSUBN % TN == 0", "so that thread tiles tile the sub-tile's columns"),
        config_rule("(WSUBM // TM) * (WSUBN // TN) == 32", "so that each lane has one thread tile of a sub-tile"),
        config_rule("BK % 4 == 0", "so that A is staged 16 bytes at a time"),
        config_rule("BN % 4 == 0", "so that B is staged 16 bytes at a time"),
        config_rule("BM % 4 == 0", "so that rows of the transposed As stay aligned to 16 bytes"),
        config_rule("TM % 4 == 0", "so that As is read 16 bytes at a time"),
        config_rule("TN % 4 == 0", "so that Bs is read and D written 16 bytes at a time"),
        config_rule("4 * NUM_THREADS % BK == 0", "so that one pass of all threads stages whole rows of A"),
        config_rule("BM % ROW_STRIDE_A == 0", "so that whole passes stage the tile of A"),
        config_rule("NUM_THREADS % (BN // 4) == 0", "so that one pass of all threads stages whole rows of B"),
        config_rule("BK % ROW_STRIDE_B == 0", "so that whole passes stage the tile of B"),
        config_rule(
            "NUM_THREADS * WMITER * TM * WNITER * TN == BM * BN", "so that every result of the CTA tile has one owner"
        ),
        binary_rule(
            "WMITER * TM * WNITER * TN <= 128 or spill_bytes == 0", "more than 128 accumulators may not spill to memory"
        ),
        problem_rule("m % BM == 0", "since this rung has no guards: sizes come in whole tiles"),
        problem_rule("n % BN == 0", "since this rung has no guards: sizes come in whole tiles"),
        problem_rule("k % BK == 0", "since this rung has no guards: sizes come in whole tiles"),
        problem_rule("alignment_bytes % 16 == 0", "since global memory is read 16 bytes at a time"),
        problem_rule("lda % 4 == 0 and batch_stride_a % 4 == 0", "so that rows of A stay aligned to 16 bytes"),
        problem_rule("ldb % 4 == 0 and batch_stride_b % 4 == 0", "so that rows of B stay aligned to 16 bytes"),
        problem_rule("ldd % 4 == 0 and batch_stride_d % 4 == 0", "so that rows of D stay aligned to 16 bytes"),
        problem_rule(
            "reads_c == 0 or (ldc % 4 == 0 and batch_stride_c % 4 == 0)", "so that rows of C stay aligned to 16 bytes"
        ),
        problem_rule("BM * lda <= 2147483647", "since offsets inside a tile of A are 32-bit"),
        problem_rule("BK * ldb <= 2147483647", "since offsets inside a tile of B are 32-bit"),
    ),
    shared=(shared("As", "BK * BM"), shared("Bs", "BK * BN")),
    launch=launch(grid=("n // BN", "m // BM", "batch"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS * BK * (WMITER * TM + WNITER * TN)",
        shared_stores="BK * (BM + BN)",
    ),
    footprints=(
        footprint("A", "global load", "tx // (BK // 4) * lda + tx % (BK // 4) * 4", elements="4"),
        footprint("B", "global load", "tx // (BN // 4) * ldb + tx % (BN // 4) * 4", elements="4"),
        footprint("As", "shared store", "tx % (BK // 4) * 4 * BM + tx // (BK // 4)"),
        footprint("Bs", "shared store", "tx // (BN // 4) * BN + tx % (BN // 4) * 4", elements="4"),
        footprint("As", "shared load", "lane // (WSUBN // TN) * TM", elements="4"),
        footprint("Bs", "shared load", "lane % (WSUBN // TN) * TN", elements="4"),
        footprint("D", "global store", "lane // (WSUBN // TN) * TM * ldd + lane % (WSUBN // TN) * TN", elements="4"),
    ),
    published=Published(time_ms=4.68, percent_of_cublas=81.6),
)
