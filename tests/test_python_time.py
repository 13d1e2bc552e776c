"""Time of Spark's Python workers: what a stack shows, the stage that it is of, the split of a stage's task time."""

from __future__ import annotations

import cProfile
import json
import pstats
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import crystalperf as cp
from crystalperf.indexes.errors import InputError
from crystalperf.indexes.exports import built_path
from crystalperf.query.frameworks.spark import recommendations as spark
from crystalperf.query.frameworks.spark.python import calls, worker_frames
from crystalperf.query.frameworks.spark.python.worker_frames import Frame
from crystalperf.query.frameworks.spark.remarks import PythonTime
from crystalperf.query.frameworks.spark.udfs import numbered_functions
from crystalperf.query.inputs.discover import discover
from crystalperf.query.recordings import profiles
from crystalperf.query.recordings import pstats as reader
from crystalperf.query.run import Run
from crystalperf.query.text.sentences import lines_of, text_of
from crystalperf.query.trace.records import Problems
from tests.hand_made import figures
from tests.reading import rows
from tests.refusals import is_one_line, refused
from tests.small_indexes import small_index
from tests.spark_logs import Operator, Query, Stage, waves, write

DAEMON = "<module> (pyspark/daemon.py:230);manager (pyspark/daemon.py:190);worker (pyspark/daemon.py:90)"
MAIN = f"{DAEMON};main (pyspark/worker.py:2044)"
TASK = f"{MAIN};process (pyspark/worker.py:2036)"
PICKLED = f"{TASK};dump_stream (pyspark/serializers.py:225);_batched (pyspark/serializers.py:213)"
ARROW = f"{TASK};dump_stream (pyspark/sql/pandas/serializers.py:555)"
CALL = "<lambda> (pyspark/worker.py:100);wrapper (pyspark/util.py:130)"
READ = "load_stream (pyspark/serializers.py:150);_read_with_length (pyspark/serializers.py:165)"
READ_INT = f"{READ};read_int (pyspark/serializers.py:595)"
ZIP = "/a/pyspark/python/lib/pyspark.zip/pyspark"
ROWS = "number of output rows"


def frames(text: str) -> list[Frame]:
    """The frames of a stack, the leaf first."""
    from crystalperf.query.recordings.stacktable import frame_of

    return [frame_of(each) for each in text.split(";")][::-1]


@pytest.mark.parametrize(
    ("stack", "part", "function"),
    [
        (f"{PICKLED};{CALL};score (job.py:12)", "user", "score"),
        # py-spy names functions with what they are in, since Python 3.11; a zip of PySpark is below another PySpark.
        (f"manager ({ZIP}/daemon.py:200);main ({ZIP}/worker.py:9);main.<locals>.process ({ZIP}/worker.py:3);"
         "timed.<locals>.call (/b/job.py:1)", "user", "timed.<locals>.call"),
        (f"{PICKLED};{CALL};score (job.py:12);inner (lib/text.py:3);split (re/__init__.py:1)", "user", "score"),
        (f"{PICKLED};{CALL};loads (json/__init__.py:346);decode (json/decoder.py:337)", "user", None),
        (f"{PICKLED};{CALL}", "serialization", None),
        (f"{PICKLED};{READ};loads (pyspark/serializers.py:472)", "serialization", None),
        (f"{PICKLED};{READ_INT}", "wait", None),
        (f"{ARROW};load_stream (pyspark/sql/pandas/serializers.py:127)", "wait", None),
        (f"{ARROW};_create_batch (pyspark/sql/pandas/serializers.py:500);array (pandas/core/base.py:9)",
         "serialization", None),
        (f"{ARROW};f (job.py:3);mean (pandas/core/series.py:9);_mean (numpy/core/_methods.py:101)", "user", "f"),
        (f"{ARROW};dump_stream (pyspark/sql/pandas/serializers.py:118)", "wait", None),
        # A function of iterators pulls its rows.
        (f"{ARROW};rows (job.py:3);load_stream (pyspark/sql/pandas/serializers.py:127)", "wait", "rows"),
        (f"{MAIN};read_udfs (pyspark/worker.py:1500);loads (pyspark/cloudpickle/cloudpickle.py:1)", "start", None),
        (f"{MAIN};read_command (pyspark/worker_util.py:60);<module> (job.py:1)", "start", None),
        (f"{MAIN};read_int (pyspark/serializers.py:595)", None, None),
        ("<module> (pyspark/daemon.py:230);manager (pyspark/daemon.py:150)", None, None),
        ("<module> (job.py:1);collect (pyspark/sql/dataframe.py:9);readinto (socket.py:700)", None, None),
        # py-spy shortens files within a zip to their names.
        ("manager (daemon.py:190);worker (daemon.py:90);main (worker.py:830);process (worker.py:820);"
         "dump_stream (serializers.py:270);score (job.py:12)", "user", "score"),
    ],
)  # fmt: skip
def test_a_stack_shows_what_a_worker_did(stack: str, part: str | None, function: str | None) -> None:
    found = worker_frames.placed(frames(stack), idle=True)
    assert (found and found.part, found and found.function and found.function[1]) == (part, function)


