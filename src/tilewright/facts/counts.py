"""Access counts that follow from a declaration: what a kernel asks of memory, before any cache.

Everything is exact arithmetic on the declared accesses of one CTA and one step along K. Loads only: the one store
of each result is the same for every rung.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from tilewright.declare.config import Config
from tilewright.problem import ITEMSIZE_BYTES, Problem


@dataclass(frozen=True, slots=True)
class Counts:
    """Element accesses for one result over the whole of K, and the intensity they imply."""

    global_loads_per_result: Fraction
    shared_loads_per_result: Fraction
    shared_stores_per_result: Fraction
    global_load_bytes_per_flop: Fraction

    @property
    def flop_per_byte(self) -> float:
        """Arithmetic intensity against the global bytes requested."""
        return float(1 / self.global_load_bytes_per_flop)


def counts(config: Config, problem: Problem) -> Counts:
    """The counts of `config` for `problem` (k ≥ 1), tails counted as whole steps."""
    declared, scope = config.rung.accesses, config.scope
    k_step, results = declared.k_step.evaluate(scope), declared.results.evaluate(scope)
    steps = -(-problem.k // k_step)
    loads, shared_loads, shared_stores = (
        Fraction(expr.evaluate(scope) * steps, results)
        for expr in (declared.global_loads, declared.shared_loads, declared.shared_stores)
    )
    return Counts(
        global_loads_per_result=loads,
        shared_loads_per_result=shared_loads,
        shared_stores_per_result=shared_stores,
        global_load_bytes_per_flop=loads * ITEMSIZE_BYTES[problem.dtype] / (2 * problem.k),
    )
