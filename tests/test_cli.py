"""The command line end to end: the contract that scripts rely on, bad input, and what a terminal is spared."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crystalperf import indexes
from crystalperf.cli import output
from crystalperf.cli.reference import page
from crystalperf.query.run import Run

ROOT = Path(__file__).parent.parent
LOG = ROOT / "tests" / "data" / "eventlog" / "q9.zstd"
COMMAND = [sys.executable, "-c", "from crystalperf.cli.main import main; main()"]

Answer = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run_file(log_run: Run) -> Path:
    """A real Spark log, profiled without recordings."""
    return log_run.path


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=ROOT, text=True, capture_output=True, timeout=120, check=False, **options
    )


def one_sentence(text: str) -> bool:
    return text.startswith("crystalperf: ") and text.count("\n") == 1 and "Traceback" not in text and len(text) < 1000


# Answers ------------------------------------------------------------------------------------------------------------


def test_debug_json_keeps_the_contract(crystalperf: Answer, run_file: Path) -> None:
    code, out, err = crystalperf("debug", run_file, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["schema"] == "crystalperf.debug/2"
    assert answer["bottleneck"] == "no worker"  # what the text says: waiting for executors
    assert list(answer["resource_ms"]) == ["cpu", "disk", "net", "other"]
    assert sum(answer["resource_ms"].values()) == pytest.approx(answer["runtime_ms"], rel=1e-3)
    assert {"id", "name", "start_ms", "end_ms", "resource_ms"} <= set(answer["critical_path"][0])
    assert {"total", "on_tasks", "resolved"} <= set(answer["samples"])
    assert {"id", "name", "start_ms", "end_ms"} == set(answer["scopes"][0])


def test_analyze_prints_the_verdict_and_stores_the_run(crystalperf: Answer, tmp_path: Path) -> None:
    code, out, err = crystalperf("analyze", LOG, "-o", tmp_path / "kept.duckdb")
    assert (code, err) == (0, "")
    lines = out.split("\n")
    assert "Spark 4.0.1" in lines[0]
    assert re.search(r"[\d.]+ of [\d.]+ s \(\d+ %\)", " ".join(lines[:6]))
    assert "crystalperf setup spark" in out  # there are no samples
    assert str(tmp_path / "kept.duckdb") in out.replace("\n  ", "")
    assert lines[-2].startswith("Next:    crystalperf ")
    assert max(map(len, lines)) <= 80 or all(len(line) <= 80 for line in lines if str(tmp_path) not in line)
    assert (tmp_path / "kept.duckdb").is_file()


def test_analyze_json_is_debug_json_and_more(crystalperf: Answer, run_file: Path, tmp_path: Path) -> None:
    code, out, _ = crystalperf("analyze", LOG, "--json", "-o", tmp_path / "kept.duckdb")
    verdict = json.loads(out)
    debug = json.loads(crystalperf("debug", run_file, "--json")[1])
    assert code == 0
    assert (verdict["schema"], debug.pop("schema")) == ("crystalperf.verdict/2", "crystalperf.debug/2")
    assert verdict["debug"] == debug
    assert verdict["run"] == str(tmp_path / "kept.duckdb")
    assert verdict["bottleneck"]["name"] == debug["bottleneck"]
    wanted = {"cores=2x", "executors=2x", "memory=0.5x", "network=10x"}
    assert {each["setting"] for each in verdict["what_ifs"]} >= wanted
    for each in verdict["what_ifs"]:
        assert (each["predicted_ms"] is None) == bool(each["refused"])
    assert verdict["best"] in verdict["what_ifs"]
    assert verdict["next"] == {"kind": "setup", "facts": {"framework": "spark"}}


def test_a_kept_run_is_found_by_its_name(crystalperf: Answer) -> None:
    code, out, _ = crystalperf("profile", LOG, "--json")
    kept = json.loads(out)
    assert code == 0
    name = Path(kept["run"]).stem
    assert name == kept["header"]["app_id"]
    assert kept["schema"] == "crystalperf.profile/2"
    assert crystalperf("debug", name)[0] == 0


def test_a_log_in_place_of_a_run_is_profiled_on_the_spot(crystalperf: Answer) -> None:
    code, out, err = crystalperf("debug", LOG, "--json")
    assert code == 0
    assert json.loads(out)["runtime_ms"] > 0
    assert "profiled" in err


def test_predict_json_keeps_the_contract(crystalperf: Answer, run_file: Path) -> None:
    code, out, err = crystalperf("predict", run_file, "--set", "cores=2x", "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["predicted_ms"] > 0
    assert answer["refused"] == []
    assert answer["replay_error_ratio"] == pytest.approx(
        (answer["replayed_ms"] - answer["runtime_ms"]) / answer["runtime_ms"], abs=1e-5
    )
    assert {"id", "name", "recorded_ms", "predicted_ms"} == set(answer["stages"][0])
    assert answer["schema"] == "crystalperf.prediction/2"


def test_a_list_makes_a_sweep(crystalperf: Answer, run_file: Path) -> None:
    arguments = ("predict", run_file, "--set", "cores=2,4,8")
    code, out, _ = crystalperf(*arguments, "--json")
    sweep = json.loads(out)
    assert code == 0
    assert sweep["schema"] == "crystalperf.sweep/2"
    assert [each["setting"] for each in sweep["points"]] == ["cores=2", "cores=4", "cores=8"]
    assert sweep["amounts"] == [2, 4, 8]
    assert sweep["knee"] == {"point": 1, "worth": True, "least_share": 0.1}
    _, out, _ = crystalperf(*arguments)
    assert [line.split()[0] for line in out.split("\n") if "<-" in line] == ["cores=4"]
    code, out, _ = crystalperf(*arguments, "--no-replan", "--json")
    assert code == 0
    assert json.loads(out)["knee"] == {"point": 0, "worth": False, "least_share": 0.1}


def test_refused_question_is_json_with_exit_1(crystalperf: Answer, run_file: Path) -> None:
    code, out, err = crystalperf("predict", run_file, "--set", "network=10Gbps", "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["predicted_ms"] is None
    assert answer["runtime_ms"] > 0
    (refusal,) = answer["refused"]
    assert refusal.pop("text")
    assert refusal == {"kind": "recorded-value-unknown", "asked": "network=10Gbps", "setting": "network"}
    assert answer["remedy"] == {"kind": "state what the run had", "facts": {"setting": "network"}}
    assert "--recorded network=" in err
    assert one_sentence(err)
    code, out, err = crystalperf("predict", run_file, "--set", "network=10Gbps")
    assert (code, out) == (1, "")
    assert one_sentence(err)
    assert "--recorded network" in err


def test_stated_resources_make_a_question_answerable(crystalperf: Answer, run_file: Path) -> None:
    assert crystalperf("predict", run_file, "--set", "disk=500MB/s")[0] == 1
    code, _, err = crystalperf("predict", run_file, "--set", "disk=500MB/s", "--recorded", "disk=100MB/s")
    assert (code, err) == (0, "")


def test_without_samples_the_range_of_a_prediction_covers_no_effect(crystalperf: Answer, run_file: Path) -> None:
    code, out, _ = crystalperf("predict", run_file, "--set", "network=10x", "--json")
    answer = json.loads(out)
    assert code == 0
    low, high = answer["interval_ms"]
    assert low < answer["predicted_ms"] <= answer["runtime_ms"] < high
    assert "time-imputed" in {each["kind"] for each in answer["assumptions"]}


def test_a_scope_has_its_own_runtime(crystalperf: Answer, run_file: Path) -> None:
    whole = json.loads(crystalperf("debug", run_file, "--json")[1])
    query_ = whole["scopes"][-1]
    assert query_["id"].startswith("sql:")
    code, out, _ = crystalperf("debug", run_file, "--scope", query_["id"], "--json")
    assert code == 0
    assert json.loads(out)["runtime_ms"] < whole["runtime_ms"]
    assert crystalperf("predict", run_file, "--scope", query_["id"], "--set", "cores=2x")[0] in (0, 1)


def test_version_and_help(crystalperf: Answer) -> None:
    code, out, _ = crystalperf("--version")
    assert code == 0
    assert out.startswith("crystalperf ")
    versions = indexes.SCHEMA_VERSIONS
    assert re.findall(r"\d+", out.partition("schema")[2])[:2] == [str(versions[each]) for each in ("index", "run")]
    for arguments in (("--help",), (), ("index",), ("index", "--help"), ("fleet",), ("fleet", "-h"), ("predict", "-h")):
        code, out, err = crystalperf(*arguments)
        assert (code, err) == (0, ""), arguments
        assert out.startswith("Usage: crystalperf")


def test_every_command_has_a_sentence_and_an_example() -> None:
    helps = re.findall(r"^## (.*)\n\n```\nUsage: (.*)\n\n  (.*)\n((?:.*\n)*?)```$", page(), re.MULTILINE)
    assert len(helps) == page().count("\n## ") > 20
    for name, usage, sentence, rest in helps:
        assert usage.startswith(name)
        assert sentence[0].islower()
        assert f"  Example:\n    {name}" in rest, name


# Exit codes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["analyze"],
        ["analyze", "--nonsense", "x"],
        ["predict", "x"],  # without --set
        [
            "predict",
            "x",
            "--prices",
            "machines.csv",
            "--on",
            "small",
            "--scope",
            "job:3",
        ],  # prices are of the whole run
        ["sql"],
        ["sql", "SELECT 1", "--limit", "many"],
        ["sql", "SELECT 1", "--timeout", "-1"],
        ["index", "nonsense"],
        ["debug", "a", "b"],
    ],
)
def test_a_command_line_that_cannot_be_parsed_exits_with_2(crystalperf: Answer, arguments: list[str]) -> None:
    code, out, err = crystalperf(*arguments)
    assert (code, out) == (2, "")
    assert one_sentence(err)
    assert "--help" in err


JPEG = bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffdb004300") + bytes(range(256)) * 8


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_bad_input_is_one_sentence(crystalperf: Answer, tmp_path: Path, run_file: Path) -> None:
    empty = _write(tmp_path / "empty", b"")
    jpeg = _write(tmp_path / "photo.jpg", JPEG)
    no_run = _write(tmp_path / "no.duckdb", JPEG)
    text = _write(tmp_path / "notes.txt", b"nothing of use here\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    for arguments in (
        ["analyze", tmp_path / "missing"],
        ["analyze", empty],
        ["analyze", jpeg],
        ["analyze", text],
        ["analyze", folder],
        ["analyze", LOG, "--app", "app-of-another"],
        ["analyze", LOG, "--index", "nonsense"],
        ["analyze", LOG, "--index", "absent-1.0"],
        ["analyze", LOG, "-o", "/proc/nowhere/run.duckdb"],
        ["profile", LOG, "-o", "/dev/null/run.duckdb"],
        ["debug", tmp_path / "missing"],
        ["debug", "no-such-run"],
        ["debug", "x" * 5000],
        ["debug", ""],
        ["debug", empty],
        ["debug", jpeg],
        ["debug", no_run],
        ["debug", folder],
        ["debug", run_file, "--scope", "nonsense"],
        ["debug", run_file, "--scope", "sql:99999"],
        ["debug", run_file, "--scope", "9..1"],
        ["predict", run_file, "--set", "nonsense"],
        ["predict", run_file, "--set", "colour=2x"],
        ["predict", run_file, "--set", "cores=-2"],
        ["predict", run_file, "--set", "cores=0"],
        ["predict", run_file, "--set", "cores=many"],
        ["predict", run_file, "--set", "cores="],
        ["predict", run_file, "--set", "cores=1.5"],
        ["predict", run_file, "--set", "memory=-1GiB"],
        ["predict", run_file, "--set", "cores=2", "--set", "cores=4"],
        ["predict", run_file, "--set", "cores=2x", "--recorded", "network=2x"],
        ["predict", run_file, "--set", "cores=2x", "--scope", "job:99999"],
        ["sql", "--run", tmp_path / "missing", "SELECT 1"],
        ["sql", "--run", no_run, "SELECT 1"],
        ["sql", "--index", "absent-1.0", "SELECT 1"],
        ["sql", "--index", "../../etc/passwd", "SELECT 1"],
        ["sql", "SELECT 1"],
        ["setup", "nonsense"],
        ["setup", "spark", "--folder", "relative"],
        ["setup", "spark", "--folder", "/tmp/a,b"],
        ["index", "show", "f", "--index", "absent-1.0"],
        ["index", "verify", "absent-1.0"],
        ["index", "build", "nonsense"],
        ["index", "build", "nonsense-1.0"],
        ["index", "resolve", "--index", "absent-1.0", "a.B.c:1"],
    ):
        code, out, err = crystalperf(*arguments)
        assert (code, out) == (1, ""), (arguments, out, err)
        assert one_sentence(err), (arguments, err)
        assert "--traceback" not in err, (arguments, err)  # as after a bug


def test_an_error_is_json_too_where_json_is_asked(crystalperf: Answer, tmp_path: Path, run_file: Path) -> None:
    from crystalperf.query.text.as_json import schemas
    from tests.test_answers import check

    schema = schemas()["error"]
    for arguments in (
        ["analyze", tmp_path / "missing", "--json"],
        ["debug", run_file, "--scope", "sql:99999", "--json"],
        ["predict", run_file, "--set", "colour=2x", "--json"],
        ["sql", "--run", run_file, "--json", "--csv", "SELECT 1"],
        ["index", "show", "f", "--index", "absent-1.0", "--json"],
    ):
        code, out, err = crystalperf(*arguments)
        assert code == 1
        assert one_sentence(err)
        answer = json.loads(out)
        check(answer, schema, schema)
        assert answer["message"] in err
    code, out, err = crystalperf("analyze", "--json")  # what cannot be parsed has no answer of any kind
    assert (code, out) == (2, "")
    assert crystalperf("analyze", "--", "--json")[1] == ""  # a path of that name


def test_a_truncated_log_is_answered_or_refused_in_one_sentence(crystalperf: Answer, tmp_path: Path) -> None:
    content = LOG.read_bytes()
    for part in (0.02, 0.3, 0.9):
        cut = _write(tmp_path / f"cut-{part}.zstd", content[: int(len(content) * part)])
        code, out, err = crystalperf("analyze", cut, "-o", tmp_path / f"{part}.duckdb")
        assert code in (0, 1)
        if code == 1:
            assert out == ""
            assert one_sentence(err)
        else:
            assert "incomplete" in out or "cut" in out or "ends" in out


def test_a_file_of_another_schema_is_refused_with_what_to_do(crystalperf: Answer, tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    with indexes.create(other, "run", {}) as connection:
        connection.execute("UPDATE metadata SET value = '999' WHERE key = 'schema_version'")
    code, out, err = crystalperf("debug", other)
    assert (code, out) == (1, "")
    assert one_sentence(err)
    assert "999" in err
    assert "crystalperf profile" in err
    from crystalperf.indexes.exports import built_path

    with indexes.create(built_path("ancient-1.0"), "index", {}) as connection:
        connection.execute("UPDATE metadata SET value = '0' WHERE key = 'schema_version'")
    try:
        code, out, err = crystalperf("sql", "--index", "ancient-1.0", "SELECT 1")
    finally:
        built_path("ancient-1.0").unlink()
    assert (code, out) == (1, "")
    assert one_sentence(err)
    assert "crystalperf index build" in err


def test_a_bug_of_ours_is_one_sentence_and_a_traceback_when_asked(
    crystalperf: Answer, run_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object) -> None:
        raise KeyError("lost\x1b[31m")

    monkeypatch.setattr("crystalperf.query.run.Run.debug", broken)
    code, out, err = crystalperf("debug", run_file)
    assert (code, out) == (1, "")
    assert one_sentence(err)
    assert "KeyError" in err
    assert f"crystalperf --traceback debug {run_file}" in err
    assert "\x1b" not in err
    for arguments in (["--traceback", "debug", run_file], ["debug", run_file, "--traceback"]):
        code, out, err = crystalperf(*arguments)
        assert (code, out) == (1, "")
        assert "Traceback" in err
    assert "in broken" in err


def test_a_users_mistake_has_a_traceback_only_when_asked(crystalperf: Answer) -> None:
    assert "Traceback" not in crystalperf("debug", "no-such-run")[2]
    assert "Traceback" in crystalperf("--traceback", "debug", "no-such-run")[2]


def test_running_out_of_memory_is_a_sentence(
    crystalperf: Answer, run_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("crystalperf.query.run.Run.debug", greedy)
    code, out, err = crystalperf("debug", run_file)
    assert (code, out) == (1, "")
    assert one_sentence(err)
    assert "memory" in err
    assert "--traceback" not in err


def test_interrupt_during_imports_is_handled_as_any_other() -> None:
    """The first tenth of a second goes to imports, before anything could listen."""
    program = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'crystalperf.cli.commands': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from crystalperf.cli.entry import main\n"
        "main()\n"
    )
    done = run_apart(program)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


# The process --------------------------------------------------------------------------------------------------------


def run_apart(program: str) -> subprocess.CompletedProcess[str]:
    """A program of Python in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True, timeout=60, check=False
    )


