from tilewright.declare import Lesson, Param, Published, Rung, accesses, config_rule, derived, footprint, launch, shared
from tilewright.rungs.simt.k08_warp_tile import RUNG as K08

RUNG = Rung(
    number=10,
    track="simt",
    builds_on="k08_warp_tile",
    title="padded",
    summary="Lengthen the rows of As by two elements: the transposed store no longer meets itself in the banks.",
    lesson=Lesson(
        idea="""\
Element (row, k) of A is stored at k·A_STRIDE + row. Lanes that hold different k and the same row differ by multiples of
A_STRIDE; with A_STRIDE = BM, a multiple of 32, that is always the same bank. Two elements of padding turn each k by two
banks, and the warp's stores fall into 32 different ones.""",
        prediction="""\
The store takes one pass in place of four, and nothing else moves. But stores are a few instructions of a tile among a
thousand FMAs, so what a profiler shows as most of the conflicts is a small part of the time.""",
        cost="""\
BK·PAD elements of shared memory. A stride of 130 leaves every other row on an 8-byte boundary only, so that reads of As
there take two instructions in place of one: a tax on the busy path to mend the idle one.""",
        expires="""\
With wide thread tiles the reads of As are long and many, and the tax outweighs the conflict. Once A is copied
asynchronously there is no store left to mend.""",
    ),
    params=(*K08.params, Param("PAD", 2, (0, 2, 4, 8), "elements that each row of As is longer", lowest=0)),
    derived=(*K08.derived, derived("A_STRIDE", "BM + PAD", "elements between rows of As")),
    rules=(*K08.rules, config_rule("A_STRIDE % 2 == 0", "so that As is read at least 8 bytes at a time")),
    shared=(shared("As", "BK * A_STRIDE"), shared("Bs", "BK * BN")),
    launch=launch(grid=("n // BN", "m // BM", "batch"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS * BK * (WMITER * TM + WNITER * TN)",
        shared_stores="BK * (BM + BN)",
    ),
    footprints=(
        footprint("A", "global load", "tx // (BK // 4) * lda + tx % (BK // 4) * 4", elements="4"),
        footprint("B", "global load", "tx // (BN // 4) * ldb + tx % (BN // 4) * 4", elements="4"),
        footprint("As", "shared store", "tx % (BK // 4) * 4 * A_STRIDE + tx // (BK // 4)"),
        footprint("Bs", "shared store", "tx // (BN // 4) * BN + tx % (BN // 4) * 4", elements="4"),
        footprint("As", "shared load", "lane // (WSUBN // TN) * TM", elements="4 - A_STRIDE % 4"),
        footprint("Bs", "shared load", "lane % (WSUBN // TN) * TN", elements="4"),
        footprint("D", "global store", "lane // (WSUBN // TN) * TM * ldd + lane % (WSUBN // TN) * TN", elements="4"),
    ),
    published=Published(time_ms=4.66, percent_of_cublas=81.9),
)
