from tilewright.declare import (
    INDEXED_RESULTS,
    Expr,
    Lesson,
    Param,
    Requires,
    Rung,
    accesses,
    binary_rule,
    config_rule,
    derived,
    footprint,
    launch,
    problem_rule,
    shared,
)
from tilewright.declare.rules import Rule

TILES = "ceil_div(m, BM) * ceil_div(n, BN) * batch"
NUMBERED_TILES = problem_rule(f"{TILES} <= 2147483647 - 65536", "since tiles are numbered in 32 bits")


def aligned(operand: str, elements: int) -> str:
    """An expression: whether base, rows and batch entries of the operand are aligned to so many elements."""
    width = 4 * elements
    entries = f"(batch == 1 or batch_stride_{operand} % {elements} == 0)"
    return f"(alignment_bytes % {width} == 0 and ld{operand} % {elements} == 0 and {entries})"


FROM_PROBLEM = (
    derived("TRANSPOSED_A", "transposed_a", "whether A is stored k by m"),
    derived("TRANSPOSED_B", "transposed_b", "whether B is stored n by k"),
    derived(
        "WORD_A", f"1 + 3 * (transposed_a and {aligned('a', 4)})", "elements of A in one copy, by layout and alignment"
    ),
    derived(
        "WORD_B",
        f"1 + 3 * (not transposed_b and {aligned('b', 4)})",
        "elements of B in one copy, by layout and alignment",
    ),
    derived(
        "OUTPUT_WORD",
        f"1 + 3 * ({aligned('d', 4)} and (reads_c == 0 or {aligned('c', 4)}))",
        "results in one store, by the alignment of D and C",
    ),
)
LANES = (
    derived("LANE_ROWS", "WM // TM", "lanes of a warp along the rows"),
    derived("LANE_COLS", "WN // TN", "lanes of a warp along the columns"),
)
THREAD_TILING = (
    config_rule("BM % WM == 0", "so that warps tile the CTA tile's rows"),
    config_rule("BN % WN == 0", "so that warps tile the CTA tile's columns"),
    config_rule("TM % 4 == 0", "since a thread's rows come in fours"),
    config_rule("TN % 4 == 0", "since a thread's columns come in fours"),
    config_rule("WM % TM == 0", "so that lanes tile the warp tile's rows"),
    config_rule("WN % TN == 0", "so that lanes tile the warp tile's columns"),
    config_rule("LANE_ROWS * LANE_COLS == 32", "so that each lane has one thread tile"),
)


def whole_copies(threads: str, tiles: tuple[str, ...] = ("BM", "BN")) -> tuple[Rule, ...]:
    """The rules under which so many threads copy tiles in whole passes, whatever the layout and alignment.

    `tiles` are how wide they are across k.
    """
    rules = [config_rule(f"{threads} % BK == 0", "so that one pass copies whole rows of what is stored along k")]
    for width in tiles:
        for words in (width, f"{width} // 4"):
            rules += [
                config_rule(
                    f"max({threads}, {words}) % min({threads}, {words}) == 0",
                    "so that a pass copies whole rows, or a row takes whole passes",
                ),
                config_rule(
                    f"BK * ({words}) % {threads} == 0 or BK * ({words}) < {threads}",
                    "so that all passes but a single one are whole",
                ),
            ]
    return tuple(rules)


RUNG = Rung(
    number=13,
    track="simt",
    builds_on="k12_tall_thread_tile",
    title="multi-stage, any problem",
    summary="Copy both operands asynchronously, one element at a time where that transposes, into a ring of stages.",
    lesson=Lesson(
        idea="""\
An asynchronous copy may move four bytes, to any place: sent one element at a time, A arrives transposed without ever
having been in a register. So all of shared memory is a ring of stages that fills by itself, several tiles ahead, and
registers are left for a second set of fragments, loaded one k ahead. The same copies take any alignment, and fill with
zeros what lies outside a matrix: no size, layout or stride is refused. Sixteen bytes go at once where rows run across k
and are aligned.""",
        prediction="""\
Explored on an H200 before this kernel was written, against cuBLAS at 4096³: A through registers 1.00, with fragments
one k ahead 1.03, with every copy asynchronous 1.05 to 1.06, whether with 3, 4 or 5 stages. BK = 16 only 1.02, as its
loop no longer fits the instruction cache; a CTA tile of 256×128 0.99.""",
        cost="""\
Four times the copies of an operand that is stored along k, or not aligned: some two in a hundred of all instructions.
At one CTA an SM a small problem leaves most of the card idle; 64×64 tiles are for those.""",
        expires="""\
Copying takes issue slots from the warps that multiply, and stops them all at one barrier a tile. Other warps can do
it.""",
    ),
    params=(
        Param("BM", 128, (32, 64, 128, 256), "rows of the CTA tile"),
        Param("BN", 256, (32, 64, 128, 256), "columns of the CTA tile"),
        Param("BK", 8, (8, 16, 32), "depth of one step along k"),
        Param("WM", 64, (16, 32, 64, 128), "rows of the warp tile"),
        Param("WN", 64, (16, 32, 64, 128), "columns of the warp tile"),
        Param("TM", 8, (4, 8, 16), "rows of the thread tile"),
        Param("TN", 16, (4, 8, 16), "columns of the thread tile"),
        Param("STAGES", 4, (2, 3, 4, 5, 6), "tiles in the ring", highest=8, lowest=2),
    ),
    derived=(
        derived("NUM_THREADS", "BM // WM * (BN // WN) * 32", "threads of the CTA"),
        *LANES,
    ),
    from_problem=FROM_PROBLEM,
    rules=(
        *THREAD_TILING,
        config_rule("32 <= NUM_THREADS <= 1024", "a warp at least, and the most threads a CTA may have"),
        config_rule("BK % 2 == 0", "so that the two sets of fragments take turns from tile to tile"),
        *whole_copies("NUM_THREADS"),
        *INDEXED_RESULTS,
        binary_rule("TM * TN <= 128 or spill_bytes == 0", "more than 128 accumulators may not spill to memory"),
    ),
    requires=Requires(layouts=("NN", "NT", "TN", "TT"), features=frozenset({"cp_async"})),
    shared=(
        shared("As", "BK * (BM + 4)", stages="STAGES", dynamic=True),
        shared("Bs", "BK * (BN + 4)", stages="STAGES", dynamic=True),
    ),
    launch=launch(grid=(TILES, "1", "1"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS * BK * (TM + TN)",
        shared_stores="BK * (BM + BN)",
        copies="BK * (BM // WORD_A + BN // WORD_B)",
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % BK == 0"),
    footprints=(
        footprint("A", "global load", "tx // BK * lda + tx % BK"),
        footprint("B", "global load", "tx // (BN // 4) * ldb + tx % (BN // 4) * 4", elements="4"),
        footprint("As", "shared load", "lane // LANE_COLS * 4", elements="4"),
        footprint("Bs", "shared load", "lane % LANE_COLS * 4", elements="4"),
        footprint("D", "global store", "lane // LANE_COLS * 4 * ldd + lane % LANE_COLS * 4", elements="4"),
    ),
)
