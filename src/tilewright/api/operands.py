"""A call's arrays as operand descriptors, and the product they pose, checked before anything else is done.

Owns both values and NumPy's shape rules. It holds no array and asks no framework.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem
from tilewright.problem import ITEMSIZE_BYTES, storage_dtype

HOST = -1
MOST_ALIGNMENT_BYTES = 256
DTYPES = tuple(dict.fromkeys(storage_dtype(dtype) for dtype in ITEMSIZE_BYTES))
"""Element types of arrays of which products are taken."""
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """An array's address, shape, strides in bytes, element type and device (HOST or a GPU's number).

    `unusable` says why its elements can't be read or written where they are stored; None where they can. `strides` are
    in elements, away from 0 where they are no multiples of an element's size; a product's operands have them.
    """

    name: str
    address: int
    shape: Shape
    strides_bytes: Shape
    dtype: str
    device: int
    writable: bool = True
    unusable: str | None = None
    strides: Shape = ()

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return ITEMSIZE_BYTES[self.dtype]

    @property
    def overlaps_itself(self) -> bool:
        """Whether elements share bytes, or may: an axis doesn't fit between the steps of the next longer one."""
        if 0 in self.shape:
            return False
        extent = self.itemsize
        steps = zip(self.strides_bytes, self.shape, strict=True)
        for stride, size in sorted((abs(stride), size) for stride, size in steps if size > 1):
            if stride < extent:
                return True
            extent += stride * (size - 1)
        return False

    @property
    def reach_bytes(self) -> tuple[int, int]:
        """The first byte and the one past the last, from the address on."""
        if 0 in self.shape:
            return 0, 0
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides_bytes, strict=True)]
        low, high = (sum(step for step in steps if sign * step > 0) for sign in (-1, 1))
        return low, high + self.itemsize

    def touches(self, other: Operand) -> bool:
        """Whether the two are in one stretch of memory, be it without sharing an element."""
        (low, high), (other_low, other_high) = self.reach_bytes, other.reach_bytes
        return self.address + low < other.address + other_high and other.address + other_low < self.address + high

    def is_same_memory(self, other: Operand) -> bool:
        """Whether the two are the very same elements in the same order."""
        return (self.address, self.shape, self.strides_bytes) == (other.address, other.shape, other.strides_bytes)


