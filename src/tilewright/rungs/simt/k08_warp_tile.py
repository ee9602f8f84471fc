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
    shared,
)
from tilewright.rungs.simt.k07_vectorised import ROW_STRIDES, VECTOR_STAGING, WHOLE_TILES

RUNG = Rung(
    number=8,
    track="simt",
    builds_on="k07_vectorised",
    title="warp tiling",
    summary="Give each warp a compact rectangle of the result, so that what it reads together lies together.",
    lesson=Lesson(
        idea="""\
A level between CTA and thread: each warp takes a contiguous WM × WN rectangle, and covers it with WMITER × WNITER
sub-tiles in which its lanes lie side by side. A thread's results are then as many small patches, not one large one, for
the same reads and the same accumulators. WMITER is not chosen: it is what is left once the other sizes are, and if it
does not come out whole the kernel is not slow but wrong, which is why the rules stand in the declaration.""",
        prediction="""\
The warp level decides which lanes ask together: one warp-wide read spans WSUBM rows or WSUBN columns, where dividing
`threadIdx` alone would smear it over the whole CTA tile. Smaller CTAs pack several to an SM, so one waits at its
barrier while others work. The access counts say that the oblong tile is worse; they do not model either of these.""",
        cost="Nine constants that must fit each other; a few registers; more global traffic for the smaller CTA tile.",
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
        *ROW_STRIDES,
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
        *VECTOR_STAGING,
        config_rule(
            "NUM_THREADS * WMITER * TM * WNITER * TN == BM * BN", "so that every result of the CTA tile has one owner"
        ),
        binary_rule(
            "WMITER * TM * WNITER * TN <= 128 or spill_bytes == 0", "more than 128 accumulators may not spill to memory"
        ),
        *WHOLE_TILES,
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
