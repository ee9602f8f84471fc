"""NumPy's shape rules for a product: vectors, matrices, batches that broadcast. Owns nothing but sizes."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import InvalidProblem

Shape = tuple[int, ...]


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

    @property
    def is_empty(self) -> bool:
        """Whether the result has no element."""
        return 0 in (*self.batch, self.m, self.n)

    def with_matrix_axes(self, values: Shape) -> Shape:
        """Strides of a result with those of the dropped axes, of length 1, put back as 0."""
        inner = values[len(self.batch) :]
        row = () if self.drops_row else inner[:1]
        column = () if self.drops_column else inner[-1:]
        return (*values[: len(self.batch)], *(row or (0,)), *(column or (0,)))


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
