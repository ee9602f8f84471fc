"""Kernels on tensor maps, in one text for the emulator and a GPU: what the tests of TMA and wgmma launch on either."""

import ctypes
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tilewright.compile.binary import KernelSource
from tilewright.declare.tensor_map import TensorMap
from tilewright.run.protocol import Grid
from tilewright.run.tensor_map import EncodedMap, encode_for_driver, encode_for_emulator

KERNELS = Path(__file__).parent / "kernels"
HEADERS = ("mbarrier", "barriers", "matrix", "tma", "wgmma", "registers")
DTYPES = {
    "bfloat16": np.uint16,
    "float16": np.float16,
    "float32": np.float32,
    "uint8": np.uint8,
    "tfloat32": np.float32,
}


class HopperArgs(ctypes.Structure):
    _fields_ = (
        ("a", EncodedMap),
        ("b", EncodedMap),
        ("d", EncodedMap),
        ("y", ctypes.c_uint64),
        ("n", ctypes.c_int32),
        ("at", ctypes.c_int32 * 6),
        ("padding", ctypes.c_int32 * 7),
    )


def hopper_kernel(name: str, *, define: str = "") -> KernelSource:
    """The kernel `probe` of tests/kernels, on `Args {TensorMap a, b, d; float* y; int n, at[6];}`."""
    text = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
    return KernelSource(
        name,
        "probe",
        f'#define {define}\n#line 1 "{name}.cu"\n{text}' if define else f'#line 1 "{name}.cu"\n{text}',
        f"{name}.cu",
        args_type="Args",
    )


def hopper_source(body: str, threads: int) -> KernelSource:
    """A kernel on the same struct, whose body starts at line 1 of probe.cu."""
    text = "".join(f'#include "tilewright/{name}.cuh"\n' for name in HEADERS)
    text += (
        "using namespace tilewright;\n"
        "struct alignas(64) Args { TensorMap a, b, d; float* y; int n, at[6]; };\n"
        f'extern "C" __global__ void __launch_bounds__({threads}) probe(const __grid_constant__ Args args) {{\n'
        "  [[maybe_unused]] const int t = threadIdx.x, lane = t % 32, warp = t / 32;\n"
        "  [[maybe_unused]] unsigned char* const smem = dynamic_smem();\n"
        f'#line 1 "probe.cu"\n{body}\n}}\n'
    )
    return KernelSource("probe", "probe", text, "probe.cu", args_type="Args")


def bfloat16(x: np.ndarray) -> np.ndarray:
    """Values that bfloat16 holds exactly, as its bits."""
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def swizzled(offset: np.ndarray, span_bytes: int) -> np.ndarray:
    """Where the swizzle keeps what would lie at these byte offsets."""
    return offset ^ (offset >> 3 & (span_bytes - 16)) if span_bytes else offset


