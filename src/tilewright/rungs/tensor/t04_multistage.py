from dataclasses import replace

from tilewright.declare import COUNTED_K, Lesson, Param, Rung, config_rule, problem_rule, shared, with_defaults
from tilewright.rungs.tensor.t03_swizzled import RUNG as T03

RUNG = Rung(
    number=4,
    track="tensor",
    builds_on="t03_swizzled",
    title="multi-stage pipeline",
    summary="Keep several tiles in flight by asynchronous copies, and fragments one step ahead of the tensor cores.",
    lesson=Lesson(
        idea="""\
Shared memory is a ring of stages. While one tile is multiplied, the next ones are copied without passing through
registers; one barrier a tile hands the finished stage out and the read one back. Within a tile, the fragments of the
next step along k are loaded before this step is multiplied, into a second set of registers.""",
        prediction="""\
Neither a round trip to global memory nor one to shared memory stands between two products any more. Two to three times
the rung below; the limit becomes mma.sync itself, which on a Hopper card reaches some 63% of the tensor peak.""",
        cost="""\
STAGES times the shared memory, which leaves room for one or two CTAs an SM, and twice the fragment registers.
Asynchronous copies are of 4 bytes at least: rows of an odd number of elements cannot be served.""",
        expires="""\
On the architectures before Hopper this is where most kernels stop. Hopper's tensor cores read both operands from shared
memory themselves, four warps at a time, and its copies need one thread in place of all.""",
    ),
    params=(
        *with_defaults(T03.params, BN=256),
        Param("STAGES", 4, (2, 3, 4, 5, 6), "tiles in the ring", highest=8, lowest=2),
    ),
    derived=T03.derived,
    from_problem=T03.from_problem,
    rules=(
        *(rule for rule in T03.rules if rule != COUNTED_K),  # it counts steps
        config_rule("BK % 32 == 0", "so that a tile has an even number of steps for the two sets of fragments"),
        problem_rule("LOAD_BYTES_A >= 4", "since an asynchronous copy of A moves 4 bytes at least"),
        problem_rule("LOAD_BYTES_B >= 4", "since an asynchronous copy of B moves 4 bytes at least"),
    ),
    requires=replace(T03.requires, features=T03.requires.features | {"cp_async"}, row_bytes=4),
    shared=(
        shared("As", "BM * BK", stages="STAGES", dynamic=True),
        shared("Bs", "BN * BK", stages="STAGES", dynamic=True),
    ),
    launch=T03.launch,
    accesses=T03.accesses,
    unguarded_when=T03.unguarded_when,
)
