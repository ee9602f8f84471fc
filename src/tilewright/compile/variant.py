"""What of one kernel's build is set apart from its rung's: its text, constants, β, guards, the compiler's options.

Owns the values and their application to a text. What differs between two builds, and whether that was meant, is the
lab's to judge; the rung itself stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.declare.config import BetaMode, Config
from tilewright.errors import InvalidConfig, InvalidProblem
from tilewright.problem import Problem


@dataclass(frozen=True, slots=True)
class Edit:
    """`old` becomes `new` wherever it stands in a kernel's text, which must be `times` times."""

    old: str
    new: str
    times: int = 1

    def applied(self, text: str, name: str) -> str:
        """`text` edited; `name` says whose it is. Raises InvalidConfig where `old` isn't there as often as said."""
        found = text.count(self.old) if self.old else 0
        if found != self.times:
            first = self.old.strip().partition("\n")[0]
            raise InvalidConfig(
                f"{name}: the edit of {first!r} must fit {self.times} times and fits {found}; copy the lines from "
                f"{name}.cu as they are, or say how often they stand there"
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Variant:
    """One build's own choices; as made by default it is the rung's build.

    `text` takes the place of the kernel's text and `edits` are applied after it, in order. `constants` are further
    ones, for a text that names them. `guarded` None leaves guards to the problem. `options` are the compiler's, as
    `compile.nvrtc` spells them: 'maxrregcount=128'. `dependent` is for a launch that may begin while the kernel before
    it ends.
    """

    text: str | None = None
    edits: tuple[Edit, ...] = ()
    constants: tuple[tuple[str, int], ...] = ()
    beta_mode: BetaMode = "specialised"
    guarded: bool | None = None
    options: tuple[str, ...] = ()
    dependent: bool = False

    def own_text(self, config: Config) -> str:
        """The kernel's own text in this build. Raises InvalidConfig for an edit that doesn't fit."""
        text = config.rung.source if self.text is None else self.text
        for edit in self.edits:
            text = edit.applied(text, config.rung.entry)
        return text

    def problem_constants(self, config: Config, problem: Problem) -> dict[str, int]:
        """BETA_MODE, DEPENDENT and GUARDED in this build. Raises InvalidConfig or InvalidProblem where it cannot be."""
        chosen = config.problem_constants(problem, beta_mode=self.beta_mode, dependent=self.dependent)
        if self.guarded is None:
            return chosen
        if config.rung.unguarded_when is None:
            raise InvalidConfig(f"{config.rung.name}: guarded={self.guarded}: this rung has no guards to set")
        if chosen["GUARDED"] and not self.guarded:
            raise InvalidProblem(
                f"{config.rung.name}: guarded={self.guarded}: {problem} needs guards, as "
                f"{config.rung.unguarded_when.text} does not hold; use sizes in whole tiles"
            )
        return {**chosen, "GUARDED": int(self.guarded)}


PLAIN = Variant()
"""The rung as it is."""
