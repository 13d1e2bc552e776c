"""The pipeline from logs and recordings to a run file; STEPS lists its steps."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from crystalperf import indexes as contract
from crystalperf.indexes import store
from crystalperf.indexes.errors import CrystalPerfError, InputError
from crystalperf.indexes.exports import unreadable
from crystalperf.indexes.resources import with_other
from crystalperf.query import sql
from crystalperf.query.attribution.code.decide import NumberedStacks, add_frames, decide
from crystalperf.query.attribution.code.libraries import IndexMatch, ProgramVersions, fitting, stand_ins, unknown_code
from crystalperf.query.attribution.code.resolve import load_indexes
from crystalperf.query.attribution.splitting import Recorded, split
from crystalperf.query.attribution.stated_functions import labelled
from crystalperf.query.attribution.storage import view_task_samples
from crystalperf.query.execution.critical_path import WallClock
from crystalperf.query.execution.evidence import is_interval, rests, sampled_sums
from crystalperf.query.execution.load import WHOLE, load
from crystalperf.query.inputs.containers import LogFile
from crystalperf.query.inputs.discover import choice, choose, discover
from crystalperf.query.inputs.files import Application, Inputs, SampleFile
from crystalperf.query.inputs.reader import ReadableFramework
from crystalperf.query.inputs.registry import find, is_built_in
from crystalperf.query.inputs.served import fetched
from crystalperf.query.runfile import keeping
from crystalperf.query.sql import summed
from crystalperf.query.trace.contract import Trace
from crystalperf.query.trace.inserting import insert, readable
from crystalperf.query.trace.records import (
    CONTRADICTED,
    Columns,
    Floats,
    Ints,
    Problems,
    import_stats,
    numbered,
    objects,
    shortened,
)

if TYPE_CHECKING:
    from crystalperf.query.attribution.samples.place import MatchedRecording
    from crystalperf.query.recordings import jfr
    from crystalperf.query.recordings.profiles import Profile
    from crystalperf.query.recordings.stacktable import Collapsed

# The modules for recordings are imported only if there are recordings: most runs have none.

Progress = Callable[[str], None]


def profile_inputs(
    paths: Sequence[str | Path],
    output: Path | None,
    app: str | None,
    indexes: Sequence[str],
    progress: Progress,
    *,
    replace: bool = False,
) -> Path:
    """Profile the one application in the paths; returns the run file, which may be a cached one.

    With `replace` it may replace another application's run.
    """
    progress("inspecting the inputs")
    inputs = discover(fetched(paths, app, progress))
    application = choose(inputs, app, newest=True)
    note = choice(inputs, application)
    if note is not None:
        inputs = dataclasses.replace(inputs, problems=(*inputs.problems, note))
    if output is not None:
        keeping.check_replaceable(output, application, replace=replace)
    framework: ReadableFramework = find(application.framework)
    signature = keeping.signature(inputs, application)
    facts = {"inputs": json.dumps(signature), "tables": keeping.layout(framework)}
    facts["others"] = "" if note is None else note.meaning  # a run file that names them is not one of the log alone
    for each in (output,) if output is not None else keeping.kept_places(application, signature):
        output = each
        if signature and keeping.is_current(output, facts, indexes, framework):
            return output
    assert output is not None
    profile_application(inputs, application, output, indexes, facts, progress)
    return output


def profile_application(
    inputs: Inputs,
    application: Application,
    output: Path,
    indexes: Sequence[str] = (),
    facts: dict[str, str] | None = None,
    progress: Progress = lambda _: None,
) -> None:
    """Write the run file of an application from discover(); `facts` go into its metadata."""
    framework: ReadableFramework = find(application.framework)
    store.prepare("run", more=framework.reader.raw())
    progress(f"reading the {framework.vocabulary.log.partition(' ')[2]}")
    problems = Problems(inputs.problems)
    timed, untimed, delegated = _samples(inputs.samples, framework, problems, progress)
    run = gather(
        # The only reference, because a step releases its tasks.
        _with_delegates(_read(framework, application.log, problems), framework, problems, delegated, indexes, progress),
        framework,
        problems,
        indexes,
        timed,
        untimed,
        progress,
    )
    write_run(run, output, facts, progress)


def _read(framework: ReadableFramework, log: LogFile, problems: Problems) -> Trace:
    """The trace of a log; everything that the reader repaired or left out is added to `problems`.

    Raises InputError, one sentence; any error of another package's framework becomes an InputError.
    """
    try:
        trace = framework.reader.read(log)
    except (CrystalPerfError, MemoryError):
        raise
    except Exception as error:
        if is_built_in(framework.name):
            raise
        raise InputError(
            f"{log.origin}: the package of {framework.title} ({framework.reader.read.__module__}) cannot read it"
            f" ({shortened(repr(error))}); report this to its authors"
        ) from error
    for each in trace.problems:
        problems.add(each.name, each.severity, each.origin, each.first_where, each.meaning, each.count)
    return trace


def _with_delegates(
    trace: Trace,
    framework: ReadableFramework,
    problems: Problems,
    delegated: _Profiles,
    indexes: Sequence[str],
    progress: Progress,
) -> Trace:
    """The trace with the tables that its framework makes of profiles of delegates."""
    reads = framework.reader.delegate_profiles
    if not delegated or reads is None:
        return trace
    progress(f"matching the samples of {framework.vocabulary.delegate}s")
    from crystalperf.query.attribution.code.delegate_labels import label_stacks

    labels = partial(label_stacks, framework, _versions(trace), trace.names, indexes)
    return replace(trace, raw={**trace.raw, **reads.read(delegated, trace, problems, labels)})


_Timed = Iterable[tuple[str, "jfr.Recording"]]
_Untimed = Sequence[tuple[str, "Collapsed"]]
_Profiles = Sequence[tuple[str, "Profile"]]


def _samples(
    samples: Sequence[SampleFile], framework: ReadableFramework, problems: Problems, progress: Progress
) -> tuple[_Timed, _Untimed, _Profiles]:
    """Recordings, those of JFR read one at a time; stacks without times; profiles of delegates, of all kinds."""
    if all(each.kind == "jfr" for each in samples):
        return _recordings(samples, problems, progress), (), ()
    from crystalperf.query.recordings import jfr
    from crystalperf.query.recordings.stacktable import Collapsed

    timed: list[tuple[str, jfr.Recording]] = []
    untimed: list[tuple[str, Collapsed]] = []
    delegated: list[tuple[str, Profile]] = []
    for path, found in _stacks(samples, problems, progress):
        if _is_of_delegates(found, framework):
            delegated.append((path, found))
        elif isinstance(found, jfr.Recording):
            timed.append((path, found))
        elif isinstance(found, Collapsed):
            untimed.append((path, found))
        else:
            meaning = f"a profile of Python functions, which no {framework.vocabulary.task} of {framework.title} has"
            problems.add("other profile", "info", path, None, f"{meaning}; left out")
    return chain(_recordings(samples, problems, progress), timed), untimed, delegated


def _is_of_delegates(found: Profile, framework: ReadableFramework) -> bool:
    """Whether a profile is of processes that compute for the tasks of a framework."""
    from crystalperf.query.recordings.memory_profile import MemoryProfile
    from crystalperf.query.recordings.pstats import CallProfile
    from crystalperf.query.recordings.stacktable import Collapsed

    reads = framework.reader.delegate_profiles
    if reads is None or isinstance(found, CallProfile | MemoryProfile):
        return reads is not None
    frames = found.recording.frames if isinstance(found, Collapsed) else found.frames
    pairs = set(zip(frames.class_id.tolist(), frames.method_id.tolist(), strict=True))
    return any(reads.is_delegate(frames.class_names[of], frames.method_names[method]) for of, method in pairs)


def _recordings(
    samples: Sequence[SampleFile], problems: Problems, progress: Progress
) -> Iterator[tuple[str, jfr.Recording]]:
    for each in samples:
        if each.kind != "jfr":
            continue
        from crystalperf.query.recordings import jfr

        progress(f"reading {Path(each.path).name}")
        try:
            recording = jfr.read(each.path)
        except Exception as error:  # a bad recording must not prevent the analysis of the log and the others
            _add_unreadable(problems, each.path, error)
        else:
            yield each.path, recording


def _add_unreadable(problems: Problems, path: str, error: Exception) -> None:
    from crystalperf.query.recordings import jfr

    why = str(error) if isinstance(error, jfr.JfrError) else f"it is damaged ({type(error).__name__})"
    problems.add("unreadable recording", "data loss", path, None, f"cannot read a recording: {shortened(why)}")


def _stacks(samples: Sequence[SampleFile], problems: Problems, progress: Progress) -> Iterator[tuple[str, Profile]]:
    """The files of all other kinds."""
    for each in samples:
        if each.kind == "jfr":
            continue
        from crystalperf.query.recordings import profiles

        progress(f"reading {Path(each.path).name}")
        try:
            yield each.path, profiles.read(each.path, each.kind, problems)
        except InputError as error:
            meaning = f"cannot read stacks: {error}"
            problems.add("unreadable recording", "data loss", each.path, None, meaning)


@dataclass
class Assembly:
    """The state of the pipeline: a trace with its samples and indexes."""

    trace: Trace
    framework: ReadableFramework
    wanted: Sequence[str]
    """Names of the indexes to use; empty for those that fit the run."""
    problems: Problems
    stacks: NumberedStacks
    placed: list[MatchedRecording] = field(default_factory=list)
    mixtures: list[Columns] = field(default_factory=list)
    fits: list[IndexMatch] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    """The fitting indexes that know a frame."""
    stated_functions: Ints | None = None
    """Each task's function by the trace itself, as the number of its stack, -1 for none, (tasks,)."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.trace.names

    @property
    def is_sampled(self) -> bool:
        return bool(self.placed or self.mixtures)


