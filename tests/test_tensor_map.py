import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from test_declare import tiny
from tilewright.arch import get_arch
from tilewright.compile.binary import Binary
from tilewright.compile.nvrtc import compile_cubin
from tilewright.compile.source import kernel_source
from tilewright.declare import Requires, Rung, derived, launch, operand_map, rung_config
from tilewright.declare.tensor_map import TensorMap
from tilewright.errors import InvalidDeclaration, InvalidProblem
from tilewright.lab.verifying import emulator_run
from tilewright.problem import Problem
from tilewright.run.args import GemmArgs, TmaArgs
from tilewright.run.emulator import EmulatorBackend
from tilewright.run.kernel import bind
from tilewright.run.tensor_map import EncodedMap, encode_for_emulator
from tilewright.verify.operands import logical_view, make_operands

GOOD = {"dtype": "bfloat16", "rows": 100, "cols": 72, "ld": 80, "box_rows": 128, "box_cols": 64, "span_bytes": 128}
READS_ITS_MAPS = r"""
extern "C" __global__ void reads_maps(const __grid_constant__ TmaArgs args) {
  const TensorMap* maps[] = {&args.map_a, &args.map_b, &args.map_d};
  const void* addresses[] = {args.a, args.b, args.d};
  const int t = threadIdx.x, column = t % 16;
  const unsigned long long* words = maps[blockIdx.x]->words;
  const auto offset = words[0] - reinterpret_cast<unsigned long long>(addresses[blockIdx.x]);
  const bool is_aligned = reinterpret_cast<unsigned long long>(words) % 64 == 0;
  if (t < 16) args.d[blockIdx.x * args.ldd + column] = column == 0 ? offset + is_aligned : words[column];
}
"""
KIND = {"dtype": "bfloat16", "out_dtype": "float32"}
BATCH = Problem(**KIND, m=24, n=32, k=40, batch=3, layout="NT", ldb=48, batch_stride_a=0, beta=1.0)


def mapped(**fields) -> Rung:
    declared = {
        "tensor_maps": (
            operand_map("a", box_rows="BM", box_cols="min(STORED, 8)"),
            operand_map("b", box_rows="2 * BM", box_cols="64 // element_bytes", span_bytes="16 * PAD"),
            operand_map("d", box_rows="16", box_cols="32", span_bytes="128", when="reads_c"),
        ),
        "from_problem": (derived("STORED", "k", "what a from_problem constant is"),),
        "requires": Requires(layouts=("NN", "NT"), dtypes=("bfloat16",), out_dtypes=("float32",)),
        "launch": launch(grid=("3", "1", "1"), block=("32", "1", "1")),
        "name": "reads_maps",
        "source": READS_ITS_MAPS,
    }
    return tiny(**{**declared, **fields})


def test_a_box_counts_whole_bytes_even_past_the_edge():
    assert TensorMap(**GOOD).box_bytes == 128 * 64 * 2


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dtype": "float8"}, "dtype='float8'"),
        ({"span_bytes": 256}, "span_bytes=256: .*a swizzle spans 32, 64 or 128 bytes"),
        ({"rows": 0}, "rows=0"),
        ({"cols": 2**32 + 1, "ld": 2**32 + 8}, "cols=4294967297"),
        ({"entries": 0}, "entries=0"),
        ({"ld": 64}, "ld=64, cols=72: ld >= cols"),
        ({"ld": 77}, "multiple of 16 bytes; pad the rows"),
        ({"ld": 2**39}, "below 2\\^40 bytes"),
        ({"entries": 2, "entry_stride": 8004}, "entry_stride=8004.*pad the matrices"),
        ({"entries": 2, "entry_stride": 2**39}, "between batch entries is above 0 and below 2\\^40"),
        ({"entries": 2, "entry_stride": 0}, "map a broadcast matrix as one entry"),
        ({"box_rows": 257}, "box_rows=257"),
        ({"box_cols": 0}, "box_cols=0"),
        ({"box_cols": 12}, "a box's row is a multiple of 16 bytes"),
        ({"box_cols": 128}, "fits the swizzle's span"),
        (
            {"dtype": "float32", "cols": 256, "ld": 256, "box_rows": 256, "box_cols": 256, "span_bytes": 0},
            "fits a CTA's shared memory",
        ),
    ],
)
def test_the_hardwares_limits_are_rules(fields, words):
    with pytest.raises(InvalidProblem, match=words):
        TensorMap(**{**GOOD, **fields})


def test_an_address_that_is_not_16_byte_aligned_is_refused():
    with pytest.raises(InvalidProblem, match="multiple of 16 bytes"):
        encode_for_emulator(TensorMap(**GOOD), 0x1008)


