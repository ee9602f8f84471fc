"""The library call on NumPy arrays, through the emulator. Tests of a case known from bug reports begin with its id."""

import itertools
import math
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import InvalidInput, InvalidProblem, NoDevice

pytestmark = pytest.mark.usefixtures("one_float32_rung")
RNG = np.random.default_rng(0)


def integers(*shape, dtype=np.float32, most=8):
    return RNG.integers(-most, most + 1, shape).astype(dtype)


def matmul(a, b, **options):
    return tw.matmul(a, b, backend="emulator", **options)


def gemm(a, b, c=None, **options):
    return tw.gemm(a, b, c, backend="emulator", **options)


def require_product(a, b, **options):
    got, wanted = matmul(a, b, **options), np.matmul(a.astype(np.float64), b.astype(np.float64))
    assert np.shape(got) == np.shape(wanted)
    assert np.array_equal(got, wanted)


# What lies how. Each pattern is of A (8, 6) and of B (6, 8), among 40 rows of a larger buffer.
PATTERNS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.T.copy().T,
    "padded rows": lambda x: _within(x, (0, 3)),
    "padded columns of a transposed": lambda x: _within(x.T, (0, 5)).T,
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "rows backwards": lambda x: x[::-1].copy()[::-1],
    "columns backwards": lambda x: x[:, ::-1].copy()[:, ::-1],
    "both backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "one row repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "one column repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "one element repeated": lambda x: np.broadcast_to(x[:1, :1], x.shape),
    "overlapping rows": lambda x: np.lib.stride_tricks.sliding_window_view(x.reshape(-1), x.shape[1])[: x.shape[0]],
    "one element on": lambda x: _moved(x, 4),
    "one byte on": lambda x: _moved(x, 1),
    "big-endian": lambda x: x.astype(">f4"),
    "a field of records": lambda x: _field(x),
    "read-only": lambda x: _read_only(x),
}


def _within(x, gap):
    wide = np.full([size + more for size, more in zip(x.shape, gap, strict=True)], np.nan, np.float32)
    wide[: x.shape[0], : x.shape[1]] = x
    return wide[: x.shape[0], : x.shape[1]]


def _moved(x, nbytes):
    moved = np.zeros(x.nbytes + 8, np.uint8)[nbytes : nbytes + x.nbytes].view(np.float32).reshape(x.shape)
    moved[...] = x
    return moved


def _field(x):
    records = np.zeros(x.shape, np.dtype([("flag", "u1"), ("value", "f4")]))
    records["value"] = x
    return records["value"]


def _read_only(x):
    frozen = x.copy()
    frozen.flags.writeable = False
    return frozen


@pytest.mark.parametrize("pattern", PATTERNS)
def test_operands_of_any_strides(pattern):
    a, b = integers(8, 6), integers(6, 8)
    lie = PATTERNS[pattern]
    require_product(lie(a), b)
    require_product(a, lie(b))


@pytest.mark.parametrize(
    "pattern", [x for x in PATTERNS if "repeated" not in x and x not in ("overlapping rows", "read-only")]
)
def test_results_of_any_strides(pattern):
    a, b = integers(8, 5), integers(5, 6)
    out = PATTERNS[pattern](np.zeros((8, 6), np.float32))
    base = out if out.base is None else out.base
    before = np.array(base, copy=True) if isinstance(base, np.ndarray) else None
    assert matmul(a, b, out=out) is out
    assert np.array_equal(out, a @ b)
    out[...] = 0.0
    if before is not None:
        assert np.array_equal(base, before, equal_nan=before.dtype.kind == "f"), "written beside the result"


@pytest.mark.parametrize(
    "pattern", ["transposed", "every other column", "columns backwards", "big-endian", "one byte on"]
)
def test_c_of_any_strides(pattern):
    a, b, c = integers(8, 5), integers(5, 6), integers(8, 6)
    assert np.array_equal(gemm(a, b, PATTERNS[pattern](c), alpha=2.0, beta=-1.0), 2 * (a @ b) - c)


