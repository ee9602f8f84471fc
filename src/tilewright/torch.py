"""tilewright inside torch: a drop-in `Linear`, and the operators that torch traces, differentiates and captures.

Importing this imports torch and registers `torch.ops.tilewright`: do so before a function with a product is compiled.
"""

from __future__ import annotations

from typing import Any, Self

import torch

from tilewright.api.calls import gemm, matmul
from tilewright.api.torch.operators import GEMM, GEMM_OUT, MATMUL, MATMUL_OUT

__all__ = ["GEMM", "GEMM_OUT", "MATMUL", "MATMUL_OUT", "Linear", "gemm", "linear", "matmul"]


def linear(x: Any, weight: Any, bias: Any = None, *, compute_type: str | None = None, kernels: str = "all") -> Any:
    """x·Wᵀ + bias, as `torch.nn.functional.linear`: x (…, in), weight (out, in), bias (out,), on a GPU."""
    return gemm(x, weight.t(), bias=bias, compute_type=compute_type, kernels=kernels)


class Linear(torch.nn.Linear):  # type: ignore[misc]
    """`torch.nn.Linear` whose product is tilewright's, with the same parameters by the same names.

    `compute_type` is 'ieee' or 'tf32', whatever torch's own precision settings say; `kernels` is 'all', or 'own' where
    torch's product may not take a kernel's place.
    """

    compute_type: str | None = None
    kernels: str = "all"

    @classmethod
    def from_linear(cls, module: Any, *, compute_type: str | None = None, kernels: str = "all") -> Self:
        """A layer in the place of `module`, sharing its parameters, its mode and no more."""
        has_bias = module.bias is not None
        made = cls(module.in_features, module.out_features, bias=has_bias, device="meta", dtype=module.weight.dtype)
        made.weight, made.bias, made.compute_type, made.kernels = module.weight, module.bias, compute_type, kernels
        return made.train(module.training)  # type: ignore[no-any-return]

    def forward(self, x: Any) -> Any:
        """The layer of x (…, in): (…, out)."""
        return linear(x, self.weight, self.bias, compute_type=self.compute_type, kernels=self.kernels)
