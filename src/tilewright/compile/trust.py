"""Whether what lies in a folder may be executed: who could have put it there.

Owns the rule. A file or folder is trusted if nobody could have changed it but this process's user, root, and for root
whoever owns a folder that no stranger could have put in its place: a home mounted into a container.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

ROOT = 0
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_trusted(status: os.stat_result, owners: Collection[int]) -> bool:
    """Whether one of `owners`, user ids, owns it and neither its group nor everyone may write it."""
    return status.st_uid in owners and not status.st_mode & OTHERS_WRITE


def reason_against(folder: Path, status: os.stat_result, user: int) -> str:
    """Why `user` should execute nothing from `folder`, whose status is given; '' if nothing is against it."""
    if status.st_mode & OTHERS_WRITE:
        who = "everyone" if status.st_mode & stat.S_IWOTH else "its group"
        return f"{who} may write it (mode {stat.S_IMODE(status.st_mode):04o})"
    if is_trusted(status, (user, ROOT)):
        return ""
    if user != ROOT:
        return f"it belongs to user {status.st_uid}, neither to user {user}, who runs this, nor to root"
    for above in _first_of_roots(folder.absolute()), _first_of_roots(folder.resolve()):
        if above.stat().st_mode & OTHERS_WRITE:
            return f"it belongs to user {status.st_uid} and lies in {above}, where others may put folders"
    return ""


def _first_of_roots(folder: Path) -> Path:
    """The nearest folder above that belongs to root: who may write there may have put everything below it."""
    return next((above for above in folder.parents if above.stat().st_uid == ROOT), Path("/"))