def gather(
    trace: Trace,
    framework: ReadableFramework,
    problems: Problems,
    indexes: Sequence[str] = (),
    recordings: Iterable[tuple[str, jfr.Recording]] = (),
    untimed: Sequence[tuple[str, Collapsed]] = (),
    progress: Progress = lambda _: None,
) -> Assembly:
    """Match recordings to a trace.

    `recordings` are (file name, recording).  `untimed` are stacks for workers without recordings.  `indexes` names the
    indexes to use; empty for those that fit the run.
    """
    run = Assembly(trace, framework, indexes, problems, NumberedStacks(framework))
    if trace.task_functions:
        run.stated_functions = run.stacks.add_functions(trace.task_functions)
    for name, recording in _named_first(recordings, trace, framework):
        from crystalperf.query.attribution.samples.place import place

        progress(f"matching the samples of {Path(name).name}")
        taken = {one.worker_id for one in run.placed if one.worker_id is not None}
        try:
            one = place(name, recording, trace, run.stacks, framework, problems, taken)
        except Exception as error:
            _add_unreadable(problems, name, error)
            continue
        if one is not None:
            run.placed.append(one)
    timed = {one.worker_id for one in run.placed}
    if untimed:
        from crystalperf.query.attribution.samples.untimed import mixed_rows

        run.mixtures = mixed_rows(untimed, trace, run.stacks, framework, timed, problems)
    return run


