"""The activity of a Python worker in a sampled stack, by its frames: files and functions, as py-spy names them.

A stack of a worker is, from the root: the daemon that forks workers, `main` and `process` of pyspark/worker.py, and
then PySpark's serializers and the functions of users in any order, because rows are pulled.  py-spy shortens files to
the part below the folder that Python imports from: `pyspark/worker.py`, or `worker.py` if PySpark is in a zip.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import cache
from typing import Literal

from crystalperf.indexes.frozen import frozen
from crystalperf.indexes.regex import regex

Frame = tuple[str, str, int]
"""File, function and line; the file is empty for native code."""

Part = Literal["user", "serialization", "start", "wait"]
"""A part of a worker's time.

user           functions of users, with what these call
serialization  rows from and to Arrow or pickle, and PySpark's own code that calls the functions
start          what a worker does before its first row of a task: it imports modules, reads functions and broadcasts
wait           it waits for the JVM, for rows or for space to write
"""

_PYSPARK = regex(
    r"^(?:.*/)?pyspark/((?:worker|daemon|worker_util|serializers|util|shuffle|rdd|core/|conversion|accumulators"
    r"|broadcast|profiler|statcounter|taskcontext|sql/|pandas/|cloudpickle|errors/|streaming/|resource/|ml/|mllib/"
    r"|python/)[^:]*)$"
)
_BARE = frozenset({"worker.py", "daemon.py", "worker_util.py", "serializers.py"})
"""Files of PySpark as py-spy shows them if PySpark is in a zip; users hardly name theirs so."""

_PACKAGES = regex(r"(?:site-packages|dist-packages|/lib/python3(?:\.\d+)?)/(?!site-packages|dist-packages)(.+)$")
"""A file below a folder that Python imports packages from."""

_CONVERTS = frozenset({"pandas", "pyarrow", "numpy"})
"""Packages that PySpark's serializers call; a user's function that calls them is found first, nearer to the root."""

_READS = frozenset({"read_int", "read_long", "read_bool", "_read_with_length"})
_WRITES = frozenset({"_write_with_length", "write_int", "write_with_length", "flush"})
_ARROW_READ = "load_stream"
"""Reads a batch: in the serializers of Arrow it is the leaf while it waits for one."""
_ARROW_WRITE = "dump_stream"
"""Writes batches: in the serializers of Arrow it is the leaf while the JVM takes none."""

_CALLERS = frozenset({"wrapper", "<lambda>", "mapper", "evaluate", "<genexpr>"})
"""Functions of PySpark that call a user's."""

_PREPARES = frozenset({"read_command", "read_udfs", "read_single_udf", "read_udtf", "check_python_version"})
_STANDARD = frozenset(sys.stdlib_module_names)

Owner = Literal["worker", "serializer", "pyspark", "converter", "standard", "native", "user"]


@frozen
class Placed:
    """The activity of a worker in a stack.

    `function` is the outermost function of the user in it, the one that Spark called, None if it has none; `arrow` is
    whether it has one of PySpark's serializers of Arrow or pandas, None if it has no serializer.
    """

    part: Part
    function: Frame | None
    arrow: bool | None


def is_worker(file: str, function: str) -> bool:
    """Whether only a Python worker, or the daemon that forks them, has this frame."""
    path = _path(file)
    name = simple(function)
    return (path == "worker.py" and name == "main") or (path == "daemon.py" and name in ("worker", "manager"))


def is_between_tasks(stack: Sequence[Frame]) -> bool:
    """Whether a stack, the leaf first, is of a worker or daemon that waits for a task."""
    inside = any(_is_process(each) for each in stack)
    waits = simple(stack[0][1]) in ("manager", "read_int")
    return waits and not inside and any(is_worker(file, function) for file, function, _ in stack)


