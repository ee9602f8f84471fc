"""A process's own temporary folder: who makes it, who removes it, and where."""

import multiprocessing
import os
import shutil
import stat
import threading
from types import SimpleNamespace

import pytest

from tilewright.compile import own_folder
from tilewright.compile.own_folder import ExecutableFiles, OwnFolder
from tilewright.errors import Missing

FORKED_WITH_THREADS = "ignore:This process .* is multi-threaded:DeprecationWarning"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where temporary files go during the test, with room for others beside it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(own_folder.tempfile, "tempdir", str(folder))
    return folder


def test_a_folder_is_private_and_made_once(place):
    folder = OwnFolder()
    assert list(place.iterdir()) == []
    assert folder.path() == folder.path()
    assert stat.S_IMODE(folder.path().stat().st_mode) == 0o700


def test_a_folder_or_file_that_a_cleaner_removed_is_made_again(place):
    folder = OwnFolder()
    for remove in (lambda path: path.unlink(), lambda path: shutil.rmtree(path.parent)):
        remove(folder.executable("kernel", b"text"))
        assert folder.executable("kernel", b"text").read_bytes() == b"text"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder away")
def test_a_folder_that_somebody_else_made_under_its_name_is_left_alone(place):
    folder = OwnFolder()
    path = folder.executable("kernel", b"text")
    os.chown(path.parent, 12345, 12345)
    path.write_bytes(b"somebody else's")
    assert folder.executable("kernel", b"text").read_bytes() == b"text"
    assert folder.path() != path.parent


def test_a_forked_child_makes_its_own(place):
    folder = OwnFolder()
    parents = folder.path()
    child = os.fork()
    if child == 0:
        os._exit(17 if folder.path() != parents and folder.path().parent == place else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert folder.path() == parents and parents.is_dir()


def test_a_child_of_multiprocessing_removes_its_own_and_no_other(place):
    folder = OwnFolder()
    parents = folder.path()
    child = multiprocessing.get_context("fork").Process(target=folder.path)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert list(place.iterdir()) == [parents]


@pytest.mark.filterwarnings(FORKED_WITH_THREADS)
def test_a_child_forked_while_a_thread_writes_can_write(place, monkeypatch):
    files, writing, forked = ExecutableFiles(), threading.Event(), threading.Event()
    files.file("first", b"text")
    whole = own_folder.Path.write_bytes

    def slowly(path, payload):
        written = whole(path, payload[:1])
        writing.set()
        forked.wait()
        return written + whole(path, payload)

    thread = threading.Thread(target=files.file, args=("kernel", b"text"))
    with monkeypatch.context() as patched:
        patched.setattr(own_folder.Path, "write_bytes", slowly)
        thread.start()
        writing.wait()
    child = os.fork()
    if child == 0:
        os._exit(17 if files.file("kernel", b"text").read_bytes() == b"text" else 1)
    status = os.waitpid(child, 0)[1]
    forked.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 17
    assert files.file("kernel", b"text").read_bytes() == b"text"


def refuse(monkeypatch, places):
    """Mount `places` noexec, as far as is told."""
    whole = os.statvfs

    def told(path):
        return SimpleNamespace(f_flag=os.ST_NOEXEC) if str(path) in map(str, places) else whole(path)

    monkeypatch.setattr(own_folder.os, "statvfs", told)


def test_files_go_to_another_place_where_the_first_is_mounted_noexec(place, tmp_path, monkeypatch):
    refuse(monkeypatch, [place])
    path = ExecutableFiles(lambda: [str(tmp_path)]).file("kernel", b"text")
    assert path.parent.parent == tmp_path
    assert path.read_bytes() == b"text" and os.access(path, os.X_OK)
    assert list(place.iterdir()) == []


def test_files_go_to_another_place_where_the_first_is_full(place, tmp_path, monkeypatch):
    whole = own_folder.Path.write_bytes

    def full(path, payload):
        if place in path.parents:
            whole(path, payload[:1])
            raise OSError(28, "No space left on device")
        return whole(path, payload)

    monkeypatch.setattr(own_folder.Path, "write_bytes", full)
    path = ExecutableFiles(lambda: [str(tmp_path)]).file("kernel", b"text")
    assert path.parent.parent == tmp_path
    assert [file for file in place.rglob("*") if file.is_file()] == []


def test_where_no_place_takes_files_the_error_names_each_and_tmpdir(place, tmp_path, monkeypatch):
    refuse(monkeypatch, [place, own_folder.MEMORY, own_folder.LASTING])
    files = ExecutableFiles(lambda: [str(tmp_path / "none")])
    with pytest.raises(Missing, match=f"{place}: mounted noexec; .*none: No such file.*set TMPDIR"):
        files.file("kernel", b"text")


def test_no_folder_for_temporary_files_at_all_is_one_more_refusal(tmp_path, monkeypatch):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory")

    monkeypatch.setattr(own_folder.tempfile, "gettempdir", none)
    monkeypatch.setenv("TMPDIR", "/nowhere")
    assert ExecutableFiles(lambda: [str(tmp_path)]).file("kernel", b"text").parent.parent == tmp_path
