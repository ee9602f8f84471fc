"""The tuning store on a call's path: whatever is wrong with it, a product is neither stopped nor steered."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tilewright.arch import get_arch
from tilewright.declare import all_rungs, rung_config
from tilewright.problem import Problem
from tilewright.select import choose
from tilewright.tune import Store
from tilewright.tune.context import context_of

H200, SMS = get_arch("sm_90a"), 132
PROBLEM, OTHER = Problem(m=512, n=512, k=512), Problem(m=512, n=512, k=256)
K08 = all_rungs().find("k08")
DEVICE = {"name": "H200", "compute_capability": [9, 0], "sm_count": SMS, "smem_optin_bytes": 232448}


def chosen(problem=PROBLEM):
    return choose(problem, H200, SMS)


def choice_data(settings=(("BK", 8),), time_us=10.0, **more):
    return {"best": rung_config(K08, dict(settings)).values, "time_us": time_us, **more}


def keep(*choices, problem=PROBLEM):
    with Store() as store:
        for data in choices or (choice_data(),):
            store.add_choice(context_of(K08, problem, DEVICE), data)


@pytest.fixture
def path(cold_cache):
    """The path of a store in which a choice for PROBLEM is kept."""
    keep()
    return cold_cache / "tune.sqlite3"


def execute(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(*([statement] if isinstance(statement, str) else statement))


def with_data(**changes):
    """A statement that changes fields of every choice's data; None takes one away."""
    data = {name: value for name, value in {**choice_data(), **changes}.items() if value is not None}
    return "update choices set data = ?", (json.dumps(data),)


def with_fields(**changes):
    fields = {**context_of(K08, PROBLEM, DEVICE).fields, **changes}
    return "update contexts set fields = ?", (json.dumps({k: v for k, v in fields.items() if v is not None}),)


BEST = choice_data()["best"]
UNSOUND = {
    "no JSON": ["update choices set data = '{'"],
    "another JSON": ["update choices set data = '7'"],
    "no text": ["update choices set data = 7"],
    "no UTF-8": ["update choices set data = cast(x'ff' as text)"],
    "nested beyond measure": [("update choices set data = ?", ("[" * 100_000,))],
    "no best": [with_data(best=None)],
    "best is a list": [with_data(best=[1])],
    "best of texts": [with_data(best={**BEST, "BK": "8"})],
    "best of fractions": [with_data(best={**BEST, "BK": 8.5})],
    "best of truths": [with_data(best={**BEST, "BK": True})],
    "best with a parameter that isn't one": [with_data(best={**BEST, "BQ": 8})],
    "best that a rule refuses": [with_data(best={**BEST, "WM": 48})],
    "best beyond range": [with_data(best={**BEST, "BK": 10**30})],
    "no time": [with_data(time_us=None)],
    "time is a text": [with_data(time_us="10")],
    "time is NaN": [with_data(time_us=float("nan"))],
    "time is infinite": [with_data(time_us=float("inf"))],
    "time is beyond a float": [with_data(time_us=10**400)],
    "negative time": [with_data(time_us=-1.0)],
    "no time at all": [with_data(time_us=0)],
    "ratio of two": [with_data(ratio_to_baseline=[0.9, 0.9])],
    "ratio of texts": [with_data(ratio_to_baseline=["0.9", "0.9", "0.9"])],
    "ratio is a number": [with_data(ratio_to_baseline=0.9)],
    "negative ratio": [with_data(ratio_to_baseline=[-1.0, -1.0, -1.0])],
    "fields are no JSON": ["update contexts set fields = '{'"],
    "fields are a list": ["update contexts set fields = '[]'"],
    "no device": [with_fields(device=None)],
    "no source": [with_fields(source=None)],
    "rung is a list": [with_fields(rung=["k08_warp_tile"])],
    "problem is a list": [with_fields(problem=[512, 512, 512])],
}
NO_STORE = {
    "no table": ["drop table choices"],
    "another table": ["drop table choices", "create table choices (id integer, words text)"],
    "a column less": ["alter table contexts rename column fields to words"],
}


@pytest.mark.parametrize("statements", [*UNSOUND.values(), *NO_STORE.values()], ids=[*UNSOUND, *NO_STORE])
def test_what_tuning_does_not_write_is_left_out_and_named_once(path, statements, caplog):
    assert chosen().tuned
    execute(path, *statements)
    assert not chosen().tuned and not chosen(OTHER).tuned
    named = [record for record in caplog.records if str(path) in record.getMessage()]
    assert len(named) == 1 and named[0].levelname == "WARNING"


@pytest.mark.parametrize("name", list(UNSOUND))
def test_a_row_that_is_not_sound_hides_no_sound_one(path, name):
    execute(path, *UNSOUND[name])
    keep(choice_data({"BK": 16}.items()))
    assert chosen().config.values["BK"] == 16


