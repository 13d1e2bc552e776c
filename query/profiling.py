"""From logs and recordings to a run file: the steps of a profile, in order.

discover → parse → read recordings → align with tasks → decide stacks → split task time → DAG → run file
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

import indexes as contract
from indexes.errors import CrystalPerfError, InputError
from indexes.exports import cache_folder, facts_by_name
from indexes.schema import resources
from query.attribute.operators import operator_times
from query.attribute.split import Measured, split
from query.attribute.split import Recorded as TaskTime
from query.attribute.storage import view_task_samples
from query.code.decide import StackTable, decide
from query.code.libraries import Fit, Ran, fitting, stand_ins, unknown_code
from query.code.resolve import load_indexes
from query.frameworks import Framework, get
from query.inputs.discover import Application, Inputs, SampleFile, discover
from query.model.critical import WallClock
from query.model.dag import Floats, Ints
from query.model.execution import is_interval, load, sampled_sums
from query.model.records import Columns, Problems, RunTables, import_stats, objects, shortened
from query.model.tables import insert, readable
from query.recordings import collapsed, jfr
from query.samples.align import Seen, assign, clock_shift, task_at
from query.samples.threadtime import KINDS, ThreadTime, sees_all, thread_time
from query.samples.untimed import fill_the_rest, mixed_rows

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Recorded:
    """One recording placed in the run: its rows of `samples`, with tasks where threads worked for one, and `loads`."""

    executor_id: str | None
    clock_offset_ms: float
    pid: int | None
    rows: Columns
    loads: Columns
    sees_all: bool


def profile_inputs(
    paths: Sequence[str | Path], output: Path | None, app: str | None, indexes: Sequence[str], progress: Progress
) -> Path:
    """Profile the one application among the paths; returns the run file, which may be an earlier one."""
    progress("looking at the inputs")
    inputs = discover(paths)
    if output is not None:
        _check_replaceable(output)
    application = inputs.choose(app)
    framework = get("spark")
    signature = _signature(inputs, application)
    place = output or _kept_place(application, signature)
    facts = {"inputs": json.dumps(signature), "tables": _tables()}
    if signature and _same(place, facts, indexes, framework):
        return place
    progress("reading the event log")
    tables = framework.parse(application.log)
    problems = Problems(inputs.problems)
    for row in _rows(tables["import_stats"]):
        problems.add(row["name"], row["severity"], row["origin"], row["first_where"], row["meaning"], row["count"])
    recordings = _recordings(inputs.samples, problems, progress)
    untimed = _untimed(inputs.samples, problems)
    assemble(dict(tables), recordings, framework, indexes, problems, place, facts, progress, untimed)
    return place


def _tables() -> str:
    """A hash of what a run file holds: one of fewer tables is made again."""
    layout = [(table.name, [column.name for column in table.columns]) for table in contract.tables("run")]
    return sha256(json.dumps(layout).encode()).hexdigest()[:16]


def _check_replaceable(output: Path) -> None:
    """Refuse to put a run file where something else lies: the log itself, an index, a device."""
    try:
        status = output.lstat()  # a link would be replaced too, not what it leads to
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{shortened(str(output))}: cannot be written ({reason}); choose another place") from error
    if stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_size == 0):
        return  # a folder is refused where the file is made, an empty file is a temporary one waiting for its content
    kind = None
    if stat.S_ISREG(status.st_mode):
        with suppress(duckdb.Error), duckdb.connect() as connection:
            quoted = str(output).replace("'", "''")
            connection.execute(f"ATTACH '{quoted}' AS there (READ_ONLY)")
            kind = connection.execute("SELECT value FROM there.metadata WHERE key = 'kind'").fetchone()
    if kind != ("run",):
        raise InputError(f"{output}: is there already and is no run file, so it stays; choose another place with -o")


def _kept_place(application: Application, signature: list[list[object]]) -> Path:
    """Where a run is kept without being told: under the application's id.

    What other files of the same application already made keeps that name (the log alone, asked later, must not
    replace the profile with samples); then a hash of the paths tells the two apart.
    """
    name = application.app_id if application.attempt is None else f"{application.app_id}_{application.attempt}"
    place = cache_folder() / "runs" / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.duckdb"
    paths = sorted(str(path) for path, *_ in signature)
    if not place.exists() or sorted(path for path, *_ in _kept_inputs(place)) == paths:
        return place
    return place.with_stem(f"{place.stem}-{sha256(json.dumps(paths).encode()).hexdigest()[:6]}")


def _kept_inputs(place: Path) -> list[list[Any]]:
    """The signature a run file was made from; empty where it is none, or none that can be read."""
    try:
        connection = contract.open_read_only(place, "run")
    except CrystalPerfError:
        return []
    row = connection.execute("SELECT value FROM metadata WHERE key = 'inputs'").fetchone()
    connection.close()
    return json.loads(row[0]) if row else []


def _signature(inputs: Inputs, application: Application) -> list[list[object]]:
    """What tells whether the inputs changed: path, size and time of change of every file; empty where one is a URL."""
    paths = [part.path for part in application.log.parts] + [each.path for each in inputs.samples]
    facts: list[list[object]] = []
    for path in dict.fromkeys(paths):
        try:
            status = Path(path).stat()
        except OSError:
            return []
        facts.append([str(Path(path).absolute()), status.st_size, status.st_mtime_ns])
    return facts


def _same(place: Path, facts: dict[str, str], wanted: Sequence[str], framework: Framework) -> bool:
    """Whether a run file of this version was made from the same inputs, with the indexes that fit it today."""
    try:
        connection = contract.open_read_only(place, "run")
    except CrystalPerfError:
        return False
    kept = dict(connection.execute("SELECT key, value FROM metadata").fetchall())
    try:
        known = connection.execute("SELECT framework_version, java_version, libraries FROM runs").fetchall()[0]
        paths = connection.execute(_PYTHON_PATHS).fetchall()
    except duckdb.Error:
        return False  # of an earlier CrystalPerf
    finally:
        connection.close()
    ran = Ran(known[1], known[2] or [], known[0])
    fits = fitting(framework.name, framework.sources(known[0]), ran, [path for (path,) in paths], wanted)
    return (
        kept["tool_version"] == version("crystalperf")
        and all(kept.get(key) == value for key, value in facts.items())
        and kept.get("index_hashes") == json.dumps(_content_hashes(fits))
    )


# Paths of Python files among the frames of a run file.
_PYTHON_PATHS = r"""
    SELECT DISTINCT regexp_extract(frame, '^(.*\.pyx?)\.', 1)
    FROM (SELECT unnest(frames) AS frame FROM stacks) WHERE contains(frame, '.py')