def _named_first(
    recordings: Iterable[tuple[str, jfr.Recording]], trace: Trace, framework: ReadableFramework
) -> Iterator[tuple[str, jfr.Recording]]:
    """The recordings; last those whose process names none of the run's workers, which may be any that is left."""
    later, find = [], framework.reader.frames.process
    for name, recording in recordings:
        from crystalperf.query.attribution.samples.which_worker import known_workers

        process = find and find(recording.jvm.java_arguments if recording.jvm else None, Path(name).name)
        if process and process[1] in known_workers(trace):
            yield name, recording
        else:
            later.append((name, recording))
    yield from later


def write_run(
    run: Assembly, output: Path, metadata: dict[str, str] | None = None, progress: Progress = lambda _: None
) -> None:
    """Write the run file of one application; steps release what no later one needs, such as the trace's tasks."""
    more = run.framework.reader.raw()
    with contract.create(output, "run", metadata or {}, run.names, more) as connection:
        # DuckDB infers the type of an object column from a sample of its rows; empty lists have no type.
        connection.execute("SET pandas_analyze_sample = 1000000000")
        for message, step in STEPS:
            progress(message)
            step(connection, run)
        # DuckDB now writes the file without Python's lock: import the modules for queries meanwhile.
        threading.Thread(target=import_module, args=("crystalperf.query.run",)).start()


