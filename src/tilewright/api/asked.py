"""A call's arrays as views, with its scalars, checked against one another before anything else is done."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.api.shapes import Sizes, product_sizes
from tilewright.api.view import HOST, View
from tilewright.epilogue import Epilogue
from tilewright.errors import InvalidProblem
from tilewright.problem import storage_dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One product as a caller asked for it.

    `dtype` is the problem's element type, 'tfloat32' for float32 operands in TF32. `c` is there only where beta reads
    it, broadcast to the result's shape. `alignment_bytes` is what the addresses of all arrays of the call are multiples
    of. `packed` says why every input is copied without gaps; empty where it isn't. `kernels` is 'own' where the
    framework's own product is out of the question.
    Raises InvalidProblem for views that do not go together.
    """

    a: View
    b: View
    c: View | None
    out: View | None
    bias: View | None
    alpha: float
    beta: float
    dtype: str
    epilogue: Epilogue
    alignment_bytes: int
    packed: str = ""
    kernels: str = "all"

    def __post_init__(self) -> None:
        operands = storage_dtype(self.dtype)
        for view in (self.b, self.bias):
            if view is not None and view.dtype != operands:
                raise InvalidProblem(
                    f"A is {operands} and {view.name} is {view.dtype}: types are not promoted; convert one of them"
                )
        if self.out_dtype not in (operands, "float32"):
            name = "out" if self.out is not None else "C"
            raise InvalidProblem(f"{name} is {self.out_dtype}: with {operands} operands use {operands} or float32")
        if self.c is not None and self.c.dtype != self.out_dtype:
            raise InvalidProblem(f"C is {self.c.dtype} and the result {self.out_dtype}: convert C, or pass another out")
        self._check_devices()
        self._check_shapes()

    def _check_devices(self) -> None:
        if len({view.device for view in self.views}) > 1:
            places = [(v.name, "the host" if v.device == HOST else f"GPU {v.device}") for v in self.views]
            where = ", ".join(f"{name} on {place}" for name, place in places)
            raise InvalidProblem(f"operands on different devices ({where}): move them to one")

    def _check_shapes(self) -> None:
        expected = self.sizes.result_shape
        for view in (self.c, self.out):
            if view is not None and view.shape != expected:
                raise InvalidProblem(f"{view.name} is {view.shape}: must be {expected}, the shape of A·B")
        if self.bias is not None and self.bias.shape != (self.sizes.n,):
            raise InvalidProblem(f"bias is {self.bias.shape}: must be ({self.sizes.n},), one element for each column")
        if self.out is None:
            return
        if not self.out.writable:
            raise InvalidProblem("out: read-only: pass an array that may be written")
        if self.out.overlaps_itself:
            raise InvalidProblem(
                f"out: shape {self.out.shape} with strides {self.out.strides} puts several results on one element; "
                f"pass an array of its own"
            )

    @property
    def views(self) -> list[View]:
        """Every array there is."""
        return [view for view in (self.a, self.b, self.c, self.bias, self.out) if view is not None]

    @property
    def sizes(self) -> Sizes:
        """The product's sizes."""
        return product_sizes(self.a.shape, self.b.shape)

    @property
    def out_dtype(self) -> str:
        """The result's element type: that of out, of C, or of the operands."""
        given = self.out or self.c
        return storage_dtype(self.dtype) if given is None else given.dtype

    @property
    def is_aligned(self) -> bool:
        """Whether every array is aligned to its elements, by the alignment that they all have."""
        return self.alignment_bytes >= max(view.itemsize for view in self.views)

    @property
    def reads_operands(self) -> bool:
        """Whether A and B take part. By the BLAS rule they are not read where alpha is 0."""
        return self.alpha != 0.0 and self.a.shape[-1] > 0