@dataclass(frozen=True, slots=True)
class Sizes:
    """A product's sizes: `batch` is the shape of the broadcast batch, before (m, k) and (k, n).

    `drops_row` and `drops_column` say that an operand was a vector, whose axis the result hasn't.
    """

    batch: Shape
    m: int
    n: int
    k: int
    drops_row: bool = False
    drops_column: bool = False

    @property
    def result_shape(self) -> Shape:
        """The shape the caller sees."""
        return self.batch + (() if self.drops_row else (self.m,)) + (() if self.drops_column else (self.n,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One product as a caller asked for it. Make one with `product_of`, which checks it.

    `dtype` is the problem's element type, 'tfloat32' for float32 operands in TF32. `c` is there only where beta reads
    it, broadcast to the result's shape. `alignment_bytes` is what the addresses of all arrays are multiples of.
    `packed` says why every input is copied without gaps, where that is so. `overlap` says which input shares a stretch
    of memory with out, where one does and isn't C, out itself. `reaches` are the first byte of out, A, B, C and bias
    from their addresses on, and the one past the last, of those that are there.
    """

    a: Operand
    b: Operand
    c: Operand | None
    out: Operand | None
    bias: Operand | None
    alpha: float
    beta: float
    dtype: str
    epilogue: Epilogue
    alignment_bytes: int
    packed: str | None = None
    sizes: Sizes = field(default_factory=lambda: Sizes((), 0, 0, 0))
    result_shape: Shape = ()
    out_dtype: str = ""
    is_aligned: bool = True
    reads_operands: bool = True
    overlap: str | None = None
    reaches: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def product_of(
    *,
    a: Operand,
    b: Operand,
    c: Operand | None,
    out: Operand | None,
    bias: Operand | None,
    alpha: float,
    beta: float,
    dtype: str,
    epilogue: Epilogue,
    alignment_bytes: int,
    packed: str | None = None,
) -> Product:
    """The product that these operands pose. Raises InvalidProblem where they do not go together."""
    given = out or c
    out_dtype = storage_dtype(dtype) if given is None else given.dtype
    _check_types(a, b, c, out, bias, out_dtype)
    a, b = _described(a), _described(b)
    c, out, bias = (None if operand is None else _described(operand) for operand in (c, out, bias))
    operands = [operand for operand in (a, b, c, bias, out) if operand is not None]
    _check_devices(operands)
    sizes = product_sizes(a.shape, b.shape)
    _check_shapes(sizes, c, out, bias)
    # By the BLAS rule A and B are not read where alpha is 0.
    reads_operands = alpha != 0.0 and sizes.k > 0
    same_as_out = c is not None and out is not None and c.is_same_memory(out)
    inputs = {"A": a if reads_operands else None, "B": b if reads_operands else None, "bias": bias}
    inputs["C"] = None if same_as_out else c
    read = {name: operand for name, operand in inputs.items() if operand is not None}
    touching = [name for name, operand in read.items() if out is not None and operand.touches(out)]
    reaches = {name: operand.reach_bytes for name, operand in read.items()}
    if out is not None:
        reaches["out"] = out.reach_bytes
    return Product(
        a=a,
        b=b,
        c=c,
        out=out,
        bias=bias,
        alpha=alpha,
        beta=beta,
        dtype=dtype,
        epilogue=epilogue,
        alignment_bytes=alignment_bytes,
        packed=packed,
        sizes=sizes,
        result_shape=sizes.result_shape,
        out_dtype=out_dtype,
        is_aligned=alignment_bytes >= max(operand.itemsize for operand in operands),
        reads_operands=reads_operands,
        overlap=f"it overlaps {touching[0]}" if touching else None,
        reaches=reaches,
    )


def _check_types(
    a: Operand, b: Operand, c: Operand | None, out: Operand | None, bias: Operand | None, out_dtype: str
) -> None:
    for operand in (a, b, c, out, bias):
        if operand is not None and operand.dtype not in DTYPES:
            raise InvalidProblem(
                f"{operand.name}: dtype={operand.dtype}: supports {', '.join(DTYPES)}; convert it to one of them"
            )
    for operand in (b, bias):
        if operand is not None and operand.dtype != a.dtype:
            raise InvalidProblem(
                f"A is {a.dtype} and {operand.name} is {operand.dtype}: types are not promoted; convert one of them"
            )
    if out_dtype not in (a.dtype, "float32"):
        name = "out" if out is not None else "C"
        raise InvalidProblem(f"{name} is {out_dtype}: with {a.dtype} operands use {a.dtype} or float32")
    if c is not None and c.dtype != out_dtype:
        raise InvalidProblem(f"C is {c.dtype} and the result {out_dtype}: convert C, or pass another out")


def _check_devices(operands: list[Operand]) -> None:
    if len({operand.device for operand in operands}) > 1:
        places = [(each.name, "the host" if each.device == HOST else f"GPU {each.device}") for each in operands]
        where = ", ".join(f"{name} on {place}" for name, place in places)
        raise InvalidProblem(f"operands on different devices ({where}): move them to one")


def _check_shapes(sizes: Sizes, c: Operand | None, out: Operand | None, bias: Operand | None) -> None:
    expected = sizes.result_shape
    for operand in (c, out):
        if operand is not None and operand.shape != expected:
            raise InvalidProblem(f"{operand.name} is {operand.shape}: must be {expected}, the shape of A·B")
    if bias is not None and bias.shape != (sizes.n,):
        raise InvalidProblem(f"bias is {bias.shape}: must be ({sizes.n},), one element for each column")
    if out is None:
        return
    if not out.writable:
        raise InvalidProblem("out: read-only: pass an array that may be written")
    if out.overlaps_itself:
        raise InvalidProblem(
            f"out: shape {out.shape} with strides {out.strides} puts several results on one element; "
            f"pass an array of its own"
        )


def _described(operand: Operand) -> Operand:
    """The operand with its strides in elements, unusable where its elements aren't aligned to their size."""
    size, unusable = operand.itemsize, operand.unusable
    if unusable is None and operand.address % size:
        unusable = f"its address is no multiple of {size} bytes, an element's size"
    elif unusable is None and any(step % size for step in operand.strides_bytes):
        unusable = f"its strides are no multiples of {size} bytes, an element's size"
    strides = tuple(-(-step // size) if step > 0 else step // size for step in operand.strides_bytes)
    return replace(operand, unusable=unusable, strides=strides)


def product_sizes(a: Shape, b: Shape) -> Sizes:
    """The sizes of A·B. Raises InvalidProblem where NumPy's `matmul` would refuse the shapes."""
    for name, shape in (("A", a), ("B", b)):
        if not shape:
            raise InvalidProblem(f"{name}: a scalar, shape (): a product needs 1 or more axes; multiply by * instead")
    rows, columns = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
    if rows[-1] != columns[-2]:
        raise InvalidProblem(f"A is {a} and B is {b}: A's columns must equal B's rows")
    batch = broadcast_shape(rows[:-2], columns[:-2], f"A is {a} and B is {b}")
    return Sizes(batch, rows[-2], columns[-1], rows[-1], len(a) == 1, len(b) == 1)


def require_broadcast(c: Shape, a: Shape, b: Shape) -> Shape:
    """The shape of A·B, to which C is repeated. Raises InvalidProblem where it can't be."""
    result = product_sizes(a, b).result_shape
    if broadcast_shape(c, result, f"C is {c} and A·B is {result}") != result:
        raise InvalidProblem(f"C is {c}: must broadcast to {result}, the shape of A·B")
    return result


def broadcast_shape(first: Shape, second: Shape, words: str) -> Shape:
    """The shape both broadcast to. Raises InvalidProblem, beginning with `words`."""
    length = max(len(first), len(second))
    padded = [(1,) * (length - len(shape)) + shape for shape in (first, second)]
    result = []
    for one, other in zip(*padded, strict=True):
        if one != other and 1 not in (one, other):
            raise InvalidProblem(f"{words}: batches {first} and {second} do not broadcast: sizes must be equal or 1")
        result.append(other if one == 1 else one)
    return tuple(result)


def packed_strides(shape: Shape) -> Shape:
    """Strides in elements of an array without gaps, the last axis closest."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def times(strides: Shape, itemsize: int) -> Shape:
    """Strides in bytes of strides in elements."""
    return tuple(stride * itemsize for stride in strides)
