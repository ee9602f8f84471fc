"""Where output goes: results to standard output, everything said along the way to standard error."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console


def standard_output() -> Console:
    """Standard output for a person: styled on a terminal, plain in a pipe."""
    return Console(highlight=False)


def standard_error() -> Console:
    """Standard error, for progress and notes."""
    return Console(stderr=True, highlight=False)


def print_json(data: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(data, indent=2, ensure_ascii=False))
