"""Locks in forked children."""

from __future__ import annotations

import os
import threading

import pytest

from tilewright.locks import ForkSafeLock

FORKED_WITH_THREADS = "ignore:This process .* is multi-threaded:DeprecationWarning"


@pytest.mark.filterwarnings(FORKED_WITH_THREADS)
def test_a_lock_that_another_thread_held_at_the_fork_is_free_in_the_child():
    lock, held, done = ForkSafeLock(), threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        with lock:
            os._exit(17)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 17


def test_the_forking_thread_s_own_lock_is_released_in_both():
    lock = ForkSafeLock()
    with lock:
        child = os.fork()
    if child == 0:
        with lock:
            os._exit(17)
    _, status = os.waitpid(child, 0)
    with lock:
        assert os.waitstatus_to_exitcode(status) == 17
