"""A person's own .cu in the emulator: what is taken, what it computes there, what is refused and why."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from typer.testing import CliRunner

from tilewright.cli import app
from tilewright.compile.own_kernel import Parameter, own_kernel_source
from tilewright.emulator.tracing import Watch
from tilewright.errors import CompileFailed, InvalidInput
from tilewright.lab import own_kernel
from tilewright.lab.own_kernel import Argument, OwnKernel, trace_kernel

RUNNER = CliRunner()
TRANSPOSE = """#include <cuda_runtime.h>
#include "cuda_fp16.h"
#include <cassert>
// `main(` and <<<1, 1>>> in a comment launch nothing
template <int TILE>
__global__ void __launch_bounds__(TILE* TILE) transpose(int n, float alpha, const float* __restrict__ A, half* H) {
  extern __shared__ __align__(16) float tile[];
  __shared__ half copy[TILE][TILE];
  const int i = threadIdx.y * TILE + threadIdx.x;
  tile[threadIdx.x * TILE + threadIdx.y] = A[i];
  copy[threadIdx.y][threadIdx.x] = __float2half(A[i]);
  __syncthreads();
  assert(n > 0);
  if (i < n) H[i] = __hadd(__float2half(alpha * tile[i]), copy[threadIdx.x][threadIdx.y]);
}
"""
SPECIFICATIONS = ["n:int=256", "alpha:float=2", "A:const float[256]", "H:half[256]"]


def kernel(text: str, entry: str, specifications, *, block=(32, 1, 1), smem_bytes=0, **values) -> OwnKernel:
    arguments = [Argument.parse(specification) for specification in specifications]
    return OwnKernel(
        text=text,
        file="own.cu",
        entry=entry,
        grid=(1, 1, 1),
        block=block,
        arguments=arguments,
        dynamic_smem_bytes=smem_bytes,
        values=values,
    )


def run(own: OwnKernel, result: str, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """What the array named `result` holds after a checked launch."""
    kept = {}

    class Keeping(own_kernel.TracingBackend):
        def __exit__(self, *error):
            kept.update({array.label: array.bytes.copy() for array in self._memory.arrays()})
            super().__exit__(*error)

    monkeypatch.setattr(own_kernel, "TracingBackend", Keeping)
    trace, failure = trace_kernel(own, Watch(counts=False, checks=True))
    assert failure is None and not trace.findings
    dtype = next(argument.dtype for argument in own.arguments if argument.name == result)
    return kept[result].view(dtype)


def test_a_template_with_dynamic_shared_memory_and_halves_computes_what_it_says(monkeypatch):
    a = np.arange(256, dtype=np.float32)
    own = kernel(TRANSPOSE, "transpose<16>", SPECIFICATIONS, block=(16, 16, 1), smem_bytes=1024, A=a)
    expected = 3 * a.reshape(16, 16).T.reshape(-1).astype(np.float16)
    np.testing.assert_array_equal(run(own, "H", monkeypatch), expected)


def test_dynamic_shared_memory_may_be_declared_outside_the_kernel_on_its_own_line():
    text = "extern __shared__\nfloat tile[];\n\n__global__ void f(float* Y) {\n  Y[threadIdx.x] = tile[threadIdx.x];\n}"
    trace, _ = trace_kernel(kernel(text, "f", ["Y:float[32]"], smem_bytes=128), Watch(checks=True))
    (finding,) = trace.findings
    assert (finding.flaw, finding.array, finding.lines) == ("uninitialised", "dynamic shared memory", ("own.cu:5",))


def test_arguments_lie_as_the_kernel_reads_them(monkeypatch):
    text = """__global__ void f(char c, double d, half h, unsigned short s, long long l, double* Y) {
      Y[0] = c; Y[1] = d; Y[2] = float(h); Y[3] = s; Y[4] = double(l);
    }"""
    specifications = ["c:char=-3", "d:double=0.1", "h:half=0.5", "s:unsigned short=0xFFFF", f"l:long long={2**40}"]
    own = kernel(text, "f", [*specifications, "Y:double[5]"], block=(1, 1, 1))
    np.testing.assert_array_equal(run(own, "Y", monkeypatch), [-3, 0.1, 0.5, 65535, 2**40])


@settings(max_examples=25, deadline=None)
@given(npst.arrays(np.float32, 64, elements=st.floats(width=32) | st.floats(-70000, 70000, width=32)))
def test_halves_round_as_numpys_do(values):
    text = "__global__ void f(const float* A, half* H, float* F) { F[threadIdx.x] = H[threadIdx.x] = A[threadIdx.x]; }"
    own = kernel(text, "f", ["A:const float[64]", "H:half[64]", "F:float[64]"], block=(64, 1, 1), A=values)
    with pytest.MonkeyPatch.context() as patch:
        halves = run(own, "H", patch)
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    np.testing.assert_array_equal(halves, expected)
    with pytest.MonkeyPatch.context() as patch:
        np.testing.assert_array_equal(run(own, "F", patch), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__global__ void f() {}\nvoid go() { f<<<1, 1>>>(); }", "own.cu:2: `<<<…>>>` launches from the host"),
        ('__global__ void f() {\n\n  asm volatile("nop;"); }', "own.cu:3: inline assembly"),
        ("__global__ void f() {}\nint main() {}", "own.cu:2: `main` is host code"),
        ("__constant__ float c[4];", "own.cu:1: constant memory"),
        ("\n#include <cub/cub.cuh>", "own.cu:2: <cub/cub.cuh> is not emulated"),
        ("#include <mma.h>", "own.cu:1: <mma.h> is not emulated"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_line(text, words):
    with pytest.raises(InvalidInput) as refused:
        own_kernel_source(text, file="own.cu", entry="f", parameters=[])
    assert words in str(refused.value)


def test_what_the_host_compiler_does_not_know_is_named_with_its_line():
    text = "__global__ void f(float* Y) {\n  Y[0] = tex1Dfetch(Y, 0);\n}"
    with pytest.raises(CompileFailed, match=r"own.cu:2:.*tex1Dfetch"):
        trace_kernel(kernel(text, "f", ["Y:float[1]"]), Watch())


@pytest.mark.parametrize("text", ["A", "A:float", "A:quad[4]", "A:float[x]", "n:int=many", ":int=1"])
def test_an_argument_of_another_form_is_refused(text):
    with pytest.raises(InvalidInput):
        Argument.parse(text)


def test_an_arguments_type_is_its_parameters():
    assert Argument.parse("A:const  unsigned  int[4]").parameter == Parameter("A", "const unsigned int*")
    assert Argument.parse("n : int = 4").parameter == Parameter("n", "int")


def trace_file(tmp_path, text: str, *options: str):
    path = tmp_path / "own.cu"
    path.write_text(text, encoding="utf-8")
    return RUNNER.invoke(app, ["trace", str(path), *options], catch_exceptions=False)


def test_the_trace_command_prints_counts_and_findings(tmp_path):
    arguments = [word for specification in SPECIFICATIONS for word in ("--arg", specification)]
    options = ["--entry", "transpose<16>", "--block", "16,16", "--smem", "1024", *arguments]
    done = trace_file(tmp_path, TRANSPOSE, *options, "--line", "10")
    assert done.exit_code == 0
    assert "✓ no race" in done.stdout and "8 wavefronts, 4 of 32 banks" in done.stdout.replace("\n", " ")
    racy = trace_file(tmp_path, TRANSPOSE.replace("__syncthreads();", ""), *options, "--schedule", "reverse", "--json")
    assert racy.exit_code == 1
    (row,) = json.loads(racy.stdout)["rows"]
    assert any("no barrier between" in text for text in row["findings"]) and row["kernel"] == "transpose<16>"


def test_a_launch_that_fails_is_told_with_what_was_found_before(tmp_path):
    text = "__global__ void f(float* Y) {\n  Y[5000 + threadIdx.x] = 1;\n}"
    done = trace_file(tmp_path, text, "--entry", "f", "--block", "32", "--arg", "Y:float[32]")
    assert done.exit_code == 1
    assert "✗ writes past the end of Y: byte offset 20000" in done.stdout and "✗ OutOfBounds" in done.stdout


@pytest.mark.parametrize("options", [["--block", "0"], ["--block", "1,2,3,4"], ["--block", "32", "--svg", "x.svg"]])
def test_sizes_and_pictures_that_are_none_are_refused(tmp_path, options):
    assert trace_file(tmp_path, "__global__ void f() {}", "--entry", "f", *options).exit_code == 2
