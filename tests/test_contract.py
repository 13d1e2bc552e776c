"""Hostile use of the command line on the demo's recording: output places, lists, foreign recordings."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crystalperf.query.run import Run

ROOT = Path(__file__).parent.parent
LOG = "eventlog_v2_app-20261121113629-0000"

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run_file(demo_log_run: Run) -> Path:
    return demo_log_run.path


def refused(answer: tuple[int, str, str], name: str) -> bool:
    """Exit 1, nothing on stdout, one sentence about what has that name."""
    code, out, err = answer
    one_line = err.startswith("crystalperf: ") and err.count("\n") == 1 and "--traceback" not in err
    return code == 1 and out == "" and one_line and name in err


# Where a run file may be put ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["the log", "a text", "an index", "a link", "another database"])
def test_a_run_file_never_replaces_something_else(crystalperf: Answer, demo: Path, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "there"
    if kind == "the log":
        place.write_bytes(next((demo / LOG).glob("events_1_*")).read_bytes())
    elif kind == "a text":
        place.write_text("mine")
    elif kind == "a link":
        (tmp_path / "target").touch()
        place.symlink_to(tmp_path / "target")
    else:
        import duckdb

        with duckdb.connect(str(place)) as connection:
            connection.execute("CREATE TABLE metadata (key VARCHAR, value VARCHAR)")
            if kind == "an index":
                connection.execute("INSERT INTO metadata VALUES ('kind', 'index')")
    before = place.read_bytes()
    given = place if kind == "the log" else demo / LOG
    assert refused(crystalperf("profile", given, "-o", place), str(place))
    assert place.read_bytes() == before
    assert place.is_symlink() == (kind == "a link")
    assert not list(tmp_path.glob(".*"))


def test_a_run_file_replaces_an_older_one_and_an_empty_file(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    place = tmp_path / "run.duckdb"
    place.touch()
    assert crystalperf("profile", demo / LOG, "-o", place)[0] == 0
    first = place.stat().st_mtime_ns
    assert crystalperf("profile", demo / LOG, "-o", place)[0] == 0
    assert place.stat().st_mtime_ns == first  # reused: its inputs are unchanged
    assert crystalperf("profile", demo / LOG, demo / "driver.jfr.gz", "-o", place)[0] == 0
    assert place.stat().st_mtime_ns > first


def test_a_name_too_long_is_one_sentence(crystalperf: Answer, demo: Path) -> None:
    assert refused(crystalperf("profile", demo / LOG, "-o", "x" * 300), os.strerror(errno.ENAMETOOLONG))


def test_full_disk_is_not_reported_as_a_bug(
    crystalperf: Answer, run_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    def full(*_: Any, **__: Any) -> None:
        raise duckdb.IOException('IO Error: Could not write file "x.building": No space left on device')

    monkeypatch.setattr("crystalperf.query.run.Run.debug", full)
    assert refused(crystalperf("debug", run_file), "disk")


@pytest.mark.parametrize("stream", [1, 2])
def test_closed_output_stream_does_not_affect_the_other(run_file: Path, stream: int) -> None:
    script = f"import os; os.close({stream}); os.execv({sys.executable!r}, [{sys.executable!r}, "
    arguments = (
        f"'-m', 'crystalperf.cli.main', 'debug', {str(run_file if stream == 1 else run_file.with_name('nope'))!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + arguments], cwd=ROOT, text=True, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == (stream == 1)


# Questions ----------------------------------------------------------------------------------------------------------


def test_a_list_keeps_its_answers_where_one_value_cannot_be_asked(crystalperf: Answer, run_file: Path) -> None:
    code, out, _ = crystalperf("predict", run_file, "--set", "network=2x,10Gbps", "--json")
    assert code == 0
    possible, impossible = json.loads(out)["points"]
    assert possible["setting"] == "network=2x"
    assert possible["predicted_ms"] > 0
    assert impossible["setting"] == "network=10Gbps"
    assert impossible["predicted_ms"] is None
    assert impossible["refused"][0]["kind"] == "recorded-value-unknown"
    assert impossible["remedy"] == {"kind": "state what the run had", "facts": {"setting": "network"}}
    _, text, _ = crystalperf("predict", run_file, "--set", "network=2x,10Gbps")
    assert "--recorded network" in text


def test_a_list_without_any_answer_is_refused_as_a_list(crystalperf: Answer, run_file: Path) -> None:
    code, out, err = crystalperf("predict", run_file, "--set", "network=1Gbps,10Gbps", "--json")
    assert code == 1
    assert err.count("\n") == 1
    answer = json.loads(out)
    assert answer["schema"] == "crystalperf.sweep/2"
    assert [each["predicted_ms"] for each in answer["points"]] == [None, None]
    assert [each["runtime_ms"] for each in answer["points"]] == pytest.approx([116238, 116238], abs=1)


@pytest.mark.parametrize("setting", ["cores=1000000000", "executors=400000", "network=1e-300x", "disk=1e300x"])
def test_absurd_scenarios_are_refused_at_once(crystalperf: Answer, run_file: Path, setting: str) -> None:
    assert refused(crystalperf("predict", run_file, "--set", setting), setting)


def test_sweep_without_gains_marks_no_value_as_worth_it(crystalperf: Answer, run_file: Path) -> None:
    _, useless, _ = crystalperf("predict", run_file, "--set", "memory=1x,2x")
    assert "<-" not in useless
    _, useful, _ = crystalperf("predict", run_file, "--set", "executors=1x,2x")
    assert "executors=2x" in useful.split("<-")[0].rsplit("\n", 1)[-1]


@pytest.mark.few(2)
@pytest.mark.parametrize("scope", ["all", "sql:6", "job:0", "20000..60000"])
def test_a_scope_is_tiled_by_its_path_and_unchanged_by_no_change(
    crystalperf: Answer, run_file: Path, scope: str
) -> None:
    _, out, _ = crystalperf("debug", run_file, "--scope", scope, "--json")
    answer = json.loads(out)
    assert sum(answer["resource_ms"].values()) == pytest.approx(answer["runtime_ms"], rel=1e-3)
    path = answer["critical_path"]
    assert path[-1]["end_ms"] - path[0]["start_ms"] == pytest.approx(answer["runtime_ms"], abs=0.01)
    for before, after in pairwise(path):
        assert before["end_ms"] == after["start_ms"]
    _, out, _ = crystalperf("predict", run_file, "--scope", scope, "--set", "cores=1x", "--json")
    same = json.loads(out)
    assert same["runtime_ms"] == answer["runtime_ms"]
    assert same["predicted_ms"] == pytest.approx(answer["runtime_ms"], rel=1e-9)
    assert abs(same["replay_error_ratio"]) <= 0.05


# Inputs -------------------------------------------------------------------------------------------------------------


def test_log_truncated_before_any_task_names_no_bottleneck(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    from crystalperf.query.inputs.containers import Part, head

    stored = next((demo / LOG).glob("events_1_*"))
    lines = head(Part(str(stored)), 64 << 10).split(b"\n")
    (tmp_path / "cut").write_bytes(b"\n".join([*lines[:3], lines[3][:100]]))
    code, out, err = crystalperf("analyze", tmp_path / "cut", "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert (answer["bottleneck"]["kind"], answer["best"]) == ("nothing", None)


def test_packing_the_same_name_twice_is_reported(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    stored = next((demo / LOG).glob("events_1_*"))
    (tmp_path / "twice.gz").write_bytes(gzip.compress(stored.read_bytes()))
    assert refused(crystalperf("analyze", tmp_path / "twice.gz"), "twice.gz")


def test_a_recording_that_is_left_out_is_named_with_the_reason(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    whole = gzip.decompress((demo / "executor-0.jfr.gz").read_bytes())
    (tmp_path / "cut.jfr").write_bytes(whole[: len(whole) * 2 // 5])
    code, out, _ = crystalperf("analyze", demo / LOG, tmp_path / "cut.jfr", "-o", tmp_path / "run")
    assert code == 0
    assert "Not recorded: cut.jfr: " in " ".join(out.split())
    answer = json.loads(crystalperf("analyze", tmp_path / "run", "--json")[1])
    assert answer["header"]["has_samples"] is False
    assert len([each for each in answer["debug"]["not_recorded"] if each.get("recording") == "cut.jfr"]) == 1


def test_driver_recording_of_another_day_is_left_out(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    from crystalperf.query.inputs.containers import Part, head

    stored = next((demo / LOG).glob("events_1_*"))
    day = 86_400_000

    def a_day_later(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: a_day_later(each) for key, each in value.items()}
        if isinstance(value, list):
            return [a_day_later(each) for each in value]
        is_time = isinstance(value, int) and 1.7e12 < value < 1.9e12
        return value + day if is_time else value

    lines = head(Part(str(stored)), 64 << 20).split(b"\n")
    moved = [json.dumps(a_day_later(json.loads(line)), separators=(",", ":")) for line in lines if line]
    (tmp_path / "later").write_text("\n".join(moved) + "\n", encoding="utf-8")
    code, out, _ = crystalperf("analyze", tmp_path / "later", demo / "driver.jfr.gz", "--json", "-o", tmp_path / "run")
    answer = json.loads(out)
    assert code == 0
    assert answer["header"]["has_samples"] is False
    assert any(each.get("recording") == "driver.jfr.gz" for each in answer["debug"]["not_recorded"])
    assert answer["next"] == {"kind": "setup", "facts": {"framework": "spark"}}


def test_executors_without_a_recording_are_reported_as_unsampled(
    crystalperf: Answer, demo: Path, tmp_path: Path
) -> None:
    _, out, _ = crystalperf("analyze", demo / LOG, demo / "driver.jfr.gz", "--json", "-o", tmp_path / "run")
    not_recorded = [each["kind"] for each in json.loads(out)["debug"]["not_recorded"]]
    assert not_recorded.count("all-workers-unsampled") == 1


@pytest.mark.later
def test_the_order_of_the_inputs_does_not_matter(
    crystalperf: Answer, demo: Path, demo_run: Run, tmp_path: Path
) -> None:
    """The log last and the recordings from the last to the first, against the folder's own order."""
    reverse = [demo / "executor-1.jfr.gz", demo / "executor-0.jfr.gz", demo / "driver.jfr.gz", demo / LOG]
    assert crystalperf("profile", *reverse, "-o", tmp_path / "reverse.duckdb")[0] == 0
    answers = []
    for path in (demo_run.path, tmp_path / "reverse.duckdb"):
        _, out, _ = crystalperf("debug", path, "--json")
        answers.append(json.loads(out))
    assert answers[0]["resource_ms"] == pytest.approx(answers[1]["resource_ms"])
    assert answers[0]["samples"] == answers[1]["samples"]


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_pipe_in_a_folder_is_skipped(crystalperf: Answer, demo: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "log").write_bytes(next((demo / LOG).glob("events_1_*")).read_bytes())
    assert crystalperf("analyze", tmp_path, "-o", tmp_path / "run")[0] == 0


def test_a_damaged_index_does_not_hide_the_others(
    crystalperf: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crystalperf import indexes

    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path))
    with indexes.create(tmp_path / "indexes" / "good-1.0.duckdb", "index", {"functions": "0"}):
        pass
    (tmp_path / "indexes" / "bad-1.0.duckdb").write_text("junk")
    code, out, err = crystalperf("index", "list", "--json")
    assert code == 0
    names = [each["name"] for each in json.loads(out)]
    assert "good-1.0" in names
    assert "bad-1.0" not in names
    assert "bad-1.0.duckdb" in err