"""


def _content_hashes(fits: Sequence[Fit]) -> list[list[str | None]]:
    """The indexes that fit a run with what they hold today, None where they are gone."""
    return [[each.found, facts_by_name(each.found).get("content_hash")] for each in fits if each.found is not None]


def _recordings(
    samples: Sequence[SampleFile], problems: Problems, progress: Progress
) -> Iterator[tuple[str, jfr.Recording]]:
    for each in samples:
        if each.kind != "jfr":
            continue
        progress(f"reading {Path(each.path).name}")
        try:
            yield each.path, jfr.read(each.path)
        except jfr.JfrError as error:
            problems.add(
                "unreadable recording", "data loss", each.path, None, f"a recording could not be read: {error}"
            )


def _untimed(samples: Sequence[SampleFile], problems: Problems) -> Iterator[tuple[str, collapsed.Collapsed]]:
    for each in samples:
        if each.kind == "collapsed":
            try:
                yield each.path, collapsed.read(each.path, problems)
            except InputError as error:
                meaning = f"stacks could not be read: {error}"
                problems.add("unreadable recording", "data loss", each.path, None, meaning)


def _rows(columns: Columns) -> Iterator[dict[str, Any]]:
    names = list(columns)
    for values in zip(*(columns[name].tolist() for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def assemble(
    tables: RunTables,
    recordings: Iterable[tuple[str, jfr.Recording]],
    framework: Framework,
    indexes: Sequence[str],
    problems: Problems,
    output: Path,
    metadata: dict[str, str],
    progress: Progress,
    untimed: Iterable[tuple[str, collapsed.Collapsed]] = (),
) -> None:
    """Write the run file of one application.

    `tables` are what the framework's log gave, `recordings` are (file name, recording), `untimed` are stacks for
    want of recordings, `indexes` names the indexes to use, none for those that fit the run.
    """
    table = StackTable(framework)
    placed: list[Recorded] = []
    for name, recording in recordings:
        progress(f"placing the samples of {Path(name).name}")
        one = _place(name, recording, tables, table, framework, problems)
        if one is not None:
            placed.append(one)
    timed = {one.executor_id for one in placed}
    mixtures = mixed_rows(untimed, tables, table, framework, timed, problems)
    with contract.create(output, "run", metadata) as connection:
        # DuckDB types an object column by a sample of its rows; in a sample of empty lists it would see no type.
        connection.execute("SET pandas_analyze_sample = 1000000000")
        progress("finding the code of the samples")
        fits, loaded = _load_indexes(connection, indexes, tables, table, framework, problems)
        by_name = {each.found: each for each in fits}
        names = [name for _, name in loaded]
        decide(
            connection,
            table,
            loaded,
            [name for name in names if not by_name[name].is_exact],
            [name for name in names if by_name[name].kind == "library"],
        )
        for alias, _ in loaded:
            connection.execute(f"DROP SCHEMA {alias} CASCADE")
        for one in placed:
            insert(connection, "samples", one.rows)
            insert(connection, "loads", one.loads)
        for rows in mixtures:
            insert(connection, "samples", rows)
        for name, columns in tables.items():
            if name not in ("runs", "tasks", "stages", "import_stats"):
                insert(connection, name, columns)
        _insert_run(connection, tables["runs"])
        _update_executors(connection, placed)
        progress("splitting task time by resource")
        sampled = bool(placed or mixtures)
        if sampled:
            view_task_samples(connection, tables["tasks"], tables["stages"])
        seeing = {one.executor_id for one in placed if one.sees_all}
        insert(connection, "tasks", split_tasks(connection, tables["tasks"], sampled, seeing))
        _insert_stages(connection, tables["stages"])
        insert(connection, "operator_times", operator_times(connection, framework, sampled=sampled))
        _insert_dag(connection)
        _note_unknown_code(connection, table, problems)
        insert(connection, "import_stats", import_stats(problems))
        used = [each.found for each in fits if each.kind == "framework" and each.found not in (None, *names)]
        connection.executemany(
            "INSERT INTO metadata VALUES (?, ?)",
            [("indexes", json.dumps([*used, *names])), ("index_hashes", json.dumps(_content_hashes(fits)))],
        )


def _place(
    name: str,
    recording: jfr.Recording,
    tables: RunTables,
    table: StackTable,
    framework: Framework,
    problems: Problems,
) -> Recorded | None:
    """Find the executor and the tasks of a recording; None where it belongs to another application."""
    for each in recording.problems:
        problems.add(each.name, each.severity, name, each.first_place, each.meaning, each.count)
    run, tasks = tables["runs"], tables["tasks"]
    arguments = recording.jvm.java_arguments if recording.jvm else None
    process = framework.process(arguments, Path(name).name)
    if process is None:
        why = f"a recording of a process that is not {framework.name}'s"
        if recording.jvm is None:
            why = "neither the recording, whose end is missing or damaged, nor its name says of which process it is"
        problems.add("foreign recording", "info", name, None, f"{why}; left out")
        return None
    app_id, executor_id = process
    if app_id is not None and app_id != run["app_id"][0]:
        problems.add("other application", "info", name, None, f"a recording of application {app_id}; left out")
        return None
    numbers = table.add(recording)
    time = thread_time(recording)
    start_ms = time.start_ms - float(run["started_at_ms"][0])
    # A driver names no application, but its clock is the log's.
    if app_id is None and len(start_ms) and (start_ms.max() < 0 or start_ms.min() > float(run["duration_ms"][0])):
        problems.add("other time", "info", name, None, "a recording of another time than the log's; left out")
        return None
    stack = numbers[time.stack]
    idle = table.has_role("idle")[stack]
    in_task = table.has_role("task")[stack] & ~idle
    cut = np.array(table.truncated, dtype=bool)[stack] & ~idle
    in_task |= cut & np.isin(time.thread, np.unique(time.thread[in_task]))  # its root, the task's frame, was cut off

    mine = np.flatnonzero(np.array([each == executor_id for each in tasks["executor_id"]], dtype=bool))
    mine = mine[np.argsort(np.asarray(tasks["launch_ms"])[mine], kind="stable")]
    launch = np.asarray(tasks["launch_ms"], dtype=np.float64)[mine]
    finish = np.asarray(tasks["finish_ms"], dtype=np.float64)[mine]
    seen = _seen(time, start_ms, in_task, in_task | idle)
    shift = clock_shift(seen, launch, finish)
    seen = Seen(seen.thread, seen.start_ms + shift, seen.end_ms + shift, seen.in_task)
    position = task_at(time.thread, start_ms + shift, assign(seen, launch, finish), launch, finish)
    known = (position >= 0) & in_task
    ids = np.asarray(tasks["task_id"], dtype=np.int64)[mine]
    task_id = np.ma.MaskedArray(ids[np.maximum(position, 0)] if len(ids) else np.zeros(len(known), np.int64), ~known)
    adrift = float(time.weight_ms[in_task & ~known].sum())
    total = float(time.weight_ms[in_task].sum())
    if total > 0 and adrift > 0.05 * total:
        problems.add(
            "samples without a task", "data loss", name, None,
            f"{adrift / total:.0%} of the time sampled in tasks could not be tied to one",
        )  # fmt: skip
    thread_names = [f"{each.java_name or each.os_name}#{each.java_tid}" for each in recording.threads]
    rows: Columns = {
        "time_ms": start_ms + shift,
        "executor_id": objects([executor_id] * len(time.thread)),
        "thread": objects([thread_names[each] for each in time.thread.tolist()]),
        "stack_id": stack,
        "kind": objects([KINDS[each] for each in time.kind.tolist()]),
        "weight_ms": time.weight_ms,
        "bytes": np.ma.MaskedArray(time.bytes, time.bytes == 0),
        "task_id": task_id,
    }
    loads = _loads(recording, executor_id, shift - float(run["started_at_ms"][0]))
    return Recorded(executor_id, shift, recording.jvm.pid if recording.jvm else None, rows, loads, sees_all(recording))


def _loads(recording: jfr.Recording, executor_id: str, shift_ms: float) -> Columns:
    """What the recording measured of its whole process' CPU time, where it also says of how many processors."""
    load, processors = recording.process_load, recording.processors
    count = len(load) if processors else 0
    return {
        "executor_id": objects([executor_id] * count),
        "time_ms": load.time_ns[:count] / 1e6 + shift_ms,
        "cpu_cores": (load.user + load.system)[:count].astype(np.float64) * processors,
        "machine_cores": load.machine[:count].astype(np.float64) * processors,
        "processors": np.full(count, processors, dtype=np.int64),
    }


