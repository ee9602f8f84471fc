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
    number=3,
    track="simt",
    builds_on="k02_coalesced",
    title="flat block",
    summary="A control: the same threads numbered in one dimension do the same work at the same speed.",
    lesson=Lesson(
        idea="""\
The block is one row of BM·BN threads, and each thread divides its index by BN to find its row and column. A warp is 32
consecutive threads however they are numbered, so every lane computes the result it computed before.""",
        prediction="""\
No difference beyond the noise. A ladder needs such a rung: the ratio to the one below shows what a change that does
nothing looks like in the same measurement, and so how small a gain can be believed.""",
        cost="One division and one remainder by a constant, once a thread.",
        expires="""\
Later rungs need the flat index, since a CTA copies tiles and computes results in different shapes. Where BN is below 32
both numberings spread a warp over several rows alike.""",
    ),
    params=(
        Param("BM", 32, (4, 8, 16, 32), "rows of the CTA tile", highest=1024),
        Param("BN", 32, (8, 16, 32, 64), "columns of the CTA tile", highest=1024),
    ),
    rules=(
        config_rule("BM * BN <= 1024", "one thread computes one result, and a CTA has at most 1024"),
        config_rule("BM * BN % 32 == 0", "so that every warp is full"),
        *INDEXED_RESULTS,
    ),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("BM * BN", "1", "1")),
    accesses=accesses(k_step="1", results="BM * BN", global_loads="2 * BM * BN"),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0"),
    footprints=(
        footprint("A", "global load", "tx // BN * lda"),
        footprint("B", "global load", "tx % BN"),
        footprint("D", "global store", "tx // BN * ldd + tx % BN"),
    ),
    published=Published(time_ms=43.3, percent_of_cublas=8.1),
)
