#!/usr/bin/env python3
"""Leading singular values of a tall matrix by subspace iteration in float32, with cupy.matmul and with tilewright's.

Each step multiplies A (m×n) by a skinny Q and Aᵀ by a skinny Y, with CuPy's QR between. Aᵀ is `a.T`, a view: both
libraries read A where it lies. The spectrum is known, so that the values are checked before anything is timed.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from paired import OURS, need, one_line, parser_of, show, status_of, timed, write_record

import tilewright as tw
from tilewright.errors import WrongResult
from tilewright.run.cuda import CudaBackend

U = 2.0**-24
"""Half the distance from 1 to the next float32: the most by which a rounding errs."""
Product = Callable[[Any, Any], Any]


def spectrum(count: int) -> Any:
    """1, 1/2, 1/3 and so on."""
    return 1.0 / np.arange(1, count + 1)


def matrix(cupy: Any, m: int, n: int, seed: int) -> Any:
    """A in float32: U·S·Vᵀ made in float64, U and V random and orthonormal, S the spectrum; then rounded."""
    random = cupy.random.default_rng(seed)
    left, _ = cupy.linalg.qr(random.standard_normal((m, n)))
    right, _ = cupy.linalg.qr(random.standard_normal((n, n)))
    return cupy.ascontiguousarray(((left * cupy.asarray(spectrum(n))) @ right.T).astype(cupy.float32))


def iterate(cupy: Any, product: Product, a: Any, start: Any, steps: int) -> tuple[Any, Any]:
    """Y, a basis of A's leading left singular vectors, and Z = AᵀY, whose singular values are A's leading ones."""
    z = start
    for _ in range(steps):
        q, _ = cupy.linalg.qr(z)
        y, _ = cupy.linalg.qr(product(a, q))
        z = product(a.T, y)
    return y, z


def singular_values(cupy: Any, z: Any) -> Any:
    """Those of Z (n×l), the largest first, by its small Gram matrix, in float64, where squaring them costs nothing."""
    wide = z.astype(cupy.float64)
    return cupy.sqrt(cupy.maximum(cupy.linalg.eigvalsh(wide.T @ wide)[::-1], 0.0))


def check(cupy: Any, product: Product, a: Any, start: Any, asked: argparse.Namespace) -> dict[str, float]:
    """How far the last product and the values are off, in units of what is accepted. See `accepted_values`.

    The product Z = AᵀY is accepted within √m·u·‖A‖, by norms of Frobenius: an element is a sum of m terms, whose
    roundings, each below u of a partial sum, add up like √m independent ones (Higham and Mary, 2019).
    """
    y, z = iterate(cupy, product, a, start, asked.steps)
    wide, basis = a.astype(cupy.float64), y.astype(cupy.float64)
    norm = float(cupy.linalg.norm(wide))
    accepted = math.sqrt(asked.m) * U * norm
    off_product = float(cupy.linalg.norm(z - wide.T @ basis)) / accepted
    skew = float(cupy.linalg.norm(basis.T @ basis - cupy.eye(asked.columns)))
    found, known = cupy.asnumpy(singular_values(cupy, z))[: asked.wanted], spectrum(asked.n)[: asked.wanted]
    off_values = float(np.max(np.abs(found - known) / accepted_values(norm, skew, asked)))
    relative = float(np.max(np.abs(found / known - 1)))
    return {"product": off_product, "values": off_values, "relative": relative, "skew": skew}


def accepted_values(norm: float, skew: float, asked: argparse.Namespace) -> Any:
    """How far each wanted value may be from the known one; the sum of all that moves it.

    Rounding A: u·‖A‖ (Weyl). Roundings in Z: to first order a value moves by their mean over a singular vector of
    n elements, each √m·u of its element: √(m/n)·u of the value, and 4 of such deviations are accepted, as there are
    several values. Y's columns are orthonormal to `skew`, as measured: that much of the value. What the iteration
    has not reached: tan²θ/2 of the value, where θ is the angle that is left. From a random start with l columns
    tan²θ is about k·(n-k)/(l-k-1) for the k wanted (Halko, Martinsson, Tropp, 2011), and each of the
    2·steps - 1 products that lead to Y divides tanθ by σ_k/σ_(l+1).
    """
    k, left = asked.wanted, spectrum(asked.n + 1)[asked.columns] / spectrum(asked.n)[asked.wanted - 1]
    start = k * (asked.n - k) / (asked.columns - k - 1)
    relative = 4.0 * math.sqrt(asked.m / asked.n) * U + skew + 0.5 * start * left ** (4 * asked.steps - 2)
    return U * norm + relative * spectrum(asked.n)[:k]


def kernels_of(a: Any, q: Any, y: Any) -> dict[str, str]:
    """What computes A·Q and Aᵀ·Y. Raises WrongResult if an operand would be copied."""
    found = {}
    for label, left, right in ((_label("A·Q", a, q), a, q), (_label("Aᵀ·Y", a.T, y), a.T, y)):
        with tw.Gemm(left, right) as product:
            plan = product.plan()
        if plan.copies:
            copied = ", ".join(sorted(copy.name for copy in plan.copies))
            raise WrongResult(f"{label}: copies {copied}; operands are to be used where they are")
        found[label] = one_line(plan)
    return found


def _label(name: str, left: Any, right: Any) -> str:
    return f"{name} {left.shape[0]}×{right.shape[1]}×{left.shape[1]}"


def compare(asked: argparse.Namespace) -> None:
    """Make A, check, time, print. Raises Missing, WrongResult."""
    os.environ["CUPY_TF32"] = "0"  # read at import
    cupy = need("cupy", "cupy-cuda13x")
    products: dict[str, Product] = {"cupy": cupy.matmul, OURS: tw.matmul}
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream, CudaBackend(stream=int(stream.ptr)) as gpu:
        a = matrix(cupy, asked.m, asked.n, asked.seed)
        random = cupy.random.default_rng(asked.seed + 1)
        start = random.standard_normal((asked.n, asked.columns)).astype(cupy.float32)
        print(f"A {asked.m}×{asked.n}, float32, TF32 off, {asked.columns} columns, CuPy {cupy.__version__}")
        print(f"the {asked.wanted} leading singular values after {asked.steps} steps; errors in units of the accepted:")
        errors = {name: check(cupy, product, a, start, asked) for name, product in products.items()}
        for name, off in errors.items():
            values_off = f"singular values {off['values']:.3g} (relative error up to {off['relative']:.2g})"
            print(f"  {name:<10}  last product {off['product']:.3g}, {values_off}")
        if not all(off[what] <= 1.0 for off in errors.values() for what in ("product", "values")):
            raise WrongResult("an error is beyond the accepted one: above 1 in the lines before")
        q, _ = cupy.linalg.qr(start)
        y, _ = cupy.linalg.qr(cupy.matmul(a, q))
        kernels = kernels_of(a, q, y)
        print("kernels:", *(f"{label}: {kernel}" for label, kernel in kernels.items()), sep="\n  ")

        def values(product: Product) -> Any:
            return singular_values(cupy, iterate(cupy, product, a, start, asked.steps)[1])

        measured = {}
        for label, left, right in zip(kernels, (a, a.T), (q, y), strict=True):
            calls = {name: lambda f=f, x=left, y=right: f(x, y) for name, f in products.items()}
            measured[label] = timed(gpu, calls, asked, from_idle=False)
        whole = {name: lambda f=f: values(f) for name, f in products.items()}
        measured["end to end, with QR"] = timed(gpu, whole, asked, from_idle=True)
        show(measured)
        sizes = {name: getattr(asked, name) for name in ("m", "n", "columns", "wanted", "steps")}
        about = {"example": "subspace_iteration", "seed": asked.seed, "errors": errors, "kernels": kernels}
        about["cupy"] = cupy.__version__
        data = "A with singular values 1, 1/2, 1/3, …, random singular vectors"
        write_record(asked, gpu, measured, problem={**sizes, "dtype": "float32"}, data=data, about=about)


def main(arguments: list[str] | None = None) -> int:
    """The exit status."""
    parser = parser_of(
        "Leading singular values by subspace iteration in float32: cupy.matmul against tilewright.matmul."
    )
    parser.add_argument("-m", type=int, default=20000, help="rows of A (default: %(default)s)")
    parser.add_argument("-n", type=int, default=3000, help="columns of A, not more (default: %(default)s)")
    parser.add_argument("--columns", type=int, default=32, help="of Q and Y (default: %(default)s)")
    parser.add_argument("--wanted", type=int, default=16, help="values, by 2 or more fewer (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="products with A and Aᵀ each (default: %(default)s)")
    asked = parser.parse_args(arguments)
    if not (1 <= asked.wanted <= asked.columns - 2 < asked.columns <= asked.n <= asked.m and asked.steps >= 1):
        parser.error("sizes: needs 1 ≤ wanted ≤ columns - 2, columns ≤ n ≤ m, and a step")
    return status_of(lambda: compare(asked))


if __name__ == "__main__":
    sys.exit(main())
