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
    footprint,
    launch,
    shared,
)

RUNG = Rung(
    number=4,
    track="simt",
    builds_on="k02_coalesced",
    title="shared tiles",
    summary="Load each tile once per CTA into shared memory: global traffic falls 32 times, shared reads now bound it.",
    lesson=Lesson(
        idea="""\
Every thread of a CTA needs the same rows of A and columns of B as its neighbours. So the CTA walks along k in steps of
BK: all threads together copy a BM × BK tile of A and a BK × BN tile of B into shared memory, wait for each other, and
multiply from there.""",
        prediction="""\
An element of A now comes from global memory once for BN results, so global traffic falls by the tile's edge, 32 times.
The inner loop reads two shared elements for each FMA, and the shared-memory pipe serves far fewer reads than there are
FMA lanes: a gain well under 32, until registers hold more than one result.""",
        cost="Two barriers a tile, 8 KB of shared memory, and CTAs that wait as a whole.",
        expires="""\
One result a thread is what ends it: with a patch of results in registers each shared read feeds many FMAs. Caches serve
part of the reuse on their own, so the gain shrinks where the working set fits them.""",
    ),
    params=(
        Param("BM", 32, (8, 16, 32), "rows of the CTA tile", highest=32),
        Param("BN", 32, (8, 16, 32), "columns of the CTA tile", highest=32),
        Param("BK", 32, (8, 16, 32), "depth of one step along k", highest=32),
    ),
    rules=(
        config_rule("BK == BN", "so that each thread stages one element of A"),
        config_rule("BK == BM", "so that each thread stages one element of B"),
        config_rule("BM * BN % 32 == 0", "so that every warp is full"),
        *INDEXED_RESULTS,
        COUNTED_K,
    ),
    shared=(shared("As", "BM * BK"), shared("Bs", "BK * BN")),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("BN", "BM", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="2 * BM * BN * BK",
        shared_stores="BK * (BM + BN)",
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % BK == 0"),
    footprints=(
        footprint("A", "global load", "ty * lda + tx"),
        footprint("B", "global load", "ty * ldb + tx"),
        footprint("As", "shared store", "ty * BK + tx"),
        footprint("Bs", "shared store", "ty * BN + tx"),
        footprint("As", "shared load", "ty * BK"),
        footprint("Bs", "shared load", "tx"),
        footprint("D", "global store", "ty * ldd + tx"),
    ),
    published=Published(time_ms=30.2, percent_of_cublas=11.6, chapter_step=2, chapter_percent="~30 %"),
)
