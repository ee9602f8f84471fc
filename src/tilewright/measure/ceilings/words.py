"""The words that the checks' data follow from, as `args.cuh` computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
MULTIPLIER = np.uint32(2654435761)
SEED, OTHER_SEED = 20260101, 7


def words_at(index: npt.NDArray[Any], seed: int = SEED) -> Words:
    """The words of the checks' data, as `word_at` of args.cuh computes them."""
    return index.astype(np.uint32) * MULTIPLIER + np.uint32(seed)