def test_the_newest_row_counts_and_an_older_sound_one_where_that_is_not(path):
    keep(choice_data({"BK": 32}.items()))
    assert chosen().config.values["BK"] == 32
    execute(path, "update choices set data = '{' where id = (select max(id) from choices)")
    assert chosen().config.values["BK"] == 8


@pytest.mark.parametrize("data", [b"", b"not a database at all " * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_as_good_as_none(path, data, caplog):
    path.write_bytes(data)
    before = contents(path.parent)
    assert not chosen().tuned and not chosen(OTHER).tuned
    assert len([record for record in caplog.records if "cannot be read" in record.getMessage()]) == 1
    assert contents(path.parent) == before


def test_a_folder_in_the_stores_place_is_as_good_as_none(cold_cache):
    (cold_cache / "tune.sqlite3").mkdir(parents=True)
    assert not chosen().tuned


def test_the_tuner_leaves_out_the_same_rows(path):
    from tilewright.tune import Trial

    context = context_of(K08, PROBLEM, DEVICE)
    good = Trial(config={"BK": 8}, outcome="timed", time_us=5.0)
    with Store() as store:
        store.add_trial(context, good)
        store.add_trial(context, Trial(config={"BK": 16}, outcome="timed", time_us=6.0))
        store.add_choice(context_of(K08, OTHER, DEVICE), choice_data())
    execute(
        path,
        """update trials set data = '{"config": {"BK": 16}, "outcome": "timed", "time_us": NaN}' where id = 2""",
        "update choices set data = '7' where id = 1",
    )
    with Store() as store:
        assert store.trials(context) == [good]
        assert [choice.context.problem for choice in store.choices()] == [OTHER]
        (first, second) = store.export()["contexts"]
    assert (len(first["trials"]), len(first["choices"]), len(second["choices"])) == (1, 0, 1)


def test_a_store_that_is_to_be_left_alone_is_not_read(path, monkeypatch):
    assert chosen().tuned
    monkeypatch.setenv("TILEWRIGHT_SKIP_CACHE", "1")
    assert not chosen().tuned
    monkeypatch.delenv("TILEWRIGHT_SKIP_CACHE")
    assert chosen().tuned


# --- read-only


def contents(folder):
    return {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in folder.iterdir()}


def left_open(folder):
    """A copy of the store's files as a writer that was killed leaves them, its choice in the write-ahead log alone."""
    made = folder / "made.sqlite3"
    with Store(made) as store:
        store.add_choice(context_of(K08, PROBLEM, DEVICE), choice_data())
        for suffix in ("", "-wal", "-shm"):
            shutil.copyfile(f"{made}{suffix}", folder / f"tune.sqlite3{suffix}")
    for file in folder.glob("made*"):
        file.unlink()


def closed(folder):
    with Store(folder / "tune.sqlite3") as store:
        store.add_choice(context_of(K08, PROBLEM, DEVICE), choice_data())
    (folder / "tune.lock").unlink()


def without_index(folder):
    left_open(folder)
    (folder / "tune.sqlite3-shm").unlink()


@pytest.mark.parametrize("make", [closed, left_open, without_index])
def test_reading_makes_and_changes_no_file(cold_cache, make):
    cold_cache.mkdir()
    make(cold_cache)
    before = contents(cold_cache)
    assert chosen().tuned and contents(cold_cache) == before


READ_AS_NOBODY = """
import os, sys
sys.path.insert(0, {here!r})
import sqlite3, test_select_stored as t
{warm}
os.environ["TILEWRIGHT_CACHE_DIR"] = sys.argv[1]
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
assert not os.access(sys.argv[1], os.W_OK)
sys.exit(0 if t.chosen().tuned else 3)
"""
WARM = "t.keep(); assert t.chosen().tuned  # the modules that it takes are loaded, as nobody may not read them all"


@pytest.mark.parametrize("make", [closed, left_open, without_index])
def test_a_shared_store_that_cannot_be_written_is_read(tmp_path, make):
    with tempfile.TemporaryDirectory(prefix="tilewright-shared-") as name:
        shared = Path(name)
        make(shared)
        for file in shared.iterdir():
            file.chmod(0o444)
        shared.chmod(0o555)
        before = contents(shared)
        code = READ_AS_NOBODY.format(here=str(Path(__file__).parent), warm=WARM)
        environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "warm")}
        done = subprocess.run(
            [sys.executable, "-c", code, name], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert contents(shared) == before
        shared.chmod(0o755)


# --- found by an index, and by earlier versions


def as_an_earlier_version_left_it(path):
    execute(path, "drop index choices_by_lookup", "alter table choices drop column lookup")


def test_an_earlier_versions_store_is_read_and_a_writer_brings_it_up_to_date(path):
    as_an_earlier_version_left_it(path)
    assert chosen().tuned
    with Store():
        pass
    assert chosen().tuned
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("select count(*) from choices where lookup is null").fetchone() == (0,)


def test_what_an_earlier_version_adds_to_a_store_of_today_is_found(path):
    execute(path, "update choices set lookup = null")
    assert chosen().tuned


def test_a_choice_is_found_by_an_index(path):
    from tilewright.tune.reading import CHOICES, WHERE

    with closing(sqlite3.connect(path)) as db:
        plan = db.execute(f"explain query plan {CHOICES.format(where=WHERE)}", ("x",)).fetchall()
    assert not any(step.startswith("SCAN") for *_, step in plan)


# --- held by another process


HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    db.execute(statement)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hold(path):
    """Have another process execute statements on the store and keep what they lock; gives its number."""
    running = []

    def start(*statements, code=HOLD):
        command = [sys.executable, "-c", code, str(path), *statements]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        assert process.stdout.readline() == "held\n"
        return process.pid

    yield start
    for process in running:
        process.communicate("")


def test_a_writer_that_holds_the_store_keeps_no_product_waiting(path, hold, caplog):
    hold("begin exclusive")
    assert chosen().tuned and not caplog.records


def test_a_store_that_stays_locked_is_gone_without_and_asked_no_more(path, hold, caplog, monkeypatch):
    insert = "insert into choices (context, made, data) values (1, '', '7')"
    hold("pragma journal_mode=delete", "pragma cache_size=1", "begin exclusive", insert, "pragma cache_spill=1")
    assert not chosen().tuned and "database is locked" in caplog.text and "cannot be written" not in caplog.text
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **__: pytest.fail("asked again"))
    assert not chosen(OTHER).tuned


