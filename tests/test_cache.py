import os
import shutil
import signal
import stat
import subprocess
import sys
import warnings

import pytest

from tilewright.arch import get_arch
from tilewright.compile import cache
from tilewright.compile.binary import Binary, KernelSource, Resources
from tilewright.compile.nvrtc import compile_cubin

SOURCE = KernelSource(
    "probe", "probe", 'extern "C" __global__ void probe(float* d) { d[threadIdx.x] = 1.0f; }', "probe.cu"
)


def entry(key="ab" * 32, payload=b"payload") -> Binary:
    return Binary("k", "sm_90a", payload, key, "NVRTC 13", "log é", Resources(40, 0, 0, 0, 1024, 1))


def test_what_is_stored_comes_back_whole(cold_cache):
    cache.store(entry())
    assert cache.load(entry().key) == entry()


def test_nothing_stored_is_a_miss(cold_cache):
    assert cache.load("cd" * 32) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"something else entirely, long enough to hold a digest of thirty-two bytes",
        lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    ],
)
def test_a_damaged_entry_is_a_miss_and_is_replaced(cold_cache, damage):
    cache.store(entry())
    path = cache._path(cold_cache, entry().key)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load(entry().key) is None
    cache.store(entry())
    assert cache.load(entry().key) == entry()


def test_an_entry_under_another_name_is_a_miss(cold_cache):
    cache.store(entry())
    other = cache._path(cold_cache, "ab" + "cd" * 31)
    other.write_bytes(cache._path(cold_cache, entry().key).read_bytes())
    assert cache.load("ab" + "cd" * 31) is None


def test_a_folder_in_the_entrys_place_is_a_miss(cold_cache):
    cache._path(cold_cache, entry().key).mkdir(parents=True)
    assert cache.load(entry().key) is None


def test_an_unreadable_entry_is_a_miss(cold_cache, monkeypatch):
    cache.store(entry())

    def refused(self, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.Path, "open", refused)
    assert cache.load(entry().key) is None


