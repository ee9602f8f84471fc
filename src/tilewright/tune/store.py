"""What tuning has found, kept: every trial and every choice, by context, in one SQLite file of the user's cache.

Many processes may use it at once: write-ahead log, a busy timeout, one short transaction a trial. A file that SQLite
cannot read is set aside under another name. A store that cannot be written costs a warning and never a result: it is
then kept in memory. Owns the file; what a trial means is `trial.py`'s.
"""

from __future__ import annotations

import json
import os
import sqlite3
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilewright.compile.cache import ENVIRONMENT, cache_dir
from tilewright.errors import InvalidInput
from tilewright.tune.context import Context
from tilewright.tune.trial import Trial

SCHEMA = "tilewright-tune/1"
SKIP_ENVIRONMENT = "TILEWRIGHT_SKIP_CACHE"
BUSY_S = 60.0
_TABLES = """
create table if not exists contexts (id integer primary key, key text unique not null, fields text not null);
create table if not exists trials (
  id integer primary key, context integer not null references contexts, config text not null, made text not null,
  data text not null);
create index if not exists trials_of_context on trials (context, config);
create table if not exists choices (
  id integer primary key, context integer not null references contexts, made text not null, data text not null);
"""


def store_path() -> Path:
    """Where the store lies: beside the compiled kernels of the user's cache, or in $TILEWRIGHT_CACHE_DIR."""
    folder = cache_dir() if os.environ.get(ENVIRONMENT) else cache_dir().parent
    return folder / "tune.sqlite3"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a tuning run chose: `data` as `result.choice_data` makes it, with its context and date."""

    context: Context
    made: str
    data: dict[str, Any]


class Store:
    """An open store. Use from one thread; close it, or use it as a context manager."""

    def __init__(self, path: Path | None = None) -> None:
        skip = os.environ.get(SKIP_ENVIRONMENT, "") not in ("", "0")
        self.path = None if skip and path is None else path or store_path()
        self._db = sqlite3.connect(":memory:", isolation_level=None) if self.path is None else _open(self.path)
        self._db.executescript(_TABLES)
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
        values = (self._context_id(context), trial.key, _now(), json.dumps(trial.to_json()))
        self._db.execute("insert into trials (context, config, made, data) values (?, ?, ?, ?)", values)

    def trials(self, context: Context) -> list[Trial]:
        """The newest trial of every config tried in this context, oldest first."""
        rows = self._db.execute(
            "select data from trials where id in (select max(trials.id) from trials join contexts on "
            "contexts.id = trials.context where key = ? group by config) order by id",
            (context.key,),
        )
        return [Trial.from_json(json.loads(data)) for (data,) in rows]

    def add_choice(self, context: Context, data: Mapping[str, Any]) -> None:
        """Keep what a run chose."""
        values = (self._context_id(context), _now(), json.dumps(dict(data)))
        self._db.execute("insert into choices (context, made, data) values (?, ?, ?)", values)

    def choices(self, context: Context | None = None) -> list[Choice]:
        """The newest choice of every context, or of this one alone; oldest first."""
        rows = self._db.execute(
            "select fields, made, data from choices join contexts on contexts.id = choices.context "
            "where choices.id in (select max(id) from choices group by context) order by choices.id"
        )
        found = [Choice(Context(json.loads(fields)), made, json.loads(data)) for fields, made, data in rows]
        return [choice for choice in found if context is None or choice.context.key == context.key]

    def export(self) -> dict[str, Any]:
        """Everything, as one JSON object."""
        return {"schema": SCHEMA, "contexts": list(self._exported())}

    def _exported(self) -> Iterator[dict[str, Any]]:
        for number, fields in self._db.execute("select id, fields from contexts order by id").fetchall():
            parts = {}
            for table in ("trials", "choices"):
                rows = self._db.execute(f"select made, data from {table} where context = ? order by id", (number,))
                parts[table] = [{"made": made, "data": json.loads(data)} for made, data in rows]
            yield {"fields": json.loads(fields), **parts}

    def add_exported(self, data: Mapping[str, Any]) -> int:
        """Add what `export` gave and isn't here yet; all of it or nothing. Returns how many trials and choices.

        Raises InvalidInput for anything else.
        """
        if data.get("schema") != SCHEMA:
            raise InvalidInput(f"schema={data.get('schema')!r}: this version reads {SCHEMA}; export it again")
        self._db.execute("begin immediate")
        try:
            added = sum(self._add_context(entry) for entry in data["contexts"])
        except (KeyError, TypeError, AttributeError) as error:
            self._db.execute("rollback")
            self._contexts.clear()
            raise InvalidInput(f"not a tuning export ({error!r} in it); nothing was imported") from error
        self._db.execute("commit")
        return added

    def _add_context(self, entry: Mapping[str, Any]) -> int:
        number, added = self._context_id(Context(dict(entry["fields"]))), 0
        for item in entry["trials"]:
            trial = Trial.from_json(item["data"])
            row = (number, trial.key, item["made"], json.dumps(trial.to_json()))
            added += self._db.execute(
                "insert into trials (context, config, made, data) select ?1, ?2, ?3, ?4 where not exists "
                "(select 1 from trials where context = ?1 and config = ?2 and made = ?3 and data = ?4)",
                row,
            ).rowcount
        for item in entry["choices"]:
            added += self._db.execute(
                "insert into choices (context, made, data) select ?1, ?2, ?3 where not exists "
                "(select 1 from choices where context = ?1 and made = ?2 and data = ?3)",
                (number, item["made"], json.dumps(item["data"])),
            ).rowcount
        return added

    def _context_id(self, context: Context) -> int:
        if context.key in self._contexts:
            return self._contexts[context.key]
        fields = (context.key, json.dumps(context.fields, sort_keys=True))
        self._db.execute("insert or ignore into contexts (key, fields) values (?, ?)", fields)
        found = self._db.execute("select id from contexts where key = ?", (context.key,)).fetchone()
        self._contexts[context.key] = int(found[0])
        return self._contexts[context.key]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _open(path: Path) -> sqlite3.Connection:
    """The file's connection; a damaged one is set aside first. In memory, with a warning, where it can't be written."""
    import filelock

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(path.with_suffix(".lock")):
            try:
                return _connect(path)
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                _set_aside(path, error)
                return _connect(path)
    except (OSError, NotImplementedError, sqlite3.OperationalError) as error:
        warnings.warn(
            f"{path} cannot be written ({error}); what tuning finds is forgotten when it ends. Set {ENVIRONMENT} to a "
            f"folder that can",
            RuntimeWarning,
            stacklevel=4,
        )
        return sqlite3.connect(":memory:", isolation_level=None)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("pragma journal_mode=wal")
        db.execute("pragma synchronous=normal")
        if db.execute("pragma quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("its pages contradict each other")
        db.executescript(_TABLES)
    except BaseException:
        db.close()
        raise
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
