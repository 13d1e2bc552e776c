"""Profiles of cProfile, which Spark dumps for each UDF or RDD, by stage.

Spark strips the folders of files, so a profile names PySpark's own functions `rdd.py` and pandas' `frame.py`.
Functions of the user are therefore those in the files of the functions that Spark calls.  The time of all others, such
as libraries and builtins, is that of their callers, in proportion to the time that a profile has for each caller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from crystalperf.indexes.regex import regex
from crystalperf.query.frameworks.spark.python import worker_frames
from crystalperf.query.frameworks.spark.python.stages import PythonStage, with_result
from crystalperf.query.frameworks.spark.python.tables import FunctionTime, PythonTables
from crystalperf.query.frameworks.spark.python.worker_frames import Part

if TYPE_CHECKING:
    from crystalperf.query.recordings.pstats import CallProfile, FunctionCalls, Key

_UDF_FILE = regex(r"udf_(\d{1,18})(?:_perf)?\.pstats")
"""The name of Spark's dumps: `udf_7_perf.pstats` of the session's profiler, `udf_7.pstats` of the older one."""
_RDD_FILE = regex(r"rdd_\d+\.pstats")
_BUILTIN_READ = regex(r"method 'read\w*' of '_io|method 'recv\w*' of '_socket")
_MOST_FUNCTIONS = 200
_ROUNDS = 64
"""Calls between libraries that are followed to a user's function; functions that call each other would have no end."""

_PYSPARK_FILES = frozenset(
    f"{each}.py"
    for each in (
        *("accumulators", "broadcast", "cloudpickle", "daemon", "rdd", "rddsampler", "resultiterable", "serializers"),
        *("shuffle", "statcounter", "taskcontext", "traceback_utils", "worker", "worker_util"),
    )
)
"""Files of PySpark without their folders, which a profile of an RDD has."""
_PYSPARK_FUNCTIONS = frozenset(
    [("util.py", "wrapper"), ("util.py", "fail_on_stopiteration"), ("context.py", "f"), ("context.py", "getStart")]
)
"""Functions of its files whose names are those of users, too."""

_Role = Literal["user", "pyspark", "profiler", "library"]


def add_calls(name: str, profile: CallProfile, stages: Sequence[PythonStage], found: PythonTables) -> str:
    """Add the profile in the file of this name; returns how it is used."""
    match = _UDF_FILE.search(name)
    number = int(match[1]) if match else None
    called = {each.function for each in profile.functions}
    exact = [] if number is None else with_result(number, stages)
    of_rdd = _RDD_FILE.search(name) is not None
    chosen = exact or [each for each in stages if of_rdd and not each.functions]
    how = "function" if exact else "operator"
    if not chosen and number is None:
        chosen = [each for each in stages if called & set(each.functions)]
    if not chosen:
        return "a profile of Python functions of which no plan of this run has the id; left out"
    roles = _roles(profile.functions, of_rdd)
    own_ms, read_ms = _own_times(profile.functions, roles)
    of_users = (each for each in profile.functions if roles[each.key] == "user")
    users = sorted(of_users, key=lambda each: -own_ms[each.key])
    whole = sum(each.weight_ms(None, left=False) for each in chosen)
    for stage in chosen:
        share = stage.weight_ms(None, left=False) / whole
        named = {each for each, ids in stage.functions.items() if number in ids} or called & set(stage.functions)
        for part, ms in _parts(own_ms, read_ms, roles):
            found.add_time((stage.stage_id, None, part, how, "calls", name), ms * share)
        for each in users[:_MOST_FUNCTIONS]:
            function = worker_frames.named((each.file, each.function, 0))
            udf = next(iter(sorted(named)), function)
            key = stage.stage_id, udf, function, each.file, "calls", name
            row = found.functions.setdefault(key, FunctionTime(calls=0))
            row.calls = (row.calls or 0) + round(each.calls * share)
            row.own_ms += own_ms[each.key] * share
            row.total_ms += each.total_ms * share
            row.lines_ms[each.line] = row.lines_ms.get(each.line, 0.0) + own_ms[each.key] * share
    return "calls and time of Python functions, by Spark's profiler; its own cost is in the tasks' time"


