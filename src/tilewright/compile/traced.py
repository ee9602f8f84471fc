"""Compiling kernels so that every memory access is reported: the emulator's microscope, beside its fast build.

The compiler's thread instrumentation puts a call before each access, and another where an index is beyond its
dimension; the tracing runner answers them, and no library of the compiler's is linked. The assembly in between is used
once: a gap is put around each static shared array, so that an access past its end is in no other array. Owns flags,
keys and gaps; `host` owns the compiler.
"""

from __future__ import annotations

from tilewright.compile import cache, host
from tilewright.compile.binary import Binary, KernelSource

TRACED = "+trace"
"""Ends the target of a binary that only the tracing runner can run."""
GAP_BYTES = 4096
"""A multiple of 128, so that every array keeps its place among the banks."""
RUNNER_DEFINE = "-DTILEWRIGHT_TRACE"
FLAGS = (
    *(flag for flag in host.KERNEL_FLAGS if flag not in ("-O1", "-shared")),
    # Enough to keep accumulators in registers and no vectors that the source did not ask for.
    *("-O2", "-S", "-fsanitize=thread"),
)
OWN_FLAGS = {
    # One access in the source stays one instruction: nothing is copied into, or shared between, branches.
    "gcc": (
        *("-fno-thread-jumps", "-fno-crossjumping", "-fno-tree-tail-merge", "-fno-code-hoisting"),
        *("--param", "tsan-instrument-func-entry-exit=0", "-fsanitize=bounds-strict"),
    ),
    "clang": (
        *("-Wno-pass-failed", "-mllvm", "-tsan-instrument-func-entry-exit=0"),
        *("-fsanitize=array-bounds", "-fno-sanitize-trap=array-bounds"),
    ),
}
LINK_FLAGS = ("-shared",)


def compile_traced(source: KernelSource) -> Binary:
    """`source` as a shared object for the tracing runner, from the cache where it is there.

    The text must end with `host_epilogue`. Raises CompileFailed with the compiler's message, and NoCompiler.
    """
    compiler = host.find_compiler()
    flags = (*FLAGS, *OWN_FLAGS["gcc" if compiler.family == "gcc" else "clang"], *host.instruction_flags())

    def build(key: str) -> Binary:
        files = host.source_files(source, compiler)
        assembly, log = host.compile_files(compiler, flags, source.name, files)
        text = with_gaps(assembly.decode())
        payload, _ = host.compile_files(compiler, LINK_FLAGS, source.name, {"source.s": text}, main="source.s")
        return Binary(source.entry, host.instruction_set() + TRACED, payload, key, compiler.version, log)

    made_by = (*flags, *LINK_FLAGS, str(GAP_BYTES))
    return cache.load_or_build(host.content_key(compiler, made_by, source), build)


def traced_runner() -> Binary:
    """The emulator's runner with the tracer in it. Raises NoCompiler, CompileFailed."""
    return host.runner((RUNNER_DEFINE,))


def with_gaps(assembly: str) -> str:
    """The assembly with GAP_BYTES before the first and after every array of zero-filled thread-local storage."""
    lines = ['\t.section\t.tbss,"awT",@nobits', f"\t.zero\t{GAP_BYTES}"]
    in_shared = False
    for line in assembly.splitlines():
        words = line.split()
        if words and words[0] in (".section", ".text", ".data", ".bss"):
            in_shared = len(words) > 1 and words[1].startswith(".tbss")
        if in_shared and len(words) == 2 and words[0] == ".zero":
            line = f"\t.zero\t{int(words[1]) + GAP_BYTES}"
        lines.append(line)
    return "\n".join(lines) + "\n"
