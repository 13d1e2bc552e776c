"""Real runs of what public logs lack: each of tests/data/runs gives a whole profile that says what happened.

Of those in lab/recordings/odd, the events alone say that each is what its name says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from crystalperf.query.inputs.discover import discover
from lab.checks import plainlog
from lab.checks.corpus import Profiled, check, profiled
from lab.checks.plainlog import Figures, length
from tests.reading import rows

FOLDER = Path(__file__).parent / "data" / "runs"
NAMES = sorted(each.name for each in FOLDER.iterdir())

# Runtime of the run replayed unchanged against the recorded one.  Tasks of a few ms overlap in the driver's view (it
# learns of their ends late), which makes `rolled` longer; threads of one driver submit independently of each other.
REPLAYS_WITHIN = {"rolled": 0.12, "several-queries": 0.04}


class Runs(dict[str, Profiled]):
    """Profiles by the name of a run, made when they are asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self.folders = folders

    def __missing__(self, name: str) -> Profiled:
        self[name] = profiled([FOLDER / name], None, self.folders.mktemp(name))
        return self[name]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRYSTALPERF_HOME", str(tmp_path_factory.getbasetemp() / "home"))
        yield Runs(tmp_path_factory)


def counted(one: Profiled, column: str, table: str) -> dict[object, int]:
    return dict(rows(one.run, f"SELECT {column}, count(*) FROM {table} GROUP BY ALL"))  # type: ignore[arg-type]


def lost(one: Profiled) -> list[object]:
    return [name for (name,) in rows(one.run, "SELECT name FROM import_stats WHERE severity <> 'info' ORDER BY name")]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", NAMES)
def test_parts_sum_and_the_replay_gives_the_run_back(name: str, found: dict[str, Profiled]) -> None:
    one = found[name]
    assert check(one) == "ok"
    assert one.run.header().complete
    assert abs(one.replay_error) < REPLAYS_WITHIN.get(name, 0.02), f"replay error {one.replay_error:+.2%}"
    assert one.answer.critical_path


def test_a_rolled_log_is_read_in_the_order_of_its_parts(found: dict[str, Profiled]) -> None:
    (application,) = discover([FOLDER / "rolled"]).applications
    assert len(application.log.parts) == 4
    assert counted(found["rolled"], "status", "tasks") == {"succeeded": 14_411}
    assert lost(found["rolled"]) == []


def test_records_dropped_by_compaction_are_data_loss(found: dict[str, Profiled]) -> None:
    one = found["compacted"]
    assert lost(one) == ["compacted_log"]
    assert counted(one, "status", "tasks")["succeeded"] < 14_411
    assert one.answer.runtime_ms == pytest.approx(found["rolled"].answer.runtime_ms)
    assert any("compacted" in each.meaning for each in one.run.header().problems)


@pytest.mark.parametrize("name", ["lz4", "snappy", "lzf"])
def test_every_codec_gives_all_events(name: str, found: dict[str, Profiled]) -> None:
    assert lost(found[name]) == []
    assert counted(found[name], "status", "tasks") == {"succeeded": 22}
    assert counted(found[name], "status", "spark_jobs") == {"succeeded": 8}


def test_a_speculative_copy_that_won(found: dict[str, Profiled]) -> None:
    one = found["speculation"]
    tasks = "FROM tasks JOIN spark_tasks USING (task_id)"
    assert rows(one.run, f"SELECT partition_index, status {tasks} WHERE speculative") == [(3, "succeeded")]
    assert rows(one.run, f"SELECT status {tasks} WHERE partition_index = 3 AND NOT speculative") == [("unfinished",)]


def test_a_failed_fetch_makes_a_stage_run_again(found: dict[str, Profiled]) -> None:
    one = found["fetch-failure"]
    stages = rows(
        one.run,
        "SELECT spark_stage_id, attempt, status FROM spark_stages JOIN stages USING (stage_id)"
        " WHERE attempt > 0 OR status = 'failed' ORDER BY ALL",
    )
    assert stages == [(2, 1, "succeeded"), (3, 0, "failed"), (3, 1, "succeeded")]
    reasons = rows(one.run, "SELECT DISTINCT starts_with(reason, 'FetchFailed') FROM tasks WHERE status = 'failed'")
    assert reasons == [(True,)]


def test_a_killed_executor_costs_its_tasks_and_is_replaced(found: dict[str, Profiled]) -> None:
    one = found["killed-executor"]
    (killed,) = rows(one.run, "SELECT worker_id, removed_reason FROM workers WHERE removed_ms IS NOT NULL")
    assert killed == ("0", "Command exited with code 137")
    failed = rows(
        one.run, "SELECT DISTINCT worker_id, reason LIKE 'ExecutorLostFailure%' FROM tasks WHERE status = 'failed'"
    )
    assert failed == [("0", True)]
    assert rows(one.run, "SELECT count(*) FROM workers WHERE slots > 0") == [(3,)]
    partitions = (
        "SELECT count(DISTINCT (spark_stage_id, partition_index)) FROM tasks JOIN spark_stages USING (stage_id)"
        " WHERE status = 'succeeded'"
    )
    assert rows(one.run, partitions) == [(44,)]


