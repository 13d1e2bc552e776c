"""The commands of the tutorials and how-to guides run, and print what the pages show.

A `console` block has commands (`$ crystalperf …`) and their output; `...` on a line of its own replaces lines.  A block
with a file name (```` ```csv title="machines.csv" ````) is a file that later commands read, and a `python` block runs,
too.  A block that no test runs has a comment before it: `<!-- not run: why -->`.

python -m tests.test_tutorials [PAGES]      rewrites the output in the pages; read what changed before you commit it
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from crystalperf.cli.main import run
from crystalperf.service.settings import Limits

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
GUIDES = sorted((ROOT / "docs" / "how-to").glob("*.md"))
GZIP = ROOT / "lab" / "recordings" / "gzip-text"

_BLOCK = re.compile(
    r"^(?P<why><!-- not run: [^\n]+ -->\n)?```(?P<kind>[a-z]*)(?: title=\"(?P<file>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_STEP = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_READ = re.compile(r'"\$\(cat ([^)"]+)\)"')
_COMMANDS = {"bash", "console", "python", "sh", ""}
"""Kinds of blocks that a reader copies to run; the others are output, configuration or files."""

_ALIKE = 0.6
"""A shown line with less in common with any real line (difflib's ratio) is dropped when a page is rewritten."""


@dataclass(frozen=True)
class Block:
    kind: str
    file: str | None
    text: str
    why_not_run: str | None


def blocks(text: str) -> list[Block]:
    return [Block(each["kind"], each["file"], each["text"], each["why"]) for each in _BLOCK.finditer(text)]


def printed(command: str) -> str:
    """The output of one `crystalperf` command, first stdout, then stderr."""
    joined = command.replace("\\\n", " ")
    joined = _READ.sub(lambda match: shlex.quote(Path(match[1]).read_text(encoding="utf-8")), joined)
    program, *arguments = shlex.split(joined)
    assert program == "crystalperf", f"only crystalperf is run: {command}"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    assert code == 0, f"{command}: {err.getvalue()}"
    return "".join(f"{line.rstrip()}\n" for line in (out.getvalue() + err.getvalue()).strip("\n").split("\n"))


def pattern(shown: str) -> str:
    """A pattern for the output that a page may show so."""
    return "".join(
        r"(?:.*\n)+?" if line == "..." else f"{re.escape(line)}\n" for line in shown.rstrip("\n").split("\n")
    )


def updated(shown: str, real: str) -> str:
    """The real lines most like the shown ones, in order, with `...` for each gap."""
    wanted = [line for line in shown.rstrip("\n").split("\n") if line != "..."]
    if re.fullmatch(pattern(shown), real) or not wanted:
        return shown
    lines = real.rstrip("\n").split("\n")
    # best[i][j]: the best sum of likeness of wanted[i:] to lines[j:].
    best = [[0.0] * (len(lines) + 1) for _ in range(len(wanted) + 1)]
    alike = [[difflib.SequenceMatcher(None, one, other).ratio() for other in lines] for one in wanted]
    for i in reversed(range(len(wanted))):
        for j in reversed(range(len(lines))):
            paired = alike[i][j] + best[i + 1][j + 1] if alike[i][j] >= _ALIKE else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    kept, i, j = [], 0, 0
    while i < len(wanted) and j < len(lines):
        if alike[i][j] >= _ALIKE and best[i][j] == alike[i][j] + best[i + 1][j + 1]:
            kept.append(j)
            i, j = i + 1, j + 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            i += 1
    found, after = "", 0
    for each in [*kept, len(lines)]:
        found += "...\n" if each > after else ""
        found += f"{lines[each]}\n" if each < len(lines) else ""
        after = each + 1
    return found


@contextlib.contextmanager
def checkout() -> Iterator[Path]:
    """An empty working folder that looks like the root of a checkout."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        for each in ("docs", "examples", "indexes", "lab", "tests"):
            (Path(name) / each).symlink_to(ROOT / each)
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def rewritten(text: str) -> str:
    """The page with the output of today.  Runs its commands in order, in one working folder."""
    names: dict[str, Any] = {}
    with checkout():

        def block(match: re.Match[str]) -> str:
            if match["why"]:
                return match[0]
            if match["file"]:
                Path(match["file"]).write_text(match["text"], encoding="utf-8")
            elif match["kind"] == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(match["text"], "the page", "exec"), names)
            elif match["kind"] == "console":
                return match[0].replace(match["text"], _STEP.sub(step, match["text"]))
            return match[0]

        def step(match: re.Match[str]) -> str:
            real = printed(match["command"])
            return f"$ {match['command']}\n{updated(match['shown'], real) if match['shown'] else ''}"

        return _BLOCK.sub(block, text)


@pytest.fixture(autouse=True)
def as_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def _cases() -> list[Any]:
    slow = {"slow-spark-job", *(each.stem for each in GUIDES)}
    return [
        pytest.param(each, id=each.stem, marks=[pytest.mark.later] if each.stem in slow else [])
        for each in TUTORIALS + GUIDES
    ]


@pytest.mark.parametrize("page", _cases())
def test_page_shows_what_its_commands_print(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "$ crystalperf index build" in text:
        pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")
    found = rewritten(text)
    assert is_alike(found, text), "\n".join(difflib.unified_diff(text.splitlines(), found.splitlines(), lineterm=""))


_NUMBER = re.compile(r"(\d+(?:\.\d+)?)")


def is_alike(found: str, expected: str) -> bool:
    """Whether two texts are equal, but for the last digit of numbers.

    Processors add floats in another order, and the last bit of a time may exchange two tasks of a replay.
    """
    ours, theirs = _NUMBER.split(found), _NUMBER.split(expected)
    if len(ours) != len(theirs) or ours[::2] != theirs[::2]:
        return False
    return all(
        len(one.partition(".")[2]) == len(other.partition(".")[2])
        and abs(float(one) - float(other)) <= 1.01 * 10.0 ** -len(one.partition(".")[2])
        for one, other in zip(ours[1::2], theirs[1::2], strict=True)
    )


@pytest.mark.parametrize(
    ("found", "same"),
    [("8.2 to 56.9 s", True), ("8.2 to 56.8 s", True), ("8.2 to 57.0 s", False), ("8.2 to 56.9 ms", False)],
)
def test_only_the_last_digit_may_differ(found: str, same: bool) -> None:
    assert is_alike(found, "8.2 to 56.8 s") == same


@pytest.mark.parametrize("page", TUTORIALS + GUIDES, ids=lambda each: each.stem)
def test_each_command_block_runs_or_says_why_not(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    assert text.count("\n```") == 2 * len(found), "a code block that this test does not read"
    for each in found:
        runs = each.file or each.kind in ("console", "python")
        assert each.kind not in _COMMANDS or runs or each.why_not_run, each.text
        if each.kind == "console" and not each.why_not_run:
            steps = "".join(step[0] for step in _STEP.finditer(each.text))
            assert steps == each.text, "a block begins with its command"
    outside = _BLOCK.sub("", text)
    assert not re.search(r"^ {4}\S", outside, re.MULTILINE), "use a fenced block"


def test_updated_keeps_the_shown_lines_and_marks_gaps() -> None:
    real = "title\n\nrow a   11\nrow b   20\nrow c   30\ntotal   61\n"
    assert updated("title\n...\nrow a   10\n...\ntotal   60\n", real) == "title\n...\nrow a   11\n...\ntotal   61\n"
    assert updated("row b   20\ngone for good\n", real) == "...\nrow b   20\n...\n"
    assert updated("...\ntotal   61\n", real) == "...\ntotal   61\n"


def test_spark_tutorial_has_the_reruns_of_the_example() -> None:
    page = (ROOT / "docs" / "tutorials" / "slow-spark-job.md").read_text(encoding="utf-8")
    reruns = json.loads((GZIP / "reruns.json").read_text(encoding="utf-8"))["1-core"]
    for cores, each in (("1", reruns["1"]), ("2", reruns["2x"])):
        times = ", ".join(f"{one:.2f}" for one in each)
        assert f"| {cores} | {times} | {statistics.median(each):.2f} |" in page


def test_pytorch_tutorial_has_the_reruns_of_the_lab() -> None:
    page = (ROOT / "docs" / "tutorials" / "pytorch-input-bottleneck.md").read_text(encoding="utf-8")
    lines = (ROOT / "lab" / "recordings" / "files" / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(each) for each in lines]
    for disk in (1, 2, 4, 8):
        steps = [row["settled_ms"][0] for row in rows if row["name"].startswith(f"files-r1-c0.6-d{disk}.")]
        assert len(steps) >= 2
        assert f"| {disk} MB/s | {len(steps)} | {statistics.median(steps):.0f} |" in page


def test_service_guide_names_limits_of_the_service() -> None:
    page = (ROOT / "docs" / "how-to" / "host-the-service.md").read_text(encoding="utf-8")
    shown = {"GiB": 1 << 30, "s": 1, "": 1}
    listed = re.findall(r"^\| `([a-z_]+)` \| (\d+) ?(\w*) \|", page, re.MULTILINE)
    defaults = {each.name: each.default for each in fields(Limits)}
    assert len(listed) >= 4
    assert all(int(number) * shown[unit] == defaults[name] for name, number, unit in listed)


@pytest.mark.later
def test_commands_of_the_service_guide_work_without_the_proxy(tmp_path: Path) -> None:
    pytest.importorskip("httpx")
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    serving = pytest.importorskip("lab.served", reason="the lab is not installed").serving

    page = (ROOT / "docs" / "how-to" / "host-the-service.md").read_text(encoding="utf-8")
    first, send, delete = (each.text for each in blocks(page) if each.kind == "sh")
    assert all(each in first for each in ("--token-file token", "--allow-host perf.example.org"))
    (make,) = (line for line in first.splitlines() if "> token" in line)
    home = tmp_path / "home"

    def typed(text: str) -> str:
        text = text.replace("https://perf.example.org", url).replace("/srv/crystalperf", str(home))
        text = text.replace("curl ", "curl --silent --fail --show-error -H 'Host: perf.example.org' ")
        return subprocess.run(["bash", "-euc", text], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    url = ""
    typed(make)
    token = tmp_path / "token"
    assert token.stat().st_mode & 0o777 == 0o600
    shutil.copy(ROOT / "tests" / "data" / "eventlog" / "q9.zstd", tmp_path / "eventlog.zstd")
    with serving(home, (), "--token-file", str(token), "--allow-host", "perf.example.org") as served:
        url = f"http://127.0.0.1:{served.port}"
        served.client.headers["Authorization"] = f"Bearer {token.read_text().strip()}"
        job = served.job_over(json.loads(typed(send))["id"])
        assert served.get(f"/api/runs/{job['run']}").status_code == 200
        typed(delete.replace("app-20261121113629-0000", job["run"]))
        assert served.get(f"/api/runs/{job['run']}").status_code == 404


@pytest.mark.later
def test_review_of_a_branch_finds_what_the_guide_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tree_sitter", reason="the indexer extra is not installed")
    page = (ROOT / "docs" / "how-to" / "review-a-change.md").read_text(encoding="utf-8")
    (command,) = (each.text for each in blocks(page) if each.why_not_run)
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    branch, program = tmp_path / "branch", tmp_path / "bin" / "crystalperf"
    shutil.copytree(ROOT / "tests" / "data" / "acme" / "src", branch)
    printed(f"crystalperf index build acme-1 --source {branch}")
    printed(f"crystalperf analyze {ROOT}/tests/data/acme -o {branch}/acme.duckdb")
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from crystalperf.cli.main import main; main()" "$@"\n')
    program.chmod(0o755)
    git = "git -c user.name=a -c user.email=a@b"
    setup = f"""
        git init --quiet --initial-branch=main . && git add com && {git} commit --quiet -m before
        git checkout --quiet -b change && git apply {ROOT}/examples/review/change.diff
        {git} commit --quiet -am after
    """
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    typed = ["bash", "-euo", "pipefail", "-c", setup + command]
    done = subprocess.run(typed, cwd=branch, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 device calls" in done.stdout


@pytest.mark.later
def test_lines_of_setup_record_a_spark_job_as_they_stand(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java on this machine")
    folder, conf = tmp_path / "recordings", tmp_path / "conf"
    folder.mkdir()
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(printed(f"crystalperf setup spark --on plain --folder {folder}"))
    job = tmp_path / "job.py"
    job.write_text(
        "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
        "spark.range(1000000).selectExpr('sha2(cast(id AS string), 256) AS h').groupBy().agg({'h': 'max'}).collect()\n"
        "spark.stop()\n"
    )
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]", str(job)]
    environment = {**os.environ, "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
    subprocess.run(submit, env=environment, check=True, capture_output=True, timeout=600)
    (log,) = folder.glob("eventlog_v2_*")
    (recording,) = folder.glob("hotspot-pid-*.jfr")
    answer = printed(f"crystalperf analyze {log} {recording} -o {tmp_path}/run.duckdb")
    assert "Bottleneck" in answer
    assert "no stack samples" not in answer


if __name__ == "__main__":
    os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as home:
        os.environ["CRYSTALPERF_HOME"] = home
        for path in [Path(each).resolve() for each in sys.argv[1:]] or TUTORIALS + GUIDES:
            path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")
