import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.declare.tensor_map import SPAN_BYTES, TensorMap
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.run.tensor_map import EncodedMap, encode_for_emulator

GOOD = {"dtype": "bfloat16", "rows": 100, "cols": 72, "ld": 80, "box_rows": 128, "box_cols": 64, "swizzle": "128B"}


def test_a_box_counts_whole_bytes_even_past_the_edge():
    assert TensorMap(**GOOD).box_bytes == 128 * 64 * 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dtype": "float8"}, "dtype='float8'"),
        ({"swizzle": "256B"}, "swizzle='256B'"),
        ({"rows": 0}, "rows=0"),
        ({"cols": 2**32 + 1, "ld": 2**32 + 8}, "cols=4294967297"),
        ({"ld": 64}, "ld=64, cols=72: ld >= cols"),
        ({"ld": 77}, "multiple of 16 bytes"),
        ({"ld": 2**39}, "below 2\\^40 bytes"),
        ({"box_rows": 257}, "box_rows=257"),
        ({"box_cols": 0}, "box_cols=0"),
        ({"box_cols": 12}, "a box's row is a multiple of 16 bytes"),
        ({"box_cols": 128}, "fits the swizzle's span"),
        (
            {"dtype": "float32", "cols": 256, "ld": 256, "box_rows": 256, "box_cols": 256, "swizzle": "none"},
            "fits a CTA's shared memory",
        ),
    ],
)
def test_the_hardwares_limits_are_rules(fields, words):
    with pytest.raises(InvalidConfig, match=words):
        TensorMap(**{**GOOD, **fields})


def test_an_address_that_is_not_16_byte_aligned_is_refused():
    with pytest.raises(InvalidProblem, match="multiple of 16 bytes"):
        encode_for_emulator(TensorMap(**GOOD), 0x1008)


@given(
    rows=st.integers(1, 2**20),
    cols=st.integers(1, 2**20),
    box=st.sampled_from([(1, 8), (64, 32), (256, 64)]),
    swizzle=st.sampled_from(sorted(SPAN_BYTES)),
)
def test_the_emulators_encoding_holds_every_field(rows, cols, box, swizzle):
    if box[1] * 2 > SPAN_BYTES[swizzle]:
        return
    made = TensorMap(
        dtype="float16", rows=rows, cols=cols, ld=(cols + 7) // 8 * 8, box_rows=box[0], box_cols=box[1], swizzle=swizzle
    )
    words = encode_for_emulator(made, 4096).words
    span = SPAN_BYTES[swizzle] if swizzle != "none" else 0
    assert list(words[:8]) == [4096, rows, cols, made.ld * 2, *box, 2, span]
    assert ctypes.sizeof(EncodedMap) == 128
