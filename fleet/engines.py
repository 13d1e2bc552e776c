"""Engines that read the logs of a fleet: processes on one machine, or a Spark cluster.  Both run fleet.reading.

On Spark, tasks read lists of paths.  Executors need a Python environment with CrystalPerf and its indexes, either
packed and shipped with `spark.archives`, or in an image (docs/fleet.md).  The executors read the logs, so every node
needs access to the paths.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crystalperf.fleet.logs import Item
    from crystalperf.fleet.reading import Read

ENGINES = ("local", "spark")

TASKS_PER_SLOT = 8
"""Tasks per slot: enough that slots with small logs take over work from slots with large logs."""

LOGS_PER_TASK = 64
"""Maximum logs of a task, so that a lost task is cheap to repeat."""


@dataclass(frozen=True)
class Engine:
    """An engine and its settings: `processes` (None: the number of CPUs) and `memory_bytes` of each process (None: its
    share of the machine's) of `local`, `master` and `settings` (KEY=VALUE) of `spark`.  Raises SettingError."""

    name: str = "local"
    processes: int | None = None
    memory_bytes: int | None = None
    master: str = ""
    settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        from crystalperf.indexes.errors import SettingError  # the help text, which names the engines, must be quick

        if self.name not in ENGINES:
            raise SettingError(f"engine {self.name}: expected {' or '.join(ENGINES)}")
        if self.name == "local" and (self.master or self.settings):
            raise SettingError("a master and settings need the engine spark, and the engine is local; choose spark")
        if self.name == "spark" and (self.processes is not None or self.memory_bytes is not None):
            raise SettingError(
                "the number of processes and their memory apply to the engine local only; for Spark, set its executors,"
                " such as spark.executor.instances and spark.executor.pyspark.memory"
            )
        for each in self.settings:
            if "=" not in each:
                raise SettingError(f"setting {each} of the engine: expected KEY=VALUE")

    def read_all(self, items: Sequence[Item], scratch: Path) -> Iterator[Read]:
        """The rows of all items, in order of completion; `scratch` is a temporary folder on this machine."""
        if self.name == "spark":
            return _on_spark(items, self.master, self.settings)
        from crystalperf.fleet import local

        many = self.processes or len(os.sched_getaffinity(0))
        return local.read_all(items, scratch, many, self.memory_bytes or local.memory_of(many))


def _on_spark(items: Sequence[Item], master: str, settings: Sequence[str]) -> Iterator[Read]:
    """The rows of all items, as tasks end.  Raises InputError if Spark is missing or does not start."""
    from crystalperf.indexes.errors import CrystalPerfError, InputError
    from crystalperf.query.trace.records import shortened

    try:
        sql: Any = import_module("pyspark.sql")
    except ImportError:
        raise InputError("the engine spark needs the package pyspark; install it, or choose the engine local") from None
    builder = sql.SparkSession.builder.appName("crystalperf fleet build")
    if master:
        builder = builder.master(master)
    # Without spark-submit, a session gets its executors' Python from the environment only.
    named = dict(each.split("=", 1) for each in settings).get("spark.pyspark.python")
    # Spark starts `python -m`, which would import modules from the working directory.
    set_for_it = {"PYTHONSAFEPATH": "1"}
    if named or master.startswith("local"):
        set_for_it["PYSPARK_PYTHON"] = named or sys.executable
    before = {key: os.environ.get(key) for key in set_for_it}
    os.environ.update(set_for_it)
    for each in settings:
        key, _, value = each.partition("=")
        builder = builder.config(key, value)
    session = None
    try:
        session = _started(builder)
        context = session.sparkContext
        dealt = _dealt(items, context.defaultParallelism * TASKS_PER_SLOT)
        answers = context.parallelize(dealt, len(dealt)).flatMap(_read_piece)
        yield from answers.toLocalIterator(prefetchPartitions=True)
    except CrystalPerfError:
        raise
    except Exception as error:
        raise InputError(f"Spark stopped ({shortened(str(error))})") from error
    finally:
        if session is not None:
            session.stop()
        for key, text in before.items():  # later child processes must not inherit it
            if text is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = text


def _dealt(items: Sequence[Item], pieces: int) -> list[list[Item]]:
    """The items as tasks, in order.  Of each `AT_ONCE` items, the largest are distributed first, round robin."""
    from crystalperf.fleet.logs import AT_ONCE

    dealt = []
    for start in range(0, len(items), AT_ONCE):
        part = items[start : start + AT_ONCE]
        many = min(max(pieces, -(-len(part) // LOGS_PER_TASK)), len(part))
        dealt += [list(part[first::many]) for first in range(many)]
    return dealt


def _started(builder: Any) -> Any:
    from crystalperf.indexes.errors import InputError

    try:
        return builder.getOrCreate()
    except Exception as error:
        raise InputError(f"Spark did not start ({' '.join(str(error).split())[:300]})") from error


def _read_piece(items: Sequence[Item]) -> Iterator[Read]:
    from crystalperf.fleet.reading import failed, read, sentence

    for item in items:
        try:
            yield read(item)
        except MemoryError as error:
            yield failed(item, f"{item.name}: reading it takes more memory than its executor has ({sentence(error)})")