def placed(stack: Sequence[Frame], idle: bool) -> Placed | None:
    """The activity of a worker in a stack, the leaf first; None between tasks, and for any other process.

    `idle` is whether the profile also has threads that wait (py-spy's `--idle`); without it, a worker that reads was
    copying bytes.
    """
    root = next((place for place, each in enumerate(stack) if is_worker(each[0], each[1])), None)
    if root is None:
        return None
    inner = next((place for place, each in enumerate(stack) if _is_process(each)), None)
    if inner is None:
        return Placed("start", None, None) if _starts(stack[:root]) else None
    work = stack[:inner]
    owners = [owner(each[0]) for each in work]
    function = next((each for each, of in zip(reversed(work), reversed(owners), strict=True) if of == "user"), None)
    arrow = _is_arrow(work)
    if idle and _waits(work):
        return Placed("wait", function, arrow)
    if _in_user(work, owners):
        return Placed("user", function, arrow)
    imports = any("importlib" in each[0] for each in work)  # PySpark imports pandas and Arrow at their first use
    return Placed("start" if imports else "serialization", function, arrow)


def _is_process(frame: Frame) -> bool:
    """Whether a frame is the loop of a task over its rows."""
    return simple(frame[1]) == "process" and _path(frame[0]) == "worker.py"


def _in_user(work: Sequence[Frame], owners: Sequence[Owner]) -> bool:
    """Whether the frame nearest to the leaf that is not a library's is a user's.

    A standard library that PySpark calls itself with a row (`udf(json.loads)`) is the user's function.
    """
    standard = False
    for frame, of in zip(work, owners, strict=True):
        if of == "user":
            return True
        if of in ("serializer", "pyspark", "worker"):
            return standard and of != "serializer" and simple(frame[1]) in _CALLERS
        standard = of == "standard" or (standard and of == "native")
    return False


def _waits(work: Sequence[Frame]) -> bool:
    """Whether the leaf reads from the JVM, or writes to it."""
    inside = list(work[1:] if work and simple(work[0][1]) == "readinto" and _top(work[0][0]) == "socket" else work)
    if not inside or owner(inside[0][0]) != "serializer":
        return False
    file, function = inside[0][0], simple(inside[0][1])
    may_be_arrow = file in _BARE or _path(file) != "serializers.py"
    if function == _ARROW_WRITE:
        return _path(file) not in (None, "serializers.py")
    return function in _READS or function in _WRITES or (function == _ARROW_READ and may_be_arrow)


def _starts(below: Sequence[Frame]) -> bool:
    """Whether a worker prepares a task: it imports modules, or reads its functions and broadcasts."""
    files = [each[0] for each in below]
    return any(simple(each[1]) in _PREPARES for each in below) or any(
        _path(each) in ("worker_util.py", "broadcast.py") or "cloudpickle" in each or "importlib" in each
        for each in files
    )


def _is_arrow(work: Sequence[Frame]) -> bool | None:
    """Whether the serializer of a stack is one of Arrow or pandas; None if it has none."""
    paths = [_path(each[0]) or "" for each in work]
    if any(each.startswith(("sql/pandas", "sql/conversion")) for each in paths):
        return True
    return False if any(owner(each[0]) == "serializer" for each in work) else None


@cache
def owner(file: str) -> Owner:
    """The owner of the code in a file."""
    if (path := _path(file)) is not None:
        if path == "worker.py":
            return "worker"
        return "serializer" if path.endswith("serializers.py") else "pyspark"
    if not file:
        return "native"
    top = _top(file)
    if top in _CONVERTS:
        return "converter"
    return "standard" if file.startswith("<") or top in _STANDARD else "user"


def simple(function: str) -> str:
    """A function's own name: `process` of `main.<locals>.process`, as py-spy names functions since Python 3.11."""
    return function.rpartition(".")[2]


def named(frame: Frame) -> str:
    """A function as users search for it: its module and its name, `job.score`."""
    file, function, _ = frame
    module = re.sub(r"(/__init__)?\.pyx?$", "", below_packages(file)).replace("/", ".").strip(".")
    return f"{module}.{function}" if module and not file.startswith("<") else function


@cache
def _path(file: str) -> str | None:
    """The path of a file within PySpark, None for a file of anything else."""
    if (match := _PYSPARK.search(file)) is not None:
        return match[1]
    return file if file in _BARE else None


def _top(file: str) -> str:
    """The top package or module of a file: `pandas`, `json`, `job`."""
    return re.sub(r"\.pyx?$", "", below_packages(file).partition("/")[0])


def below_packages(file: str) -> str:
    """The path of a file below the folder that Python imports it from, its name alone if that is unknown."""
    found = _PACKAGES.search(file)
    if found:
        return found[1]
    return file.rpartition("/")[2] if file.startswith("/") else file
