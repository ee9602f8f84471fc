"""What one warp asks for together: the declared addresses of one access in a kernel's text.

Owns the value type and the names its expressions may use. Evaluating it for 32 lanes is `facts/footprint.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tilewright.declare.expr import Expr
from tilewright.errors import InvalidDeclaration

AccessKind = Literal["global load", "global store", "shared load", "shared store"]
LANE_NAMES = frozenset({"lane", "tx", "ty"})


@dataclass(frozen=True)
class Footprint:
    """One access, as each lane of warp 0 of CTA 0 makes it in the first step along K.

    `offset` is the element where a lane's access starts, counted from the array's first; `elements` is how many
    neighbours it takes. Both may name constants; `offset` also `lane`, `tx` and `ty` (threadIdx.x and .y) and, in
    global memory, the problem's sizes and leading dimensions.
    """

    name: str
    kind: AccessKind
    offset: Expr
    elements: Expr

    def __post_init__(self) -> None:
        if self.kind not in get_args(AccessKind):
            raise InvalidDeclaration(
                f"footprint {self.name}: kind {self.kind!r} must be one of {', '.join(get_args(AccessKind))}"
            )

    @property
    def is_global(self) -> bool:
        """Whether it is in global memory; else it is in shared memory."""
        return self.kind.startswith("global")


def footprint(name: str, kind: AccessKind, offset: str, *, elements: str = "1") -> Footprint:
    """`Footprint` from text."""
    return Footprint(name, kind, Expr(offset), Expr(elements))
