"""What $TILEWRIGHT_AUTOTUNE allows: off, readonly or on. Owns the word and its meaning; it tunes nothing.

off        the model alone
readonly   what tuning has stored, else the model; the default
on         and what isn't stored is tuned at its first use, which takes seconds to minutes
"""

from __future__ import annotations

import os

from tilewright.errors import InvalidInput

ENVIRONMENT = "TILEWRIGHT_AUTOTUNE"
OFF, READONLY, ON = "off", "readonly", "on"
MODES = (OFF, READONLY, ON)


def autotune_mode() -> str:
    """The mode that the environment names. Raises InvalidInput for another word."""
    mode = os.environ.get(ENVIRONMENT) or READONLY
    if mode not in MODES:
        raise InvalidInput(f"{ENVIRONMENT}={mode}: must be one of {', '.join(MODES)}")
    return mode
