from tilewright.declare import Expr, Param, Rung, accesses, config_rule, launch

RUNG = Rung(
    number=2,
    track="simt",
    builds_on="k01_uncoalesced",
    title="coalesced",
    lesson="Swap two index lines and a warp reads 32 neighbours in one go: the cheapest large gain there is.",
    text="""\
The same arithmetic, the same number of loads, two lines exchanged: `threadIdx.x` now numbers columns. At each k the
lanes of a warp read 32 neighbours of B, four sectors in place of 32, and all of them the same element of A, which is
one broadcast. Nothing about the algorithm moved; what changed is which addresses are asked for together.""",
    params=(
        Param("BM", 32, (4, 8, 16, 32), "rows of the CTA tile, threads along y", highest=1024),
        Param("BN", 32, (8, 16, 32, 64), "columns of the CTA tile, threads along x", highest=1024),
    ),
    rules=(
        config_rule("BM * BN <= 1024", "one thread computes one result, and a CTA has at most 1024"),
        config_rule("BM * BN % 32 == 0", "so that every warp is full"),
    ),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("BN", "BM", "1")),
    accesses=accesses(k_step="1", results="BM * BN", global_loads="2 * BM * BN"),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0"),
)