def test_a_cache_that_cannot_be_written_costs_one_warning_and_no_result(cold_cache):
    cold_cache.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="cannot be written.*TILEWRIGHT_CACHE_DIR"):
        first = compile_cubin(SOURCE, get_arch("sm_90a"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = compile_cubin(SOURCE, get_arch("sm_90a"))
    assert (first.payload, first.resources) == (second.payload, second.resources)


def test_a_full_disk_costs_no_result_and_leaves_no_partial_file(cold_cache, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        compile_cubin(SOURCE, get_arch("sm_90a"))
    assert [p for p in cold_cache.rglob("*") if p.is_file() and p.parent.name != "locks"] == []


def test_entries_are_private_files_that_another_user_takes_as_a_miss(cold_cache):
    cache.store(entry())
    assert stat.S_IMODE(cache._path(cold_cache, entry().key).stat().st_mode) & 0o077 == 0


COMPILE_ALL = """
import sys, warnings
warnings.simplefilter("error")
from tilewright.arch import get_arch
from tilewright.compile import cache
from tilewright.compile.binary import KernelSource
from tilewright.compile.nvrtc import compile_cubin
source = KernelSource("probe", "probe", sys.argv[1], "probe.cu")
cache.LOCK_S = 60
sys.stdin.readline()
print([compile_cubin(source, get_arch(name)).key for name in ("sm_80", "sm_90a", "sm_120a")])
"""


def test_eight_processes_on_one_cold_cache_all_succeed(cold_cache):
    command = [sys.executable, "-c", COMPILE_ALL, SOURCE.text]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(8)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, answers
    assert len({out for out, _ in answers}) == 1
    assert [p for p in cold_cache.rglob("*") if p.name.startswith(".writing-")] == []
    assert len([p for p in cold_cache.rglob("*.bin")]) == 3


def test_one_process_builds_what_several_want(cold_cache):
    """Each build takes half a second and writes a line; the others wait and take what was built."""
    code = (
        "import sys, time\n"
        "from tilewright.compile import cache\n"
        "from tilewright.compile.binary import Binary\n"
        "cache.LOCK_S = 60\n"
        "def build(key):\n"
        "    open(sys.argv[1], 'a').write('built\\n')\n"
        "    time.sleep(0.5)\n"
        "    return Binary('k', 'sm_90a', b'x', key, 'c')\n"
        "print(cache.load_or_build('ab' * 32, build).payload)\n"
    )
    log = cold_cache.with_name("built.txt")
    processes = [subprocess.Popen([sys.executable, "-c", code, str(log)], stdout=subprocess.PIPE) for _ in range(4)]
    assert {process.communicate(timeout=60)[0] for process in processes} == {b"b'x'\n"}
    assert log.read_text() == "built\n"


def take(cold_cache, code="building"):
    """A process that holds the lock of every entry under 'ab' till it is ended, by `code`."""
    codes = {
        "building": "with cache.building('ab'): wait()",
        "foreign": "file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); wait()",
    }
    lines = (
        "import fcntl, sys, time\n"
        "from tilewright.compile import cache\n"
        "def wait(): print('held', flush=True), time.sleep(600)\n" + codes[code]
    )
    path = cold_cache / "locks" / "ab"
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = subprocess.Popen([sys.executable, "-c", lines, str(path)], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    return holder


@pytest.mark.parametrize("code", ["building", "foreign"])
def test_a_lock_that_is_never_let_go_is_told_once_and_done_without(cold_cache, monkeypatch, code):
    monkeypatch.setattr(cache, "LOCK_S", 0.1)
    holder = take(cold_cache, code=code)
    holder.send_signal(signal.SIGSTOP)
    known = f"process {holder.pid} of .*, since 20" if code == "building" else "another process"
    try:
        with pytest.warns(RuntimeWarning, match=f"{known}.* holds the lock .*within 0.1 s.*built here too"):
            assert cache.load_or_build(entry().key, lambda key: entry()) == entry()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            other = "ab" + "cd" * 31
            assert cache.load_or_build(other, lambda key: entry(other)).key == other
    finally:
        holder.kill()
        holder.communicate()
    assert cache.load(entry().key) == entry()


def test_a_lock_whose_holder_died_is_free(cold_cache):
    holder = take(cold_cache)
    holder.kill()
    holder.communicate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load_or_build(entry().key, lambda key: entry()) == entry()


def test_a_lock_is_let_go_though_a_forked_child_lives_on(cold_cache, monkeypatch):
    monkeypatch.setattr(cache, "LOCK_S", 0.1)
    until, end = os.pipe()
    with cache.building("ab"):
        child = os.fork()
        if child == 0:
            os.close(end)
            os.read(until, 1)
            os._exit(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cache.building("ab"):
            assert b"process" in (cold_cache / "locks" / "ab").read_bytes()
    os.close(end)
    os.waitpid(child, 0)
    assert (cold_cache / "locks" / "ab").read_bytes() == b""


def test_memory_holds_as_many_binaries_as_are_allowed(cold_cache, monkeypatch):
    monkeypatch.setattr(cache, "_recent", type(cache._recent)())
    monkeypatch.setattr(cache, "RECENT", 2)
    keys = [f"{i:02x}" * 32 for i in range(3)]
    for key in (keys[0], keys[1], keys[0], keys[2]):
        cache.load_or_build(key, lambda key: entry(key))
    shutil.rmtree(cold_cache)
    assert [cache.find(key) is not None for key in keys] == [True, False, True]


def test_a_cache_path_with_other_letters_works(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT, str(tmp_path / "dépôt µ"))
    cache.store(entry())
    assert cache.load(entry().key) == entry()


def test_no_home_is_no_obstacle(monkeypatch):
    monkeypatch.delenv(cache.ENVIRONMENT, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("XDG_CACHE_HOME", "/nonexistent/cache")
    assert cache.load("ef" * 32) is None
    assert "nonexistent" in str(cache.cache_dir())
