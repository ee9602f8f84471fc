from tilewright.declare import Lesson, Param, Rung, launch, problem_rule
from tilewright.rungs.tensor.t06_warp_specialised import RUNG as T06

TILES = "ceil_div(m, BM) * ceil_div(n, BN) * batch"

RUNG = Rung(
    number=7,
    track="tensor",
    builds_on="t06_warp_specialised",
    title="persistent",
    summary="Launch one CTA an SM and let each take tile after tile, in groups of rows that share the L2.",
    lesson=Lesson(
        idea="""\
The ring of stages does not end with a tile: while consumers write their results, the producer already fills it for
the next one. Tiles are numbered so that those in flight at one time form a block of D, GROUP_M rows high, and not a
long row: they read the same rows of A and columns of B, and the L2 serves them. GROUP_M = 1 is the naive order.""",
        prediction="""\
A tile's beginning is hidden, its end is not: consumers still write results with the tensor cores idle. Four points
more than the last rung, 92% of cuBLAS; and in the naive order, where the L2 no longer holds what the CTAs share, a
third less than that.""",
        cost="""\
Tiles are dealt out evenly: with a few more than a multiple of the SMs the last round leaves most of them idle, and a
CTA that meets a slow SM has no other to take its share.""",
        expires="""\
Writing results is the largest piece of time left in which nothing is multiplied. It needs registers and threads, but
not the tensor cores.""",
    ),
    params=(*T06.params, Param("GROUP_M", 16, (1, 4, 8, 16, 32), "rows of tiles that are walked together")),
    derived=T06.derived,
    from_problem=T06.from_problem,
    rules=(
        *T06.rules,
        problem_rule(f"{TILES} <= 2147483647 - 65536", "since tiles are numbered in 32 bits"),
        problem_rule("GROUP_M * ceil_div(n, BN) <= 2147483647", "since tiles of a group are numbered in 32 bits"),
    ),
    requires=T06.requires,
    shared=T06.shared,
    launch=launch(grid=(f"min({TILES}, sm_count)", "1", "1"), block=("NUM_THREADS", "1", "1")),
    accesses=T06.accesses,
    unguarded_when=T06.unguarded_when,
    tensor_maps=T06.tensor_maps,
)
