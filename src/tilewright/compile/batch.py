"""Compiling many kernels on all cores: compilers release the GIL or are processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0))


def in_parallel(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`work` of each item on all usable cores; results in the items' order, each as soon as it is due.

    An exception is raised where its result is due. Leaving the iteration early drops what hasn't started.
    """
    pool = ThreadPoolExecutor(max_workers=usable_cores())
    try:
        futures = [pool.submit(work, item) for item in items]
        for future in futures:
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
