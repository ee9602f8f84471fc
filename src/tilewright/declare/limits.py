"""Where 32-bit indices end: problem rules that kernels share.

Sizes go up to 2^31 - 1 and kernels index with `int`, so an index in the last tile, or a loop's counter at the end of k,
may be one that an `int` doesn't hold. Owns these rules alone; a rung names those that its arithmetic needs.
"""

from __future__ import annotations

from tilewright.declare.rules import Rule, problem_rule

INDICES = 2**31
"""How many indices an `int` has, from 0 on."""


def whole_tiles_indexed(size: str, tile: str, what: str) -> Rule:
    """A rule that the last tile along `size` ends where indices do, or before; `what` are indexed."""
    return problem_rule(
        f"ceil_div({size}, {tile}) * {tile} <= {INDICES}",
        f"since {what} of the last tile, too, are numbered in 32 bits",
    )


INDEXED_RESULTS = (whole_tiles_indexed("m", "BM", "rows"), whole_tiles_indexed("n", "BN", "columns"))
COUNTED_K = problem_rule(
    f"ceil_div(k, BK) * BK < {INDICES}", "since a loop counts k in 32 bits, to the end of the last step"
)
"""Of a loop `for (int k = 0; k < args.k; k += BK)`, whose counter ends beyond k."""
