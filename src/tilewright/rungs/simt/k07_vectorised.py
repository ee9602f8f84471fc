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

ROW_STRIDES = (
    derived("ROW_STRIDE_A", "4 * NUM_THREADS // BK", "rows of A that one pass of all threads stages"),
    derived("ROW_STRIDE_B", "NUM_THREADS // (BN // 4)", "rows of B that one pass of all threads stages"),
)
VECTOR_STAGING = (
    config_rule("BK % 4 == 0", "so that A is staged 16 bytes at a time"),
    config_rule("BN % 4 == 0", "so that B is staged 16 bytes at a time"),
    config_rule("BM % 4 == 0", "so that rows of the transposed As stay aligned to 16 bytes"),
    config_rule("TM % 4 == 0", "so that As is read 16 bytes at a time"),
    config_rule("TN % 4 == 0", "so that Bs is read and D written 16 bytes at a time"),
    config_rule("4 * NUM_THREADS % BK == 0", "so that one pass of all threads stages whole rows of A"),
    config_rule("BM % ROW_STRIDE_A == 0", "so that whole passes stage the tile of A"),
    config_rule("NUM_THREADS % (BN // 4) == 0", "so that one pass of all threads stages whole rows of B"),
    config_rule("BK % ROW_STRIDE_B == 0", "so that whole passes stage the tile of B"),
)
WHOLE_TILES = (
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
)

RUNG = Rung(
    number=7,
    track="simt",
    builds_on="k06_register_tile_2d",
    title="vectorised",
    summary="Move four neighbours in one instruction, and store A transposed so that its fragments are neighbours.",
    lesson=Lesson(
        idea="""\
Tiles are copied 16 bytes at a time. A thread's fragment of B lies along a row already; its fragment of A runs down a
column, so A is turned as it is stored: As[k][row]. Then both are read four elements an instruction.""",
        prediction="""\
The same elements in a quarter of the instructions, which leaves the issue slots to the FMAs. For the copies that is the
whole story. Reads of shared memory the compiler joined already, along k, holding a whole tile's depth of A in
registers; turned around, one k at a time is enough, and the registers it gives back admit more CTAs.""",
        cost="""\
Sizes in whole tiles, bases and rows aligned to 16 bytes. The transposed store writes one column from many lanes: BM is
a multiple of 32, so several of them meet in one bank.""",
        expires="""\
Wide accesses stay right. The store's conflict and the shape that one warp reads are still what the division of
`threadIdx` made them; the warp level chooses the second, padding removes the first.""",
    ),
    params=(
        Param("BM", 128, (32, 64, 128, 256), "rows of the CTA tile"),
        Param("BN", 128, (32, 64, 128, 256), "columns of the CTA tile"),
        Param("BK", 8, (8, 16, 32), "depth of one step along k"),
        Param("TM", 8, (4, 8, 16), "rows of the thread tile"),
        Param("TN", 8, (4, 8, 16), "columns of the thread tile"),
    ),
    derived=(derived("NUM_THREADS", "BM * BN // (TM * TN)", "threads of the CTA"), *ROW_STRIDES),
    rules=(
        config_rule("BM % TM == 0", "so that thread tiles tile the CTA tile's rows"),
        config_rule("BN % TN == 0", "so that thread tiles tile the CTA tile's columns"),
        config_rule("32 <= NUM_THREADS <= 1024", "a full warp at least, and the most threads a CTA may have"),
        config_rule("NUM_THREADS % 32 == 0", "so that every warp is full"),
        *VECTOR_STAGING,
        binary_rule("TM * TN <= 128 or spill_bytes == 0", "more than 128 accumulators may not spill to memory"),
        *WHOLE_TILES,
    ),
    shared=(shared("As", "BK * BM"), shared("Bs", "BK * BN")),
    launch=launch(grid=("n // BN", "m // BM", "batch"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS * BK * (TM + TN)",
        shared_stores="BK * (BM + BN)",
    ),
    footprints=(
        footprint("A", "global load", "tx // (BK // 4) * lda + tx % (BK // 4) * 4", elements="4"),
        footprint("B", "global load", "tx // (BN // 4) * ldb + tx % (BN // 4) * 4", elements="4"),
        footprint("As", "shared store", "tx % (BK // 4) * 4 * BM + tx // (BK // 4)"),
        footprint("Bs", "shared store", "tx // (BN // 4) * BN + tx % (BN // 4) * 4", elements="4"),
        footprint("As", "shared load", "tx // (BN // TN) * TM", elements="4"),
        footprint("Bs", "shared load", "tx % (BN // TN) * TN", elements="4"),
        footprint("D", "global store", "tx // (BN // TN) * TM * ldd + tx % (BN // TN) * TN", elements="4"),
    ),
    published=Published(time_ms=5.47, percent_of_cublas=69.8, chapter_step=5, chapter_percent="~88 %"),
)
