"""What ptxas says of a kernel that it compiled to something else than was written, and what that means.

Such a kernel is right and slow, so a build that would pass fails here. Owns which messages count; they are known by
their text, as their numbers differ between versions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.errors import CompileFailed


@dataclass(frozen=True, slots=True)
class Loss:
    """A message that matches `pattern`, what became of the kernel, and what to do."""

    pattern: re.Pattern[str]
    meaning: str
    fix: str


def _loss(pattern: str, meaning: str, fix: str) -> Loss:
    return Loss(re.compile(pattern, re.IGNORECASE), meaning, fix)


SERIALISED = "each wgmma waits for the one before"
KEPT = "every warp keeps the registers it was launched with"
LOSSES = (
    _loss(
        "wgmma.*serializ.*(function boundary|function call|extern)",
        SERIALISED,
        "inline every function that is called between wgmma_fence and wgmma_wait",
    ),
    _loss(
        "wgmma.*serializ.*(reading|defining).*accumulator",
        SERIALISED,
        "touch accumulators only before wgmma_fence and after wgmma_wait, and fence before every group",
    ),
    _loss(
        "wgmma.*serializ.*register resources",
        SERIALISED,
        "leave accumulators alone within a group, or leave more registers: fewer accumulators or fewer threads",
    ),
    _loss("wgmma.*serializ", SERIALISED, "let nothing but wgmma come between wgmma_fence and wgmma_wait"),
    _loss(
        "setmaxnreg.*ignored.*at entry",
        KEPT,
        "fix the count at entry: __launch_bounds__ with the threads of a CTA and the CTAs of an SM, or maxrregcount",
    ),
    _loss("setmaxnreg.*ignored", KEPT, "release fewer registers: what follows needs more than it leaves"),
)
"""The first that matches a line is meant."""


def require_as_written(name: str, log: str) -> None:
    """Raise CompileFailed with ptxas's message, its meaning and a fix, if `log` has one that counts."""
    for line in log.splitlines():
        loss = next((loss for loss in LOSSES if loss.pattern.search(line)), None)
        if loss is not None:
            message = line.partition(":")[2].strip(" .")
            raise CompileFailed(f"{name}: ptxas says: {message}: {loss.meaning}; {loss.fix}", log)