def test_executors_come_and_go_with_the_work(found: dict[str, Profiled]) -> None:
    one = found["dynamic-allocation"]
    assert rows(one.run, "SELECT count(*), count(removed_ms) FROM workers WHERE slots > 0") == [(7, 5)]
    assert one.execution.recorded["workers"] == 4


def test_a_cancelled_job_failed_and_its_running_tasks_were_killed(found: dict[str, Profiled]) -> None:
    one = found["cancelled-job"]
    assert counted(one, "status", "spark_jobs") == {"failed": 1, "succeeded": 4}
    assert counted(one, "status", "tasks") == {"succeeded": 15, "killed": 2}
    assert rows(one.run, "SELECT job_group FROM spark_jobs WHERE status = 'failed'") == [("to-cancel",)]


def test_queries_at_once_keep_their_pools(found: dict[str, Profiled]) -> None:
    one = found["several-queries"]
    assert rows(one.run, "SELECT scheduler FROM runs") == [("FAIR",)]
    assert set(counted(one, "pool", "stages")) == {"user-0", "user-1", "user-2", None}
    at_once = rows(
        one.run,
        "SELECT count(*) FROM scopes AS a JOIN scopes AS b ON a.kind = 'sql' AND b.kind = 'sql'"
        " AND a.scope_id < b.scope_id AND a.start_ms < b.end_ms AND b.start_ms < a.end_ms",
    )
    assert at_once[0][0] >= 6  # type: ignore[operator]


def test_micro_batches_are_queries_of_one_run(found: dict[str, Profiled]) -> None:
    one = found["streaming"]
    assert counted(one, "status", "spark_jobs") == {"succeeded": 4, "failed": 1}
    assert rows(one.run, "SELECT count(*) FROM scopes WHERE kind = 'sql'")[0][0] >= 5  # type: ignore[operator]


def test_a_clock_that_is_ahead_is_found_out(found: dict[str, Profiled]) -> None:
    query = "SELECT clock_offset_ms FROM workers WHERE slots > 0 ORDER BY worker_id"
    (same,), (ahead,) = rows(found["clock-off"].run, query)
    assert same == 0
    assert ahead == pytest.approx(-3000, abs=50)


# Those that are kept whole in lab/recordings/odd ------------------------------------------------------------------

ODD = Path(__file__).parent.parent / "lab" / "recordings" / "odd"


@pytest.fixture(scope="module")
def odd() -> dict[str, Figures]:
    return {each.stem: plainlog.figures(each) for each in sorted(ODD.iterdir())}


def test_odd_recordings_are_small() -> None:
    sizes = [each.stat().st_size for each in ODD.iterdir()]
    assert max(sizes) <= 150_000
    assert sum(sizes) <= 1_500_000


def test_only_two_odd_recordings_lack_something(odd: dict[str, Figures]) -> None:
    assert [name for name, each in odd.items() if each.ended is None] == ["cut-off"]
    assert odd["cut-off"].unfinished_jobs == 1
    assert [name for name, each in odd.items() if each.missing()] == ["dropped-events"]
    assert sum(odd["dropped-events"].missing().values()) == 180
    assert [name for name, each in odd.items() if each.shell] == ["idle-shell"]
    shell = odd["idle-shell"]
    assert length(shell.submitted()) < 0.25 * shell.whole_ms


def test_failures_in_odd_recordings_are_reported(odd: dict[str, Figures]) -> None:
    failed = {name: each.failed_jobs for name, each in odd.items() if each.failed_jobs}
    assert failed == {"failed-at-end": 1, "out-of-heap": 1, "survived-failure": 1}
    assert {name for name, each in odd.items() if each.out_of_heap} == {"out-of-heap"}
    lost = {name: len(each.lost()) for name, each in odd.items() if each.lost()}
    assert lost == {"lost-executor": 1, "out-of-heap": 4}


def test_the_work_of_odd_recordings(odd: dict[str, Figures]) -> None:
    tiny = odd["tiny-tasks"]
    assert tiny.tasks_ended() == {"succeeded": 1000}
    skewed: dict[tuple[int, int], list[float]] = {}
    for each in odd["skewed-key"].tasks:
        skewed.setdefault(each.stage, []).append((each.finish or each.launch) - each.launch)
    assert max(max(times) / sum(times) for times in skewed.values() if len(times) == 8) > 0.4
    assert any(each.python for each in odd["python-udf"].stages.values())
    busy = odd["busy-driver"]
    assert length(busy.submitted()) < 0.2 * busy.whole_ms
    at_once = sorted((each.started or 0, each.ended or 0) for each in odd["threads"].queries.values())
    assert sum(one[1] > two[0] for one, two in pairwise(at_once)) >= 3
    assert len(odd["nested-queries"].queries) > 3
    assert len(odd["micro-batches"].jobs) >= 5
    assert odd["speculative-copies"].tasks_ended() == {"succeeded": 24, "unfinished": 1}