def _parts(own_ms: Mapping[Key, float], read_ms: float, roles: Mapping[Key, _Role]) -> Iterator[tuple[Part, float]]:
    """Time by part: PySpark's functions convert rows, and wait while they read; a builtin may be a function itself."""
    for key, ms in own_ms.items():
        if roles[key] != "profiler":
            yield "serialization" if roles[key] == "pyspark" else "user", ms
    yield "wait", read_ms


def _roles(functions: Sequence[FunctionCalls], of_rdd: bool) -> dict[Key, _Role]:
    """The role of each function; `of_rdd` is whether the profile has whole tasks, PySpark's functions included."""
    stripped = not any("/" in each.file or "\\" in each.file for each in functions)
    found: dict[Key, _Role] = {each.key: _known_role(each, stripped, of_rdd) for each in functions}
    heads = [
        each
        for each in functions
        if found[each.key] == "user"
        and (not each.callers or any(found.get(caller.key) == "pyspark" for caller in each.callers))
    ]
    if not stripped or not heads:
        return found
    files = {each.file for each in heads}
    return {key: "library" if role == "user" and key[0] not in files else role for key, role in found.items()}


def _known_role(each: FunctionCalls, stripped: bool, of_rdd: bool) -> _Role:
    """The role of a function by its name; without folders, any other file may be a user's."""
    if each.file == "cProfile.py" or each.file.endswith("/cProfile.py") or "_lsprof" in each.function:
        return "profiler"
    if each.file == "~" or each.file.startswith("<"):
        return "library"
    if stripped and (each.file, each.function) in _PYSPARK_FUNCTIONS:
        return "pyspark"
    if stripped and not of_rdd:  # the profiler runs within PySpark's loop: only a chain of functions is PySpark's
        return "pyspark" if (each.file, each.function) == ("worker.py", "<lambda>") else _stated_role(each.file)
    return "pyspark" if stripped and each.file in _PYSPARK_FILES else _stated_role(each.file)


def _stated_role(file: str) -> _Role:
    of = worker_frames.owner(file)
    if of == "user":
        return "user"
    return "pyspark" if of in ("serializer", "pyspark", "worker") else "library"


def _own_times(functions: Sequence[FunctionCalls], roles: Mapping[Key, _Role]) -> tuple[dict[Key, float], float]:
    """The own time of each function outside of libraries, with that of the libraries it called, ms; and apart from that
    the time in which PySpark read from the JVM.  Libraries that nothing called keep their time."""
    own_ms: defaultdict[Key, float] = defaultdict(float)
    read_ms = 0.0
    of = {each.key: each for each in functions}
    moving: dict[Key, float] = {}
    for each in functions:
        if roles[each.key] != "library":
            own_ms[each.key] += each.own_ms
            continue
        moving[each.key] = each.own_ms
        if _BUILTIN_READ.search(each.function):
            read = sum(caller.own_ms for caller in each.callers if roles.get(caller.key) == "pyspark")
            read_ms += min(read, each.own_ms)
            moving[each.key] -= min(read, each.own_ms)
    for turn in range(_ROUNDS):
        after: defaultdict[Key, float] = defaultdict(float)
        for key, ms in moving.items():
            shares = _shares(of[key], of, own=turn == 0)
            for caller, share in shares or [(key, 1.0)]:
                (after if shares and roles[caller] == "library" else own_ms)[caller] += share * ms
        moving = after
    for key, ms in moving.items():
        own_ms[key] += ms
    return own_ms, read_ms


def _shares(each: FunctionCalls, of: Mapping[Key, FunctionCalls], *, own: bool) -> list[tuple[Key, float]]:
    """The callers of a function, with the share of its time, its own or with its callees, that each has."""
    times = [
        (caller.key, caller.own_ms if own else caller.total_ms)
        for caller in each.callers
        if caller.key != each.key and caller.key in of
    ]
    whole = sum(ms for _, ms in times)
    return [(key, ms / whole) for key, ms in times if ms > 0] if whole > 0 else []
