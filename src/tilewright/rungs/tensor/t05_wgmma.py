from tilewright.declare import (
    INDEXED_RESULTS,
    Expr,
    Lesson,
    OperandMap,
    Param,
    Published,
    Requires,
    Rung,
    accesses,
    binary_rule,
    config_rule,
    derived,
    launch,
    operand_map,
    problem_rule,
    shared,
    whole_tiles_indexed,
)
from tilewright.problem import ProblemKind
from tilewright.rungs.tensor.t01_wmma import RUNG as T01


def stored_tile(operand: str) -> tuple[str, str]:
    """Expressions: rows of a tile of A or B as it is stored, and the columns of one of its panels."""
    outer, transposed = {"a": ("BM", "TRANSPOSED_A"), "b": ("BN", "(1 - TRANSPOSED_B)")}[operand]
    rows = f"({transposed} * TILE_K + (1 - {transposed}) * {outer})"
    cols = f"({transposed} * {outer} + (1 - {transposed}) * TILE_K)"
    return rows, f"min({cols}, 128 // element_bytes)"


def tile_map(operand: str) -> OperandMap:
    """The map of A or B: a box is a panel of a tile, swizzled over its whole width."""
    rows, cols = stored_tile(operand)
    return operand_map(operand, box_rows=rows, box_cols=cols, span_bytes=f"{cols} * element_bytes")


def in_sixteens(operand: str) -> str:
    """An expression: whether TMA takes base, rows and batch entries of A or B."""
    rows, entries = (f"{name} * element_bytes % 16 == 0" for name in (f"ld{operand}", f"batch_stride_{operand}"))
    return f"alignment_bytes % 16 == 0 and {rows} and (batch == 1 or {entries})"


FROM_PROBLEM = (
    derived("TILE_K", "BK * 2 // element_bytes", "elements of one step along k"),
    derived("TRANSPOSED_A", "transposed_a", "whether A is stored k by m"),
    derived("TRANSPOSED_B", "transposed_b", "whether B is stored n by k"),
    derived("BATCHED_A", "batch_stride_a > 0", "whether each batch entry has an A of its own"),
    derived("BATCHED_B", "batch_stride_b > 0", "whether each batch entry has a B of its own"),
    next(item for item in T01.from_problem if item.name == "PAIRED_OUTPUT"),
)
TILING = (
    config_rule("BM % 64 == 0", "since a wgmma takes 64 rows"),
    config_rule("BN % 8 == 0 and BN <= 256", "since a wgmma takes a multiple of 8 columns, 256 at most"),
    config_rule("BK == 16 or BK == 32 or BK % 64 == 0", "so that a row of a tile is as wide as a swizzle, or several"),
    config_rule("BM <= 256", "since a box of TMA has 256 rows at most"),
)
NO_SPILL = binary_rule("spill_bytes == 0", "sums in memory would make each product wait for the last")
PROBLEM = (
    problem_rule(in_sixteens("a"), "since TMA takes A's rows and base in multiples of 16 bytes; t04 takes any of 4"),
    problem_rule(in_sixteens("b"), "since TMA takes B's rows and base in multiples of 16 bytes; t04 takes any of 4"),
    problem_rule(
        "transposed_b or BN == 16 or BN == 32 or BN % 64 == 0",
        "since a tile of B stored k by n comes in panels of 64 columns",
    ),
    *INDEXED_RESULTS,
    whole_tiles_indexed("k", "TILE_K", "elements of k"),
)

RUNG = Rung(
    number=5,
    track="tensor",
    builds_on="t04_multistage",
    title="TMA and wgmma",
    summary="Let Hopper's tensor cores read both operands from shared memory, and one thread have them brought there.",
    lesson=Lesson(
        idea="""\
wgmma multiplies 64 rows by up to 256 columns with four warps together. Its operands are not registers but
descriptors: where a tile lies in shared memory, how its rows follow, how they are swizzled. TMA writes tiles just so:
one thread names a box of the matrix, and the hardware copies, swizzles, fills with zeros what lies outside, and counts
the bytes that have come in an mbarrier. Both run beside the threads, which only start them and wait.""",
        prediction="""\
Instructions for fragments, addresses and copies are gone, and with them mma.sync's limit of some 63% of the peak. The
tensor cores still wait at each step's end, until all four warps are done and the next copy is asked for; more CTAs an
SM cover part of that. Public kernels of this build reach 59% of cuBLAS on a Hopper card, the last rung 53. (This and
the next three predictions rest on public figures. They were written after a first run on the card, which they leave
out of account.)""",
        cost="""\
An instruction set of one architecture: sm_90a. Rows and bases in multiples of 16 bytes, since TMA takes no others. Two
kinds of memory access that see each other only through fences and barriers.""",
        expires="""\
One warpgroup that copies, multiplies and waits in turn leaves the tensor cores idle between. The roles can be
different warps'.""",
    ),
    params=(
        Param("BM", 128, (64, 128, 192), "rows of the CTA tile"),
        Param("BN", 128, (64, 96, 128, 160, 192, 256), "columns of the CTA tile"),
        Param("BK", 64, (32, 64, 128), "depth of one step along k, in elements of 16 bits"),
        Param("STAGES", 2, (2, 3, 4, 5, 6), "tiles in the ring", highest=8, lowest=1),
    ),
    derived=(derived("NUM_THREADS", "128", "threads of the CTA: one warpgroup"),),
    from_problem=FROM_PROBLEM,
    rules=(
        *TILING,
        config_rule("BM * BN <= 192 * 128", "since a thread holds 192 sums at most beside what else it needs"),
        NO_SPILL,
        *PROBLEM,
    ),
    requires=Requires(
        layouts=T01.requires.layouts,
        dtypes=("bfloat16", "float16"),
        out_dtypes=("bfloat16", "float16", "float32"),
        also=(ProblemKind("NT", "tfloat32", "float32"),),
        row_bytes=16,
        features=frozenset({"tma", "wgmma"}),
    ),
    shared=(
        shared("As", "BM * BK", stages="STAGES", dynamic=True),
        shared("Bs", "ceil_div(BN * BK, 512) * 512", stages="STAGES", dynamic=True),
        shared("full", "4", stages="STAGES", dynamic=True),
    ),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="BM // 64 * BK * (64 + BN)",
        shared_stores="BK * (BM + BN)",
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0"),
    tensor_maps=(tile_map("a"), tile_map("b")),
    published=Published(chapter_step=7, chapter_percent="95 % of the tensor peak"),
)
