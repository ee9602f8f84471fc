"""Global memory in which the CTAs of one launch leave things for each other, as a rung declares it.

Owns the value type. Who allocates it for a launch is `run.scratch`'s business.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.declare.expr import Expr


class Scratch(NamedTuple):
    """`sums` accumulators of arbitrary contents at `args.workspace`, and `flags` unsigned integers at `args.flags`.

    Both may name the problem's sizes and `sm_count`, the SMs of the device it is planned for. Flags are zero when a
    launch begins, and the kernel leaves them zero.
    """

    sums: Expr
    flags: Expr


def scratch(*, sums: str, flags: str) -> Scratch:
    """`Scratch` from text."""
    return Scratch(Expr(sums), Expr(flags))
