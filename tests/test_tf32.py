from itertools import product

import numpy as np
import pytest

from test_declare import tiny
from tilewright.compile.source import kernel_source
from tilewright.declare import Param, Requires, launch, rung_config
from tilewright.errors import InvalidProblem
from tilewright.lab.ladder_command import LadderRequest
from tilewright.lab.verifying import emulator_run, problems_for
from tilewright.problem import Problem, ProblemKind
from tilewright.run.emulator import EmulatorBackend
from tilewright.verify import make_operands, verify
from tilewright.verify.layers import checks

TF32 = ProblemKind("NT", "tfloat32", "float32")
TENSOR = Requires(
    layouts=("NT", "NN"), dtypes=("bfloat16", "float16"), out_dtypes=("bfloat16", "float32"), also=(TF32,)
)
NAIVE = r"""
float to_tf32(float x) {
  unsigned pattern;
  __builtin_memcpy(&pattern, &x, sizeof pattern);
  if ((pattern & 0x7FFFFFFFu) < 0x7F800000u) pattern = (pattern + 0xFFFu + (pattern >> 13 & 1)) & 0xFFFFE000u;
  __builtin_memcpy(&x, &pattern, sizeof x);
  return x;
}
float factor(float x) { return RETURN; }
extern "C" __global__ void naive_tf32(const __grid_constant__ GemmArgs args) {
  const int row = blockIdx.y * 8 + threadIdx.y, col = blockIdx.x * 8 + threadIdx.x;
  if (row >= args.m || col >= args.n) return;
  const float* a = args.a + blockIdx.z * args.batch_stride_a + row * args.lda;
  const float* b = args.b + blockIdx.z * args.batch_stride_b + col * args.ldb;
  float sum = 0;
  for (int k = 0; k < args.k; ++k) sum += factor(a[k]) * factor(b[k]);
  float x = args.alpha * sum;
  if (args.beta != 0) x += args.beta * args.c[blockIdx.z * args.batch_stride_c + row * args.ldc + col];
  args.d[blockIdx.z * args.batch_stride_d + row * args.ldd + col] = x;
}
"""


def naive(factor: str):
    """A kernel without tensor cores whose factors are `factor` of an element x."""
    return rung_config(
        tiny(
            name="naive_tf32",
            params=(Param("BM", 8, (8,), "rows"), Param("BN", 8, (8,), "columns")),
            requires=Requires(layouts=("NT",), dtypes=("tfloat32",), out_dtypes=("float32",)),
            launch=launch(grid=("ceil_div(n, BN)", "ceil_div(m, BM)", "batch"), block=("BN", "BM", "1")),
            source=NAIVE.replace("RETURN", factor),
        )
    )


SIZES = [
    Problem(m=9, n=7, k=33, alpha=0.5, beta=2.0, **TF32._asdict()),
    Problem(m=8, n=8, k=64, batch=2, **TF32._asdict()),
]


def test_a_product_of_rounded_elements_passes_every_layer():
    with EmulatorBackend() as backend:
        verify(emulator_run(naive("to_tf32(x)"), backend), SIZES).raise_if_wrong()


def test_a_product_of_fewer_bits_than_tf32_has_exceeds_the_bound():
    with EmulatorBackend() as backend:
        run = emulator_run(naive("BF16::widen(BF16::round(x))"), backend)
        assert not all(check.ok for check in checks(run, SIZES, layers="bound"))


def test_operands_are_float32_in_memory():
    operands = make_operands(SIZES[0], "integer")
    assert {x.dtype for x in (operands.a, operands.b, operands.c, operands.d)} == {np.dtype(np.float32)}
    assert np.abs(operands.logical("a")).max() <= 2**11
    assert SIZES[0].operand_bytes == 4 * (9 * 33 + 7 * 33 + 2 * 9 * 7)
    assert str(SIZES[0]) == "9×7×33 NT tfloat32"


@pytest.mark.parametrize("kind", [("tfloat32", "bfloat16"), ("float32", "tfloat32"), ("tfloat32", "tfloat32")])
def test_tf32_is_how_operands_are_multiplied_and_no_type_of_a_result(kind):
    with pytest.raises(InvalidProblem, match="use out_dtype float32"):
        Problem(m=8, n=8, k=8, dtype=kind[0], out_dtype=kind[1])


def test_a_kind_beyond_the_others_is_taken_as_it_is_and_only_so():
    config = rung_config(tiny(requires=TENSOR))
    config.require_problem(Problem(m=8, n=8, k=8, **TF32._asdict()))
    with pytest.raises(InvalidProblem, match="dtype=tfloat32: takes bfloat16, float16, and besides NT tfloat32 only"):
        config.require_problem(Problem(m=8, n=8, k=8, dtype="tfloat32"))
    with pytest.raises(InvalidProblem, match="layout=TN: takes NT, NN, and besides NT tfloat32 only"):
        config.require_problem(Problem(m=8, n=8, k=8, layout="TN", dtype="float16"))


def test_the_covering_problems_are_of_every_kind_that_the_rung_takes_and_of_no_other():
    params = (Param("BM", 16, (16,), "rows"), Param("BN", 16, (16,), "columns"))
    problems = problems_for(rung_config(tiny(requires=TENSOR, params=params)))
    kinds = {problem.kind for problem in problems}
    assert TF32 in kinds
    assert {kind.dtype for kind in kinds} == {"bfloat16", "float16", "tfloat32"}
    assert {(kind.layout, kind.out_dtype) for kind in kinds} == set(product(TENSOR.layouts, TENSOR.out_dtypes))
    assert all(not TENSOR.refusal(problem.kind) for problem in problems)


def test_the_ladder_of_tf32_is_of_the_rungs_that_take_it_with_float32_results(monkeypatch):
    rungs = {"t90": tiny(name="t90", requires=TENSOR), "k90": tiny(name="k90")}
    monkeypatch.setattr("tilewright.lab.ladder_command.all_rungs", lambda: rungs)
    request = LadderRequest(8, 8, 8, [], [], "sm_90a", "emulator", 0, 1, 1.0, dtype="tfloat32")
    assert [rung.name for rung in request.rungs_asked()] == ["t90"]
    assert request.problem(8).kind == TF32


def test_the_text_for_tf32_has_its_trait():
    text = kernel_source(naive("x"), SIZES[0]).text
    assert "using Scalar = tilewright::TF32;\nusing Output = tilewright::F32;\n" in text