# Steps ------------------------------------------------------------------------------------------------------------


def find_code(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Write the stacks with the function that each is attributed to."""
    ran = _versions(run.trace)
    classes = {class_name for class_name, _, _ in run.stacks.frames}
    run.fits = fitting(run.framework, ran, classes, run.wanted)
    for each in run.fits:
        if each.found is None:
            meaning = f"there is no index of {each.wanted}: no sample is attributed to its functions"
            run.problems.add("no index", "info", each.wanted, None, meaning)
    for name, why in ({} if run.wanted else unreadable()).items():
        run.problems.add("unreadable index", "info", name, None, f"not used: {shortened(str(why))}; build it again")
    add_frames(connection, run.stacks)
    loaded = load_indexes(connection, [each.found for each in run.fits if each.found is not None], "frames")
    run.loaded = list(loaded.known)
    by_name = {each.found: each for each in run.fits}
    fitting_ones = [each for each in run.fits if each.kind == "framework" or each.found in run.loaded]
    if others := stand_ins(fitting_ones):
        meaning = f"the index of another version is used: {', '.join(others)}"
        run.problems.add("other index", "info", others[0], None, meaning)
    decide(
        connection,
        run.stacks,
        loaded,
        [name for name in run.loaded if not by_name[name].is_exact],
        [name for name in run.loaded if by_name[name].kind == "library"],
        run.names,
    )
    if run.stated_functions is not None:
        bounds = labelled(connection, run.trace.bounds, run.stated_functions, run.names)
        run.trace = replace(run.trace, bounds=bounds)
    connection.execute("DROP SCHEMA IF EXISTS memory.places CASCADE")


def _versions(trace: Trace) -> ProgramVersions:
    facts = trace.run
    return ProgramVersions(facts.get("java_version"), facts.get("libraries") or [], facts.get("framework_version"))


def keep_trace(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Write the tables of the trace, and the samples."""
    connection.execute("BEGIN")  # else DuckDB would commit each table separately
    for one in run.placed:
        insert(connection, "samples", one.rows)
        insert(connection, "loads", one.loads)
        insert(connection, "thread_loads", one.thread_loads)
        insert(connection, "heaps", one.heaps)
    for rows in run.mixtures:
        insert(connection, "samples", rows)
    for name, columns in run.trace.tables().items():
        insert(connection, name, columns)
    row = dict(run.trace.run)
    properties = row.pop("properties")
    insert(connection, "runs", {name: objects([value]) for name, value in row.items()})
    # A mapping is inserted as two lists, which every version of DuckDB accepts.
    connection.execute(
        "UPDATE runs SET properties = map(?::VARCHAR[], ?::VARCHAR[])", [list(properties), list(properties.values())]
    )
    for one in run.placed:
        connection.execute(
            "UPDATE workers SET clock_offset_ms = ?, pid = ? WHERE worker_id = ?",
            [one.clock_offset_ms, one.pid, one.worker_id],
        )
    connection.execute("COMMIT")


def split_tasks(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Write the time of tasks by resource, and its sums by stage."""
    trace = run.trace
    sampled = None
    if run.is_sampled:
        view_task_samples(connection, trace.tasks, run.names)
        seeing = {one.worker_id for one in run.placed if one.sees_all}
        sampled = recorded_times(connection, trace, seeing, run.framework.reader.frames.task_thread)
    insert(connection, "tasks", with_parts(trace, sampled))
    if run.placed:  # only recordings measure threads
        from crystalperf.query.attribution.samples.threadloads import MIN_MEASURED

        connection.execute(sql.text("measured_cpu"), {"least": MIN_MEASURED})
    _keep_stages(connection, trace)
    run.trace = trace.without_tasks()  # later steps read them from the run file


def attribute_operators(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Write the time of tasks by operator."""
    if run.framework.reader.frames.operators is not None:
        insert(
            connection,
            "operator_times",
            run.framework.reader.frames.operators.times(connection, run.names, run.is_sampled),
        )


def keep_graph(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Write the nodes and edges of the whole run's execution DAG."""
    execution = load(connection, WHOLE, with_evidence=False)
    graph = execution.dag
    clock = WallClock(graph, execution.tasks, execution.driver.between, run.names)
    nodes = list(graph.nodes.values())
    parts = np.array([clock.parts(node, node.start_ms, node.end_ms) for node in nodes]).reshape(len(nodes), -1)
    columns: Columns = {
        "node_id": objects([node.node_id for node in nodes]),
        "kind": objects([node.kind for node in nodes]),
        "name": objects([node.name for node in nodes]),
        "stage_id": objects([None if node.stage is None else node.node_id for node in nodes]),
        "scope_id": objects([node.scope_id for node in nodes]),
        "start_ms": np.array([node.start_ms for node in nodes]),
        "end_ms": np.array([node.end_ms for node in nodes]),
        **{f"{name}_ms": parts[:, position] for position, name in enumerate(with_other(run.names))},
    }
    insert(connection, "nodes", columns)
    edges: Columns = {
        "source": objects([source for source, _ in graph.edges]),
        "target": objects([target for _, target in graph.edges]),
        "kind": objects([each.kind for each in graph.edges.values()]),
        "why": objects([each.why for each in graph.edges.values()]),
    }
    insert(connection, "edges", edges)
    _note_contradicted(connection, run)


def _note_contradicted(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Report dependencies that the graph leaves out because their source ended after the target could start."""
    found = connection.execute(sql.text("contradicted_dependencies"), [run.framework.reader.resolution_ms]).fetchone()
    assert found is not None
    count, stated, source, target = found
    if count:
        meaning = (
            f"{count} of {stated} recorded dependencies contradict the log's times and were left out: the first is"
            f" {shortened(str(target))}, which was submitted or started before {shortened(str(source))} ended"
        )
        origin = str(run.trace.run.get("app_id") or "the log")
        run.problems.add(CONTRADICTED, "error", origin, None, meaning)


def note_problems(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Write the reading problems, unindexed code, and the indexes that were used."""
    _note_unknown_code(connection, run)
    insert(connection, "import_stats", import_stats(run.problems))
    used = [each.found for each in run.fits if each.kind == "framework" and each.found not in (None, *run.loaded)]
    connection.executemany(
        "INSERT INTO metadata VALUES (?, ?)",
        [
            ("indexes", json.dumps([*used, *run.loaded])),
            ("index_hashes", json.dumps(keeping.content_hashes(run.fits))),
        ],
    )


STEPS: tuple[tuple[str, Callable[[duckdb.DuckDBPyConnection, Assembly], None]], ...] = (
    ("matching samples to functions", find_code),
    ("storing the trace and its samples", keep_trace),
    ("splitting time by resource", split_tasks),
    ("splitting time by operator", attribute_operators),
    ("building the execution DAG", keep_graph),
    ("storing reading problems", note_problems),
)
"""The progress message of each step, and the step; a step reads the tables of the ones before it."""


# Parts of steps ---------------------------------------------------------------------------------------------------


def with_parts(trace: Trace, sampled: tuple[Recorded, Floats] | None) -> Columns:
    """The tasks with their time split by resource; `sampled` is from recorded_times(), None without recordings."""
    tasks = trace.tasks
    stage = numbered(tasks["stage_id"])
    duration = np.asarray(tasks["finish_ms"], dtype=np.float64) - np.asarray(tasks["launch_ms"], dtype=np.float64)
    recorded, sample_ms = sampled or (None, None)
    parts = split(trace.bounds, duration, stage, recorded, trace.names)
    filled: Columns = dict(tasks)
    if sample_ms is not None:
        filled["sample_ms"] = sample_ms
    for position, name in enumerate(with_other(trace.names)):
        filled[f"{name}_ms"] = parts[:, position]
    return filled


def recorded_times(
    connection: duckdb.DuckDBPyConnection,
    trace: Trace,
    seeing: set[str | None],
    task_thread: Callable[[str], str] = lambda name: name,
) -> tuple[Recorded, Floats]:
    """Each task's recorded time on each resource, and its total, (tasks,), in ms.

    Reads the view `task_samples` (query.attribution.storage).  `seeing` are workers whose recorder sees every thread
    state.  `task_thread` is as in query.inputs.frames: if several threads work for a task, one waits for the other, so
    their unattributed waits do not count.
    """
    from crystalperf.query.attribution.samples.untimed import with_measured_times

    names = with_other(trace.names)
    threads = connection.execute("SELECT DISTINCT thread FROM task_samples WHERE thread IS NOT NULL").fetchall()
    helping = [name for (name,) in threads if task_thread(name) != name]
    rows = connection.execute(
        f"""
        SELECT task_id, {is_interval()} AS measured, {sampled_sums(trace.names)}
        FROM task_samples
        WHERE NOT (
            {is_interval()} AND attributed_depth IS NULL AND NOT {rests()}
            AND task_id IN (SELECT task_id FROM task_samples WHERE list_contains($1::VARCHAR[], thread))
        )
        GROUP BY ALL
        """,
        [helping],
    ).fetchnumpy()
    position: dict[int, int] = {task: index for index, task in enumerate(trace.tasks["task_id"].tolist())}
    where: Ints = np.array([position[task] for task in rows["task_id"].tolist()], dtype=np.int64)
    measured = np.asarray(rows["measured"], dtype=bool)
    values = np.stack([np.asarray(rows[name], dtype=np.float64) for name in names], axis=1)
    intervals, samples = np.zeros((2, len(position), len(names)))
    intervals[where[measured]] = values[measured]
    samples[where[~measured]] = values[~measured]
    whole = np.array([each in seeing for each in trace.tasks["worker_id"].tolist()], dtype=bool)
    found = with_measured_times(connection, Recorded(intervals, samples, whole), trace.bounds, trace.tasks, trace.names)
    return found, intervals.sum(axis=1) + samples.sum(axis=1)


def _keep_stages(connection: duckdb.DuckDBPyConnection, trace: Trace) -> None:
    """Write the stages with the sums of their tasks' times by resource, in the order of the trace."""
    if not trace.stages or not len(trace.stages["stage_id"]):
        return
    sums = ", ".join(f"{summed(f'{name}_ms')} AS {name}_ms" for name in with_other(trace.names))
    view, select, texts = readable(trace.stages)  # noqa: RUF059 (DuckDB reads `view` by its name)
    connection.execute(
        f"""
        INSERT INTO stages BY NAME
        SELECT read.* EXCLUDE (position), parts.* EXCLUDE (stage_id)
        FROM (SELECT {select}, row_number() OVER () AS position FROM view) AS read
        LEFT JOIN (SELECT stage_id, {sums} FROM tasks GROUP BY stage_id) AS parts USING (stage_id)
        ORDER BY position
        """,
        texts,
    )


def _note_unknown_code(connection: duckdb.DuckDBPyConnection, run: Assembly) -> None:
    """Report a problem if much of the tasks' time is in unindexed user code."""
    if not run.stacks.stacks:
        return
    rows = connection.execute("SELECT frame_id FROM resolved_frames WHERE how = 'unknown'").fetchall()
    keys = list(run.stacks.frames)
    unknown = {frame: keys[frame][0] for (frame,) in rows if run.stacks.roles[frame] is None}
    stacks = list(run.stacks.stacks)
    times = connection.execute(
        "SELECT stack_id, attributed_depth, sum(weight_ms) FROM samples JOIN stacks USING (stack_id)"
        " WHERE task_id IS NOT NULL GROUP BY ALL ORDER BY ALL"
    ).fetchall()

    def above(stack: int, depth: int | None) -> list[str]:
        frames = np.frombuffer(stacks[stack], dtype=np.int32)[:depth].tolist()
        return [unknown[frame] for frame in frames if frame in unknown]

    found = unknown_code((above(stack, depth), time_ms) for stack, depth, time_ms in times)
    if found is not None:
        prefix, share = found
        tasks = run.framework.vocabulary.tasks
        meaning = f"{100 * share:.0f} % of the time sampled in {tasks} is in {prefix}.*, for which there is no index"
        run.problems.add("unindexed code", "info", prefix, None, meaning)
