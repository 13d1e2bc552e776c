"""One case of `make fuzz`: create a damaged input, read it or analyze it, and judge the result."""

from __future__ import annotations

import shutil
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import crystalperf as cp
from crystalperf.indexes import store
from crystalperf.indexes.errors import CrystalPerfError, IndexFileError
from crystalperf.query.attribution.code.decide import NumberedStacks
from crystalperf.query.attribution.samples.threadtime import thread_time
from crystalperf.query.frameworks.registry import get
from crystalperf.query.inputs.discover import discover
from crystalperf.query.inputs.files import Application
from crystalperf.query.recordings import collapsed, jfr
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.records import Problems
from lab.damage import interfaces, runfiles
from lab.damage.judging import ContradictionError, one_sentence, typed
from lab.damage.mutations import damaged_document, damaged_folder, damaged_log, damaged_recording, damaged_stacks
from lab.damage.sources import Sources

INTERFACES = {
    "server": interfaces.through_server,
    "page": interfaces.through_page,
    "fleet": interfaces.through_fleet,
    "upload": interfaces.through_upload,
}
"""Kinds of inputs from a server, for a page or a fleet, or uploaded to the service."""

FRAMEWORKS = ("tensorflow", "pytorch", "stream")
"""Kinds of inputs that are runs of several files, tested through the command line."""

KINDS = ("log", "document", "jfr", "collapsed", "command", "run", *FRAMEWORKS, *INTERFACES)
_WHOLE_EVERY = 20
_COMMAND_LINES = 150
"""Bytes of a log for the commands: its beginning and its end.  For the kind log, all of it is read."""
_OF_DOCUMENTS = 0.25
_OF_FOLDERS = 0.2
_WITH_RECORDING = 0.05
_WITH_STACKS = 0.15
_RECORDING_BYTES = 150_000
"""Maximum size of recordings for the commands; larger ones take longer to read than everything else."""
_INDEX = "spark-3.5.9"


@dataclass(frozen=True)
class Case:
    kind: str
    number: int


@dataclass(frozen=True)
class Outcome:
    """`what` is read, refused or failed; `text` is the sentence or the traceback."""

    case: Case
    source: str
    damage: str
    what: str
    text: str
    memory_bytes: int = 0


def run_case(case: Case, seed: int, sources: Sources, folder: Path) -> Outcome:
    """Create one damaged input below `folder`, read it, and return the result.  Never raises."""
    random = Random(f"{case.kind} {seed} {case.number}")
    source = damage = ""
    try:
        if case.kind == "jfr":
            source, other = (random.choice(list(sources.recordings)) for _ in range(2))
            data, damage = damaged_recording(random, sources.recordings[source], sources.recordings[other])
            what, said = _read_recording(data)
        elif case.kind == "collapsed":
            source = random.choice(list(sources.stacks))
            data, damage = damaged_stacks(random, sources.stacks[source])
            interfaces.write(folder, {"stacks.collapsed": data})
            what, said = _read_stacks(folder / "stacks.collapsed")
        elif case.kind == "run":
            source = random.choice(list(sources.runs))
            run = folder / "run.duckdb"
            run.write_bytes(sources.runs[source])
            damage = runfiles.changed_run(random, run)
            what, said = runfiles.ask(random, run, folder.with_name(f"{folder.name}-home"))
        else:
            files, source, damage = _drawn(random, case.kind, sources)
            home = folder.with_name(f"{folder.name}-home")
            if case.kind in INTERFACES:
                what, said = INTERFACES[case.kind](random, files, folder, home)
            elif case.kind in ("log", "document"):
                interfaces.write(folder, files)
                what, said = _read_log(folder, case.number % _WHOLE_EVERY == 0)
            else:
                interfaces.write(folder, files)
                damage += _add_samples(random, sources, folder)
                what, said = _type_commands(folder, home, random)
    except Exception:
        what, said = "failed", traceback.format_exc()
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(folder.with_name(f"{folder.name}-home"), ignore_errors=True)
        folder.mkdir()
    return Outcome(case, source, damage, what, said)


