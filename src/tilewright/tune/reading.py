"""Choices read from the store on a call's path: read-only, by an index, and never for long.

A reader makes and changes no file and takes no lock of its own. While there is a write-ahead log the file is read
through SQLite's locks, with a second's patience; with a log and no index of it, as a copy has, in a copy of both; and
without a log as it is stored, and again where it changed meanwhile. What a row means is `rows`'s.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import quote

from tilewright.tune.rows import Choice, choice_of, sound

PATIENCE_S = 1.0
MOST_READS = 3
CHOICES = (
    "select choices.id, choices.context, fields, made, data from choices "
    "join contexts on contexts.id = choices.context {where} order by choices.id"
)
WHERE = "where lookup = ? or lookup is null"
"""Of the version's own rows those that are looked for, and what an earlier version kept."""


class _Files(NamedTuple):
    """What lies there: the file's size and time of change, the log's size, whether it has an index, a journal."""

    changed: tuple[int, int]
    log_bytes: int
    has_index: bool
    has_journal: bool

    @property
    def are_guarded(self) -> bool:
        """Whether SQLite's own locks say what a reader sees."""
        return self.has_journal or (self.log_bytes > 0 and self.has_index)


def choices_by(path: Path, lookup: str) -> list[Choice]:
    """The newest sound choice of every context that `lookup` finds, oldest first.

    Raises sqlite3.Error or OSError where the file isn't a store, is locked, or changes all the time.
    """
    for _ in range(MOST_READS):
        files = _files(path)
        try:
            found = _read(path, files, lookup)
        except sqlite3.DatabaseError:
            if files.are_guarded or _files(path) == files:
                raise
            continue
        if files.are_guarded or _files(path) == files:
            return found
    raise sqlite3.OperationalError("it is being written all the time")


def _read(path: Path, files: _Files, lookup: str) -> list[Choice]:
    newest: dict[int, Choice] = {}
    with _connection(path, files) as db:
        db.text_factory = lambda data: data.decode(errors="replace")  # a text never fails, its row does
        columns = {name for _, name, *_ in db.execute("pragma table_info(choices)")}
        where, values = (WHERE, (lookup,)) if "lookup" in columns else ("", ())
        rows = db.execute(CHOICES.format(where=where), values)
        for _, (context, choice) in sound(path, rows, lambda context, *texts: (context, choice_of(*texts))):
            if choice.context.lookup == lookup:
                newest[context] = choice
    return list(newest.values())


@contextmanager
def _connection(path: Path, files: _Files) -> Iterator[sqlite3.Connection]:
    if files.log_bytes and not files.are_guarded:
        with TemporaryDirectory(prefix="tilewright-") as folder:
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", f"{folder}/copy{suffix}")
            with closing(sqlite3.connect(f"{folder}/copy")) as db:
                yield db
        return
    how = "readonly_shm=1" if files.are_guarded else "immutable=1"
    uri = f"file:{quote(os.fspath(path.absolute()))}?mode=ro&{how}"
    with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE_S, isolation_level=None)) as db:
        yield db


def _files(path: Path) -> _Files:
    at, log = path.stat(), Path(f"{path}-wal")
    log_bytes = log.stat().st_size if log.exists() else 0
    return _Files(
        (at.st_size, at.st_mtime_ns), log_bytes, Path(f"{path}-shm").exists(), Path(f"{path}-journal").exists()
    )