@pytest.mark.parametrize("stride", [1, 2, -1])
def test_vectors_of_any_stride(stride):
    a, b = integers(9, 7), integers(14)[:: 2 if abs(stride) == 2 else 1][:7][:: 1 if stride > 0 else -1]
    require_product(a, b)
    require_product(b, a.T)
    require_product(b, b)


def test_two_vectors_give_a_scalar_as_numpys_do():
    x = integers(9)
    assert type(matmul(x, x)) is np.float32
    out = np.zeros((), np.float32)
    assert matmul(x, x, out=out) is out and out == x @ x


def test_sixteen_bit_operands_lie_either_way_without_a_copy():
    a, b = integers(7, 16, dtype=ml_dtypes.bfloat16, most=4), integers(16, 5, dtype=ml_dtypes.bfloat16, most=4)
    for order, layout in (("C", "NN"), ("F", "TT")):
        plan = tw.Gemm(np.asarray(a, order=order), np.asarray(b, order=order), backend="emulator").plan()
        assert plan.parts[0].problem.layout == layout and not plan.copies
    require_product(np.asarray(a, order="F"), b)


# Section A: scales, empty sizes, NaN.


@pytest.mark.parametrize("beta", [0, 0.0, -0.0])
def test_a3_c_is_not_read_where_beta_is_zero(beta):
    a, b = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    for c in (
        np.full((2, 2), np.nan, np.float32),
        np.broadcast_to(np.float32(np.nan), (2, 2)),
        np.full((1, 2), np.nan),
    ):
        assert (gemm(a, b, c, beta=beta) == 3.0).all()


@pytest.mark.parametrize(("m", "n"), [(4, 5), (1, 5), (4, 1), (1, 1)])
def test_a4_without_terms_beta_times_c_is_left(m, n):
    c = integers(m, n)
    assert np.array_equal(gemm(np.zeros((m, 0), np.float32), np.zeros((0, n), np.float32), c, beta=2.0), 2 * c)
    x, empty = np.zeros((m, 0), np.float32), np.zeros(0, np.float32)
    assert np.array_equal(gemm(x, empty, c[:, 0], beta=2.0), 2 * c[:, 0])
    assert np.array_equal(matmul(x, np.zeros((0, n), np.float32)), np.zeros((m, n)))


def test_a4_operands_are_not_read_where_alpha_is_zero():
    nan, c = np.full((3, 3), np.nan, np.float32), integers(3, 3)
    assert np.array_equal(gemm(nan, nan, c, alpha=0.0, beta=1.0), c)


@pytest.mark.parametrize("shape", [(2, 1), (1, 3), (3,), (1, 1), (1,), (), (2, 3)])
def test_a6_c_broadcasts_under_any_scales(shape):
    a, b, c = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 3), np.float32), integers(*shape)
    assert np.array_equal(gemm(a, b, c, alpha=0.5, beta=1.25), 0.5 * (a @ b) + 1.25 * c)


def test_a7_what_overflows_the_elements_is_scaled_before_it_is_rounded():
    a, b = np.full((1, 128), 448.0, np.float16), np.full((128, 1), 448.0, np.float16)
    assert gemm(a, b, alpha=2.0**-18)[0, 0] == 98.0


@pytest.mark.parametrize(
    ("a", "b"),
    [((5, 0, 7), (5, 7, 9)), ((3, 0), (0, 0)), ((0, 4), (4, 5)), ((4, 5), (5, 0)), ((0, 2, 3), (3, 4)), ((0,), (0, 0))],
)
def test_a8_an_empty_result_has_its_shape_and_launches_nothing(a, b):
    a, b = np.zeros(a, np.float32), np.zeros(b, np.float32)
    got = matmul(a, b)
    assert got.shape == np.matmul(a, b).shape and got.dtype == np.float32
    assert not tw.Gemm(a, b, backend="emulator").plan().parts