def _seen(time: ThreadTime, start_ms: Floats, in_task: NDArray[np.bool_], known: NDArray[np.bool_]) -> Seen:
    return Seen(
        thread=time.thread[known],
        start_ms=start_ms[known],
        end_ms=(start_ms + time.weight_ms)[known],
        in_task=in_task[known],
    )


def _load_indexes(
    connection: duckdb.DuckDBPyConnection,
    wanted: Sequence[str],
    tables: RunTables,
    table: StackTable,
    framework: Framework,
    problems: Problems,
) -> tuple[list[Fit], list[tuple[str, str]]]:
    """The indexes that fit the run, and of those that know a frame what they know, loaded (alias, name)."""
    run = tables["runs"]
    ran = Ran(run["java_version"][0], run["libraries"][0], run["framework_version"][0])
    classes = {class_name for class_name, _, _ in table.frames}
    fits = fitting(framework.name, framework.sources(ran.framework_version), ran, classes, wanted)
    for each in fits:
        if each.found is None:
            meaning = f"there is no index of {each.wanted}: its functions decide nothing"
            problems.add("no index", "info", each.wanted, None, meaning)
    loaded = load_indexes(connection, [each.found for each in fits if each.found is not None], classes)
    names = {name for _, name in loaded}
    fitting_ones = [each for each in fits if each.kind == "framework" or each.found in names]
    if others := stand_ins(fitting_ones):
        meaning = f"the index of another version stands in: {', '.join(others)}"
        problems.add("other index", "info", others[0], None, meaning)
    return fits, loaded


