"""Finds the log of a recording whose path names no application: by the application in it, else by time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from crystalperf.indexes.errors import CrystalPerfError
from crystalperf.indexes.frozen import frozen
from crystalperf.query.frameworks.registry import frameworks
from crystalperf.query.inputs.containers import is_url
from crystalperf.query.inputs.discover import discover

MOST = 200
"""Maximum recordings, and logs, that are opened for this: a fleet has too many files to open all."""


@frozen
class _Started:
    """An application of a log: its framework, id, and start in Unix time, ms."""

    path: str
    framework: str
    app_id: str
    started_ms: float | None


def logs_of(recordings: Sequence[str], logs: Iterable[str]) -> dict[str, list[str]]:
    """The logs of each recording: those of the application that its process names, else those that started within it.

    If several started within it, a process that runs one application (a driver) is of none of them.
    """
    paths = [each for each in logs if not is_url(each)]
    if not recordings or len(recordings) > MOST or len(paths) > MOST:
        return {}
    started = [each for each in map(_started, paths) if each is not None]
    return {each: found for each in recordings if (found := _logs_of(each, started))}


def _started(path: str) -> _Started | None:
    try:
        applications = discover([path]).applications
    except CrystalPerfError:
        return None
    if len(applications) != 1:
        return None
    (found,) = applications
    return _Started(path, found.framework, found.app_id, found.started_at_ms)


def _logs_of(path: str, started: Sequence[_Started]) -> list[str]:
    from crystalperf.query.recordings import jfr

    try:
        recording = jfr.read(path)
    except Exception:  # the recording stays without a log, which the build says
        return []
    arguments = recording.jvm.java_arguments if recording.jvm else None
    processes = _processes(arguments, path.rpartition("/")[2])
    of = [each for each in started if each.framework in processes]
    named = [each.path for each in of if processes[each.framework][0] == each.app_id]
    times = [each for each in (recording.samples.time_ns, recording.intervals.start_ns) if len(each)]
    if named or not times:
        return named
    first_ms, last_ms = min(each.min() for each in times) / 1e6, max(each.max() for each in times) / 1e6
    within = [
        each
        for each in of
        if processes[each.framework][0] is None and each.started_ms and first_ms <= each.started_ms <= last_ms
    ]
    drivers = {name: each.vocabulary.driver.lower() for name, each in frameworks().items()}
    serves_many = all(drivers[each.framework] != processes[each.framework][1] for each in within)
    return [each.path for each in within] if len(within) == 1 or serves_many else []


def _processes(arguments: str | None, name: str) -> Mapping[str, tuple[str | None, str]]:
    """The application and the worker of a process, by framework."""
    found = {}
    for framework, each in frameworks().items():
        find: Callable[[str | None, str], tuple[str | None, str] | None] | None = each.reader.frames.process
        process = None if find is None else find(arguments, name)
        if process is not None:
            found[framework] = process
    return found