# Section B: tails and what lies beside.


def test_b2_what_an_earlier_call_left_is_not_seen():
    a, b = np.full((59, 50), np.nan, np.float32), np.full((50, 59), np.nan, np.float32)
    assert np.isnan(matmul(a, b)).all()
    require_product(integers(59, 50), integers(50, 59))


def test_b3_no_element_outside_the_operands_is_read():
    wide = np.full((126, 31509), np.nan, np.float32)
    wide[:, :126] = integers(126, 126)
    require_product(wide[:, :126], integers(126, 1))


@pytest.mark.parametrize("size", [1, 33])
def test_b4_b5_tails_are_exact_and_end_where_the_result_ends(size):
    a, b = np.full((size, size), 2.0, np.float32), np.ones((size, size), np.float32)
    beside = np.full(size * size + 64, -1e10, np.float32)
    out = beside[32 : 32 + size * size].reshape(size, size)
    matmul(a, b, out=out)
    assert (out == 2.0 * size).all()
    assert (np.delete(beside, np.s_[32 : 32 + size * size]) == np.float32(-1e10)).all()


@pytest.mark.parametrize("sizes", [(33, 32, 32), (3, 3, 431), (40, 39, 41), (5, 5, 1), (5, 5, 3), (5, 5, 133)])
def test_b6_sizes_off_the_tiles(sizes):
    m, n, k = sizes
    require_product(integers(m, k), integers(k, n))


@pytest.mark.parametrize("sizes", list(itertools.permutations((13, 29, 43))))
def test_b7_six_orders_of_three_primes(sizes):
    m, n, k = sizes
    require_product(integers(m, k), integers(k, n))


# Section C: strides, layout, aliasing.


def test_c4_repeated_operands_equal_their_copies():
    one, many = integers(1, 8, 8), integers(4, 8, 8)
    require_product(np.broadcast_to(one, (4, 8, 8)), many)
    require_product(many, np.broadcast_to(one, (4, 8, 8)))
    require_product(integers(1, 2), np.broadcast_to(integers(2, 1), (2, 2)))


def test_c5_no_unit_stride_and_rows_apart():
    a = np.asfortranarray(integers(3, 3, 2))
    require_product(a[0], integers(2, 4))
    require_product(a[:, 0, :], integers(2, 4))
    require_product(integers(4, 2)[::2], integers(2, 3))


def test_c6_out_may_be_or_overlap_an_input():
    for size in (4, 50):
        a, b = integers(size, size), integers(size, size)
        wanted = a @ b
        first = a.copy()
        assert np.array_equal(matmul(first, b, out=first), wanted)
        second = b.copy()
        assert np.array_equal(matmul(a, second, out=second), wanted)
        both = a.copy()
        assert np.array_equal(matmul(both, both, out=both), a @ a)
        turned = b.copy()
        assert np.array_equal(matmul(turned, turned.T, out=turned), b @ b.T)
    shared = integers(9, 8)
    wanted = shared[:-1] @ b[:8, :8]
    assert np.array_equal(matmul(shared[:-1], b[:8, :8].copy(), out=shared[1:]), wanted)


def test_c6_out_may_be_c_and_may_overlap_it():
    a, b, c = integers(9, 5), integers(5, 9), integers(9, 9)
    same = c.copy()
    assert gemm(a, b, same, beta=2.0, out=same) is same
    assert np.array_equal(same, a @ b + 2 * c)
    turned = c.copy()
    assert np.array_equal(gemm(a, b, turned.T, beta=2.0, out=turned), a @ b + 2 * c.T)
    moved = integers(10, 9)
    wanted = a @ b + moved[:-1]
    assert np.array_equal(gemm(a, b, moved[:-1], beta=1.0, out=moved[1:]), wanted)


def test_c6_out_may_overlap_the_bias():
    a, b, out = integers(4, 5), integers(5, 4), integers(4, 4)
    wanted = a @ b + out[0].copy()
    assert np.array_equal(gemm(a, b, bias=out[0], out=out), wanted)


