"""Where the store lies. Asked on every call's path, so it imports nothing that a choice doesn't need."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.compile.cache import ENVIRONMENT, cache_dir

SKIP_ENVIRONMENT = "TILEWRIGHT_SKIP_CACHE"


def store_path() -> Path:
    """The store's file: beside the compiled kernels of the user's cache, or in $TILEWRIGHT_CACHE_DIR."""
    folder = cache_dir() if os.environ.get(ENVIRONMENT) else cache_dir().parent
    return folder / "tune.sqlite3"


def is_skipped() -> bool:
    """Whether the environment says to leave the store alone."""
    return os.environ.get(SKIP_ENVIRONMENT, "") not in ("", "0")