def test_a_writer_names_the_process_that_holds_the_store(path, hold, monkeypatch):
    from tilewright.tune import Trial, store

    monkeypatch.setattr(store, "BUSY_S", 0.2)
    process = hold("begin exclusive")
    kept, context = Trial(config={"BK": 8}, outcome="timed", time_us=5.0), context_of(K08, PROBLEM, DEVICE)
    with pytest.warns(RuntimeWarning, match=rf"is held by process {process} \(python"), Store() as opened:
        opened.add_trial(context, kept)
    with Store() as opened:
        assert opened.trials(context) == []


LOCK = """
import filelock, sys
with filelock.FileLock(sys.argv[1].replace(".sqlite3", ".lock")):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_writer_waits_no_longer_for_the_lock_than_for_the_store(path, hold, monkeypatch):
    from tilewright.tune import store

    monkeypatch.setattr(store, "BUSY_S", 0.2)
    process = hold(code=LOCK)
    with pytest.warns(RuntimeWarning, match=rf"is held by process {process} "), Store():
        assert chosen().tuned


def test_where_files_cannot_be_locked_tuning_keeps_in_memory_and_a_call_reads(path, monkeypatch):
    import errno

    import filelock

    def no_locks(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", no_locks)
    with pytest.warns(RuntimeWarning, match="cannot be written .*No locks available"), Store():
        assert chosen().tuned


# --- forks


def test_a_child_forked_while_another_thread_reads_the_store_reads_it_too(path, monkeypatch):
    inside, go_on, connect = threading.Event(), threading.Event(), sqlite3.connect

    def slow(*arguments, **named):
        if threading.current_thread() is reader:
            inside.set()
            go_on.wait()
        return connect(*arguments, **named)

    monkeypatch.setattr(sqlite3, "connect", slow)
    reader = threading.Thread(target=chosen, args=(OTHER,))
    reader.start()
    assert inside.wait(30)
    try:
        assert exit_code_of_child(lambda: chosen().tuned) == 0
    finally:
        go_on.set()
        reader.join()


def test_a_child_forked_during_a_search_can_search(path, monkeypatch):
    import tilewright.tune
    from tilewright.select import first_use
    from tilewright.tune import Machine

    searching, go_on, searched = threading.Event(), threading.Event(), []

    def search(rung, problem, request, *, machine):
        searched.append(problem)
        if problem == PROBLEM:
            searching.set()
            go_on.wait()

    monkeypatch.setattr(tilewright.tune, "tune", search)
    monkeypatch.setattr(first_use, "tune", search, raising=False)
    monkeypatch.setattr(first_use, "_searched", set())
    thread = threading.Thread(target=first_use.tune_first_use, args=(PROBLEM, chosen(), Machine()))
    thread.start()
    assert searching.wait(30)
    try:
        found = exit_code_of_child(lambda: first_use.tune_first_use(OTHER, chosen(), Machine()) or OTHER in searched)
        assert found == 0
    finally:
        go_on.set()
        thread.join()


def exit_code_of_child(work):
    """Of a forked child: 0 where `work` is true in it, 1 where it isn't, a signal's where it hangs."""
    import signal

    child = os.fork()
    if child == 0:
        signal.alarm(20)
        code = 2
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
