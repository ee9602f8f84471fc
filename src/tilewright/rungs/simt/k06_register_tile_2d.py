from tilewright.declare import (
    COUNTED_K,
    INDEXED_RESULTS,
    Expr,
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
    number=6,
    track="simt",
    builds_on="k05_register_tile_1d",
    title="2D register tile",
    summary="Give each thread a square patch: 16 shared reads feed 64 FMAs, where the last rung's 9 fed 8.",
    lesson=Lesson(
        idea="""\
At each k a thread reads TM elements of A and TN of B into registers and multiplies every one with every other: an outer
product. The reads grow with the sides of the patch, the FMAs with its area.""",
        prediction="""\
(TM + TN) / (TM·TN) shared reads an FMA: a quarter for 8 × 8, where the last rung needed more than one. With the larger
CTA tile global traffic halves again. The step that turns a kernel bound by memory into one bound by its FMAs.""",
        cost="""\
64 accumulators and the fragments, so few warps fit. 16 × 16 would need 256 accumulators, more than the 255 registers a
thread has: they spill to memory and the kernel collapses. Try `--set TM=16 --set TN=16`.""",
        expires="""\
Registers end the growth of the patch, not arithmetic: TM = TN = 16 would be 256 accumulators, and
`inspect k06 --set TM=16 --set TN=16` shows them in memory. A large tile also needs a large problem: at 1024³ it makes
64 CTAs, half as many as a large card has SMs, and the rung below, with 256 smaller ones, is faster there.""",
    ),
    params=(
        Param("BM", 128, (32, 64, 128, 256), "rows of the CTA tile"),
        Param("BN", 128, (32, 64, 128, 256), "columns of the CTA tile"),
        Param("BK", 8, (4, 8, 16, 32), "depth of one step along k"),
        Param("TM", 8, (2, 4, 8, 16), "rows of the thread tile"),
        Param("TN", 8, (2, 4, 8, 16), "columns of the thread tile"),
    ),
    derived=(derived("NUM_THREADS", "BM * BN // (TM * TN)", "threads of the CTA"),),
    rules=(
        config_rule("BM % TM == 0", "so that thread tiles tile the CTA tile's rows"),
        config_rule("BN % TN == 0", "so that thread tiles tile the CTA tile's columns"),
        config_rule("32 <= NUM_THREADS <= 1024", "a full warp at least, and the most threads a CTA may have"),
        config_rule("NUM_THREADS % 32 == 0", "so that every warp is full"),
        config_rule("BM * BK % NUM_THREADS == 0", "so that whole passes of all threads stage the tile of A"),
        config_rule("BK * BN % NUM_THREADS == 0", "so that whole passes of all threads stage the tile of B"),
        binary_rule("TM * TN <= 128 or spill_bytes == 0", "more than 128 accumulators may not spill to memory"),
        problem_rule("BM * lda <= 2147483647", "since offsets inside a tile of A are 32-bit"),
        problem_rule("BK * ldb <= 2147483647", "since offsets inside a tile of B are 32-bit"),
        *INDEXED_RESULTS,
        COUNTED_K,
    ),
    shared=(shared("As", "BM * BK"), shared("Bs", "BK * BN")),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS * BK * (TM + TN)",
        shared_stores="BK * (BM + BN)",
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % BK == 0"),
    footprints=(
        footprint("A", "global load", "tx // BK * lda + tx % BK"),
        footprint("B", "global load", "tx // BN * ldb + tx % BN"),
        footprint("As", "shared store", "tx"),
        footprint("Bs", "shared store", "tx"),
        footprint("As", "shared load", "tx // (BN // TN) * TM * BK"),
        footprint("Bs", "shared load", "tx % (BN // TN) * TN"),
        footprint("D", "global store", "tx // (BN // TN) * TM * ldd + tx % (BN // TN) * TN"),
    ),
    published=Published(time_ms=7.00, percent_of_cublas=54.6, chapter_step=4, chapter_percent="~80 %"),
)
