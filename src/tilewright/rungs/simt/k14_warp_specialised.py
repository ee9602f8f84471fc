from dataclasses import replace

from tilewright.declare import (
    INDEXED_RESULTS,
    Expr,
    Lesson,
    Param,
    Rung,
    binary_rule,
    config_rule,
    derived,
    shared,
    with_defaults,
)
from tilewright.rungs.simt.k13_multistage import LANES, THREAD_TILING, whole_copies
from tilewright.rungs.simt.k13_multistage import RUNG as K13

ROLES = (
    config_rule("MATH_THREADS % 128 == 0", "since registers move between whole warpgroups of four warps"),
    config_rule("NUM_THREADS <= 1024", "the most threads a CTA may have"),
    config_rule("COPY_REGISTERS % 8 == 0 and MATH_REGISTERS % 8 == 0", "since registers are given by eights"),
    config_rule("24 <= COPY_REGISTERS <= 256 and 24 <= MATH_REGISTERS <= 256", "what setmaxnreg takes"),
    config_rule(
        "COPY_REGISTERS * COPY_THREADS + MATH_REGISTERS * MATH_THREADS <= NUM_THREADS * START_REGISTERS",
        "since warpgroups share out the registers that the CTA starts with",
    ),
    config_rule(
        "COPY_REGISTERS <= START_REGISTERS <= MATH_REGISTERS",
        "since those that copy give registers back and those that multiply take them",
    ),
)

RUNG = Rung(
    number=14,
    track="simt",
    builds_on="k13_multistage",
    title="warp specialised",
    summary="Give copying to four warps of its own: those that multiply issue FMAs and wait only for their next stage.",
    lesson=Lesson(
        idea="""\
Four warps copy as long as a stage is empty; eight multiply as long as one is full. A full barrier counts the threads
whose copies have landed, an empty one the warps that have read the stage. So no barrier stops the CTA: a warp that is
ahead stays ahead. setmaxnreg moves registers from the warps that copy to those that hold sums.""",
        prediction="""\
Explored on an H200 before this kernel was written, 4096³ against cuBLAS: 1.065 to 1.08, where the same tiles with every
thread copying reached 1.05 to 1.06. The issue slots are then 96% full, 88% with FMAs, and power is near its limit.""",
        cost="""\
A third of the warps computes nothing, and one CTA fills an SM. Barriers whose parities and counts have to be right. An
architecture that can move registers between warps.""",
        expires="""\
Within a tile nothing is left to gain. The last wave is: 512 tiles on 132 SMs leave three in a hundred unused, and small
problems far more.""",
    ),
    params=(
        *with_defaults(K13.params, STAGES=6),
        Param("COPY_REGISTERS", 56, (24, 32, 40, 56), "registers of a thread that copies"),
        Param("MATH_REGISTERS", 224, (216, 224, 232, 240), "registers of a thread that multiplies"),
    ),
    derived=(
        derived("MATH_THREADS", "BM // WM * (BN // WN) * 32", "threads that multiply, the CTA's first"),
        derived("COPY_THREADS", "128", "threads that copy: one warpgroup"),
        derived("NUM_THREADS", "MATH_THREADS + COPY_THREADS", "threads of the CTA"),
        derived("START_REGISTERS", "min(65536 // NUM_THREADS // 8 * 8, 256)", "registers a thread starts with"),
        *LANES,
    ),
    from_problem=K13.from_problem,
    rules=(
        *THREAD_TILING,
        *ROLES,
        config_rule("BK % 2 == 0", "so that the two sets of fragments take turns from tile to tile"),
        config_rule("STAGES % 2 == 0", "since stages are filled two at a time"),
        config_rule("STAGES >= 4", "since a warp gives a stage back once the next one, of another pair, is full"),
        *whole_copies("COPY_THREADS"),
        *INDEXED_RESULTS,
        binary_rule("spill_bytes == 0", "a build that spills is no candidate"),
    ),
    requires=replace(K13.requires, features=frozenset({"cp_async", "setmaxnreg"})),
    shared=(
        *K13.shared,
        shared("full", "2", stages="STAGES", dynamic=True),
        shared("empty", "2", stages="STAGES", dynamic=True),
    ),
    launch=K13.launch,
    accesses=replace(
        K13.accesses, shared_loads=Expr("MATH_THREADS * BK * (TM + TN)"), math_threads=Expr("MATH_THREADS")
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % (2 * BK) == 0"),
    footprints=K13.footprints,
)
