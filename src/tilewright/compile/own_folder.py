"""Temporary folders of one process's own, in which files may lie that are executed.

A folder is made when it is first asked for, with mode 0700, and made again where a cleaner has removed it. A forked
child makes its own: only the process that made a folder removes it, when that process ends.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from tilewright.errors import Missing
from tilewright.locks import ForkSafeLock

MEMORY, LASTING = "/dev/shm", "/var/tmp"


class OwnFolder:
    """A temporary folder of this process's own, in `place` or else where temporary files go."""

    def __init__(self, place: str | None = None) -> None:
        self.place = place
        self._made: tuple[int, Path] | None = None
        self._lock = ForkSafeLock()

    def path(self) -> Path:
        """The folder, which is there. Raises OSError where none can be made."""
        with self._lock:
            if self._made is None or self._made[0] != os.getpid() or not _is_ours(self._made[1]):
                self._made = os.getpid(), _make(self.place)
            return self._made[1]

    def executable(self, name: str, payload: bytes) -> Path:
        """The file `name`, which holds `payload` and may be executed. Raises OSError where that cannot be."""
        if os.statvfs(self.place or tempfile.gettempdir()).f_flag & os.ST_NOEXEC:
            raise PermissionError(errno.EACCES, "mounted noexec")
        path = self.path() / name
        with self._lock:
            if not path.exists():
                unfinished = path.with_suffix(".writing")
                try:
                    unfinished.write_bytes(payload)
                    unfinished.chmod(0o700)
                    unfinished.rename(path)
                except OSError:
                    unfinished.unlink(missing_ok=True)
                    raise
        return path


class ExecutableFiles:
    """Files of this process's own that may be executed, in the first of several places that takes them.

    `more_places` names places beside the usual ones, and is asked only when the place for temporary files refuses.
    """

    def __init__(self, more_places: Callable[[], Iterable[str]] = tuple) -> None:
        self._more_places = more_places
        self._folders: dict[str | None, OwnFolder] = {}

    def file(self, name: str, payload: bytes) -> Path:
        """The file `name` with `payload`. Raises Missing, naming TMPDIR, where no place takes it."""
        refusals = []
        for place in self._places():
            try:
                return self._folders.setdefault(place, OwnFolder(place)).executable(name, payload)
            except OSError as error:
                refusals.append(f"{place or temporary_place()}: {error.strerror or error}")
        raise Missing(
            f"no folder takes files to execute ({'; '.join(refusals)}): "
            "set TMPDIR to one with space that isn't mounted noexec"
        )

    def _places(self) -> Iterable[str | None]:
        yield None
        yield from self._more_places()
        yield from (MEMORY, LASTING)


def temporary_place() -> str:
    """Where temporary files go, or $TMPDIR where none can be written."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR", "no folder for temporary files")


def _is_ours(path: Path) -> bool:
    """Whether it is there, and nobody else has made it since."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _make(place: str | None) -> Path:
    from multiprocessing.util import Finalize

    path = Path(tempfile.mkdtemp(prefix="tilewright-run-", dir=place))
    # Runs when this process ends, also as a child of multiprocessing, which runs no atexit; never in a fork of it.
    Finalize(None, shutil.rmtree, (path,), {"ignore_errors": True}, exitpriority=0)
    return path