def test_help_imports_nothing_slow() -> None:
    program = (
        "import sys\n"
        "from crystalperf.cli.main import run\n"
        "run(['--help']); run(['predict', '--help'])\n"
        "slow = {'duckdb', 'numpy', 'rich', 'networkx', 'query', 'indexes', 'indexer', 'msgspec', 'torch'}\n"
        "sys.exit(repr(slow & set(sys.modules)) if slow & set(sys.modules) else 0)\n"
    )
    done = run_apart(program)
    assert (done.returncode, done.stderr) == (0, "")


def test_typed_text_bypasses_pydantic() -> None:
    """Which typer would import, to hear that a text is a text."""
    program = (
        "import sys\n"
        "from crystalperf.cli.main import run\n"
        "code = run(['analyze', 'no-such-log', 'nor-this', '--index', 'a-1', '--index', 'b-2', '--full'])\n"
        "sys.exit('pydantic' if 'pydantic' in sys.modules else code)\n"
    )
    done = run_apart(program)
    assert done.returncode == 1
    assert one_sentence(done.stderr)
    assert "no-such-log" in done.stderr


class Terminal(io.StringIO):
    """The bytes sent to a terminal."""

    def isatty(self) -> bool:
        return True


def test_terminal_shows_the_progress_of_predict(
    crystalperf: Answer, run_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("predict", run_file, "--set", "cores=2,4")
    quiet = crystalperf(*asked)
    assert quiet[2] == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(output, "PROGRESS_AFTER_S", 0.0)
    assert crystalperf(*asked)[:2] == quiet[:2]
    lines = terminal.getvalue().split("\r\x1b[K")
    steps = list(dict.fromkeys(line.partition(" s  ")[2] for line in lines if line))
    assert [each.rpartition(" ")[2] for each in steps] == ["run", "cores=2", "cores=4"]
    assert lines[-1] == ""  # the line is gone


def test_long_step_shows_elapsed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(output, "PROGRESS_AFTER_S", 0.0)
    monkeypatch.setattr(output, "PROGRESS_EVERY_S", 0.001)
    with output.progress() as step:
        step("thinking")
        while terminal.getvalue().count("thinking") < 5:
            time.sleep(0.001)
    reported = terminal.getvalue()
    assert reported.endswith("\r\x1b[K")
    step("too late")
    assert terminal.getvalue() == reported


def test_a_closed_pipe_is_silent(run_file: Path) -> None:
    statement = "SELECT range, repeat('x', 100) AS filler FROM range(20000)"
    for option in ("--csv", "--json"):
        command = [*COMMAND, "sql", "--run", str(run_file), statement, option]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as done:
            assert done.stdout.readline() != b""
            done.stdout.close()
            assert done.stderr.read() == b""
            assert done.wait(60) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_a_sentence(run_file: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "debug", str(run_file)], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    assert one_sentence(done.stderr)
    assert os.strerror(errno.ENOSPC) in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_without_a_traceback_or_temporary_files(
    number: signal.Signals, code: int, run_file: Path, tmp_path: Path
) -> None:
    statement = "SELECT count(*) FROM range(100000000000) WHERE hash(range) = 1"
    command = [*COMMAND, "sql", "--run", str(run_file), statement]
    # A process in the background inherits that interrupts are ignored; this one is to be interrupted all the same.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        done = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with done:
        while not _works_hard(done.pid):
            assert done.poll() is None
            time.sleep(0.05)
        done.send_signal(number)
        out, err = done.communicate(timeout=60)
    assert (done.returncode, out, err) == (code, "", "")
    assert not list(tmp_path.iterdir())


def _works_hard(pid: int) -> bool:
    """Whether the process that answers for it has used two seconds of CPU, which it does only inside its query."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any(_cpu_s(int(child)) > 2 for child in children)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_names_cannot_steer_the_terminal(crystalperf: Answer, tmp_path: Path) -> None:
    import zstandard

    lines = zstandard.ZstdDecompressor().decompressobj().decompress(LOG.read_bytes())
    evil = json.dumps("tpch\x1b]0;owned\x07\u202e\u2028\x9b31mq9")[1:-1].encode()
    assert b'"App Name":"tpch-q9"' in lines
    log = _write(tmp_path / "evil", lines.replace(b'"App Name":"tpch-q9"', b'"App Name":"' + evil + b'"'))
    kept = tmp_path / "evil.duckdb"
    outputs = [crystalperf("analyze", log, "-o", kept)]
    outputs += [crystalperf("analyze", log, "-o", kept, "--json"), crystalperf("debug", kept)]
    outputs += [crystalperf("predict", kept, "--set", "cores=2x"), crystalperf("sql", "--run", kept, "FROM runs")]
    outputs += [crystalperf("sql", "--run", kept, "FROM runs", "--json")]
    outputs += [crystalperf("debug", "a\x1b[31mb\u202e")]
    for _, out, err in outputs:
        assert not set(out + err) & set("\x1b\x07\x9b\u202e\u2028"), ascii(out + err)
    assert all("owned" in out for _, out, _ in outputs[:5])


def test_no_color_and_pipes_get_plain_text(run_file: Path) -> None:
    done = process("debug", run_file, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


@pytest.mark.later
def test_ascii_terminal_does_not_fail(run_file: Path) -> None:
    done = process("debug", run_file, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    variables = {
        "bash": {"COMP_WORDS": "crystalperf predict x --set co", "COMP_CWORD": "4"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "crystalperf predict x --set co"},
        "fish": {"_TYPER_COMPLETE_ARGS": "crystalperf predict x --set co", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    done = process(env={**os.environ, "_CRYSTALPERF_COMPLETE": f"complete_{shell}", **variables})
    assert "cores=" in done.stdout
    assert "executors=" not in done.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize(("begun", "wanted"), [("exec", "executors="), ("work", "workers="), ("netw", "network=")])
def test_settings_are_completed_in_every_frameworks_words(begun: str, wanted: str) -> None:
    words = {"COMP_WORDS": f"crystalperf predict x --set {begun}", "COMP_CWORD": "4"}
    done = process(env={**os.environ, "_CRYSTALPERF_COMPLETE": "complete_bash", **words})
    assert done.stdout.split() == [wanted]