def test_c7_out_keeps_its_strides_and_must_have_the_shape():
    base = np.zeros((4, 8), np.float32)
    x, m = integers(4, 4), integers(4, 4)
    out = base[..., ::2]
    assert matmul(x, m, out=out) is out and out.strides == (32, 8)
    assert np.array_equal(out, x @ m) and (base[..., 1::2] == 0).all()
    with pytest.raises(ValueError, match=r"out is \(3, 1\): must be \(2, 2\)"):
        matmul(integers(2, 4), integers(4, 2), out=np.zeros((3, 1), np.float32))


def test_c8_padded_batches_are_not_taken_for_contiguous():
    buffer = integers(3, 3, 10, 8)
    a = buffer[:, :2, :6, :5]
    require_product(a, integers(5, 7))
    require_product(a, integers(3, 1, 5, 7))
    wide = integers(4, 2, 3, 6)[:, ::2]
    require_product(wide, integers(6, 4))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 4), (2, 4, 5)),
        ((1, 3, 4), (3, 4, 5)),
        ((3, 1, 4, 5), (2, 5, 3)),
        ((2, 1, 3, 4), (1, 3, 4, 2)),
        ((4,), (3, 4, 5)),
        ((3, 4, 5), (5,)),
        ((2, 2, 3, 4), (4, 5)),
        ((3, 4), (2, 2, 4, 5)),
    ],
)
def test_c9_every_batch_is_computed_and_batches_broadcast(a, b):
    require_product(integers(*a), integers(*b))


def test_heads_of_attention_lie_within_one_another_and_are_read_and_written_there():
    q, k = integers(2, 7, 3, 5).transpose(0, 2, 1, 3), integers(2, 7, 3, 5).transpose(0, 2, 1, 3)
    require_product(q, k.swapaxes(-1, -2))
    out = np.zeros((2, 7, 3, 5), np.float32).transpose(0, 2, 1, 3)
    matmul(integers(2, 3, 7, 7), q, out=out)
    assert out.base is not None


# Sections D, F, J, as far as the front end has to do with them.


def test_d2_a_bias_off_its_alignment_and_one_with_gaps():
    a, b, bias = integers(5, 4), integers(4, 6), integers(13)
    for view in (bias[1:7], bias[::2][:6], _moved(bias, 1)[:6], bias[:6].astype(">f4")):
        assert np.array_equal(gemm(a, b, bias=view), a @ b + view)


def test_d3_sixteen_bit_operands_of_odd_sizes_and_addresses():
    odd = integers(3 * 7 + 1, dtype=np.float16)[1:].reshape(3, 7)
    require_product(odd, integers(7, 5, dtype=np.float16))


def test_f1_float32_is_not_tf32():
    assert matmul(np.array([[1024.5]], np.float32), np.ones((1, 1), np.float32))[0, 0] == 1024.5


@pytest.mark.parametrize("batch", [(), (2,)])
def test_f8_types_are_never_promoted(batch):
    with pytest.raises(InvalidProblem, match="A is float16 and B is float32: types are not promoted"):
        matmul(np.zeros((*batch, 2, 3), np.float16), np.zeros((*batch, 3, 2), np.float32))
    with pytest.raises(InvalidProblem, match="out is float16: with float32 operands"):
        matmul(np.zeros((2, 3), np.float32), np.zeros((3, 2), np.float32), out=np.zeros((2, 2), np.float16))
    with pytest.raises(InvalidProblem, match="C is float16 and the result float32"):
        gemm(
            np.zeros((2, 3), "f4"), np.zeros((3, 2), "f4"), np.zeros((2, 2), "f2"), beta=1.0, out=np.zeros((2, 2), "f4")
        )


