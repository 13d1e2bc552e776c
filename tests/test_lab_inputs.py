"""lab.checks.inputs: what becomes of public files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lab.checks.inputs import Row, main, rows, summary, table

TRACE = Path(__file__).parent / "data" / "training" / "worker0-step2.run_metadata.pb"


def test_each_file_is_read_or_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    shutil.copy(TRACE, folder)
    (folder / "nothing").touch()
    (folder / "table.csv").write_text("a,b\n1,2\n3,4\n")
    found = {each.name: each for each in rows([folder])}
    read = found[f"some/{TRACE.name}"]
    assert (read.framework, read.broke, read.is_unnamed) == ("tensorflow", False, False)
    assert read.tasks.endswith(" operators")
    assert read.step_ms > 0
    assert found["some/nothing"].is_unnamed, "that it is empty says nothing of what it is"
    assert not found["some/table.csv"].is_unnamed
    assert main([str(folder)]) == 1
    assert "3 files: 1 read, 2 refused in a sentence, 1 of them unnamed." in capsys.readouterr().out


def test_a_file_that_breaks_the_product_is_not_refused() -> None:
    found = [Row("a/b", "KeyError: 'ts'", broke=True), Row("a/c", "c: is a tar archive; unpack it")]
    assert summary(found)[-1] == "2 files: 0 read, 1 refused in a sentence, 0 of them unnamed, 1 crashed CrystalPerf."
    assert table(found)[2] == "| a/b | broke |  |  | KeyError: 'ts' | 0.0 |"