def _note_unknown_code(connection: duckdb.DuckDBPyConnection, table: StackTable, problems: Problems) -> None:
    """Say when much of the time of tasks is in the user's own code, which an index would explain."""
    rows = connection.execute("SELECT frame_id FROM resolved_frames WHERE how = 'unknown'").fetchall()
    keys = list(table.frames)
    unknown = {frame: keys[frame][0] for (frame,) in rows if table.roles[frame] is None}
    stacks = list(table.stacks)
    times = connection.execute(
        "SELECT stack_id, deciding_depth, sum(weight_ms) FROM samples JOIN stacks USING (stack_id)"
        " WHERE task_id IS NOT NULL GROUP BY ALL"
    ).fetchall()

    def above(stack: int, depth: int | None) -> list[str]:
        frames = np.frombuffer(stacks[stack], dtype=np.int32)[:depth].tolist()
        return [unknown[frame] for frame in frames if frame in unknown]

    found = unknown_code((above(stack, depth), time_ms) for stack, depth, time_ms in times)
    if found is not None:
        prefix, share = found
        meaning = (
            f"{share:.0%} of the time sampled in tasks is in {prefix}.*, which no index knows: `crystalperf index build"
            f" {prefix.rpartition('.')[2]}-1 --source PATH` makes one, and the next analysis uses it"
        )
        problems.add("unindexed code", "info", prefix, None, meaning)


