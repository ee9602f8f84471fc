"""Whom the cache trusts: nothing is executed that somebody else could have written."""

import os
import stat
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from tilewright.compile import cache
from tilewright.compile.binary import Binary
from tilewright.compile.own_folder import OwnFolder
from tilewright.compile.trust import is_trusted, reason_against

USER, STRANGER = 12345, 23456
KEY = "ab" * 32
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")


def entry(payload=b"ours"):
    return Binary("k", "sm_90a", payload, KEY, "NVRTC 13")


def status(mode, owner):
    return os.stat_result((mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    """One that has neither warned yet nor a folder of its own."""
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(cache, "_own", OwnFolder())


@pytest.fixture
def open_place():
    """A folder that other users can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def run_by(monkeypatch):
    """Let the process seem to be run by another user, who may nevertheless read and write everything."""
    return lambda user: monkeypatch.setattr(cache.os, "geteuid", lambda: user)


def give_away(folder, owner):
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner, owner)


@pytest.mark.parametrize(
    ("mode", "owner", "trusted"),
    [
        (0o700, USER, True),
        (0o755, USER, True),
        (0o555, 0, True),
        (0o755, STRANGER, False),
        (0o775, USER, False),
        (0o757, USER, False),
        (0o1777, 0, False),
    ],
)
def test_trusted_is_what_only_the_owners_can_write(tmp_path, mode, owner, trusted):
    assert is_trusted(status(mode, owner), (USER, 0)) is trusted
    assert (reason_against(tmp_path, status(mode, owner), USER) == "") is trusted


def test_the_caches_folders_are_made_for_their_owner_alone(cold_cache):
    before = os.umask(0)
    try:
        cache.load_or_build(KEY, lambda key: entry())
    finally:
        os.umask(before)
    folders = [cold_cache, *(path for path in cold_cache.rglob("*") if path.is_dir())]
    assert len(folders) == 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


@pytest.mark.parametrize(
    ("mode", "words"),
    [(0o770, r"its group may write it \(mode 0770\)"), (0o1777, r"everyone may write it \(mode 1777\)")],
)
def test_nothing_is_executed_from_a_folder_that_others_may_write(cold_cache, mode, words):
    cache.store(entry(b"anybody's"))
    cold_cache.chmod(mode)
    with pytest.warns(RuntimeWarning, match=f"cache {cold_cache}: {words}.*chmod -R go-w.*{cache.ENVIRONMENT}"):
        assert cache.load(KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        assert cache.load_or_build(KEY, lambda key: entry()).payload == b"ours"
        assert cache.load(KEY) == entry()
    assert cold_cache not in cache.trusted_dir().parents
    cold_cache.chmod(0o700)
    assert cache.load(KEY) == entry(b"anybody's")


@as_root
def test_nothing_is_executed_from_a_strangers_folder(cold_cache, run_by):
    cache.store(entry(b"a stranger's"))
    give_away(cold_cache, STRANGER)
    run_by(USER)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {STRANGER}, neither to user {USER}.*nor to root"):
        assert cache.load(KEY) is None


@as_root
@pytest.mark.parametrize("change", [lambda path: os.chown(path, STRANGER, 0), lambda path: path.chmod(0o620)])
def test_a_strangers_entry_in_ones_own_folder_is_a_miss_and_is_replaced(cold_cache, change):
    cache.store(entry(b"a stranger's"))
    change(cache._path(cold_cache, KEY))
    assert cache.load(KEY) is None
    assert cache.load_or_build(KEY, lambda key: entry()).payload == b"ours"
    assert cache.load(KEY) == entry()


@as_root
def test_a_home_mounted_for_root_serves_with_its_owners_entries_and_roots(cold_cache):
    cache.store(entry())
    give_away(cold_cache, USER)
    other = Binary("k", "sm_90a", b"root's", "ab" + "cd" * 31, "NVRTC 13")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store(other)
        assert (cache.load(KEY), cache.load(other.key)) == (entry(), other)
    os.chown(cache._path(cold_cache, KEY), STRANGER, 0)
    assert cache.load(KEY) is None


@as_root
def test_root_executes_nothing_from_a_folder_that_anybody_may_have_put_there(cold_cache, tmp_path):
    cache.store(entry())
    give_away(cold_cache, STRANGER)
    tmp_path.chmod(0o1777)
    with pytest.warns(RuntimeWarning, match=f"belongs to user {STRANGER} and lies in {tmp_path}, where others"):
        assert cache.load(KEY) is None


def run_as(user, code, folder):
    """Run `code` as another user, who need not be able to read this checkout: all is imported before."""
    lines = (
        "import multiprocessing.util, os, warnings",
        "from tilewright.compile import cache",
        "from tilewright.compile.binary import Binary",
        f"KEY = {KEY!r}",
        f"os.setgroups([]), os.setgid({user}), os.setuid({user})",
        code,
    )
    command = [sys.executable, "-c", "\n".join(lines)]
    environment = {**os.environ, cache.ENVIRONMENT: str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@as_root
def test_a_link_that_root_follows_is_judged_by_where_it_leads_too(tmp_path, monkeypatch):
    home, shared = tmp_path / "home", tmp_path / "shared"
    for folder in (home, shared, shared / "planted", home / "cache"):
        folder.mkdir()
    give_away(home, USER)
    give_away(shared / "planted", STRANGER)
    shared.chmod(0o1777)
    (tmp_path / "link").symlink_to(shared / "planted")
    for folder, trusted in ((home / "cache", True), (shared / "planted", False), (tmp_path / "link", False)):
        assert (reason_against(folder, folder.stat(), 0) == "") is trusted


@as_root
def test_a_read_only_store_of_roots_serves_every_user(open_place, monkeypatch):
    folder = open_place / "store"
    monkeypatch.setenv(cache.ENVIRONMENT, str(folder))
    cache.store(entry())
    unreadable = run_as(USER, "print(cache.load(KEY))", folder)
    assert (unreadable.stdout, unreadable.stderr) == ("None\n", "")
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    shared = run_as(USER, "print(cache.load_or_build(KEY, None).payload)", folder)
    assert (shared.stdout, shared.stderr) == ("b'ours'\n", "")
    missing = "print(cache.load_or_build('cd' * 32, lambda key: Binary('k', 'sm_90a', b'built', key, 'c')).payload)"
    built = run_as(USER, missing, folder)
    assert built.stdout == "b'built'\n" and "cannot be written" in built.stderr


@as_root
def test_what_another_user_planted_is_not_executed(open_place):
    folder = open_place / "store"
    folder.mkdir()
    folder.chmod(0o777)
    plant = "cache._trusted = lambda: (cache.cache_dir(), ())\ncache.store(Binary('k', 'c', b'x', KEY, 'c'))"
    run_as(STRANGER, plant, folder)
    assert len(list(folder.rglob("*.bin"))) == 1
    victim = run_as(USER, "print(cache.load(KEY))", folder)
    assert victim.stdout == "None\n" and victim.stderr.count("everyone may write it") == 1


def test_a_tuning_store_that_comes_first_leaves_a_folder_that_the_cache_trusts(tmp_path, monkeypatch):
    from tilewright.tune import Store

    before = os.umask(0o002)
    try:
        monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
        with Store():
            assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    finally:
        os.umask(before)
