"""The tables of docs/profile.md: their parts that are worth getting wrong."""

from __future__ import annotations

from pathlib import Path

from lab.checks.corpus import logs_table
from lab.errors import LabError
from lab.pages import put
from tests.refusals import refused

DATA = Path(__file__).parent / "data" / "eventlog"


def test_a_manifest_becomes_a_row_for_each_log_and_one_for_all(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes((DATA / "q9.zstd").read_bytes())
    (tmp_path / "bad").write_text("no event\n")
    rows = ["path\tkind\tsource_repo\tsource_path", "good\tspark-eventlog\tsome/where\ta/good", "x\tjfr\ta/b\tc"]
    rows.append("bad\tspark-eventlog\tsome/where\ta|bad")
    (tmp_path / "MANIFEST.tsv").write_text("\n".join(rows) + "\n")
    _, _, good, bad, everything = logs_table(tmp_path, tmp_path)
    assert good.startswith("| some/where `a/good` | profile | 35 | 19 |")
    assert "| ok |" in good
    assert bad.startswith("| some/where `a\\|bad` | bad: is text")
    assert str(tmp_path) not in bad
    assert everything.startswith("| all | 1 profiles, 1 sentences | 35 | 19 | 1 within 2 % | 1 ok |")


def test_a_table_goes_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("one\n<!-- logs -->\nold\n<!-- end of logs -->\ntwo\n")
    put(page, "logs", ["| new |", r"| a\b |"])
    assert page.read_text() == "one\n<!-- logs -->\n| new |\n| a\\b |\n<!-- end of logs -->\ntwo\n"
    with refused(LabError, "<!-- runs -->"):
        put(page, "runs", [])
