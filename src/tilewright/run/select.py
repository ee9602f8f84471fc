"""Which backend a command uses: the one named, or a GPU if there is one."""

from __future__ import annotations

from typing import Literal

from tilewright.errors import InvalidConfig, NoDevice
from tilewright.run.cuda import probe


def choose_backend(name: str) -> Literal["cuda", "emulator"]:
    """`cuda` or `emulator` for 'auto', 'cuda' or 'emulator'.

    Raises NoDevice when a GPU is named and there is none, InvalidConfig for another name.
    """
    if name == "emulator":
        return "emulator"
    if name not in ("auto", "cuda"):
        raise InvalidConfig(f"--backend {name}: must be auto, cuda or emulator")
    try:
        probe()
    except NoDevice:
        if name == "cuda":
            raise
        return "emulator"
    return "cuda"