def _insert_run(connection: duckdb.DuckDBPyConnection, runs: Columns) -> None:
    """The row of the run; a mapping goes in as two lists, which every DuckDB takes for one."""
    insert(connection, "runs", {name: values for name, values in runs.items() if name != "properties"})
    (properties,) = runs["properties"].tolist()
    keys, values = properties["key"], properties["value"]
    connection.execute("UPDATE runs SET properties = map(?::VARCHAR[], ?::VARCHAR[])", [keys, values])


def _update_executors(connection: duckdb.DuckDBPyConnection, placed: Sequence[Recorded]) -> None:
    for one in placed:
        connection.execute(
            "UPDATE executors SET clock_offset_ms = ?, pid = ? WHERE executor_id = ?",
            [one.clock_offset_ms, one.pid, one.executor_id],
        )


def split_tasks(
    connection: duckdb.DuckDBPyConnection, tasks: Columns, sampled: bool, seeing: Collection[str | None]
) -> Columns:
    """The tasks with their time split by resource; `seeing` are executors whose recorder sees every state.

    Where there are samples (`sampled`), reads them from the view `task_samples` (query.attribute.storage).
    """
    names = resources()
    keys = list(zip(tasks["stage_id"].tolist(), tasks["stage_attempt"].tolist(), strict=True))
    number = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    stage = np.array([number[key] for key in keys], dtype=np.int64)
    recorded, sample_ms = _recorded(connection, tasks, seeing) if sampled else (None, None)

    def column(name: str) -> Floats:
        return np.ma.filled(np.ma.asarray(tasks[name], dtype=np.float64), np.nan)

    duration = column("finish_ms") - column("launch_ms")
    fields = [name for name in Measured.__dataclass_fields__ if name != "duration_ms"]
    measured = Measured(duration, *(column(name) for name in fields))
    if recorded is not None:
        recorded = fill_the_rest(connection, recorded, measured, tasks)
    parts = split(measured, stage, recorded)
    filled: Columns = dict(tasks)
    if sample_ms is not None:
        filled["sample_ms"] = sample_ms
    for position, name in enumerate((*names, "other")):
        filled[f"{name}_ms"] = parts[:, position]
    return filled


