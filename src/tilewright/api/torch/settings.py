"""What torch's settings of this moment say of its own products. It imports no torch: the module is passed."""

from __future__ import annotations

import os
from typing import Any

from tilewright.problem import ITEMSIZE_BYTES


def may_replace_kernel(dtype: str, torch: Any) -> bool:
    """Whether torch's own product of elements taken as `dtype` may replace a kernel's.

    In float32 and TF32 where the settings say that very arithmetic. In 16 bits always: the user has set torch, and a
    kernel is at least as exact as whatever its settings allow.
    """
    if ITEMSIZE_BYTES[dtype] == 2:
        return True
    allows_tf32 = _allows_tf32(torch.backends.cuda.matmul)
    return "NVIDIA_TF32_OVERRIDE" not in os.environ and allows_tf32 == (dtype == "tfloat32")


def _allows_tf32(matmul: Any) -> bool:
    try:
        return bool(matmul.allow_tf32)
    except RuntimeError:  # the newer switch was used, and torch refuses to read the older one
        return bool(matmul.fp32_precision == "tf32")
