from dataclasses import replace

from tilewright.declare import Lesson, Param, Rung, config_rule, derived, launch, operand_map, shared
from tilewright.rungs.simt.k13_multistage import NUMBERED_TILES, TILES, aligned
from tilewright.rungs.simt.k14_warp_specialised import RUNG as K14

START_REGISTERS = derived(
    "START_REGISTERS", "min(65536 // (NUM_THREADS * MIN_CTAS) // 8 * 8, 256)", "registers a thread starts with"
)

RUNG = Rung(
    number=21,
    track="simt",
    builds_on="k14_warp_specialised",
    title="deferred stores",
    summary="Have TMA store a tile's results from shared memory while the next tile is multiplied.",
    lesson=Lesson(
        idea="""\
With a k of 32 a tile's FMAs take as long as writing its results, and a kernel that first multiplies and then stores
takes about the sum of both; several CTAs an SM do so too, as they start together and stay in step. Other warps that
store do not help (four warps that emptied the same outboxes took 34.3 µs): presumably their stores stand in the queue
that shared-memory reads go through as well. TMA has a way of its own. A warp leaves its results in shared memory, one
thread names the box, and the next tile's FMAs begin.""",
        prediction="""\
4096×4096×32 writes 64 MiB, 16 to 20 µs at the rate at which the H200 writes, and its FMAs take 19. Ordinary tiles take
33, about the sum; cuBLAS 48. Overlapped, with a beginning and an end: 27 µs, 1.8 of cuBLAS. For k = 64 the FMAs take
38: 44 µs, 1.6. For k = 16 writing is all: 23 µs, 1.6, no better than rung 18.""",
        cost="""\
An outbox as large as the tile, so one CTA an SM and a shorter ring. An architecture with TMA, and D in rows of 16
bytes; others are written as before.""",
        expires="From a k of a few hundred on stores are a small part of the time, and the last wave a larger one.",
    ),
    params=(
        *K14.params,
        Param("MIN_CTAS", 1, (1, 2), "CTAs an SM holds, by launch bounds and as the grid counts them"),
    ),
    derived=tuple(START_REGISTERS if item.name == START_REGISTERS.name else item for item in K14.derived),
    from_problem=(
        *K14.from_problem,
        derived(
            "TMA_OUTPUT",
            f"OUTPUT_WORD == 4 and n % 4 == 0 and {aligned('d', 4)}",
            "whether results leave by TMA, which stores 16 bytes at once and clips no finer",
        ),
    ),
    rules=(
        *K14.rules,
        config_rule("WN % 32 == 0", "since results leave in boxes of 32 columns"),
        NUMBERED_TILES,
    ),
    requires=replace(K14.requires, features=K14.requires.features | {"tma"}),
    shared=(shared("outboxes", "BM * BN", dynamic=True), *K14.shared),
    launch=launch(grid=(f"min({TILES}, sm_count * MIN_CTAS)", "1", "1"), block=("NUM_THREADS", "1", "1")),
    accesses=K14.accesses,
    unguarded_when=K14.unguarded_when,
    tensor_maps=(operand_map("d", box_rows="WM", box_cols="32", span_bytes="128", when="TMA_OUTPUT"),),
    footprints=K14.footprints,
)