def test_reading_counts_as_serialization_in_a_profile_of_running_threads() -> None:
    found = worker_frames.placed(frames(f"{PICKLED};{READ_INT}"), idle=False)
    assert found is not None
    assert found.part == "serialization"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("job.py", "job.f"),
        ("/home/user/app/job.py", "job.f"),
        ("/usr/lib/python3.11/site-packages/acme/text/__init__.py", "acme.text.f"),
        ("<string>", "f"),
    ],
)
def test_functions_are_named_by_their_module(file: str, name: str) -> None:
    assert worker_frames.named((file, "f", 3)) == name


def test_functions_of_a_plan_have_the_ids_of_their_results() -> None:
    text = "ArrowEvalPython [outer(inner(a#1)#2L)#3, concat(a#1, b#4)], [pythonUDF0#5], 200"
    assert list(numbered_functions(text)) == [("outer", 3), ("inner", 2)]


# A run ----------------------------------------------------------------------------------------------------------------


def evaluating(functions: str, stage: int, name: str = "BatchEvalPython", inputs: Sequence[Operator] = ()) -> Operator:
    return Operator(name, f"{name} [{functions}], [pythonUDF0#90]", {ROWS: {stage: 1e5}}, inputs)


def profiled(
    folder: Path,
    files: Mapping[str, str | bytes],
    tree: Operator | None = None,
    stages: int = 1,
    ms: int = 2_500,
    indexes: Sequence[str] = (),
    **more: Any,
) -> Run:
    """A run of stages of four tasks at a time, a fifth of each on the CPU, with profiles next to its log."""
    made = [Stage(list(waves(4, 4, 2, ms=ms, cpu_ms=ms // 5)), reads="PythonRDD") for _ in range(stages)]
    query = Query(tree=evaluating("score(a#1)#8", 0) if tree is None else tree)
    log = write(folder / "log", made, executors={"1": 2, "2": 2}, **{"query": query, "version": "4.0.1", **more})
    paths = [log]
    for name, content in files.items():
        paths.append(folder / name)
        paths[-1].write_bytes(content.encode() if isinstance(content, str) else content)
    return cp.profile(paths, output=folder / "run.duckdb", indexes=indexes)


def stacks(times: int = 1) -> str:
    """Raw stacks of a worker: of 5.5 s, times a number, 3 in functions of the user; and of a driver."""
    counts = {
        f"{PICKLED};{CALL};score (job.py:12)": 200,
        f"{PICKLED};{CALL};score (job.py:14);helper (job.py:3)": 100,
        f"{PICKLED};{READ};loads (pyspark/serializers.py:472)": 200,
        f"{MAIN};read_udfs (pyspark/worker.py:1500)": 50,
        "<module> (job.py:1);collect (pyspark/sql/dataframe.py:9)": 900,
    }
    process = 'process 7:"python -m pyspark.daemon"'
    return "".join(f"{process};{stack} {times * count}\n" for stack, count in counts.items())


STACKS = stacks()


def split(run: Run) -> list[tuple[Any, ...]]:
    found = run.sql(
        "SELECT stage_id, user_ms, serialization_ms, start_ms, jvm_ms, wait_ms, task_ms FROM spark_python"
        " WHERE recorder IS NOT NULL ORDER BY ALL"
    )
    return [tuple(each) for each in found.rows]


def test_task_time_is_split_by_what_workers_and_the_jvm_did(tmp_path: Path) -> None:
    run = profiled(tmp_path, {"stacks.txt": STACKS})
    ((stage, *parts),) = split(run)
    assert stage == "stage:0.0"
    assert parts == pytest.approx([3_000, 2_000, 500, 2_000, 2_500, 10_000])
    verdict = run.verdict()
    (found,) = (each for each in verdict.debug.measurements if isinstance(each, PythonTime))
    assert (found.function, found.where, found.function_ms) == ("job.score", "job.py:12", pytest.approx(2_000))
    assert figures(text_of(found, verdict.debug.words))[1:] == [10, 30, 12, 20, 5, 20, 25]
    assert rows(run, "SELECT function, own_ms, total_ms FROM spark_python_functions ORDER BY function") == [
        ("job.helper", pytest.approx(1_000), pytest.approx(1_000)),
        ("job.score", pytest.approx(2_000), pytest.approx(3_000)),
    ]
    ((severity, meaning),) = rows(run, "SELECT severity, meaning FROM import_stats WHERE name = 'python profile'")
    assert severity == "info"
    assert "10 ms" in meaning, "the rate is assumed"


def test_more_samples_than_task_time_are_scaled_to_it(tmp_path: Path) -> None:
    run = profiled(tmp_path, {"stacks.txt": f"{PICKLED};{CALL};score (job.py:12) 2000\n"})
    ((_, user, serialization, start, jvm, wait, whole),) = split(run)
    assert (user, serialization, start, jvm, wait, whole) == pytest.approx((10_000, 0, 0, 0, 0, 10_000))


def test_the_functions_in_a_plan_identify_the_stage_of_a_stack(tmp_path: Path) -> None:
    tree = evaluating("upper(a#1)#9", 1, "ArrowEvalPython", [evaluating("score(a#1)#8", 0)])
    given = (
        f"{PICKLED};{CALL};score (job.py:12) 300\n"
        f"{ARROW};upper (job.py:20) 100\n"
        f"{ARROW};_create_batch (pyspark/sql/pandas/serializers.py:500) 60\n"
        f"{PICKLED};{READ};loads (pyspark/serializers.py:472) 40\n"
    )
    run = profiled(tmp_path, {"stacks.txt": given}, tree, stages=2)
    found = rows(run, "SELECT stage_id, part, matched_by, time_ms FROM spark_python_times ORDER BY ALL")
    assert found == [
        ("stage:0.0", "serialization", "operator", pytest.approx(400)),
        ("stage:0.0", "user", "function", pytest.approx(3_000)),
        ("stage:1.0", "serialization", "operator", pytest.approx(600)),
        ("stage:1.0", "user", "function", pytest.approx(1_000)),
    ]


def test_a_profile_of_one_executor_counts_for_its_tasks(tmp_path: Path) -> None:
    run = profiled(tmp_path, {"executor-2.txt": STACKS})
    ((_, *parts),) = split(run)
    assert parts[-1] == pytest.approx(5_000), "two of four tasks"
    assert sum(parts[:-1]) == pytest.approx(5_000)


def test_profiles_without_a_stage_of_python_are_left_out(tmp_path: Path) -> None:
    made = [Stage(list(waves(4, 4, ms=2_500, cpu_ms=500)))]
    log = write(tmp_path / "log", made, executors={"1": 4})
    (tmp_path / "stacks.txt").write_text(STACKS)
    run = cp.profile([log, tmp_path / "stacks.txt"], output=tmp_path / "run.duckdb")
    assert rows(run, "SELECT count(*) FROM spark_python_times") == [(0,)]
    assert rows(run, "SELECT count(*) FROM import_stats WHERE name = 'python profile'") == [(1,)]


def speedscope(given: Sequence[tuple[str, int]], start: float, unit: str = "seconds") -> str:
    names = list(dict.fromkeys(frame for stack, _ in given for frame in stack.split(";")))
    samples = [[names.index(frame) for frame in stack.split(";")] for stack, count in given for _ in range(count)]
    listed = []
    for each in names:
        file, function, line = frames(each)[0]
        listed.append({"name": function, "file": file, "line": line})
    profile = {
        "type": "sampled", "name": "Process 7 Thread 0x7F", "unit": unit, "startValue": start,
        "endValue": start + len(samples) / 100, "samples": samples, "weights": [0.01] * len(samples),
    }  # fmt: skip
    schema = "https://www.speedscope.app/file-format-schema.json"
    whole = {"$schema": schema, "shared": {"frames": listed}, "profiles": [profile], "exporter": "py-spy@0.4"}
    return json.dumps(whole)


def test_a_speedscope_file_states_the_time_of_its_samples(tmp_path: Path) -> None:
    given = [(f"{PICKLED};{CALL};score (job.py:12)", 100), (f"{PICKLED};{READ};loads (pyspark/serializers.py:4)", 50)]
    run = profiled(tmp_path, {"stacks.json": speedscope(given, 0.0)})
    assert rows(run, "SELECT part, time_ms FROM spark_python_times ORDER BY ALL") == [
        ("serialization", pytest.approx(500)), ("user", pytest.approx(1_000)),
    ]  # fmt: skip
    ((meaning,),) = rows(run, "SELECT meaning FROM import_stats WHERE name = 'python profile'")
    assert "10 ms" not in meaning


def test_samples_with_unix_times_belong_to_the_stage_that_ran(tmp_path: Path) -> None:
    tree = evaluating("score(a#1)#8", 0, inputs=[evaluating("score(a#1)#9", 1)])
    run = profiled(tmp_path, {}, tree, stages=2)
    ((started, second),) = rows(run, "SELECT any_value(started_at_ms), max(launch_ms) FROM runs, tasks")
    given = [(f"{PICKLED};{CALL};score (job.py:12)", 100)]
    timed = speedscope(given, (started + second + 100) / 1000)
    run = profiled(tmp_path, {"stacks.json": timed}, tree, stages=2)
    found = rows(run, "SELECT stage_id, matched_by, time_ms FROM spark_python_times")
    assert found == [("stage:1.0", "time", pytest.approx(1_000))]


def test_the_order_of_samples_shows_when_a_worker_was_in_a_task(tmp_path: Path) -> None:
    """With waiting threads, a worker's samples fit the times of tasks in one way, which distinguishes stages."""
    tree = evaluating("score(a#1)#8", 0, inputs=[evaluating("score(a#1)#9", 1)])
    between = f"{MAIN};read_int (pyspark/serializers.py:595)"
    given = [
        (f"{PICKLED};{CALL};score (job.py:12)", 250),
        (between, 10),
        (f"{PICKLED};{CALL};score (job.py:14);helper (job.py:3)", 250),
        (between, 80),
    ]
    run = profiled(tmp_path, {"stacks.json": speedscope(given, 0.0)}, tree, stages=2)
    found = rows(run, "SELECT stage_id, function, own_ms FROM spark_python_functions WHERE own_ms > 50 ORDER BY ALL")
    assert found == [
        ("stage:0.0", "job.score", pytest.approx(2_500, abs=60)),
        ("stage:1.0", "job.helper", pytest.approx(2_500, abs=60)),
    ]
    assert rows(run, "SELECT DISTINCT matched_by FROM spark_python_times") == [("time",)]


# Labels ---------------------------------------------------------------------------------------------------------------


def test_an_index_labels_the_users_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    built_path("depot-1").parent.mkdir(parents=True)
    small_index("python-1", built_path("depot-1"), name="depot-1")
    shares = {"cpu": 0.0, "disk": 0.0, "net": 0.0}
    with duckdb.connect(str(built_path("depot-1")), read_only=True) as index:
        ((shares["cpu"], shares["disk"], shares["net"]),) = index.execute(
            "SELECT cpu, disk, net FROM functions WHERE qualified_name = 'depot.top'"
        ).fetchall()
    given = (
        f"{PICKLED};{CALL};top (depot.py:30);dumps (json/__init__.py:3) 300\n{PICKLED};{CALL};other (job.py:3) 100\n"
    )
    run = profiled(tmp_path, {"stacks.txt": given}, indexes=["depot-1"])
    found = rows(
        run, "SELECT function, index_name, resource, time_ms FROM spark_python_labels ORDER BY function, resource"
    )
    assert found == [
        *(("depot.top", "depot-1", name, pytest.approx(3_000 * share)) for name, share in shares.items() if share),
        ("job.other", None, "other", pytest.approx(1_000)),
    ]
    verdict = run.verdict()
    (time,) = (each for each in verdict.debug.measurements if isinstance(each, PythonTime))
    assert {each.resource: each.share for each in time.user_uses} == pytest.approx(
        {name: 0.75 * share for name, share in shares.items() if share}
    )
    assert "disk" in text_of(time, verdict.debug.words)


def test_without_an_index_of_the_code_nothing_is_labelled(tmp_path: Path) -> None:
    run = profiled(tmp_path, {"stacks.txt": STACKS})
    assert rows(run, "SELECT DISTINCT index_name, resource FROM spark_python_labels") == [(None, "other")]
    (time,) = (each for each in run.verdict().debug.measurements if isinstance(each, PythonTime))
    assert time.user_uses == ()


# Profiles of cProfile -------------------------------------------------------------------------------------------------


def square(number: int) -> int:
    return sum(number * each for each in range(50))


def dumped(path: Path, calls: int = 200) -> bytes:
    """A profile as Spark dumps it: merged of two, by Python's own module."""
    stats = None
    for _ in range(2):
        profile = cProfile.Profile()
        profile.enable()
        for number in range(calls):
            square(number)
        profile.disable()
        if stats is None:
            stats = pstats.Stats(profile)
        else:
            stats.add(profile)
    assert stats is not None
    stats.dump_stats(path)
    return path.read_bytes()


def test_a_profile_of_cprofile_reads_as_its_own_module_reads_it(tmp_path: Path) -> None:
    dumped(tmp_path / "udf_8_perf.pstats")
    (sample,) = discover([tmp_path / "udf_8_perf.pstats"]).samples
    assert sample.kind == "pstats"
    found = profiles.read(sample.path, sample.kind, Problems())
    assert isinstance(found, reader.CallProfile)
    own = pstats.Stats(str(tmp_path / "udf_8_perf.pstats"))
    assert found.total_ms == pytest.approx(1000 * own.total_tt)  # type: ignore[attr-defined]
    called = next(each for each in found.functions if each.function == "square")
    assert called.calls == 400
    assert called.file == __file__


def test_the_id_in_the_name_of_a_profile_identifies_its_function(tmp_path: Path) -> None:
    content = dumped(tmp_path / "profile")
    tree = evaluating("other(a#1)#7", 0, inputs=[evaluating("square(a#1)#8", 1)])
    run = profiled(tmp_path, {"udf_8_perf.pstats": content}, tree, stages=2)
    ((stage, part, how, recorder),) = rows(run, "SELECT stage_id, part, matched_by, recorder FROM spark_python_times")
    assert (stage, part, how, recorder) == ("stage:1.0", "user", "function", "calls")
    ((_, user, serialization, start, jvm, wait, whole),) = split(run)
    assert (serialization, start) == (None, None)
    assert user + jvm + wait == pytest.approx(whole)
    assert ("square", 400) in rows(run, "SELECT udf, calls FROM spark_python_functions WHERE function LIKE '%.square'")


def lines(number: int) -> int:
    """Nearly all of its time is in a library, whose files Spark strips of their folders."""
    return sum(len(json.dumps({str(each): [each] * 3})) for each in range(number))


def stripped(path: Path, calls: int = 50) -> bytes:
    """A profile without the folders of files, as Spark dumps it."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(calls):
        lines(20)
    profile.disable()
    pstats.Stats(profile).strip_dirs().dump_stats(path)
    return path.read_bytes()


def test_time_of_libraries_is_of_the_function_that_called_them(tmp_path: Path) -> None:
    content = stripped(tmp_path / "profile")
    run = profiled(tmp_path, {"udf_8_perf.pstats": content}, evaluating("lines(a#1)#8", 0))
    found = {
        function: (own, total)
        for function, own, total in rows(run, "SELECT function, own_ms, total_ms FROM spark_python_functions")
    }
    assert set(found) == {"test_python_time.lines", "test_python_time.<genexpr>"}
    own = sum(each for each, _ in found.values())
    assert own == pytest.approx(found["test_python_time.lines"][1], rel=0.02)
    ((user,),) = rows(run, "SELECT sum(time_ms) FROM spark_python_times WHERE part = 'user'")
    assert user == pytest.approx(own, rel=0.02)


def calls_of(file: str, function: str, own_ms: float, callers: Mapping[tuple[str, int, str], float]) -> Any:
    """A function at line 1 with its own time by caller."""
    of = tuple(reader.CallerTime(key, ms, ms) for key, ms in callers.items())
    return reader.FunctionCalls(file, 1, function, 10, own_ms, own_ms, of)


def test_a_profile_of_an_rdd_has_parts_of_pyspark_and_of_the_user() -> None:
    """With folders stripped, `rdd.py` is PySpark's and `util.py` a user's, but for the functions that PySpark has."""
    rdd, wrapper, score = ("rdd.py", 1, "<genexpr>"), ("util.py", 1, "wrapper"), ("util.py", 1, "score")
    read = "<method 'read' of '_io.BufferedReader' objects>"
    given = [
        calls_of("rdd.py", "<genexpr>", 100, {}),
        calls_of("util.py", "wrapper", 50, {rdd: 50}),
        calls_of("util.py", "score", 200, {wrapper: 200}),
        calls_of("~", "<built-in method builtins.sum>", 40, {rdd: 10, score: 30}),
        calls_of("~", read, 80, {("serializers.py", 1, "load_stream"): 80}),
        calls_of("serializers.py", "load_stream", 5, {rdd: 5}),
        calls_of("decoder.py", "decode", 60, {("__init__.py", 1, "loads"): 60}),
        calls_of("__init__.py", "loads", 6, {score: 6}),
    ]
    roles = calls._roles(given, True)
    own_ms, read_ms = calls._own_times(given, roles)
    parts: dict[str, float] = {}
    for part, ms in calls._parts(own_ms, read_ms, roles):
        parts[part] = parts.get(part, 0.0) + ms
    assert parts == pytest.approx({"user": 200 + 30 + 60 + 6, "serialization": 100 + 50 + 10 + 5, "wait": 80})
    assert own_ms["util.py", 1, "score"] == pytest.approx(296)


def test_libraries_that_call_each_other_end(tmp_path: Path) -> None:
    one, two, score = ("a.py", 1, "one"), ("b.py", 1, "two"), ("job.py", 1, "score")
    given = [
        calls_of("job.py", "score", 10, {}),
        calls_of("a.py", "one", 20, {score: 10, two: 10}),
        calls_of("b.py", "two", 30, {one: 30}),
    ]
    own_ms, _ = calls._own_times(given, calls._roles(given, False))
    assert sum(own_ms.values()) == pytest.approx(60)
    assert own_ms["job.py", 1, "score"] == pytest.approx(60, abs=0.1)


def test_a_profile_of_an_unknown_function_is_left_out(tmp_path: Path) -> None:
    run = profiled(tmp_path, {"udf_77_perf.pstats": dumped(tmp_path / "profile")})
    assert rows(run, "SELECT count(*) FROM spark_python_times") == [(0,)]


def test_damaged_profiles_of_cprofile_are_refused_in_one_sentence(tmp_path: Path) -> None:
    random, whole, path = Random(56), dumped(tmp_path / "profile"), tmp_path / "given"
    path.write_bytes(whole[: len(whole) // 2])
    with refused(InputError, path):
        reader.read(str(path), Problems())
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(random.choice((1, 2, 8))):
            changed[random.randrange(len(changed))] = random.randrange(256)
        path.write_bytes(changed)
        try:
            reader.read(str(path), Problems())
        except InputError as error:
            is_one_line(str(error), path)


# Recommendations ------------------------------------------------------------------------------------------------------


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def recommended(run: Run) -> dict[str, spark.OfPython]:
    verdict = run.verdict()
    found = {each.kind: each for each in verdict.recommendations if isinstance(each, spark.OfPython)}
    for each in found.values():
        assert not text_of(each, verdict.debug.words).startswith(each.kind)
        assert each.saving.range_ms is not None
        lines_of(each, verdict.debug.words)
    return found


@pytest.mark.parametrize(("version", "advised"), [("3.4.1", False), ("3.5.1", True), ("4.1.0", True), ("4.2.0", False)])
def test_arrow_is_advised_where_the_version_has_the_setting_and_not_the_default(
    tmp_path: Path, version: str, advised: bool
) -> None:
    found = recommended(profiled(tmp_path, {"stacks.txt": stacks(10)}, ms=25_000, version=version))
    assert ("use-arrow" in found) == advised
    assert {"speed-up-python", "rewrite-python"} <= set(found)


def test_a_claim_is_at_most_the_part_that_the_change_affects(tmp_path: Path) -> None:
    found = recommended(profiled(tmp_path, {"stacks.txt": stacks(10)}, ms=25_000))
    path_ms = 25_000
    user = found["speed-up-python"]
    assert isinstance(user, spark.SpeedUpPython)
    assert (user.function, user.where, user.share) == ("job.score", "job.py:12", pytest.approx(0.3))
    assert user.saving.range_ms == pytest.approx((0.0, 0.3 * path_ms))
    assert found["use-arrow"].saving.range_ms == pytest.approx((0.0, 0.65 * path_ms))


def test_fewer_columns_are_advised_where_whole_rows_are_sent(tmp_path: Path) -> None:
    tree = Operator(
        "FlatMapGroupsInPandas", "FlatMapGroupsInPandas [key#1L], centred(id#0L, key#1L)#8, [id#2L]",
        {"data sent to Python workers": {0: 5e8}},
    )  # fmt: skip
    batches = f"{ARROW};centred (job.py:3) 1000\n{ARROW};_create_batch (pyspark/sql/pandas/serializers.py:5) 4000\n"
    found = recommended(profiled(tmp_path, {"stacks.txt": batches}, tree, ms=25_000))
    fewer = found["send-fewer-columns"]
    assert isinstance(fewer, spark.SendFewerColumns)
    assert fewer.sent_bytes == 5e8
    assert "use-arrow" not in found


def test_workers_are_reused_where_the_run_did_not(tmp_path: Path) -> None:
    starting = stacks(10) + f"{MAIN};read_udfs (pyspark/worker.py:1500) 2000\n"
    single = {"spark.python.worker.reuse": "false"}
    found = recommended(profiled(made(tmp_path / "a"), {"s": starting}, ms=25_000, properties=single))
    assert [each.after for each in found["reuse-python-workers"].settings] == [True]
    assert "reuse-python-workers" not in recommended(profiled(made(tmp_path / "b"), {"s": starting}, ms=25_000))


@pytest.mark.parametrize(
    ("version", "setting"), [("3.5.1", "spark.python.profile"), ("4.0.1", "spark.sql.pyspark.udf.profiler")]
)
def test_without_profiles_the_versions_own_profiler_is_named(tmp_path: Path, version: str, setting: str) -> None:
    verdict = profiled(tmp_path, {}, version=version).verdict()
    (found,) = (each for each in verdict.recommendations if isinstance(each, spark.ProfilePython))
    assert [each.name for each in found.settings] == [setting]


def test_without_profiles_the_log_has_the_jvms_part_and_the_data(tmp_path: Path) -> None:
    tree = Operator(
        "BatchEvalPython", "BatchEvalPython [score(a#1)#8], [pythonUDF0#9]",
        {"data sent to Python workers": {0: 4e6}, "data returned from Python workers": {0: 1e6}},
    )  # fmt: skip
    run = profiled(tmp_path, {}, tree)
    found = run.sql("SELECT recorder, user_ms, jvm_ms, wait_ms, task_ms, sent_bytes, returned_bytes FROM spark_python")
    assert found.rows == ((None, None, 2_000, 8_000, 10_000, 4_000_000, 1_000_000),)
    assert not any(isinstance(each, PythonTime) for each in run.verdict().debug.measurements)


# Real runs ------------------------------------------------------------------------------------------------------------

RECORDINGS = Path(__file__).parents[1] / "lab" / "recordings" / "python"
WITHIN = 0.1
"""Largest difference between the split and the time that the functions measured themselves, as a share of task time."""


def recorded(tmp_path: Path, name: str) -> tuple[Run, dict[str, float]]:
    """A recording of the lab, and the time that its functions measured, s, in the order of their stages."""
    folder = RECORDINGS / name
    paths = [each for each in sorted(folder.iterdir()) if each.name != "truth.json"]
    spent_s: dict[str, float] = json.loads((folder / "truth.json").read_text())["functions_s"]
    return cp.profile(paths, output=tmp_path / "run.duckdb"), spent_s


def stages_of(run: Run) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in run.sql("SELECT task_ms, user_ms, function FROM spark_python").rows]


@pytest.mark.parametrize("name", ["two-ways", "at-once"])
def test_each_of_two_stages_gets_the_time_of_its_function(tmp_path: Path, name: str) -> None:
    run, spent_s = recorded(tmp_path, name)
    operators = dict(
        rows(
            run,
            "SELECT stage_id, any_value(name) FROM operator_stages JOIN operators USING (scope_id, node_id)"
            " WHERE regexp_matches(name, 'Python|Pandas') GROUP BY stage_id",
        )
    )
    function_of = {"BatchEvalPython": "heavy", "MapInPandas": "upper"}
    found = run.sql("SELECT stage_id, task_ms, user_ms, function FROM spark_python").rows
    assert len(found) == 2
    for stage, task_ms, user_ms, function in found:
        of = function_of[operators[stage]]
        assert function == f"python_jobs.{of}"
        assert user_ms / task_ms == pytest.approx(1000 * spent_s[of] / task_ms, abs=WITHIN)


@pytest.mark.parametrize(("name", "within"), [("heavy-udf", 0.02), ("rdd-map", 0.15), ("vectorized-udf", 0.02)])
def test_sparks_own_profiles_name_the_function_and_its_time(tmp_path: Path, name: str, within: float) -> None:
    """The profile of an RDD also has the user's lambda, and cProfile's cost of each call that the function makes."""
    run, spent_s = recorded(tmp_path, name)
    ((task_ms, user_ms, function),) = stages_of(run)
    assert [function] == [f"python_jobs.{each}" for each in spent_s]
    assert user_ms / task_ms == pytest.approx(1000 * sum(spent_s.values()) / task_ms, abs=within)
    names = rows(run, "SELECT DISTINCT function FROM spark_python_functions")
    assert all(each.startswith("python_jobs.") for (each,) in names), "no library"
