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
    number=1,
    track="simt",
    builds_on=None,
    title="uncoalesced",
    summary="One thread computes one result, but neighbouring threads walk down a column: every load is 32 loads.",
    lesson=Lesson(
        idea="""\
The product written down as it is defined: one thread for each result, a loop over k. Only the choice of which thread
gets which result is wrong. `threadIdx.x` is the fast index, so the 32 lanes of a warp are 32 consecutive values of it,
and here it numbers rows.""",
        prediction="""\
At each k the lanes read 32 elements of A that lie a whole row apart. Memory moves in 32-byte sectors, so 32 of them are
fetched for 128 bytes that are wanted, and the same for every store of D: about an eighth of the next rung's speed.""",
        cost="Nothing is bought here, so nothing is paid; this is the twin that makes the next rung's gain visible.",
        expires="Never right. A compiler or cache can hide part of it at small sizes, where whole rows stay in L1.",
    ),
    params=(
        Param("BM", 32, (8, 16, 32, 64), "rows of the CTA tile, threads along x", highest=1024),
        Param("BN", 32, (4, 8, 16, 32), "columns of the CTA tile, threads along y", highest=1024),
    ),
    rules=(
        config_rule("BM * BN <= 1024", "one thread computes one result, and a CTA has at most 1024"),
        config_rule("BM * BN % 32 == 0", "so that every warp is full"),
        *INDEXED_RESULTS,
    ),
    launch=launch(grid=("ceil_div(m, BM)", "ceil_div(n, BN)", "batch"), block=("BM", "BN", "1")),
    accesses=accesses(k_step="1", results="BM * BN", global_loads="2 * BM * BN"),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0"),
    footprints=(
        footprint("A", "global load", "tx * lda"),
        footprint("B", "global load", "ty"),
        footprint("D", "global store", "tx * ldd + ty"),
    ),
    published=Published(time_ms=334.8, percent_of_cublas=1.1),
)
