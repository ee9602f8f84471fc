from tilewright.declare import Lesson, Param, Published, Requires, Rung, shared
from tilewright.rungs.simt.k10_padded import RUNG as K10

RUNG = Rung(
    number=11,
    track="simt",
    builds_on="k10_padded",
    title="double buffer",
    summary="Fetch the next tile while this one is multiplied: two stages, asynchronous copies, one barrier a tile.",
    lesson=Lesson(
        idea="""\
Two stages of shared memory take turns: while the warps multiply from one, the next tile fills the other. B needs no
change on its way and is copied asynchronously, straight from global to shared memory. A must be transposed, which only
registers can do: its loads are issued before the arithmetic and their results stored after it.""",
        prediction="""\
A CTA no longer stands still for a round trip to global memory at every tile, and one barrier orders both directions.
The gain is the stall that remained after other CTAs had covered their part of it: some five to ten percent.""",
        cost="""\
Twice the shared memory, and 16 registers for the A in flight, which on a Hopper card take it past the 128 that let four
CTAs fit an SM: with the shape of the rung below, three CTAs that pipeline can be slower than four that don't. A
pipeline of one tile ahead hides a latency no longer than the arithmetic of one tile.""",
        expires="""\
Latency hidden by the pipeline need not be hidden by occupancy: what many small CTAs were chosen for is gone, and so is
the reason for this shape. Copying both operands asynchronously frees the registers again.""",
    ),
    params=(
        *K10.params,
        Param(
            "MIN_CTAS", 0, (0, 1, 2), "CTAs an SM must hold, by launch bounds; 0 leaves it open", highest=32, lowest=0
        ),
    ),
    derived=K10.derived,
    rules=K10.rules,
    requires=Requires(features=frozenset({"cp_async"})),
    shared=(
        shared("As", "BK * A_STRIDE", stages="2", dynamic=True),
        shared("Bs", "BK * BN", stages="2", dynamic=True),
    ),
    launch=K10.launch,
    accesses=K10.accesses,
    footprints=tuple(access for access in K10.footprints if (access.name, access.kind) != ("Bs", "shared store")),
    published=Published(time_ms=4.28, percent_of_cublas=89.2, chapter_step=6, chapter_percent="~93 %"),
)
