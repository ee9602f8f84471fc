import numpy as np
import pytest

from tilewright import gemm_with
from tilewright.errors import InvalidProblem, NoDevice, UnknownName

RNG = np.random.default_rng(0)


def matrices(m=128, n=64, k=32):
    a = RNG.integers(-8, 9, (m, k)).astype(np.float32)
    b = RNG.integers(-8, 9, (k, n)).astype(np.float32)
    return a, b, np.full((m, n), np.nan, np.float32)


def emulated(rung, *args, **kwargs):
    return gemm_with(rung, *args, backend="emulator", **kwargs)


@pytest.mark.parametrize("rung", ["k01", "k02", "k04", "k08"])
def test_the_product_lands_in_the_callers_array(rung):
    a, b, out = matrices()
    assert emulated(rung, a, b, out=out) is out
    assert np.array_equal(out, a @ b)


def test_odd_sizes_go_to_a_guarded_rung():
    a, b, out = matrices(33, 7, 65)
    assert np.array_equal(emulated("k04", a, b, out=out), a @ b)


def test_scales_c_and_settings():
    a, b, out = matrices()
    c = RNG.integers(-8, 9, out.shape).astype(np.float32)
    emulated("k08", a, b, c, out=out, alpha=2.0, beta=-0.5, settings={"BK": 8})
    assert np.array_equal(out, 2 * (a @ b) - 0.5 * c)


def test_c_may_be_out_and_padding_stays():
    a, b, _ = matrices()
    wide = np.full((128, 96), -1e10, np.float32)
    c = wide[:, :64]
    c[...] = 3.0
    emulated("k08", a, b, c, out=c, beta=1.0)
    assert np.array_equal(c, a @ b + 3)
    assert (wide[:, 64:] == np.float32(-1e10)).all()


def test_rows_of_a_wider_buffer_are_read_by_their_stride():
    a, b, out = matrices()
    wide = np.full((128, 40), np.nan, np.float32)
    wide[:, :32] = a
    assert np.array_equal(emulated("k08", wide[:, :32], b, out=out), a @ b)


def test_a_read_only_input_is_fine_and_a_read_only_out_is_not():
    a, b, out = matrices()
    a.flags.writeable = False
    emulated("k02", a, b, out=out)
    out.flags.writeable = False
    with pytest.raises(InvalidProblem, match="out: read-only"):
        emulated("k02", a, b, out=out)


def test_beta_zero_ignores_nan_in_c():
    a, b, out = matrices()
    emulated("k08", a, b, np.full_like(out, np.nan), out=out, beta=0.0)
    assert np.array_equal(out, a @ b)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, b, out: (a, b[:-1], out), r"A is \(128, 32\) and B is \(31, 64\)"),
        (lambda a, b, out: (a, b, out[:-1]), r"out is \(127, 64\): must be \(128, 64\)"),
        (lambda a, b, out: (a[0], b, out), r"A: shape \(32,\): must be a matrix"),
        (lambda a, b, out: (a[:0], b, out), r"A: shape \(0, 32\): nothing to multiply"),
        (lambda a, b, out: (a.astype(np.float64), b, out), "A: dtype=float64"),
        (lambda a, b, out: (a.astype(">f4"), b, out), "A: dtype=>f4"),
        (lambda a, b, out: (np.asfortranarray(a), b, out), "A: strides"),
        (lambda a, b, out: (a[:, ::-1], b, out), "A: strides"),
        (lambda a, b, out: (np.broadcast_to(a[:1], a.shape), b, out), "A: strides"),
        (lambda a, b, out: (a, b, np.empty((64, 128), np.float32).T), "out: strides"),
        (lambda a, b, out: ("A", b, out), "A: str exports neither"),
    ],
)
def test_what_cannot_be_multiplied_is_refused_in_words(change, words):
    a, b, out = change(*matrices())
    with pytest.raises(InvalidProblem, match=words):
        emulated("k02", a, b, out=out)


def test_out_may_not_overlap_an_input():
    a = RNG.integers(-8, 9, (64, 64)).astype(np.float32)
    with pytest.raises(InvalidProblem, match="out overlaps A"):
        emulated("k02", a, a.copy(), out=a)
    buffer = np.zeros((65, 64), np.float32)
    with pytest.raises(InvalidProblem, match="out overlaps B"):
        emulated("k02", a, buffer[:-1], out=buffer[1:])
    c = buffer[:-1]
    with pytest.raises(InvalidProblem, match="out overlaps C"):
        emulated("k02", a, a.copy(), c, out=buffer[1:], beta=1.0)


def test_beta_needs_c():
    a, b, out = matrices()
    with pytest.raises(InvalidProblem, match=r"beta=1\.0: needs c"):
        emulated("k02", a, b, out=out, beta=1.0)


def test_numpy_is_emulated_only_when_that_is_asked_for():
    a, b, out = matrices()
    for backend in (None, "cuda"):
        with pytest.raises((InvalidProblem, NoDevice), match="NumPy arrays need backend='emulator'"):
            gemm_with("k02", a, b, out=out, backend=backend)


def test_an_unknown_rung_is_named():
    with pytest.raises(UnknownName, match="k99"):
        emulated("k99", *matrices()[:2], out=matrices()[2])