def _shortened(lines: list[bytes], kind: str) -> list[bytes]:
    if kind != "log" and len(lines) > _COMMAND_LINES:
        return [*lines[: _COMMAND_LINES - _COMMAND_LINES // 4], *lines[-(_COMMAND_LINES // 4) :]]
    return lines


def _drawn(random: Random, kind: str, sources: Sources) -> tuple[dict[str, bytes], str, str]:
    """The files of a damaged run, its source, and a description of the damage."""
    drawn = random.random()
    chosen = kind
    if kind == "command" or kind in INTERFACES:
        chosen = "document" if drawn < _OF_DOCUMENTS and sources.documents else "log"
        if drawn > 1 - _OF_FOLDERS and sources.folders:
            chosen = "folder"
        if kind == "server":
            chosen = "log"  # such a server has only Spark logs
    if chosen in FRAMEWORKS or chosen == "folder":
        source = random.choice(list(sources.folders) if chosen == "folder" else sources.of_framework(chosen))
        files, damage = damaged_folder(random, sources.folders[source])
    elif chosen == "document":
        source = random.choice(list(sources.documents))
        files, damage = damaged_document(random, sources.documents[source])
    else:
        source = random.choice(list(sources.logs))
        files, damage = damaged_log(random, _shortened(sources.logs[source], kind))
    return files, source, damage


def _add_samples(random: Random, sources: Sources, folder: Path) -> str:
    """Add damaged samples to some logs; returns a description of the damage."""
    drawn = random.random()
    if drawn < _WITH_RECORDING:
        small = [each for each in sources.recordings.values() if len(each) <= _RECORDING_BYTES]
        if small:
            data, damage = damaged_recording(random, random.choice(small), random.choice(small))
            interfaces.write(folder, {"executor-0.jfr": data})
            return f"; recording: {damage}"
    elif drawn < _WITH_RECORDING + _WITH_STACKS and sources.stacks:
        data, damage = damaged_stacks(random, sources.stacks[random.choice(list(sources.stacks))])
        interfaces.write(folder, {"executor-0.collapsed": data})
        return f"; stacks: {damage}"
    return ""


def _read_log(folder: Path, whole: bool) -> tuple[str, str]:
    """Read a folder as a user does; raises ContradictionError."""
    try:
        inputs = discover([folder])
        for each in inputs.applications:
            check_trace(get(each.framework).reader.read(each.log))
        if whole and inputs.applications:
            run = cp.profile([folder], output=folder / "run.duckdb", app=_name(inputs.applications[0]))
            check_written(run.path)
            answer = run.debug()
            parts = sum(answer.resource_ms.values())
            if abs(parts - answer.runtime_ms) > 1e-3 * answer.runtime_ms + 1e-3:
                raise ContradictionError(f"a critical path of {answer.runtime_ms} ms has parts of {parts} ms")
            run.predict(cores="2x")
    except CrystalPerfError as error:
        return "refused", one_sentence(str(error))
    return "read", ""


def check_written(run: Path) -> None:
    """Check that another process would open a run file that this process wrote."""
    try:
        store.check_again(run, "run")
    except IndexFileError as error:
        raise ContradictionError(f"a run file that CrystalPerf wrote is refused: {error}") from error


def _name(application: Application) -> str:
    """The value for --app."""
    return application.app_id if application.attempt is None else f"{application.app_id}/{application.attempt}"


def _type_commands(folder: Path, home: Path, random: Random) -> tuple[str, str]:
    """Run a user's command line; raises ContradictionError for an answer that breaks its contract."""
    run = folder.with_name("run.duckdb")
    sampled = any(each.name.startswith("executor-0.") for each in folder.iterdir())
    # The search for indexes that fit the samples takes longer than everything else.
    index = ["--index", _INDEX] if sampled and random.random() < 0.8 else []
    commands: Sequence[tuple[Any, ...]] = random.choice(
        (
            [("analyze", folder, *index)],
            [("analyze", folder, *index, "--full")],
            [("analyze", folder, *index, "--json")],
            [("debug", folder)],
            [("debug", folder, "--json", "--scope", "whole")],
            [("predict", folder, "--set", "network=2x")],
            [("predict", folder, "--set", "cores=2x,4x", "--json")],
            [("predict", folder, "--set", "memory=0.5x", "--set", "disk=2x")],
            [("predict", folder, "--set", "input=2x")],
            [("profile", folder, "-o", run, *index), ("analyze", run)],
            [("profile", folder, "-o", run, *index, "--json"), ("debug", run)],
        )
    )
    try:
        for command in commands:
            if (message := typed(home, *command)) is not None:
                return "refused", message
        if run.exists():
            check_written(run)
    finally:
        run.unlink(missing_ok=True)
    return "read", ""


def _read_recording(data: bytes) -> tuple[str, str]:
    try:
        recording = jfr.read(data)
    except jfr.JfrError as error:
        return "refused", one_sentence(str(error))
    time_on_threads = thread_time(recording)
    numbers = NumberedStacks(get("spark")).add(recording)
    if len(time_on_threads.stack):
        numbers[time_on_threads.stack]
    if (time_on_threads.weight_ms < 0).any():
        raise ContradictionError("a sample has a negative weight")
    if len(recording.samples) and recording.samples.thread.max() >= len(recording.threads):
        raise ContradictionError("a sample has an unknown thread")
    return "read", ""


def _read_stacks(path: Path) -> tuple[str, str]:
    problems = Problems()
    try:
        found = collapsed.read(str(path), problems)
    except CrystalPerfError as error:
        return "refused", one_sentence(str(error))
    numbers = NumberedStacks(get("spark")).add(found.recording)
    if len(found.weight) != len(numbers) or not (np.isfinite(found.weight) & (found.weight >= 0)).all():
        raise ContradictionError("stacks and their counts do not match")
    return "read", ""


def check_trace(trace: Trace) -> None:
    """Check invariants of the tables of any log, however damaged."""
    duration, tasks = trace.run["duration_ms"], trace.tasks
    launch, finish = np.asarray(tasks["launch_ms"]), np.asarray(tasks["finish_ms"])
    if not 0 <= duration < np.inf:
        raise ContradictionError(f"a run of {duration} ms")
    if not ((launch >= 0) & (finish >= launch) & (finish <= duration + 1e-6)).all():
        raise ContradictionError("a task is outside of its run, or ends before it starts")
    if len(np.unique(tasks["task_id"])) != len(launch):
        raise ContradictionError("two tasks have the same id")
    for name, column in (*tasks.items(), *trace.raw.get("spark_tasks", {}).items()):
        if not name.endswith(("_ms", "_bytes")):
            continue
        known = [each for each in np.ma.filled(np.ma.asarray(column), 0).tolist() if each is not None]
        if min(known, default=0) < 0:
            raise ContradictionError(f"a task's {name} is negative")
