"""What a compiler takes and gives: kernel source in, binary with its resources out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KernelSource:
    """One kernel's complete text.

    `name` labels messages (the rung's stem), `entry` is the `extern "C"` symbol, `text` is everything the
    compiler sees but the headers. `file` is what `#line` calls the kernel's own part. `options` are the GPU compiler's,
    beyond the usual ones, as `compile.nvrtc` spells them. `args_type` is the struct that the kernel takes by value.
    """

    name: str
    entry: str
    text: str
    file: str
    options: tuple[str, ...] = ()
    args_type: str = "tilewright::GemmArgs"


@dataclass(frozen=True, slots=True)
class Resources:
    """What ptxas reports for one kernel. Registers are a thread's; the rest is bytes."""

    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    smem_bytes: int
    barriers: int

    @property
    def spill_bytes(self) -> int:
        """Bytes stored and loaded by spills."""
        return self.spill_store_bytes + self.spill_load_bytes


@dataclass(frozen=True, slots=True)
class Binary:
    """A compiled kernel. `target` is 'sm_90a' or a host instruction set such as 'x86-64-v3'.

    `key` addresses it in the cache; `resources` is None for host code; `log` is what the compiler said.
    """

    entry: str
    target: str
    payload: bytes
    key: str
    compiler: str
    log: str = ""
    resources: Resources | None = None

    def meta(self) -> dict[str, Any]:
        """Everything but the payload, as JSON types."""
        fields = asdict(self)
        del fields["payload"]
        return fields

    @classmethod
    def from_meta(cls, meta: dict[str, Any], payload: bytes) -> Binary:
        """The inverse of `meta`. Raises KeyError or TypeError on a foreign dictionary."""
        resources = meta["resources"]
        return cls(**{**meta, "payload": payload, "resources": Resources(**resources) if resources else None})
