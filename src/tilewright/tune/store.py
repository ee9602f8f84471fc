"""What tuning has found, kept: every trial and every choice, by context, in one SQLite file of the user's cache.

Many processes may use it at once: write-ahead log, a busy timeout, one short transaction a trial. A file that SQLite
cannot read is set aside under another name. A store that cannot be written costs a warning and never a result: it is
then kept in memory. Owns the file; what a row means is `rows`'s, and how a call reads it `reading`'s.
"""

from __future__ import annotations

import json
import os
import sqlite3
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tilewright.compile.cache import ENVIRONMENT, make_private
from tilewright.errors import InvalidInput
from tilewright.tune.context import Context
from tilewright.tune.place import is_skipped, store_path
from tilewright.tune.rows import UNSOUND, Choice, choice_of, sound, trial_of
from tilewright.tune.trial import Trial

T = TypeVar("T")
SCHEMA = "tilewright-tune/1"
BUSY_S = 10.0
_TABLES = """
create table if not exists contexts (id integer primary key, key text unique not null, fields text not null);
create table if not exists trials (
  id integer primary key, context integer not null references contexts, config text not null, made text not null,
  data text not null);
create index if not exists trials_of_context on trials (context, config);
create table if not exists choices (
  id integer primary key, context integer not null references contexts, made text not null, data text not null,
  lookup text);
"""
_INDEX = "create index if not exists choices_by_lookup on choices (lookup)"


