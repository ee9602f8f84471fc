from tilewright.declare import Lesson, Rung, config_rule, derived, operand_map, shared
from tilewright.rungs.tensor.t07_persistent import RUNG as T07

RUNG = Rung(
    number=8,
    track="tensor",
    builds_on="t07_persistent",
    title="deferred epilogue",
    summary="Send a tile's results out beside the next tile's first products, by stmatrix and TMA.",
    lesson=Lesson(
        idea="""\
When a tile is done its sums are scaled, rounded and packed, which halves their registers, and the next tile begins at
once. Each of its first steps has 64 columns of the last tile's results to send between starting its products and
waiting for them: stmatrix puts them into a small swizzled buffer, a fence shows them to TMA, and TMA stores whole lines
of D.""",
        prediction="""\
The tensor cores stop only to hand sums over, a percent of a tile's time. Writing results from registers costs nine
points at 4096 and three to four at 8192, where a tile is twice as long: that comes back. Two to three points above
cuBLAS at both; what is left is held by the card's power more than by the kernel.""",
        cost="""\
Half a tile's results in registers, four kilobytes of shared memory a warp. It serves results of 16 bits in rows of 16
bytes; others are written as before.""",
        expires="""\
What is left is data movement and its power: clusters whose CTAs share what TMA brings, and shapes that fill whole
rounds of tiles.""",
    ),
    params=T07.params,
    derived=T07.derived,
    from_problem=(
        *T07.from_problem,
        derived(
            "TMA_OUTPUT",
            "out_bytes == 2 and alignment_bytes % 16 == 0 and n % 8 == 0 and ldd % 8 == 0"
            " and (batch == 1 or batch_stride_d % 8 == 0)",
            "whether results leave by TMA, which stores 16 bytes at once and clips no finer",
        ),
    ),
    rules=(*T07.rules, config_rule("BN % 64 == 0", "since results leave in chunks of 64 columns")),
    requires=T07.requires,
    shared=(*T07.shared, shared("outboxes", "CONSUMERS * 4 * 2 * 16 * 64", dynamic=True)),
    launch=T07.launch,
    accesses=T07.accesses,
    unguarded_when=T07.unguarded_when,
    tensor_maps=(
        *T07.tensor_maps,
        operand_map("d", box_rows="16", box_cols="64", span_bytes="128", when="TMA_OUTPUT"),
    ),
)
