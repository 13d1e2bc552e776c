"""Answers of `analyze` in the cache: when they are used, and what makes them void."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from crystalperf.cli import kept_answers
from crystalperf.cli.main import run
from crystalperf.query.run import Run
from crystalperf.query.trace import plugins

LOG = Path(__file__).parent.parent / "lab" / "recordings" / "first-hour" / "builder-settings.zstd"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("CRYSTALPERF_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return Path(shutil.copy(LOG, tmp_path / "app.log"))


@pytest.fixture
def analyses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were analysed, one for each time."""
    found: list[str] = []
    verdict = Run.verdict

    def counted(self: Run, *arguments: object, **options: object) -> object:
        found.append(self.path.name)
        return verdict(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "verdict", counted)
    return found


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run(["analyze", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def entries(home: Path) -> list[dict[str, object]]:
    return [json.loads(each) for each in (home / "ledger.jsonl").read_text(encoding="utf-8").splitlines()[1:]]


def test_the_same_question_is_answered_without_an_analysis(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = answer(capsys, log)
    assert answer(capsys, log) == first
    assert len(analyses) == 1
    before, after = entries(home)
    assert after.pop("at_ms") >= before.pop("at_ms")  # type: ignore[operator]
    assert after == before


def test_each_option_is_another_question(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [answer(capsys, log, *options) for options in ((), ("--full",), ("--json",), ("--no-ledger",))]
    assert len(analyses) == 4
    assert [answer(capsys, log, *options) for options in ((), ("--full",), ("--json",))] == texts[:3]
    assert len(analyses) == 4
    assert len(entries(home)) == 6


def test_a_run_file_and_its_name_are_questions_too(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer(capsys, log)
    (file,) = (home / "runs").glob("*.duckdb")
    for each in (file.stem, "last", file):
        assert answer(capsys, each) == answer(capsys, each)
    assert len(analyses) == 4


def test_a_changed_log_is_analysed_again(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer(capsys, log)
    os.utime(log, ns=(1, 1))
    answer(capsys, log)
    assert len(analyses) == 2


def test_a_new_file_in_a_folder_is_seen(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = log.parent / "logs"
    folder.mkdir()
    shutil.copy(log, folder)
    answer(capsys, folder)
    (folder / "stacks.txt").write_text("a;b 1\n")
    assert "stacks.txt" in answer(capsys, folder, "--full")
    assert len(analyses) == 2


@pytest.mark.parametrize("change", ["code", "terminal", "index", "variable", "packages"])
def test_whatever_decides_an_answer_voids_it(
    home: Path,
    log: Path,
    analyses: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    change: str,
) -> None:
    answer(capsys, log)
    if change == "code":
        monkeypatch.setattr(kept_answers, "code_hash", lambda *_: "other")
    elif change == "terminal":
        monkeypatch.setenv("COLUMNS", "70")
    elif change == "index":
        (home / "indexes").mkdir()
        (home / "indexes" / "acme-1.0.duckdb").write_bytes(b"")
    elif change == "variable":
        monkeypatch.setenv("CRYSTALPERF_LEDGER", "off")
    else:
        monkeypatch.syspath_prepend(str(home))
    answer(capsys, log)
    assert len(analyses) == 2


def test_a_removed_or_rewritten_run_voids_its_answers(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer(capsys, log)
    (file,) = (home / "runs").glob("*.duckdb")
    assert run(["runs", "--rm", file.stem]) == 0
    assert not list((home / "answers").iterdir())
    assert answer(capsys, log)
    assert file.is_file()
    os.utime(file, ns=(1, 1))
    answer(capsys, log)
    assert len(analyses) == 3


def test_nothing_is_kept_of_a_pipe_a_page_or_with_a_plugin(
    home: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert kept_answers.question([pipe], []) is None
    assert kept_answers.question([tmp_path / "missing"], []) is None
    answer(capsys, log, "--html", tmp_path / "run.html")
    monkeypatch.setattr(plugins, "is_any_installed", lambda: True)
    answer(capsys, log)
    assert not (home / "answers").exists()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"run": [], "text": "x", "entry": ""}', '{"run": ["/"]'])
def test_a_damaged_answer_is_none(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str], content: str
) -> None:
    first = answer(capsys, log)
    (kept,) = (home / "answers").iterdir()
    kept.write_text(content, encoding="utf-8")
    assert answer(capsys, log) == first
    assert len(analyses) == 2


def test_an_answer_that_others_could_write_is_not_read(
    home: Path, log: Path, analyses: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    answer(capsys, log)
    (kept,) = (home / "answers").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.chmod(0o666)
    answer(capsys, log)
    assert len(analyses) == 2


def test_old_answers_make_room(home: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_answers, "_MOST_ANSWERS", 4)
    for number in range(5):
        kept_answers.keep(f"{number}", log, kept_answers.Answer("text", ""))
        os.utime(home / "answers" / f"{number}.json", (number, number))
    kept_answers.keep("last", log, kept_answers.Answer("text", ""))
    assert kept_answers.find("last") == kept_answers.Answer("text", "")
    assert kept_answers.find("0") is None