class Store:
    """An open store. Use from one thread; close it, or use it as a context manager."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = None if is_skipped() and path is None else path or store_path()
        self._db = _in_memory() if self.path is None else _open(self.path)
        self._contexts: dict[str, int] = {}

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_trial(self, context: Context, trial: Trial) -> None:
        """Keep a trial, durably once this returns."""
        values = (trial.key, _now(), json.dumps(trial.to_json()))
        self._insert(context, "insert into trials (context, config, made, data) values (?, ?, ?, ?)", values)

    def trials(self, context: Context) -> list[Trial]:
        """The newest sound trial of every config tried in this context, oldest first."""
        rows = self._db.execute(
            "select trials.id, data from trials join contexts on contexts.id = trials.context where key = ? "
            "order by trials.id",
            (context.key,),
        )
        newest = {trial.key: (number, trial) for number, trial in self._sound(rows, trial_of)}
        return [trial for _, trial in sorted(newest.values(), key=lambda numbered: numbered[0])]

    def add_choice(self, context: Context, data: Mapping[str, Any]) -> None:
        """Keep what a run chose."""
        values = (_now(), json.dumps(dict(data)), context.lookup)
        self._insert(context, "insert into choices (context, made, data, lookup) values (?, ?, ?, ?)", values)

    def choices(self, context: Context | None = None) -> list[Choice]:
        """The newest sound choice of every context, or of this one alone; oldest first."""
        rows = self._db.execute(
            "select choices.id, fields, made, data from choices join contexts on contexts.id = choices.context "
            "order by choices.id"
        )
        newest = {choice.context.key: (number, choice) for number, choice in self._sound(rows, choice_of)}
        found = [choice for _, choice in sorted(newest.values(), key=lambda numbered: numbered[0])]
        return [choice for choice in found if context is None or choice.context.key == context.key]

    def export(self) -> dict[str, Any]:
        """Everything, as one JSON object."""
        return {"schema": SCHEMA, "contexts": list(self._exported())}

    def _exported(self) -> Iterator[dict[str, Any]]:
        rows = self._db.execute("select id, fields from contexts order by id").fetchall()
        for number, fields in self._sound(rows, _fields):
            parts = {}
            for table, value_of in (("trials", _trial_row), ("choices", partial(_choice_row, fields))):
                found = self._db.execute(f"select id, made, data from {table} where context = ? order by id", (number,))
                parts[table] = [row for _, row in self._sound(found, value_of)]
            yield {"fields": fields, **parts}

    def add_exported(self, data: Mapping[str, Any]) -> int:
        """Add what `export` gave and isn't here yet; all of it or nothing. Returns how many trials and choices.

        Raises InvalidInput for anything else.
        """
        if data.get("schema") != SCHEMA:
            raise InvalidInput(f"schema={data.get('schema')!r}: this version reads {SCHEMA}; export it again")
        self._db.execute("begin immediate")
        try:
            added = sum(self._add_context(entry) for entry in data["contexts"])
        except UNSOUND as error:
            self._db.execute("rollback")
            self._contexts.clear()
            raise InvalidInput(f"not a tuning export ({error!r} in it); nothing was imported") from error
        self._db.execute("commit")
        return added

    def _add_context(self, entry: Mapping[str, Any]) -> int:
        context, added = Context.from_json(dict(entry["fields"])), 0
        number = self._context_id(context)
        for item in entry["trials"]:
            trial = Trial.from_json(item["data"])
            row = (number, trial.key, item["made"], json.dumps(trial.to_json()))
            added += self._db.execute(
                "insert into trials (context, config, made, data) select ?1, ?2, ?3, ?4 where not exists "
                "(select 1 from trials where context = ?1 and config = ?2 and made = ?3 and data = ?4)",
                row,
            ).rowcount
        for item in entry["choices"]:
            choice = Choice.from_json(context.fields, item["made"], item["data"])
            added += self._db.execute(
                "insert into choices (context, made, data, lookup) select ?1, ?2, ?3, ?4 where not exists "
                "(select 1 from choices where context = ?1 and made = ?2 and data = ?3)",
                (number, choice.made, json.dumps(choice.data), context.lookup),
            ).rowcount
        return added

    def _insert(self, context: Context, sql: str, values: tuple[Any, ...]) -> None:
        """Insert a row of this context; in memory, with a warning, once the file cannot be written."""
        try:
            self._db.execute(sql, (self._context_id(context), *values))
        except sqlite3.Error as error:
            if self.path is None:
                raise
            _warn_unwritten(self.path, error)
            self._db.close()
            self._db, self.path, self._contexts = _in_memory(), None, {}
            self._db.execute(sql, (self._context_id(context), *values))

    def _sound(self, rows: Iterable[tuple[Any, ...]], value_of: Callable[..., T]) -> Iterator[tuple[int, T]]:
        return sound(self.path, rows, value_of)

    def _context_id(self, context: Context) -> int:
        if context.key in self._contexts:
            return self._contexts[context.key]
        fields = (context.key, json.dumps(context.fields, sort_keys=True))
        self._db.execute(
            "insert into contexts (key, fields) values (?, ?) "
            "on conflict (key) do update set fields = excluded.fields where fields != excluded.fields",
            fields,
        )
        found = self._db.execute("select id from contexts where key = ?", (context.key,)).fetchone()
        self._contexts[context.key] = int(found[0])
        return self._contexts[context.key]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _fields(text: str) -> dict[str, Any]:
    return Context.from_json(json.loads(text)).fields


def _trial_row(made: str, data: str) -> dict[str, Any]:
    return {"made": made, "data": trial_of(data).to_json()}


def _choice_row(fields: dict[str, Any], made: str, data: str) -> dict[str, Any]:
    return {"made": made, "data": Choice.from_json(fields, made, json.loads(data)).data}


def _in_memory() -> sqlite3.Connection:
    return _prepared(sqlite3.connect(":memory:", isolation_level=None))


def _open(path: Path) -> sqlite3.Connection:
    """The file's connection; a damaged one is set aside first. In memory, with a warning, where it can't be written."""
    import filelock

    try:
        make_private(path.parent)
        with filelock.FileLock(path.with_suffix(".lock"), timeout=BUSY_S):
            try:
                return _connect(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                _set_aside(path, error)
                return _connect(path)
    except (OSError, NotImplementedError, sqlite3.Error) as error:
        _warn_unwritten(path, error)
        return _in_memory()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("pragma journal_mode=wal")
        db.execute("pragma synchronous=normal")
        if db.execute("pragma quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("its pages contradict each other")
        return _prepared(db, path)
    except BaseException:
        db.close()
        raise


def _prepared(db: sqlite3.Connection, path: Path | None = None) -> sqlite3.Connection:
    """The same with every table; choices that an earlier version kept get what they are found by."""
    db.text_factory = lambda data: data.decode(errors="replace")  # a text never fails, its row does
    db.executescript(_TABLES)
    if "lookup" not in {name for _, name, *_ in db.execute("pragma table_info(choices)")}:
        db.execute("alter table choices add column lookup text")
    db.execute(_INDEX)
    unknown = db.execute(
        "select choices.id, fields, made, data from choices join contexts on contexts.id = choices.context "
        "where lookup is null"
    ).fetchall()
    found = [(choice.context.lookup, number) for number, choice in sound(path, unknown, choice_of)]
    if found:
        db.execute("begin immediate")
        db.executemany("update choices set lookup = ? where id = ?", found)
        db.execute("commit")
    return db


def _set_aside(path: Path, error: Exception) -> None:
    aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
    warnings.warn(
        f"{path} is damaged ({error}); it is now {aside.name}, and tuning starts afresh", RuntimeWarning, stacklevel=5
    )


def _warn_unwritten(path: Path, error: Exception) -> None:
    """Say that what is found is kept in memory, and who or what is in the way."""
    holders = ", ".join(_holders(path))
    if holders:
        words = f"{path} is held by {holders}; what tuning finds is forgotten when it ends. End that, or wait for it"
    else:
        words = (
            f"{path} cannot be written ({error}); what tuning finds is forgotten when it ends. Set {ENVIRONMENT} to a "
            f"folder that can"
        )
    warnings.warn(words, RuntimeWarning, stacklevel=5)


def _holders(path: Path) -> Iterator[str]:
    """The other processes that the kernel says hold a write lock on one of the store's files; Linux alone says it."""
    own = {part.stat().st_ino for part in _parts(path) if part.exists()}
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for _, _, _, access, process, file, *_ in (line.split() for line in locks if "->" not in line):
        if access == "WRITE" and int(file.split(":")[-1]) in own and int(process) not in (-1, os.getpid()):
            with suppress(OSError):  # it may have ended meanwhile
                yield f"process {process} ({Path(f'/proc/{process}/comm').read_text(encoding='utf-8').strip()})"


def _parts(path: Path) -> tuple[Path, ...]:
    return (path, path.with_suffix(".lock"), *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm")))
