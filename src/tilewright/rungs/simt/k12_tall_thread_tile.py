from tilewright.declare import Lesson, Published, Rung, with_defaults
from tilewright.rungs.simt.k11_double_buffer import RUNG as K11

RUNG = Rung(
    number=12,
    track="simt",
    builds_on="k11_double_buffer",
    title="tall thread tile",
    summary="The same kernel with other constants: few fat threads, no padding, and launch bounds that allow it.",
    lesson=Lesson(
        idea="""\
No new code. The pipeline hides the latency that many small CTAs were there to hide, so the constants are chosen again:
128 accumulators a thread in place of 64, sixteen neighbouring rows of A, and no padding, since it would split every
other read of them. Launch bounds say that one CTA an SM is enough, so that registers need not be saved.""",
        prediction="""\
Per k a thread reads 24 elements in six instructions for 128 FMAs, where the last rung needed four or six for 64. On the
article's card each constant earned its points, the second launch bound most of them.""",
        cost="""\
More than 200 registers: two CTAs an SM, an eighth of the warps. A few more accumulators would spill. Coarser tiles
waste more at the edges, and small problems leave SMs without one.""",
        expires="""\
Constants are right for one card and one compiler. The second launch bound changes the register count on some
architectures and nothing on others. BK = 16 unrolled is a loop twice the size of what an instruction cache may hold,
where BK = 8 is not. So the last lesson is to measure again, and a record says when that was done.""",
    ),
    params=with_defaults(K11.params, BN=128, WN=64, TM=16, PAD=0, MIN_CTAS=1),
    derived=K11.derived,
    rules=K11.rules,
    requires=K11.requires,
    shared=K11.shared,
    launch=K11.launch,
    accesses=K11.accesses,
    footprints=K11.footprints,
    published=Published(time_ms=3.93, percent_of_cublas=97.1),
    kernel="k11_double_buffer",
)