def _recorded(
    connection: duckdb.DuckDBPyConnection, tasks: Columns, seeing: Collection[str | None]
) -> tuple[TaskTime, Floats]:
    """Per task the recorded time on each resource, and in all, (tasks,) in ms."""
    rows = connection.execute(
        f"""
        SELECT task_id, {is_interval()} AS measured, {sampled_sums()}
        FROM task_samples
        GROUP BY ALL
        """
    ).fetchnumpy()
    position: dict[int, int] = {task: index for index, task in enumerate(tasks["task_id"].tolist())}
    where: Ints = np.array([position[task] for task in rows["task_id"].tolist()], dtype=np.int64)
    measured = np.asarray(rows["measured"], dtype=bool)
    values = np.stack([np.asarray(rows[name], dtype=np.float64) for name in (*resources(), "other")], axis=1)
    intervals, samples = np.zeros((2, len(position), values.shape[1]))
    intervals[where[measured]] = values[measured]
    samples[where[~measured]] = values[~measured]
    whole = np.array([each in seeing for each in tasks["executor_id"].tolist()], dtype=bool)
    return TaskTime(intervals, samples, whole), intervals.sum(axis=1) + samples.sum(axis=1)


def _insert_stages(connection: duckdb.DuckDBPyConnection, read_stages: Columns) -> None:
    """The stages with the sums of their tasks' parts."""
    if not len(read_stages["stage_id"]):
        return
    sums = ", ".join(f"sum({name}_ms) AS {name}_ms" for name in (*resources(), "other"))
    view, select = readable(read_stages)  # noqa: RUF059 (DuckDB reads `view` by its name)
    connection.execute(
        f"""
        INSERT INTO stages BY NAME
        SELECT stages.*, parts.* EXCLUDE (stage_id, stage_attempt)
        FROM (SELECT {select} FROM view) AS stages LEFT JOIN (
            SELECT stage_id, stage_attempt, {sums} FROM tasks GROUP BY stage_id, stage_attempt
        ) AS parts ON parts.stage_id = stages.stage_id AND parts.stage_attempt = stages.attempt
        """
    )


def _insert_dag(connection: duckdb.DuckDBPyConnection) -> None:
    """The nodes and edges of the whole run."""
    execution = load(connection)
    graph = execution.dag
    clock = WallClock(graph, execution.tasks, execution.driver.between)
    nodes = list(graph.nodes.values())
    parts = np.array([clock.parts(node, node.start_ms, node.end_ms) for node in nodes]).reshape(len(nodes), -1)
    stage = [None if node.stage is None else graph.stages[node.stage] for node in nodes]
    columns: Columns = {
        "node_id": objects([node.node_id for node in nodes]),
        "kind": objects([node.kind for node in nodes]),
        "name": objects([node.name for node in nodes]),
        "stage_id": objects([each and each.stage_id for each in stage]),
        "stage_attempt": objects([each and each.attempt for each in stage]),
        "sql_id": objects([node.sql_id for node in nodes]),
        "start_ms": np.array([node.start_ms for node in nodes]),
        "end_ms": np.array([node.end_ms for node in nodes]),
        **{f"{name}_ms": parts[:, position] for position, name in enumerate((*resources(), "other"))},
    }
    insert(connection, "nodes", columns)
    edges: Columns = {
        "source": objects([source for source, _ in graph.edges]),
        "target": objects([target for _, target in graph.edges]),
        "why": objects(list(graph.edges.values())),
    }
    insert(connection, "edges", edges)
