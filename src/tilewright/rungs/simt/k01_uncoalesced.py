from tilewright.declare import Expr, Param, Rung, accesses, config_rule, launch

RUNG = Rung(
    number=1,
    track="simt",
    builds_on=None,
    title="uncoalesced",
    lesson="One thread computes one result, but neighbouring threads walk down a column: every load is 32 loads.",
    text="""\
The product written down as it is defined: one thread for each result, a loop over k. Only the choice of which
thread gets which result is wrong. `threadIdx.x` is the fast index, so the 32 lanes of a warp are 32 consecutive
values of it, and here it numbers rows. At each k the lanes read 32 elements of A that lie a whole row apart; the
memory system moves 32-byte sectors, so it fetches 32 of them for 128 bytes that are wanted.""",
    params=(
        Param("BM", 32, (8, 16, 32, 64), "rows of the CTA tile, threads along x", highest=1024),
        Param("BN", 32, (4, 8, 16, 32), "columns of the CTA tile, threads along y", highest=1024),
    ),
    rules=(
        config_rule("BM * BN <= 1024", "one thread computes one result, and a CTA has at most 1024"),
        config_rule("BM * BN % 32 == 0", "so that every warp is full"),
    ),
    launch=launch(grid=("ceil_div(m, BM)", "ceil_div(n, BN)", "batch"), block=("BM", "BN", "1")),
    accesses=accesses(k_step="1", results="BM * BN", global_loads="2 * BM * BN"),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0"),
)
