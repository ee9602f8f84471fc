"""What a tuned result is true of: the problem's class, the device, the compiler, the source.

Equal contexts share trials. Owns the key and what has changed between two. It asks no device anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tilewright.compile.cache import content_key
from tilewright.compile.headers import INCLUDE_DIR, tree_text
from tilewright.declare import Rung
from tilewright.epilogue import Epilogue
from tilewright.problem import Problem

DEVICE_FIELDS = ("name", "compute_capability", "sm_count", "smem_optin_bytes")
"""Of what a worker says of its device, the part that two devices must share to share results."""
COMPUTE_TYPE = "ieee"


@dataclass(frozen=True, slots=True)
class Context:
    """The fields of a key, as JSON types: rung, problem, compute_type, device, driver, nvrtc, source, mode."""

    fields: dict[str, Any]

    @classmethod
    def from_json(cls, fields: Any) -> Context:
        """The context with these fields. Raises an error of the field's where one isn't what `context_of` gives."""
        context, device = cls(fields), fields["device"]
        kinds = {"rung": str, "source": str, "compute_capability": list, "sm_count": int}
        for name, kind in kinds.items():
            value = fields[name] if name in fields else device[name]
            if not isinstance(value, kind):
                raise TypeError(f"{name}={value!r:.80}: must be a {kind.__name__}")
        _ = context.problem
        return context

    @property
    def key(self) -> str:
        """The fields' digest."""
        import hashlib

        return hashlib.sha256(json.dumps(self.fields, sort_keys=True).encode()).hexdigest()

    @property
    def rung(self) -> str:
        """The rung's name."""
        return str(self.fields["rung"])

    @property
    def problem(self) -> Problem:
        """The problem."""
        return problem_from(self.fields["problem"])

    @property
    def lookup(self) -> str:
        """What a call knows of the context: see `lookup_of`."""
        device = self.fields["device"]
        return lookup_of(self.fields["problem"], device["compute_capability"], device["sm_count"])

    def changed(self, now: Mapping[str, Any]) -> tuple[str, ...]:
        """Which of the fields that `now` has are other than here."""
        return tuple(name for name, value in now.items() if self.fields.get(name) != value)


def lookup_of(problem: Mapping[str, Any], compute_capability: Sequence[int] | None, sm_count: int | None) -> str:
    """One text for a problem, by its fields, on devices of a compute capability and size: what choices are found by."""
    return json.dumps([problem, compute_capability, sm_count], sort_keys=True)


def context_of(rung: Rung, problem: Problem, device: Mapping[str, Any]) -> Context:
    """The context of tuning `rung` for `problem` on the device that a worker described."""
    from tilewright.measure.modes import STEADY

    return Context(
        {
            "rung": rung.name,
            "problem": problem_fields(problem),
            "compute_type": COMPUTE_TYPE,
            "mode": STEADY,
            "source": source_digest(rung),
            **machine_fields(device),
        }
    )


def machine_fields(device: Mapping[str, Any]) -> dict[str, Any]:
    """Of a worker's description of its device: what a key takes."""
    return {
        "device": {name: device.get(name) for name in DEVICE_FIELDS},
        "driver": device.get("driver"),
        "nvrtc": device.get("nvrtc"),
    }


def source_digest(rung: Rung) -> str:
    """A digest of the rung's kernel, every device header and the compiler's options."""
    from tilewright.compile.nvrtc import OPTIONS

    return content_key((rung.source, *OPTIONS, *tree_text(INCLUDE_DIR)))


def problem_fields(problem: Problem) -> dict[str, Any]:
    """The problem with every stride, as JSON types. Of beta only whether it is 0: C is read or it is not."""
    fields = asdict(problem)
    return {**fields, "epilogue": list(problem.epilogue.ops), "alpha": 1.0, "beta": 1.0 if problem.reads_c else 0.0}


def problem_from(fields: Mapping[str, Any]) -> Problem:
    """The inverse of `problem_fields`, for its class of scales."""
    return Problem(**{**fields, "epilogue": Epilogue(tuple(fields["epilogue"]))})
