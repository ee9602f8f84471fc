"""One content-addressed store for compiled kernels, GPU and host.

An entry is one file named by its key: magic, length and JSON of the metadata, payload, SHA-256 of all before.
Written to a temporary name in the same folder and renamed, so a reader sees a whole entry or none. Anything
that cannot be read as one (truncated, foreign, unreadable, vanished) is a miss. A cache that cannot be
written costs one warning for the process and never a result. What it holds is executed, so a folder or an entry that
somebody else could have written is left alone (`trust`). Owns files only; what goes into a key is the caller's.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import tempfile
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from tilewright.compile.binary import Binary
from tilewright.compile.own_folder import OwnFolder
from tilewright.compile.trust import OTHERS_WRITE, ROOT, is_trusted, reason_against
from tilewright.locks import ForkSafeLock

MAGIC = b"tilewright-1\n"
ENVIRONMENT = "TILEWRIGHT_CACHE_DIR"
LOCK_S = 10.0
"""How long another process may take over what this one needs before this one builds it too."""
POLL_S = 0.02
RECENT = 64
"""How many binaries a process keeps in memory: those it used last."""
_warned: set[str] = set()
_own = OwnFolder()
_recent: OrderedDict[tuple[str, str], Binary] = OrderedDict()
_remembering = ForkSafeLock()


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


@functools.lru_cache(maxsize=1024)
def repeated_key(parts: tuple[str, ...]) -> str:
    """`content_key` of parts that a process asks for again and again."""
    return content_key(parts)


def trusted_dir() -> Path:
    """The folder that binaries are kept in and executed from: the cache's, or this process's own.

    The process's own takes the cache's place, with one warning, where somebody else could have written that.
    Raises OSError where the process can have none.
    """
    return _trusted()[0]


def _trusted() -> tuple[Path, Collection[int]]:
    """The folder, and the user ids whose entries there are trusted."""
    folder, user = cache_dir(), os.geteuid()
    try:
        status = folder.stat()
    except OSError:
        return folder, (user, ROOT)
    reason = reason_against(folder, status, user)
    if not reason:
        return folder, (user, ROOT, status.st_uid)
    chmod = f"; run `chmod -R go-w {folder}` or" if status.st_mode & OTHERS_WRITE else ";"
    _warn_once(
        "trust",
        f"cache {folder}: {reason}. What a cache holds is executed, so nobody but you or root may write there; kernels "
        f"are kept in a temporary folder of this process instead{chmod} set {ENVIRONMENT} to a folder of your own",
    )
    return _own.path(), (user,)


def make_private(folder: Path) -> None:
    """Make the folder, for its owner alone, if it isn't there. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _path(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.bin"


def load(key: str) -> Binary | None:
    """The binary stored under `key`, or None for a miss of any cause."""
    try:
        data = _read(key)
        body, digest = data[:-32], data[-32:]
        if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
            return None
        start = len(MAGIC) + 8
        length = int.from_bytes(body[len(MAGIC) : start], "little")
        binary = Binary.from_meta(json.loads(body[start : start + length]), body[start + length :])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return binary if binary.key == key else None


def _read(key: str) -> bytes:
    """The entry's bytes. Raises OSError, also for an entry that somebody else could have written."""
    folder, owners = _trusted()
    with _path(folder, key).open("rb") as file:
        if not is_trusted(os.fstat(file.fileno()), owners):
            raise PermissionError
        return file.read()


@contextlib.contextmanager
def building(key: str) -> Iterator[None]:
    """Hold the right to build `key`, so that several processes on one cold cache build it once.

    After LOCK_S of waiting this one builds without it, with one warning. A cache that cannot be written has no lock:
    then each builds for itself.
    """
    try:
        folder = trusted_dir() / "locks"
        make_private(folder.parent)
        make_private(folder)
        descriptor = os.open(folder / key[:2], os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        yield
        return
    try:
        held = _acquire(descriptor)
        try:
            yield
        finally:
            if held:
                _write_holder(descriptor, "")
                fcntl.flock(descriptor, fcntl.LOCK_UN)  # closing alone leaves it to a child that was forked meanwhile
    finally:
        os.close(descriptor)


def _acquire(descriptor: int) -> bool:
    """Whether the lock is held, with its holder written into its file; False after LOCK_S or where none can be."""
    until = time.monotonic() + LOCK_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                break
            time.sleep(POLL_S)
        except OSError:
            return False
        else:
            now = time.strftime("%Y-%m-%d %H:%M:%S")
            _write_holder(descriptor, f"process {os.getpid()} of {os.uname().nodename}, since {now}")
            return True
    known = os.pread(descriptor, 200, 0).decode(errors="replace")
    _warn_once(
        "lock",
        f"cache {cache_dir()}: {known or 'another process'} holds the lock of a kernel to build and hasn't released it "
        f"within {LOCK_S:g} s, so the kernel is built here too; end that process if it hangs",
    )
    return False


def _write_holder(descriptor: int, holder: str) -> None:
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, holder.encode(), 0)


def store(binary: Binary) -> None:
    """Keep `binary` under its key. Warns once for the process if that is not possible."""
    meta = json.dumps(binary.meta()).encode()
    body = MAGIC + len(meta).to_bytes(8, "little") + meta + binary.payload
    temporary = None
    try:
        folder = trusted_dir()
        path = _path(folder, binary.key)
        make_private(folder)
        make_private(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
        with os.fdopen(handle, "wb") as file:
            file.write(body + hashlib.sha256(body).digest())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        _warn_once(
            "write",
            f"cache {cache_dir()} cannot be written ({error.strerror or error}); each process compiles kernels anew. "
            f"Set {ENVIRONMENT} to a folder that can",
        )


def find(key: str) -> Binary | None:
    """The binary under `key` from this process's memory or from the store; None for a miss."""
    with _remembering:
        found = _recent.get(_name(key))
    if found is None:
        found = load(key)
    return None if found is None else _remember(found)


def load_or_build(key: str, build: Callable[[str], Binary]) -> Binary:
    """The binary under `key`, built and stored if it isn't there. Raises what `build` raises."""
    found = find(key)
    if found is not None:
        return found
    with building(key):
        found = load(key)
        if found is None:
            found = build(key)
            store(found)
    return _remember(found)


def _remember(binary: Binary) -> Binary:
    with _remembering:
        _recent[_name(binary.key)] = binary
        _recent.move_to_end(_name(binary.key))
        if len(_recent) > RECENT:
            _recent.popitem(last=False)
    return binary


def _name(key: str) -> tuple[str, str]:
    return os.environ.get(ENVIRONMENT, ""), key


def _warn_once(about: str, message: str) -> None:
    if about not in _warned:
        _warned.add(about)
        warnings.warn(message, RuntimeWarning, stacklevel=4)
