import numpy as np
import pytest

from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem
from tilewright.problem import Problem


def test_defaults_are_dense_row_major():
    p = Problem(m=3, n=5, k=7, batch=2)
    assert (p.lda, p.ldb, p.ldc, p.ldd) == (7, 5, 5, 5)
    assert (p.batch_stride_a, p.batch_stride_b, p.batch_stride_d) == (21, 35, 15)
    assert p.flops == 2 * 3 * 5 * 7 * 2


def test_transposed_operands_are_stored_the_other_way():
    p = Problem(m=3, n=5, k=7, layout="TT")
    assert p.stored_shape("a") == (7, 3)
    assert p.stored_shape("b") == (5, 7)
    assert (p.lda, p.ldb) == (3, 7)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"m": 0}, "m=0"),
        ({"n": -4}, "n=-4"),
        ({"k": -1}, "k=-1"),
        ({"batch": 0}, "batch=0"),
        ({"m": 2**31}, "m=2147483648"),
        ({"m": 2.0}, "m=2.0"),
        ({"k": True}, "k=True"),
        ({"dtype": "float8"}, "float8"),
        ({"layout": "NX"}, "NX"),
        ({"lda": 6}, "lda=6: must be at least 7"),
        ({"ldd": 4}, "ldd=4: must be at least 5"),
        ({"batch": 2, "batch_stride_d": 14}, "batch_stride_d=14"),
        ({"batch_stride_a": -2}, "batch_stride_a=-2"),
        ({"alignment_bytes": 6}, "alignment_bytes=6"),
        ({"alignment_bytes": 2}, "alignment_bytes=2"),
        ({"alpha": 1e39}, "alpha=1e\\+39"),
    ],
)
def test_refused_with_the_value(fields, words):
    with pytest.raises(InvalidProblem, match=words):
        Problem(**{"m": 3, "n": 5, "k": 7, **fields})


def test_k_zero_and_broadcast_inputs_are_legal():
    assert Problem(m=3, n=5, k=0).flops == 0
    assert Problem(m=3, n=5, k=7, batch=4, batch_stride_b=0).total_extent("b") == 35


def test_negative_zero_beta_does_not_read_c():
    assert not Problem(m=1, n=1, k=1, beta=-0.0).reads_c


def test_extent_ends_at_the_last_element_not_the_last_row():
    p = Problem(m=3, n=5, k=7, lda=10)
    assert p.extent("a") == 2 * 10 + 7


def test_sizes_beyond_32_bits_are_counted_whole():
    p = Problem(m=73728, n=36864, k=128)
    assert p.extent("d") == 73728 * 36864
    assert p.operand_bytes == 4 * (73728 * 128 + 128 * 36864 + 73728 * 36864)


def test_epilogue_names_are_checked():
    with pytest.raises(InvalidProblem, match="swish"):
        Epilogue(("swish",))
    with pytest.raises(InvalidProblem, match="once"):
        Epilogue(("relu", "relu"))


def test_epilogue_reference_applies_in_order_and_keeps_nan():
    x = np.array([[-3.0, np.nan, 2.0]])
    bias = np.array([1.0, 1.0, 1.0])
    assert np.array_equal(Epilogue(("bias", "relu")).reference(x, bias), [[0.0, np.nan, 3.0]], equal_nan=True)
    assert np.array_equal(Epilogue(("relu", "bias")).reference(x, bias), [[1.0, np.nan, 3.0]], equal_nan=True)
