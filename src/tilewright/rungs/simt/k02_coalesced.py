from tilewright.declare import (
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
)

RUNG = Rung(
    number=2,
    track="simt",
    builds_on="k01_uncoalesced",
    title="coalesced",
    summary="Swap two index lines and a warp reads 32 neighbours in one go: the cheapest large gain there is.",
    lesson=Lesson(
        idea="""\
The same arithmetic, the same number of loads, two lines exchanged: `threadIdx.x` now numbers columns. At each k the
lanes of a warp read 32 neighbours of B, and all of them the same element of A, which is one broadcast.""",
        prediction="""\
Four sectors a request in place of 32, so about eight times faster. Nothing about the algorithm moved; what changed is
which addresses are asked for together.""",
        cost="Nothing.",
        expires="""\
Coalescing is never wrong. As the goal it ends once tiles pass through shared memory: then the order of the copy counts,
not the order of the arithmetic.""",
    ),
    params=(
        Param("BM", 32, (4, 8, 16, 32), "rows of the CTA tile, threads along y", highest=1024),
        Param("BN", 32, (8, 16, 32, 64), "columns of the CTA tile, threads along x", highest=1024),
    ),
    rules=(
        config_rule("BM * BN <= 1024", "one thread computes one result, and a CTA has at most 1024"),
        config_rule("BM * BN % 32 == 0", "so that every warp is full"),
        *INDEXED_RESULTS,
    ),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("BN", "BM", "1")),
    accesses=accesses(k_step="1", results="BM * BN", global_loads="2 * BM * BN"),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0"),
    footprints=(
        footprint("A", "global load", "ty * lda"),
        footprint("B", "global load", "tx"),
        footprint("D", "global store", "ty * ldd + tx"),
    ),
    published=Published(time_ms=43.5, percent_of_cublas=8.1, chapter_step=1, chapter_percent="~10 %"),
)
