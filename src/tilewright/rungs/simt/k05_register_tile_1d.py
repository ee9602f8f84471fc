from tilewright.declare import (
    COUNTED_K,
    INDEXED_RESULTS,
    Expr,
    Lesson,
    Param,
    Published,
    Rung,
    accesses,
    config_rule,
    derived,
    footprint,
    launch,
    shared,
)

RUNG = Rung(
    number=5,
    track="simt",
    builds_on="k04_shared_tile",
    title="1D register tile",
    summary="Let each thread keep a column of results in registers: one element of B read serves all of them.",
    lesson=Lesson(
        idea="""\
A thread computes TM results, one below the other. They need the same element of B at each k, so it is read once into a
register and multiplied with TM elements of A. The CTA tile grows with TM while the number of threads does not.""",
        prediction="""\
Per FMA the shared memory now serves (TM + 1) / TM reads in place of two, a little more than half, and the larger tile
halves global traffic. Two to three times faster, because the shared reads were what the last rung waited for.""",
        cost="TM accumulators a thread, so fewer threads for one tile and fewer warps to hide latency behind.",
        expires="""\
One read an FMA is still far more than shared memory can serve. A patch in both directions reads the sum of its sides
and multiplies their product.""",
    ),
    params=(
        Param("BM", 64, (16, 32, 64, 128), "rows of the CTA tile"),
        Param("BN", 64, (16, 32, 64, 128), "columns of the CTA tile"),
        Param("BK", 8, (4, 8, 16, 32), "depth of one step along k"),
        Param("TM", 8, (2, 4, 8, 16), "rows of the thread tile"),
    ),
    derived=(derived("NUM_THREADS", "BM * BN // TM", "threads of the CTA"),),
    rules=(
        config_rule("BK * TM == BN", "so that each thread stages one element of A"),
        config_rule("BK * TM == BM", "so that each thread stages one element of B"),
        config_rule("NUM_THREADS <= 1024", "the most threads a CTA may have"),
        config_rule("NUM_THREADS % 32 == 0", "so that every warp is full"),
        *INDEXED_RESULTS,
        COUNTED_K,
    ),
    shared=(shared("As", "BM * BK"), shared("Bs", "BK * BN")),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS * BK * (TM + 1)",
        shared_stores="BK * (BM + BN)",
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % BK == 0"),
    footprints=(
        footprint("A", "global load", "tx // BK * lda + tx % BK"),
        footprint("B", "global load", "tx // BN * ldb + tx % BN"),
        footprint("As", "shared store", "tx"),
        footprint("Bs", "shared store", "tx"),
        footprint("As", "shared load", "tx // BN * TM * BK"),
        footprint("Bs", "shared load", "tx % BN"),
        footprint("D", "global store", "tx // BN * TM * ldd + tx % BN"),
    ),
    published=Published(time_ms=10.5, percent_of_cublas=36.3, chapter_step=3, chapter_percent="~50 %"),
)
