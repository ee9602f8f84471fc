"""Inside a worker process: jobs in, answers out, one JSON object a line.

Owns the loop and the shape of an answer. What a job means is the evaluator's, what becomes of this process if it dies,
hangs or grows is `process.py`'s. Standard output is the evaluator's and the kernels' no longer: it goes to standard
error, so that nothing they print can be taken for an answer.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import sys
import threading
from typing import Any, Protocol

from tilewright.errors import LaunchFailed, Missing, TilewrightError


class Evaluator(Protocol):
    """Does one kind of job. Made by a factory that takes the setup, a JSON object."""

    def describe(self) -> dict[str, Any]:
        """What it works with, as JSON types: a device, a compiler."""
        ...

    def evaluate(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer to one job, as JSON types. What it raises becomes an answer with `failure` and `message`."""
        ...


def answer_of(error: Exception) -> dict[str, Any]:
    """An exception as an answer. `broken`: use this process no more; `missing`: the machine lacks something."""
    known = isinstance(error, TilewrightError)
    return {
        "failure": error.kind if isinstance(error, TilewrightError) else type(error).__name__,
        "message": str(error),
        "broken": isinstance(error, LaunchFailed) or not known,
        "missing": isinstance(error, Missing),
    }


def serve(requests: queue.SimpleQueue[dict[str, Any]], answers: Any) -> None:
    """Make the evaluator that the first request names, then answer every further one."""

    def answer(data: dict[str, Any]) -> None:
        print(json.dumps(data), file=answers, flush=True)

    first = requests.get()
    try:
        module, _, name = first["factory"].partition(":")
        evaluator: Evaluator = getattr(importlib.import_module(module), name)(first["setup"])
        answer({"ready": evaluator.describe()})
    except Exception as error:
        answer(answer_of(error))
        return
    while True:
        job = requests.get()
        try:
            answer(evaluator.evaluate(job))
        except Exception as error:
            answer(answer_of(error))


def _listen(requests: queue.SimpleQueue[dict[str, Any]]) -> None:
    """Queue what comes in. When the other side is gone, so is this process, whatever it is doing."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    os._exit(0)


def main() -> None:
    """The worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    serve(requests, answers)


if __name__ == "__main__":
    main()
