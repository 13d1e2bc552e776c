"""Exports of runs: each has the run's own totals by resource, and comes back as the stacks that it was made of."""

from __future__ import annotations

import io
import json
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from crystalperf.cli.export_command import export
from crystalperf.indexes.errors import InputError, NoAnswerError, SettingError
from crystalperf.query.execution.load import WHOLE, load
from crystalperf.query.export.formats import FORMATS, export_to
from crystalperf.query.inputs.discover import discover
from crystalperf.query.page.flame_graph import flame_graph
from crystalperf.query.recordings import profiles
from crystalperf.query.recordings.stacktable import Collapsed
from crystalperf.query.trace.records import Problems
from tests.reading import profiled, rows
from tests.refusals import refused

if TYPE_CHECKING:
    from crystalperf.query.run import Run

ROOT = Path(__file__).parent.parent
STREAM = (ROOT / "tests/data/flink/ads-12000.json.gz", ROOT / "tests/data/flink/ads-12000.series.gz")
TRAINING = (ROOT / "tests/data/training/torch-2-ranks",)
SESSION = (ROOT / "tests/data/training/tensorflow-ps",)
STACKS = ("collapsed", "speedscope", "pprof")
TO_MS = {"collapsed": 1e-3, "speedscope": 1.0, "pprof": 1.0}

Answer = Callable[..., tuple[int, str, str]]


def written(run: Run, to: str) -> bytes:
    out = io.BytesIO()
    export_to(run, to, out)
    return out.getvalue()


def sampled_ms(run: Run) -> dict[str, float]:
    """Sampled time by resource as the run's page has it: of tasks, and of the driver where a frame is attributed."""
    stages = [stage_id for (stage_id,) in rows(run, "SELECT stage_id FROM stages")]
    with run.reading() as connection:
        data = flame_graph(connection, load(connection, WHOLE), stages)
    assert data is not None
    times = {name: sum(column) for name, column in data.sampled.resource_ms.items()}
    return {**times, "other": sum(data.sampled.waiting_ms) + sum(data.sampled.unknown_ms)}


def by_leaf(text: bytes) -> dict[str, float]:
    """Time of collapsed stacks by their leaf, ms."""
    found: Counter[str] = Counter()
    for line in text.decode().splitlines():
        stack, _, weight = line.rpartition(" ")
        found[stack.rpartition(";")[2].strip("[]")] += int(weight)
    return {name: time_us / 1000 for name, time_us in found.items()}


def test_collapsed_stacks_have_the_page_s_time_by_resource(demo_run: Run) -> None:
    expected = {name: time_ms for name, time_ms in sampled_ms(demo_run).items() if time_ms > 0}
    found = by_leaf(written(demo_run, "collapsed"))
    assert found == pytest.approx(expected, rel=1e-3)
    assert {"cpu", "disk", "net"} <= set(found)


def test_speedscope_has_a_profile_for_each_worker_with_the_same_time(demo_run: Run) -> None:
    file = json.loads(written(demo_run, "speedscope"))
    assert file["$schema"].endswith("file-format-schema.json")
    assert sorted(each["name"] for each in file["profiles"]) == ["driver", "executor 0", "executor 1"]
    frames = [each["name"] for each in file["shared"]["frames"]]
    found: Counter[str] = Counter()
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["unit"] == "milliseconds"
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            found[frames[stack[-1]].strip("[]")] += weight
    assert found == pytest.approx(by_leaf(written(demo_run, "collapsed")), rel=1e-3)


@pytest.mark.parametrize("to", STACKS)
def test_exported_stacks_come_back_whole(demo_run: Run, tmp_path: Path, to: str) -> None:
    path = tmp_path / "exported"
    demo_run.export(to, path)
    (sample,) = discover([path]).samples
    back = profiles.read(str(path), sample.kind, Problems())
    assert isinstance(back, Collapsed)
    assert back.of_tasks
    total_ms = sum(by_leaf(written(demo_run, "collapsed")).values())
    assert float(back.weight.sum()) * TO_MS[to] == pytest.approx(total_ms, rel=1e-5)
    names = {back.recording.frames.name(frame) for frame in range(len(back.recording.frames))}
    own = {
        row[0] for row in rows(demo_run, "SELECT DISTINCT regexp_replace(unnest(frames), ':[0-9]+$', '') FROM stacks")
    }
    assert not [name for name in names if name.startswith("[") and name.endswith("]")]
    assert len(names & own) > 0.95 * len(names)


def test_exported_stacks_next_to_their_log_are_samples_of_its_tasks(demo: Path, demo_run: Run, tmp_path: Path) -> None:
    demo_run.export("speedscope", tmp_path / "q9.speedscope.json")
    run = profiled(*sorted(demo.glob("eventlog*")), tmp_path / "q9.speedscope.json")
    tasks, own = (
        rows(each, "SELECT sum(net_ms) / sum(finish_ms - launch_ms) FROM tasks")[0][0] for each in (run, demo_run)
    )
    assert run.header().has_samples
    assert tasks == pytest.approx(own, abs=0.15)  # one mixture for all tasks instead of each task's own samples


