"""The gradients of a product with respect to its operands, as products. Works on any framework's arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Product = Callable[[Any, Any], Any]


def gradient_of_a(product: Product, grad: Any, a: Any, b: Any) -> Any:
    """The gradient for A, in its shape; `grad` is that of A·B, `product` multiplies arrays of two axes or more."""
    rows, columns, full = _matrices(grad, a, b)
    return summed_to(product(full, columns.swapaxes(-1, -2)), rows.shape).reshape(a.shape)


def gradient_of_b(product: Product, grad: Any, a: Any, b: Any) -> Any:
    """The gradient for B, in its shape. See `gradient_of_a`. A batch of which B has none is rows of one product."""
    rows, columns, full = _matrices(grad, a, b)
    if columns.ndim == 2:
        rows, full = (x.reshape(-1, x.shape[-1]) for x in (rows, full))
    return summed_to(product(rows.swapaxes(-1, -2), full), columns.shape).reshape(b.shape)


def summed_to(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` summed over the axes along which `shape` was broadcast to it, in that shape."""
    leading = array.ndim - len(shape)
    repeated = (leading + axis for axis, size in enumerate(shape) if size == 1 and array.shape[leading + axis] != 1)
    axes = (*range(leading), *repeated)
    return (array.sum(axes) if axes else array).reshape(shape)


def _matrices(grad: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """A, B and the gradient with the axes that vectors lack."""
    rows = a[None, :] if a.ndim == 1 else a
    columns = b[:, None] if b.ndim == 1 else b
    full = grad[..., None] if b.ndim == 1 else grad
    return rows, columns, full[..., None, :] if a.ndim == 1 else full
