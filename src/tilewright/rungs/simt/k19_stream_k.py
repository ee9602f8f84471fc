from tilewright.declare import Lesson, Param, Rung, launch, scratch, shared
from tilewright.rungs.simt.k13_multistage import NUMBERED_TILES, TILES
from tilewright.rungs.simt.k14_warp_specialised import RUNG as K14

RUNG = Rung(
    number=19,
    track="simt",
    builds_on="k14_warp_specialised",
    title="Stream-K",
    summary="Deal out the last wave's steps along k to all SMs evenly, and add the parts of a tile in their order.",
    lesson=Lesson(
        idea="""\
As many CTAs as there are SMs. Tiles that fill whole waves go to one CTA each; the steps of the tiles left over stand
in one line, of which every CTA takes an equal share, so that a tile may be cut into parts. A part goes to the
workspace, and whoever brings the last one adds them in the order of k. So bits depend on the number of SMs, and never
on timing.""",
        prediction="""\
4096³ has 512 tiles on 132 SMs: 3.88 waves that take as long as 4. Sharing out the last one is worth 3%, less the
partial sums, some 30 MB through the L2: 1.05 of cuBLAS becomes 1.07 to 1.08. At 1024³, 32 tiles for 132 SMs, one CTA a
tile reaches 0.35 and cutting each in four should beat slices of whole CTAs: 1.1.""",
        cost="""\
A workspace of two tiles a CTA, a flag a tile, and the time in which one CTA adds up the parts of a tile, more than 24
in groups of eight. A config gives other bits on a card of another size.""",
        expires="""\
Issue slots, register ports and power are what is left. Power is the same for every kernel that does the same FMAs.""",
    ),
    params=(
        *K14.params,
        Param("LEAST_STEPS", 2, (1, 2, 4, 8), "double steps along k that a share of tiles in parts has at least"),
    ),
    derived=K14.derived,
    from_problem=K14.from_problem,
    rules=(*K14.rules, NUMBERED_TILES),
    requires=K14.requires,
    shared=(*K14.shared, shared("plan", "6", dynamic=True), shared("arrived", "1", dynamic=True)),
    launch=launch(
        grid=(f"min({TILES} * max(ceil_div(k, 2 * BK), 1), sm_count)", "1", "1"), block=("NUM_THREADS", "1", "1")
    ),
    scratch=scratch(sums="2 * sm_count * BM * BN", flags="4 * sm_count"),
    accesses=K14.accesses,
    unguarded_when=K14.unguarded_when,
    footprints=K14.footprints,
)