def spans(text: bytes) -> list[dict[str, Any]]:
    return [
        span
        for line in text.splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


@pytest.mark.parametrize("inputs", [TRAINING, STREAM, ("demo",)], ids=["training", "stream", "spark"])
def test_spans_are_one_tree_with_every_task(inputs: tuple[Path, ...], demo_run: Run) -> None:
    run = demo_run if inputs == ("demo",) else profiled(*inputs)
    found = spans(written(run, "otlp"))
    ids = {each["spanId"] for each in found}
    assert len(ids) == len(found)
    roots = [each for each in found if "parentSpanId" not in each]
    assert len(roots) == 1
    assert {each["parentSpanId"] for each in found if each not in roots} <= ids
    (count,) = rows(run, "SELECT count(*) FROM tasks")[0]
    tasks = [each for each in found if any(one["key"] == "crystalperf.task.id" for one in each["attributes"])]
    assert len(tasks) == count
    total_ns = sum(int(each["endTimeUnixNano"]) - int(each["startTimeUnixNano"]) for each in tasks)
    (total_ms,) = rows(run, "SELECT sum(greatest(finish_ms - launch_ms, 0)) FROM tasks")[0]
    assert total_ns / 1e6 == pytest.approx(total_ms, rel=1e-6)
    assert all(link["spanId"] in ids for each in found for link in each.get("links", ()))


def test_two_exports_are_equal(demo_log_run: Run) -> None:
    for each in FORMATS:
        if each.name != "parquet":
            assert written(demo_log_run, each.name) == written(demo_log_run, each.name)


def test_runs_without_samples_have_stacks_of_operators_or_stages(demo_log_run: Run) -> None:
    sums = "SELECT sum(cpu_ms), sum(other_ms) FROM operator_times"
    found = by_leaf(written(demo_log_run, "collapsed"))
    cpu_ms, other_ms = rows(demo_log_run, sums)[0]
    assert (found["cpu"], found["other"]) == pytest.approx((cpu_ms, other_ms), rel=1e-3)
    assert sum(by_leaf(written(profiled(*STREAM), "collapsed")).values()) > 0


def test_parquet_has_every_row_of_every_table(demo_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    demo_run.export("parquet", folder)
    tables = [name for (name,) in rows(demo_run, "SHOW TABLES")]
    assert sorted(each.stem for each in folder.iterdir()) == sorted(tables)
    for name in tables:
        expected = rows(demo_run, f"SELECT count(*) FROM {name}")
        assert duckdb.sql(f"SELECT count(*) FROM '{folder / name}.parquet'").fetchall() == expected
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_parquet_opens_in_arrow(demo_log_run: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    demo_log_run.export("parquet", tmp_path / "tables")
    tasks = parquet.read_table(tmp_path / "tables" / "tasks.parquet")
    ((count, cpu_ms),) = rows(demo_log_run, "SELECT count(*), sum(cpu_ms) FROM tasks")
    assert tasks.num_rows == count
    assert sum(tasks["cpu_ms"].to_pylist()) == pytest.approx(cpu_ms)


# Files ------------------------------------------------------------------------------------------------------------


def test_existing_files_are_replaced_only_on_request(demo_log_run: Run, tmp_path: Path) -> None:
    path = tmp_path / "q9"
    path.write_text("mine")
    with refused(InputError, path, "exists"):
        demo_log_run.export("otlp", path)
    assert path.read_text() == "mine"
    demo_log_run.export("otlp", path, replace=True)
    assert path.read_bytes().startswith(b'{"resourceSpans"')
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["q9"]


def test_a_run_is_not_replaced_by_its_own_export(tmp_path: Path) -> None:
    log = tmp_path / "q9.log"
    log.write_text("mine")
    with refused(SettingError, log, "the run to export"):
        export(str(log), "otlp", str(log), force=True, redact=False)
    assert log.read_text() == "mine"


def test_a_folder_with_other_files_is_never_replaced(demo_log_run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    demo_log_run.export("parquet", folder)
    with refused(InputError, folder, "exists"):
        demo_log_run.export("parquet", folder)
    demo_log_run.export("parquet", folder, replace=True)
    (folder / "notes.txt").write_text("mine")
    with refused(InputError, folder, "other files"):
        demo_log_run.export("parquet", folder, replace=True)
    assert (folder / "notes.txt").read_text() == "mine"


def test_unknown_formats_and_places_are_one_sentence(demo_log_run: Run, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"speedscope.*parquet"):
        demo_log_run.export("flamescope", tmp_path / "x")
    with pytest.raises(InputError, match="not a regular file"):
        demo_log_run.export("pprof", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        demo_log_run.export("pprof", tmp_path / "file" / "below")


def test_a_failed_export_leaves_no_file(demo_log_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise NoAnswerError("no stacks")

    monkeypatch.setattr("crystalperf.query.export.pprof.write", fails)
    with pytest.raises(NoAnswerError):
        demo_log_run.export("pprof", tmp_path / "x.pb.gz")
    assert not list(tmp_path.iterdir())


def test_the_command_names_its_file_or_writes_to_stdout(
    crystalperf: Answer, demo_log_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = crystalperf("export", demo_log_run.path, "--to", "collapsed")
    assert (code, err) == (0, "")
    name = f"{demo_log_run.path.stem}.collapsed"
    assert name in out
    assert (tmp_path / name).read_bytes() == written(demo_log_run, "collapsed")
    code, out, err = crystalperf("export", demo_log_run.path, "--to", "parquet", "-o", "-")
    assert (code, out, err.count("\n")) == (1, "", 1)
    code, out, err = crystalperf("export", demo_log_run.path, "--to", "svg")
    assert (code, out, err.count("\n")) == (1, "", 1)


def test_redacted_exports_have_none_of_the_run_s_names(crystalperf: Answer, demo_log_run: Run, tmp_path: Path) -> None:
    plain, hidden = tmp_path / "plain", tmp_path / "hidden"
    for path, flags in ((plain, ()), (hidden, ("--redact",))):
        assert crystalperf("export", demo_log_run.path, "--to", "otlp", "-o", path, *flags)[0] == 0
    name = demo_log_run.header().app_id.encode()
    assert name in plain.read_bytes()
    assert name not in hidden.read_bytes()