@given(
    rows=st.integers(1, 2**18),
    cols=st.integers(1, 2**18),
    entries=st.integers(2, 9),
    box=st.sampled_from([(1, 8), (64, 16), (256, 16)]),
    span_bytes=st.sampled_from([0, 32, 64, 128]),
)
def test_the_emulators_encoding_holds_every_field(rows, cols, entries, box, span_bytes):
    ld = (cols + 7) // 8 * 8
    shape = {"rows": rows, "cols": cols, "ld": ld, "entries": entries, "entry_stride": rows * ld}
    made = TensorMap(dtype="float16", **shape, box_rows=box[0], box_cols=box[1], span_bytes=span_bytes)
    words = encode_for_emulator(made, 4096).words
    assert list(words) == [4096, rows, cols, ld * 2, entries, rows * ld * 2, *box, 2, span_bytes, *[0] * 6]
    assert ctypes.sizeof(EncodedMap) == 128


def words_of(problem: Problem) -> list[list[int]]:
    """What a kernel finds in the maps of A, B and D, the address as 1 where map and operand agree and are aligned."""
    with EmulatorBackend() as backend:
        d = emulator_run(rung_config(mapped()), backend)(problem, make_operands(problem, "integer")).d
    return logical_view(problem, "d", d)[0, :3, :16].astype(int).tolist()


def test_a_kernel_finds_the_declared_maps_of_its_operands_in_its_argument():
    a, b, d = words_of(BATCH)
    assert a[:10] == [1, 24, 40, 80, 1, 80, 32, 8, 2, 0]  # broadcast: one entry, whose stride is no concern
    assert b[:10] == [1, 32, 40, 96, 3, (31 * 48 + 40) * 2, 64, 32, 2, 64]
    assert d[:10] == [1, 24, 32, 128, 3, 24 * 32 * 4, 16, 32, 4, 128]


def test_a_map_that_is_not_declared_for_the_problem_is_zeros():
    config, problem = rung_config(mapped()), Problem(**KIND, m=24, n=32, k=40)
    with EmulatorBackend() as backend:
        memory, kernel = backend.alloc(1 << 16, label="all"), bind(config, problem, backend)
        kernel(**dict.fromkeys("abd", memory.address))
        args = kernel.launch._args
    assert sorted(config.tensor_maps(problem)) == ["a", "b"]
    assert any(args.map_b.words)
    assert not any(args.map_d.words)


def test_an_empty_operand_is_mapped_as_one_element():
    config = rung_config(mapped(from_problem=(derived("STORED", "8", ""),)))
    for made in config.tensor_maps(Problem(**KIND, m=24, n=32, k=0, batch=2)).values():
        assert (made.rows, made.cols, made.ld, made.entries) == (1, 1, 8, 1)


def test_only_a_rung_with_maps_takes_the_longer_struct_and_both_compilers_agree_on_it():
    config, plain = rung_config(mapped()), rung_config(mapped(tensor_maps=()))
    with EmulatorBackend() as backend:
        assert type(bind(config, BATCH, backend).launch._args) is TmaArgs
        assert type(bind(plain, BATCH, backend, binary=Binary("none", "x86-64", b"", "", "")).launch._args) is GemmArgs
    assert (ctypes.sizeof(GemmArgs), TmaArgs.map_a.offset, ctypes.sizeof(TmaArgs)) == (144, 192, 576)
    binary = compile_cubin(kernel_source(config, BATCH), get_arch("sm_90a"))
    assert binary.resources.spill_bytes == 0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ldb": 44}, r"k01_tiny: operand B: tensor map: ld=44, .* multiple of 16 bytes; pad the rows"),
        ({"batch": 2, "batch_stride_a": 24 * 40 + 4}, "operand A: tensor map: entries=2, entry_stride=964"),
        (
            {"alignment_bytes": 8},
            "operand A: tensor map: alignment_bytes=8: .* multiple of 16 bytes; align the operands",
        ),
        ({"ldd": 34, "beta": 1.0}, "operand D: tensor map: ld=34, element_bytes=4"),
    ],
)
def test_what_cannot_be_mapped_is_refused_with_value_rule_and_fix_before_a_launch(fields, words):
    with pytest.raises(InvalidProblem, match=words):
        rung_config(mapped(name="k01_tiny")).require_problem(
            Problem(**{**KIND, "m": 24, "n": 32, "k": 40, "layout": "NT", **fields})
        )


def test_a_declaration_maps_an_operand_once_and_names_what_is_known():
    for maps, words in (
        ((operand_map("c", box_rows="8", box_cols="8"),), "tensor map of 'c'"),
        ((operand_map("a", box_rows="8", box_cols="8"),) * 2, "once each"),
        ((operand_map("a", box_rows="BX", box_cols="8"),), "names BX"),
    ):
        with pytest.raises(InvalidDeclaration, match=words):
            mapped(tensor_maps=maps)
