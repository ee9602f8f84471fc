"""A product by a rung that the call names: every type, layout and stride of the library call, or a refusal in words."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import InvalidConfig, InvalidInput, InvalidProblem, UnknownName

RNG = np.random.default_rng(0)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def matrices(m=128, n=64, k=32, dtype=np.float32):
    a = RNG.integers(-4, 5, (m, k)).astype(dtype)
    b = RNG.integers(-4, 5, (k, n)).astype(dtype)
    return a, b, np.full((m, n), np.nan, dtype)


def wide(a, b):
    return a.astype(np.float32) @ b.astype(np.float32)


def emulated(rung, a, b, c=None, **more):
    return tw.gemm(a, b, c, rung=rung, backend="emulator", **more)


@pytest.mark.parametrize("rung", ["k01", "k04", "k08", "k10", "k14_warp_specialised", tw.all_rungs().find("k02")])
def test_the_named_rung_computes_the_product(rung):
    a, b, out = matrices()
    assert emulated(rung, a, b, out=out) is out
    assert np.array_equal(out, a @ b)


def test_the_plan_says_that_the_rung_was_named_and_has_its_settings():
    a, b, _ = matrices()
    plan = tw.Gemm(a, b, rung="k08", settings={"BK": 8}, backend="emulator").plan()
    (part,) = plan.parts
    assert (part.choice.config.rung.name, part.choice.config.values["BK"]) == ("k08_warp_tile", 8)
    assert "named by the call" in str(plan) and plan.library is None


@pytest.mark.parametrize("dtype", [np.float16, BFLOAT16])
@pytest.mark.parametrize("rung", ["t02", "t04", "t08_deferred_epilogue"])
def test_16_bit_arrays_are_multiplied_in_16_bits(rung, dtype):
    """The rungs of the float32 ladder once took such arrays for float32."""
    a, b, out = matrices(96, 64, 40, dtype)
    emulated(rung, a, b, out=out)
    assert out.dtype == dtype and np.array_equal(out.astype(np.float32), wide(a, b).astype(dtype).astype(np.float32))


def test_a_rung_that_does_not_support_the_types_is_refused_before_anything_is_written():
    a, b, out = matrices(dtype=np.float16)
    with pytest.raises(InvalidProblem, match=r"k08_warp_tile.*float16"):
        emulated("k08", a, b, out=out)
    assert np.isnan(out.astype(np.float32)).all()


def test_mixed_types_are_refused():
    a, b, _ = matrices()
    with pytest.raises(InvalidProblem, match="types are not promoted"):
        emulated("k02", a, b.astype(np.float16))


def test_scales_c_bias_and_an_epilogue_go_through():
    a, b, out = matrices()
    c, bias = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in (out.shape, (64,)))
    emulated("k08", a, b, c, out=out, alpha=2.0, beta=-0.5, bias=bias, epilogue="relu_bias")
    assert np.array_equal(out, np.maximum(2 * (a @ b) - 0.5 * c + bias, 0))


def test_any_strides_and_batches_are_served_by_the_named_rung():
    a, b, _ = matrices(65, 66, 33)
    for left, right in ((np.asfortranarray(a), b), (a[::-1, ::-1], b), (np.stack([a, a])[:, None], np.stack([b, b]))):
        assert np.array_equal(emulated("k04", left, right), left @ right)


def test_c_may_be_out_and_the_padding_stays():
    a, b, _ = matrices()
    padded = np.full((128, 96), -1e10, np.float32)
    c = padded[:, :64]
    c[...] = 3.0
    emulated("k08", a, b, c, out=c, beta=1.0)
    assert np.array_equal(c, a @ b + 3) and (padded[:, 64:] == np.float32(-1e10)).all()


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"rung": "k99"}, UnknownName, "k99"),
        ({"rung": 8}, InvalidInput, "rung=8: must be a rung's name"),
        ({"rung": "k08", "settings": {"WM": 48}}, InvalidConfig, "WM=48"),
        ({"rung": "k08", "settings": {"QQ": 1}}, InvalidConfig, "QQ"),
        ({"rung": "k08", "settings": "BK=8"}, InvalidInput, "settings='BK=8': must map"),
        ({"settings": {"BK": 8}}, InvalidInput, "name it too"),
    ],
)
def test_what_names_no_config_is_refused_in_words(more, error, words):
    a, b, _ = matrices()
    with pytest.raises(error, match=words):
        tw.gemm(a, b, backend="emulator", **more)


def test_gemm_with_says_what_to_write_and_still_works():
    a, b, out = matrices()
    with pytest.warns(DeprecationWarning, match=r"write gemm\(a, b, c, rung="):
        assert tw.gemm_with("k08", a, b, out=out, settings={"BK": 8}, backend="emulator") is out
    assert np.array_equal(out, a @ b)


def test_a_kind_that_is_refused_is_refused_after_a_plain_array_of_its_shape_was_taken():
    """The key of a plan has the array's class, so that a subclass never finds a plain array's plan."""

    class Metres(np.ndarray):
        pass

    a, b, _ = matrices(8, 8, 8)
    for _ in range(2):
        with pytest.raises(InvalidProblem, match="Metres: may mean more than its elements"):
            tw.matmul(a.view(Metres), b, backend="emulator")
        tw.matmul(a, b, backend="emulator")
        with pytest.raises(InvalidProblem, match="a masked array"):
            tw.matmul(np.ma.array(a), b, backend="emulator")
