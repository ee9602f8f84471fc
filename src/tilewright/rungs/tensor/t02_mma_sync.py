from tilewright.declare import Lesson, Published, Requires, Rung, shared
from tilewright.rungs.tensor.t01_wmma import RUNG as T01

RUNG = Rung(
    number=2,
    track="tensor",
    builds_on="t01_wmma",
    title="mma.sync and ldmatrix",
    summary="Use the tensor core's own instruction: who holds which element is known, and results go straight to D.",
    lesson=Lesson(
        idea="""\
mma.sync multiplies 16×16 by 16×8, and its manual says which element every register of every lane holds. ldmatrix
brings four 8×8 matrices of a tile to just those registers, turned where the layout asks for it. So results are scaled
and stored from the registers they were summed in.""",
        prediction="""\
The epilogue's detour is gone, and fragments cost fewer instructions. But the tiles lie plainly in shared memory: the
eight rows of a matrix are a power of two apart and meet in few banks, so that ldmatrix takes two to eight times the
wavefronts it needs. The gain over the last rung may be none.""",
        cost="The kernel is tied to one shape of instruction, and to the order of its fragments.",
        expires="Shared memory's banks are the limit now. Where a row's chunks lie is the kernel's choice.",
    ),
    params=T01.params,
    derived=T01.derived,
    from_problem=T01.from_problem,
    rules=T01.rules,
    requires=Requires(
        layouts=T01.requires.layouts,
        dtypes=T01.requires.dtypes,
        out_dtypes=T01.requires.out_dtypes,
        features=frozenset({"mma_sync", "ldmatrix"}),
    ),
    shared=(shared("As", "BM * BK"), shared("Bs", "BN * BK")),
    launch=T01.launch,
    accesses=T01.accesses,
    unguarded_when=T01.unguarded_when,
    published=Published(chapter_step=7, chapter_percent="62.9 % of the tensor peak"),
)
