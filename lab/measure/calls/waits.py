"""Calls that wait for threads, queues and processes."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

from lab.measure.calls.cases import Cases, Place

CASES = Cases()
case, cpu = CASES.case, CASES.cpu

cpu(threading.Event.wait, lambda: threading.Event().wait(0.02))
cpu(threading.Condition.wait, lambda: _wait_condition())
cpu(queue.Queue.get, lambda: _wait_queue())


def _wait_condition() -> None:
    its = threading.Condition()
    with its:
        its.wait(0.02)


def _wait_queue() -> None:
    with contextlib.suppress(queue.Empty):
        queue.Queue[int]().get(timeout=0.02)


@case(threading.Thread.join)
def _join(_: Place) -> Iterator[Any]:
    thread = threading.Thread(target=time.sleep, args=(0.1,))
    thread.start()
    yield thread.join


@case(subprocess.Popen.wait)
def _child(_: Place) -> Iterator[Any]:
    with subprocess.Popen(["sleep", "0.1"]) as child:
        yield child.wait
