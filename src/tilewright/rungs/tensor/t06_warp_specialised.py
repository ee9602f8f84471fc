from dataclasses import replace

from tilewright.declare import Expr, Lesson, Param, Rung, config_rule, derived, shared
from tilewright.rungs.tensor.t05_wgmma import NO_SPILL, PROBLEM, TILING
from tilewright.rungs.tensor.t05_wgmma import RUNG as T05

ROLES = (
    Param("CONSUMERS", 2, (1, 2), "warpgroups that multiply", highest=3),
    Param("PRODUCER_REGISTERS", 24, (24, 40), "registers of a thread that copies", highest=256, lowest=24),
    Param("CONSUMER_REGISTERS", 240, (232, 240), "registers of a thread that multiplies", highest=256, lowest=24),
)
ROLE_RULES = (
    config_rule("BM % (64 * CONSUMERS) == 0", "so that each consumer has the same count of 64 rows"),
    config_rule("PRODUCER_REGISTERS % 8 == 0 and CONSUMER_REGISTERS % 8 == 0", "since registers are given by eights"),
    config_rule("24 <= PRODUCER_REGISTERS <= 256 and 24 <= CONSUMER_REGISTERS <= 256", "what setmaxnreg takes"),
    config_rule(
        "PRODUCER_REGISTERS + CONSUMERS * CONSUMER_REGISTERS <= (CONSUMERS + 1) * (512 // (CONSUMERS + 1) // 8 * 8)",
        "since warpgroups share out the registers that the CTA starts with, 512 for each four threads of an SM",
    ),
    config_rule(
        "PRODUCER_REGISTERS <= 512 // (CONSUMERS + 1) // 8 * 8 <= CONSUMER_REGISTERS",
        "since the producer gives registers back and consumers take them",
    ),
    config_rule(
        "BM // CONSUMERS * BN <= 128 * (CONSUMER_REGISTERS - 64)",
        "since a consumer's thread holds its sums beside some 64 registers for what else it needs",
    ),
)

RUNG = Rung(
    number=6,
    track="tensor",
    builds_on="t05_wgmma",
    title="warp specialised",
    summary="Give copying to one warpgroup and multiplying to two, a ring of stages with two barriers each between.",
    lesson=Lesson(
        idea="""\
A producer asks for tiles as long as a stage is empty; consumers multiply as long as one is full. A full barrier counts
the bytes that TMA brings, an empty one the warps whose products have read the stage. Each consumer keeps one step's
products running while it hands back the stage of the step before. setmaxnreg moves the producer's registers to the
consumers, so that a tile may be 128×256: fewer bytes from the L2 for each product.""",
        prediction="""\
Within a tile the tensor cores never stand still. What is left is a tile's beginning and end, when nothing is in flight
and results are written, with one CTA an SM and nobody to fill in. Public kernels of this build reach 85 to 88% of
cuBLAS, and a single consumer with all sums of 128×256 less than a fifth of that: its registers spill.""",
        cost="""\
Four warps that compute nothing, one CTA an SM, registers that must add up. Barriers whose parities and counts have to
be right: a mistake is a hang or a race.""",
        expires="A tile's end is still idle time. A CTA that goes on to the next tile can fill it.",
    ),
    params=(*(replace(p, default={"BN": 256, "STAGES": 4}.get(p.name, p.default)) for p in T05.params), *ROLES),
    derived=(derived("NUM_THREADS", "128 * (CONSUMERS + 1)", "threads of the CTA, the producer's first"),),
    from_problem=T05.from_problem,
    rules=(*TILING, *ROLE_RULES, NO_SPILL, *PROBLEM),
    requires=T05.requires,
    shared=(*T05.shared, shared("empty", "4", stages="STAGES", dynamic=True)),
    launch=T05.launch,
    accesses=replace(T05.accesses, math_threads=Expr("CONSUMERS * 128")),
    unguarded_when=T05.unguarded_when,
    tensor_maps=T05.tensor_maps,
)
