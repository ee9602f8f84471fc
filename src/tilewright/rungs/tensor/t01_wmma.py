from tilewright.declare import (
    COUNTED_K,
    INDEXED_RESULTS,
    Expr,
    Lesson,
    Param,
    Published,
    Requires,
    Rung,
    accesses,
    binary_rule,
    config_rule,
    derived,
    launch,
    problem_rule,
    shared,
)


def _bytes_aligned(operand: str) -> str:
    """An expression: the widest of 16, 8, 4 and 2 bytes that base, rows and batch entries of A or B are aligned to."""

    def holds(width: int) -> str:
        rows, entries = (
            f"{name} * element_bytes % {width} == 0" for name in (f"ld{operand}", f"batch_stride_{operand}")
        )
        return f"(alignment_bytes % {width} == 0 and {rows} and (batch == 1 or {entries}))"

    return f"2 + 2 * {holds(4)} + 4 * {holds(8)} + 8 * {holds(16)}"


FROM_PROBLEM = (
    derived("TRANSPOSED_A", "transposed_a", "whether A is stored k by m"),
    derived("TRANSPOSED_B", "transposed_b", "whether B is stored n by k"),
    derived("LOAD_BYTES_A", _bytes_aligned("a"), "what one load of A moves at most, by its alignment"),
    derived("LOAD_BYTES_B", _bytes_aligned("b"), "what one load of B moves at most, by its alignment"),
    derived(
        "PAIRED_OUTPUT",
        "alignment_bytes % (2 * out_bytes) == 0 and ldd % 2 == 0 and (batch == 1 or batch_stride_d % 2 == 0)"
        " and (reads_c == 0 or (ldc % 2 == 0 and (batch == 1 or batch_stride_c % 2 == 0)))",
        "whether two neighbouring results may be stored together",
    ),
)
WARP_TILING = (
    config_rule("BM % WM == 0", "so that warp tiles tile the CTA tile's rows"),
    config_rule("BN % WN == 0", "so that warp tiles tile the CTA tile's columns"),
    config_rule("WM % 16 == 0", "since a tensor core takes 16 rows"),
    config_rule("WN % 16 == 0", "since fragments of B are loaded for 16 columns"),
    config_rule("BK % 16 == 0", "since a tensor core takes 16 elements along k"),
    config_rule("NUM_THREADS <= 1024", "the most threads a CTA may have"),
)
SIZES = (
    problem_rule("max(BM, BK) * lda <= 2147483647", "since offsets inside a tile of A are 32-bit"),
    problem_rule("max(BN, BK) * ldb <= 2147483647", "since offsets inside a tile of B are 32-bit"),
    *INDEXED_RESULTS,
    COUNTED_K,
)

RUNG = Rung(
    number=1,
    track="tensor",
    builds_on=None,
    title="WMMA",
    summary="Let a warp multiply 16×16×16 at once: 16-bit elements in, float32 sums, an opaque fragment between.",
    lesson=Lesson(
        idea="""\
A tensor core multiplies small matrices, not pairs. A warp loads a 16×16 fragment of A and of B from shared memory and
adds their product to a fragment of sums. Elements are 16 bits, sums float32. Which lane holds which element is not
told, so results go through shared memory to be scaled, rounded and stored by rows.""",
        prediction="""\
Half the bytes and sixteen times the arithmetic an instruction: several times the best CUDA-core rung. The tensor cores
will mostly wait: tiles come through registers, with nothing in flight while they multiply.""",
        cost="""\
The precision of the elements, 8 or 11 bits. An epilogue through shared memory. Rows padded by 16 bytes, so that the
loads of a fragment do not all meet in the same banks.""",
        expires="""\
The instructions beneath say which lane holds what. Used directly they need no detour for the results, and let the
kernel choose how a tile lies in shared memory.""",
    ),
    params=(
        Param("BM", 128, (64, 128, 256), "rows of the CTA tile"),
        Param("BN", 128, (64, 128, 256), "columns of the CTA tile"),
        Param("BK", 32, (16, 32, 64), "depth of one step along k"),
        Param("WM", 64, (16, 32, 64, 128), "rows of the warp tile"),
        Param("WN", 64, (16, 32, 64, 128), "columns of the warp tile"),
    ),
    derived=(derived("NUM_THREADS", "BM // WM * (BN // WN) * 32", "threads of the CTA"),),
    from_problem=FROM_PROBLEM,
    rules=(
        *WARP_TILING,
        binary_rule(
            "WM * WN <= 4096 or spill_bytes == 0", "more than 128 accumulators a thread may not spill to memory"
        ),
        *SIZES,
    ),
    requires=Requires(
        layouts=("NT", "NN", "TN", "TT"),
        dtypes=("bfloat16", "float16"),
        out_dtypes=("bfloat16", "float16", "float32"),
        features=frozenset({"mma_sync"}),
    ),
    shared=(
        shared("As", "max(BM * (BK + 8), BK * (BM + 8))"),
        shared("Bs", "max(BN * (BK + 8), BK * (BN + 8))"),
        shared("patches", "NUM_THREADS // 32 * 16 * 16 * 2"),
    ),
    launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("NUM_THREADS", "1", "1")),
    accesses=accesses(
        k_step="BK",
        results="BM * BN",
        global_loads="BK * (BM + BN)",
        shared_loads="NUM_THREADS // 32 * BK * (WM + WN)",
        shared_stores="BK * (BM + BN)",
    ),
    unguarded_when=Expr("m % BM == 0 and n % BN == 0 and k % BK == 0"),
    published=Published(chapter_step=7, chapter_percent="55–60 % of the tensor peak"),
)
