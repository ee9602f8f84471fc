"""One content-addressed store for compiled kernels, GPU and host.

An entry is one file named by its key: magic, length and JSON of the metadata, payload, SHA-256 of all before.
Written to a temporary name in the same folder and renamed, so a reader sees a whole entry or none. Anything
that cannot be read as one (truncated, foreign, unreadable, vanished) is a miss. A cache that cannot be
written costs one warning for the process and never a result. Owns files only; what goes into a key is the caller's.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tilewright.compile.binary import Binary

MAGIC = b"tilewright-1\n"
ENVIRONMENT = "TILEWRIGHT_CACHE_DIR"
_warned = False


def cache_dir() -> Path:
    """The cache's folder: $TILEWRIGHT_CACHE_DIR, or the user's cache folder. Not created here."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return Path(named)
    import platformdirs

    return Path(platformdirs.user_cache_path("tilewright", appauthor=False)) / "binaries"


def content_key(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of the parts, each preceded by its length so that no two lists collide."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _path(key: str) -> Path:
    return cache_dir() / key[:2] / f"{key}.bin"


def load(key: str) -> Binary | None:
    """The binary stored under `key`, or None for a miss of any cause."""
    try:
        data = _path(key).read_bytes()
        body, digest = data[:-32], data[-32:]
        if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
            return None
        start = len(MAGIC) + 8
        length = int.from_bytes(body[len(MAGIC) : start], "little")
        binary = Binary.from_meta(json.loads(body[start : start + length]), body[start + length :])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return binary if binary.key == key else None


@contextlib.contextmanager
def building(key: str) -> Iterator[None]:
    """Hold the right to build `key`, so that several processes on one cold cache build it once.

    A cache that cannot be written has no lock: then each builds for itself.
    """
    import filelock

    lock = filelock.FileLock(cache_dir() / "locks" / key[:2])
    try:
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def store(binary: Binary) -> None:
    """Keep `binary` under its key. Warns once for the process if that is not possible."""
    meta = json.dumps(binary.meta()).encode()
    body = MAGIC + len(meta).to_bytes(8, "little") + meta + binary.payload
    path = _path(binary.key)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        with os.fdopen(handle, "wb") as file:
            file.write(body + hashlib.sha256(body).digest())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        _warn_once(error)


def load_or_build(key: str, build: Callable[[str], Binary]) -> Binary:
    """The binary under `key`, built and stored if it isn't there. Raises what `build` raises."""
    found = load(key)
    if found is not None:
        return found
    with building(key):
        found = load(key)
        if found is None:
            found = build(key)
            store(found)
    return found


def _warn_once(error: OSError) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"cache {cache_dir()} cannot be written ({error.strerror or error}); kernels are compiled anew each time. "
            f"Set {ENVIRONMENT} to a folder that can",
            RuntimeWarning,
            stacklevel=3,
        )