class Operand:
    """A matrix (entries, rows, cols) with padded rows in device memory, and the box that is copied of it."""

    def __init__(self, dtype, values, box_rows, box_cols, *, span_bytes=0):
        values = np.atleast_3d(values) if values.ndim == 3 else values[None]
        self.dtype, self.values = dtype, values.astype(DTYPES[dtype])
        self.box_rows, self.box_cols, self.span_bytes = box_rows, box_cols, span_bytes
        entries, rows, cols = values.shape
        step = 16 // self.values.itemsize
        self.shape, self.ld = (entries, rows, cols), -(-cols // step) * step + step

    def stored(self):
        entries, rows, cols = self.shape
        host = np.full((entries, rows, self.ld), 77, self.values.dtype)
        host[:, :, :cols] = self.values
        return host

    def tensor_map(self) -> TensorMap:
        entries, rows, cols = self.shape
        dtype, box = self.dtype, {"box_rows": self.box_rows, "box_cols": self.box_cols}
        strides = {"ld": self.ld, "entry_stride": rows * self.ld}
        return TensorMap(
            dtype=dtype, rows=rows, cols=cols, entries=entries, **strides, **box, span_bytes=self.span_bytes
        )

    def box(self, col, row, entry):
        """The box's values as a load brings them: zeros outside the matrix."""
        entries, rows, cols = self.shape
        found = np.zeros((self.box_rows, self.box_cols), self.values.dtype)
        if 0 <= entry < entries:
            for i in range(max(0, -row), min(self.box_rows, rows - row)):
                first, end = max(0, -col), min(self.box_cols, cols - col)
                if first < end:
                    found[i, first:end] = self.values[entry, row + i, col + first : col + end]
        return found


def encoded(device, tensor_map, address):
    """The map as the device's kernels take it."""
    if device.name == "emulator":
        return encode_for_emulator(tensor_map, address)
    with device.current():
        return encode_for_driver(tensor_map, address)


def launch_hopper(
    device, binary, *, threads, smem_bytes, a=None, b=None, d=None, n=0, at=(), elements=64 * 256, grid=1
):
    """Launch a probe of hopper_source with these operands; gives y and d as they are then. Y starts as NaN."""
    args, memory = HopperArgs(n=n), {}
    args.at[: len(at)] = at
    for name, operand in (("a", a), ("b", b), ("d", d)):
        if operand is not None:
            host = operand.stored()
            memory[name] = device.alloc(host.nbytes, label=name.upper(), read_only=name != "d")
            device.upload(memory[name], host.reshape(-1).view(np.uint8))
            setattr(args, name, encoded(device, operand.tensor_map(), memory[name].address))
    y = device.alloc(4 * elements, label="Y")
    device.upload(y, np.full(elements, np.nan, np.float32).view(np.uint8))
    args.y = y.address
    device.launch(binary, Grid((grid, 1, 1), (threads, 1, 1), smem_bytes), args)
    device.synchronize()
    stored = None if d is None else device.download(memory["d"]).view(d.values.dtype).reshape(d.stored().shape)
    return SimpleNamespace(y=device.download(y).view(np.float32), d=stored)


BOX_KERNEL_BYTES = 16384 + 8
BOX_DTYPES = {0: "uint8", 32: "bfloat16", 64: "float32", 128: "bfloat16"}
BOX_PLACES = {
    "inside": (16, 2, 1),
    "left": (-16, 2, 1),
    "right": (48, 2, 1),
    "top": (16, -3, 0),
    "bottom": (16, 17, 0),
    "corner": (-16, 19, 0),
    "beyond": (96, 2, 0),
    "other_entry": (16, 2, 2),
}
STORE_PLACES = {name: at for name, at in BOX_PLACES.items() if min(at) >= 0}


def box_operands(span_bytes: int) -> tuple[Operand, Operand]:
    """Two pairs of matrices of other sizes, copied by the same box."""
    dtype = BOX_DTYPES[span_bytes]
    box_cols = (span_bytes or 48) // np.dtype(DTYPES[dtype]).itemsize
    a = np.arange(1, 1 + 2 * 23 * 60).reshape(2, 23, 60)
    return tuple(Operand(dtype, x, 9, box_cols, span_bytes=span_bytes) for x in (a % 251, a[:, :20, :57] % 7))


def check_box(device, binary, span_bytes: int, load_at: tuple[int, ...], store_at: tuple[int, ...]) -> None:
    """One launch of kernels/box.cu against NumPy: shared memory as it then lies, and D."""
    a, d = box_operands(span_bytes)
    box = a.box(*load_at)
    where = swizzled(np.arange(box.nbytes), span_bytes)
    options = {"threads": 64, "smem_bytes": BOX_KERNEL_BYTES, "n": box.nbytes, "elements": box.nbytes // 4}
    got = launch_hopper(device, binary, a=a, d=d, at=(*load_at, *store_at), **options)
    np.testing.assert_array_equal(got.y.view(np.uint8)[where], box.reshape(-1).view(np.uint8))
    expected = d.stored()
    col, row, entry = store_at
    (entries, rows, cols), step = d.shape, 16 // d.values.itemsize
    for i, j in np.ndindex(box.shape):
        written = -(-cols // step) * step  # whole 16 bytes, beyond the matrix's width too
        if entry < entries and row + i < rows and col + j < written:
            expected[entry, row + i, col + j] = box[i, j]
    np.testing.assert_array_equal(got.d, expected)


TO_TF32 = {  # as an H200 brings them
    **{0x3F801000: 0x3F800000, 0x3F803000: 0x3F804000, 0x3F801001: 0x3F802000, 0x3F800FFF: 0x3F800000},
    **{0xBF803000: 0xBF804000, 0x3FFFF000: 0x40000000, 0x7F800000: 0x7F800000, 0x7F7FFFFF: 0x7F800000},
    **{0x00011666: 0x00012000, 0x3F802000: 0x3F802000},
}


def check_rounding(device, binary) -> None:
    """Elements of a TF32 map, through kernels/box.cu."""
    values = np.array([*TO_TF32, *[0] * 6], np.uint32).view(np.float32).reshape(1, 1, 16)
    a, d = Operand("tfloat32", values, 1, 16), Operand("float32", np.zeros_like(values), 1, 16)
    options = {"threads": 64, "smem_bytes": BOX_KERNEL_BYTES, "n": 64, "elements": 16}
    got = launch_hopper(device, binary, a=a, d=d, at=(0,) * 6, **options).y.view(np.uint32)
    assert [hex(x) for x in got[: len(TO_TF32)]] == [hex(x) for x in TO_TF32.values()]


PRODUCT_BYTES = (64 + 256) * 128 + 8
PRODUCT_SHAPES = (  # N, element type and swizzle of each group of four layouts in kernels/product.cu
    *((64, "bfloat16", 0), (8, "float16", 32), (200, "bfloat16", 64), (256, "bfloat16", 128)),
    *((8, "float32", 0), (64, "float32", 32), (256, "float32", 64), (200, "float32", 128)),
)
PRODUCT_CASES = tuple(
    4 * shape + layout
    for shape, (_, dtype, _) in enumerate(PRODUCT_SHAPES)
    for layout in range(1 if dtype == "float32" else 4)
)


def check_product(device, binary, case: int) -> None:
    """One launch of kernels/product.cu against NumPy, on integers; M, N and K all end within a box."""
    n, dtype, span_bytes = PRODUCT_SHAPES[case // 4]
    size = np.dtype(DTYPES[dtype]).itemsize
    step, row = (span_bytes or 64) // size, (span_bytes or 16) // size
    rng = np.random.default_rng(case)
    a, b = (rng.integers(-8, 8, (rows, 3 * step - 8)) for rows in (61, n - 1))
    operands = [
        Operand(dtype, element_values(dtype, x.T if transposed else x), *box, span_bytes=span_bytes)
        for x, transposed, box in (
            (a, case & 2, (step if case & 2 else 64, row)),
            (b, case & 1, (step if case & 1 else n, row)),
        )
    ]
    options = {"threads": 128, "smem_bytes": PRODUCT_BYTES, "n": 3, "at": (case,), "elements": 64 * n}
    got = launch_hopper(device, binary, a=operands[0], b=operands[1], **options).y.reshape(64, n)
    expected = np.zeros((64, n))
    expected[:61, : n - 1] = a @ b.T
    np.testing.assert_array_equal(got, expected)


def element_values(dtype: str, integers: np.ndarray) -> np.ndarray:
    """The integers as the matrix holds them; of float32 the bits that TF32 drops are set besides."""
    if dtype == "bfloat16":
        return bfloat16(integers)
    values = integers.astype(DTYPES[dtype])
    return (values.view(np.uint32) | 0x1FFF).view(np.float32) if dtype == "float32" else values


PIPELINE_BYTES = 2 * (128 + 64) * 128 + 2 * 64 * 128 + 4 * 8


def pipeline_result(device, binary, leaves_out: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """D of one launch of kernels/warp_specialised.cu, and what it should be."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-2, 3, (rows, 5 * 64)) for rows in (128, 64))
    d = Operand("bfloat16", np.zeros((128, 64)), 64, 64, span_bytes=128)
    operands = {name: Operand("bfloat16", bfloat16(x), len(x), 64, span_bytes=128) for name, x in (("a", a), ("b", b))}
    options = {"threads": 384, "smem_bytes": PIPELINE_BYTES, "n": 5, "at": (leaves_out,), "elements": 1}
    got = launch_hopper(device, binary, d=d, **operands, **options).d[0, :, :64]
    return got, bfloat16(a @ b.T)


STORED_MATRICES = """for (int i = t; i < 1024; i += 32) reinterpret_cast<unsigned*>(smem)[i] = 0;
__syncwarp();
unsigned registers[4], two[2], one[1];
for (int i = 0; i < 4; ++i) registers[i] = 1 + i * 32 + t;
two[0] = registers[2]; two[1] = registers[1]; one[0] = registers[3];
stmatrix<4>(smem + t * 48, registers);
stmatrix<2>(smem + 2048 + t * 16, two);
stmatrix<1>(smem + 3072 + t * 32, one);
__syncwarp();
for (int i = t; i < 1024; i += 32) args.y[i] = reinterpret_cast<unsigned*>(smem)[i];"""


def check_stored_matrices(device, binary) -> None:
    """One launch of STORED_MATRICES: of matrix i, lane 4·r + c holds word c of the row that lane 8·i + r points to."""
    expected = np.zeros(1024)
    for start, pitch, registers in ((0, 12, (0, 1, 2, 3)), (512, 4, (2, 1)), (768, 8, (3,))):
        for matrix, register in enumerate(registers):
            for lane in range(32):
                expected[start + (8 * matrix + lane // 4) * pitch + lane % 4] = 1 + register * 32 + lane
    got = launch_hopper(device, binary, threads=32, smem_bytes=4096, elements=1024)
    np.testing.assert_array_equal(got.y, expected)
