"""The nearest valid values to rejected ones: what an error tells a person to try."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from tilewright.declare.rung import Rung

MOST_CHANGES = 3
IsValid = Callable[[Mapping[str, int]], bool]


def nearest_values(rung: Rung, values: Mapping[str, int], is_valid: IsValid) -> dict[str, int] | None:
    """Valid values that differ from `values` in the fewest parameters, then by the smallest factors.

    Looks at the parameters' candidate values, changing at most three of them; None if there are none.
    """
    candidates = {p.name: [v for v in p.values if v != values[p.name]] for p in rung.params}
    for changes in range(1, MOST_CHANGES + 1):
        best: tuple[float, dict[str, int]] | None = None
        for names in itertools.combinations(candidates, changes):
            for chosen in itertools.product(*(candidates[n] for n in names)):
                trial = {**values, **dict(zip(names, chosen, strict=True))}
                distance = sum(abs(math.log2((1 + trial[n]) / (1 + values[n]))) for n in names)
                if (best is None or distance < best[0]) and is_valid(trial):
                    best = distance, trial
        if best is not None:
            return best[1]
    return None


def advice(rung: Rung, values: Mapping[str, int], is_valid: IsValid) -> str:
    """The end of a rejection: which parameters to change, and to what."""
    nearest = nearest_values(rung, values, is_valid)
    if nearest is None:
        return "no valid config is near; start from the defaults"
    changed = ", ".join(f"{name}={value}" for name, value in nearest.items() if value != values[name])
    return f"nearest valid config: {changed}"