def test_j3_j4_import_touches_no_driver_and_a_fork_may_use_the_call():
    code = (
        "import os, sys, tilewright as tw, numpy as np\n"
        "tw.matmul, tw.Gemm\n"
        "assert 'cuda' not in sys.modules\n"
        "x = np.ones((3, 3), np.float32)\n"
        "tw.matmul(x, x, backend='emulator')\n"
        "child = os.fork()\n"
        "ok = bool((tw.matmul(x, x, backend='emulator') == 3).all())\n"
        "if child == 0: os._exit(0 if ok else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or not ok)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr


class Lengths(np.ndarray):
    """An array whose elements have a unit."""


class Exported:
    """An array that is known by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**{name: given for name, given in options.items() if name == "max_version"})

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_j6_an_exporter_of_the_hosts_memory_is_refused_in_words():
    x = Exported(integers(4, 4)[:, ::-1])
    with pytest.raises(InvalidProblem, match="of another library are on the host"):
        tw.matmul(x, x)


# The front end's own rules.


def test_arrays_of_the_host_need_a_gpu_or_the_emulator_by_name():
    with pytest.raises(NoDevice, match="or pass backend='emulator'"):
        tw.matmul(integers(2, 2), integers(2, 2))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: matmul(x, x[:-1]), r"A is \(4, 4\) and B is \(3, 4\): A's columns must equal B's rows"),
        (lambda x: matmul(x[0, 0], x), "a scalar"),
        (lambda x: matmul(np.zeros(()), x), "dtype=float64"),
        (lambda x: matmul(np.zeros((), np.float32), x), r"A: a scalar, shape \(\)"),
        (lambda x: matmul(x, np.float32(1)), "B: float32: a scalar"),
        (lambda x: matmul([[1.0]], x), "list: no array"),
        (lambda x: matmul(x.astype(np.float64), x), "A: dtype=float64: supports float32, float16, bfloat16"),
        (lambda x: matmul(x.astype(np.complex64), x), "A: dtype=complex64"),
        (lambda x: matmul(x.astype(np.int8), x), "A: dtype=int8"),
        (lambda x: matmul(np.ma.masked_less(x, 0), x), "A: a masked array"),
        (lambda x: matmul(x, x.view(Lengths)), "B: Lengths: may mean more than its elements"),
        (lambda x: matmul(np.zeros((2, 4, 4), "f4"), np.zeros((3, 4, 4), "f4")), r"batches \(2,\) and \(3,\) do not"),
        (lambda x: matmul(x, x, out=_read_only(x)), "out: read-only"),
        (lambda x: matmul(x, x, out=np.zeros((4, 4))), "out: dtype=float64"),
        (lambda x: matmul(x, x, out=_on_itself(x)), "puts several results on one element"),
        (lambda x: gemm(x, x, x), "c without beta"),
        (lambda x: gemm(x, x, beta=1.0), r"beta=1\.0 without c"),
        (lambda x: gemm(x, x, x[:3], beta=0.0), r"batches \(3, 4\) and \(4, 4\) do not broadcast"),
        (lambda x: gemm(x[0], x, x, beta=1.0), r"C is \(4, 4\): must broadcast to \(4,\)"),
        (lambda x: gemm(x, x, alpha="2"), "alpha='2': must be a real number"),
        (lambda x: gemm(x, x, alpha=1e39), r"alpha=1e\+39: overflows float32"),
        (lambda x: gemm(x, x, bias=x), r"bias is \(4, 4\): must be \(4,\)"),
        (lambda x: gemm(x, x, epilogue="bias"), "adds a bias; pass bias="),
        (lambda x: gemm(x, x, epilogue="dgelu"), "epilogue='dgelu': no such epilogue"),
        (lambda x: gemm(x, x, bias=x[0], epilogue="default"), "this epilogue adds none"),
        (lambda x: matmul(x, x, compute_type="tf32x3"), "for which there is no rung"),
        (lambda x: matmul(x, x, compute_type="CUBLAS_COMPUTE_16F"), "sums in float16, for which there is no rung"),
        (lambda x: matmul(x, x, compute_type="fast"), "compute_type='fast': not known"),
        (lambda x: matmul(x.astype("f2"), x.astype("f2"), compute_type="tf32"), "TF32 is for float32 operands"),
        (lambda x: matmul(x, x, kernels="best"), "kernels='best': must be 'all' or 'own'"),
        (lambda x: tw.matmul(x, x, backend="cpu"), "backend='cpu': must be 'cuda' or 'emulator'"),
    ],
)
def test_what_cannot_be_multiplied_is_refused_in_words(call, words):
    with pytest.raises(InvalidInput, match=words):
        call(integers(4, 4))


def _on_itself(x):
    return np.lib.stride_tricks.as_strided(np.zeros(16, np.float32), (4, 4), (4, 4))


@pytest.mark.parametrize("name", [None, "ieee", "fp32", "CUBLAS_COMPUTE_32F", "COMPUTE_32F_PEDANTIC"])
def test_compute_types_have_cublas_names_too(name):
    require_product(integers(3, 4), integers(4, 3), compute_type=name)


def test_tf32_is_taken_where_it_is_asked_for():
    a, b = np.full((64, 64), 1024.5, np.float32), np.eye(64, dtype=np.float32)
    plan = tw.Gemm(a, b, compute_type="tf32", backend="emulator").plan()
    assert plan.parts[0].problem.dtype == "tfloat32"
    assert str(plan).splitlines()[-1] == "B: copied, by columns: no rung supports it stored as N"
    assert set(np.diag(matmul(a, b, compute_type="CUBLAS_COMPUTE_32F_FAST_TF32"))) <= {1024.0, 1025.0}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"epilogue": "relu"}, lambda x, bias: np.maximum(x, 0)),
        ({"epilogue": "RELU_BIAS"}, lambda x, bias: np.maximum(x + bias, 0)),
        ({"epilogue": "CUBLASLT_EPILOGUE_BIAS"}, lambda x, bias: x + bias),
        ({"epilogue": tw.Epilogue(("relu", "bias"))}, lambda x, bias: np.maximum(x, 0) + bias),
        ({}, lambda x, bias: x + bias),
    ],
)
def test_epilogues_by_cublaslts_names(options, wanted):
    a, b, bias = integers(5, 4), integers(4, 6), integers(6)
    uses_bias = options.get("epilogue") != "relu"
    for out in (None, np.zeros((5, 6), np.float32), np.zeros((5, 6), np.float32, order="F")):
        got = gemm(a, b, out=out, **options, **({"bias": bias} if uses_bias else {}))
        assert np.array_equal(got, wanted(a @ b, bias))


def gelu_by_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("GELU", gelu_by_tanh),
        ("CUBLASLT_EPILOGUE_GELU_BIAS", gelu_by_tanh),
        ("silu", lambda x: x / (1 + np.exp(-x))),
        ("silu_bias", lambda x: x / (1 + np.exp(-x))),
    ],
)
def test_activations_are_right_from_large_to_small(name, of):
    """A column of values, each to a few units in the last place of what goes in; NaN stays, and nothing overflows."""
    x = np.concatenate([np.linspace(-60, 60, 241), [1e-30, -1e-30, 0.0, 3e4, -3e4, 1e30]]).astype(np.float32)
    one = np.ones((1, 1), np.float32)
    bias = np.float32([0.25]) if "BIAS" in name.upper() else None
    got = gemm(x[:, None], one, epilogue=name, bias=bias)[:, 0]
    before = x.astype(np.float64) + (0.0 if bias is None else 0.25)
    with np.errstate(over="ignore"):
        assert np.all(np.abs(got - of(before)) <= 8 * 2.0**-24 * np.abs(before))
    assert np.isnan(gemm(np.float32([[np.nan]]), one, epilogue=name, bias=bias)).all()
    assert gemm(np.float32([[np.inf]]), one, epilogue=name, bias=bias) == np.inf
