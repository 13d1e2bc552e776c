"""Figures of pages are those of docs/figures, and no page states another value of one.

python -m tests.test_lab_figures      writes the tables and figures of all pages again
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.figures import FIGURE, FOLDER, TABLE, Table, filled, load, look_up, main, markdown_tables, rendered, save
from tests import words

ROOT = Path(__file__).parent.parent
NAMES = sorted(each.stem for each in FOLDER.glob("*.json"))
NUMBER = r"(\d+(?:\.\d+)?)(?: ± \d+(?:\.\d+)?)?(?:(?:,| and| to| or) \d+(?:\.\d+)?)* ?%"
"""Percentages of a sentence, also in lists: `10.5 and 9.5 %`."""
_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n\s*(?:[-*|]|\n)")


def pages() -> list[Path]:
    """All pages that may include figures, without dated notes."""
    found = [ROOT / each for each in words.files() if each.endswith(".md")]
    return [each for each in found if ROOT / "research" not in each.parents]


def contradictions(path: str, text: str, tables: dict[str, Table]) -> Iterator[str]:
    """Sentences of a file that state a figure which none of the tables about that subject has."""
    text = FIGURE.sub("", TABLE.sub("", text))
    title = text.partition("\n")[0] if path.endswith(".md") else ""
    pieces = [(piece.line, piece.text) for piece in words.prose(path, text)]
    pieces += [(0, each) for each in _rows(text)] if path.endswith(".md") else []
    for line, piece in pieces:
        for sentence in _SENTENCE.split(piece):
            plain = " ".join(sentence.split())
            subjects = [each for each in tables.values() if each.about and _is_about(f"{title}: {plain}", each)]
            known = set().union(*(each.numbers() for each in subjects)) if subjects else set()
            for stated in _stated(plain, subjects):
                digits = len(stated.partition(".")[2])
                if float(stated) not in {round(each, digits) for each in known}:
                    yield f"{path}:{line}: {stated} in {plain!r}"


def _rows(text: str) -> Iterator[str]:
    """The rows of tables as sentences, each cell with the title of its column, and the % of that."""
    for columns, rows in markdown_tables(text):
        for cells in rows:
            named = zip(columns, cells, strict=False)
            yield ", ".join(f"{name} {cell}{' %' * ('%' in name and '%' not in cell)}" for name, cell in named)


def _is_about(sentence: str, table: Table) -> bool:
    return all(re.search(each, sentence, re.IGNORECASE) for each in table.about)


def _stated(sentence: str, subjects: list[Table]) -> Iterator[str]:
    for pattern in {each.number or NUMBER for each in subjects}:
        for match in re.finditer(pattern, sentence):
            yield from re.findall(r"\d+(?:\.\d+)?", match[0] if pattern == NUMBER else match[1])


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    return {name: load(name) for name in NAMES}


def test_pages_have_the_current_figures() -> None:
    old = [str(each) for each in pages() if (text := each.read_text(encoding="utf-8")) != filled(text)]
    assert not old, "write them again with `python -m tests.test_lab_figures`"


def test_tables_are_on_a_page() -> None:
    text = "\n".join(each.read_text(encoding="utf-8") for each in pages())
    stated = " ".join(each.read_text(encoding="utf-8") for each in FOLDER.glob("*.json"))
    unused = [name for name in NAMES if f"<!-- table {name}" not in text and f"{name};" not in text + stated]
    assert not unused


@pytest.mark.parametrize("name", NAMES)
def test_table_names_its_origin(name: str) -> None:
    table = load(name)
    assert re.fullmatch(r"2\d{3}-\d\d-\d\d", table.measured)
    assert re.fullmatch(r"[0-9a-f]{7,}", table.commit)
    assert table.command.startswith(("python -m ", "python examples/", "make ", "npm "))
    assert len({len(table.columns), *map(len, table.rows)}) == 1


@pytest.mark.parametrize("area", ["README.md", "CHANGELOG.md", "docs/", ""])
def test_no_sentence_contradicts_a_table(area: str, tables: dict[str, Table]) -> None:
    found = []
    for path in words.files():
        mine = next(each for each in ("README.md", "CHANGELOG.md", "docs/", "") if path.startswith(each))
        if mine == area and path.endswith((".md", ".py")) and not path.startswith(("research/", "tests/")):
            found += contradictions(path, (ROOT / path).read_text(encoding="utf-8"), tables)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "Two cores read 5.8 logs of some hundred kilobytes a second.",
        "A fleet reads 5.8 logs/s.",
        "In 13 other runs of Flink the latency error was 10 % on average.",
        "| Flink | error % |\n|---|---|\n| latency | 10 |",
        "The mean error of predicted steps is 9 % for PyTorch, for TensorFlow 18 %.",
        "On public reruns the mean error is 11.1 %.",
    ],
)
def test_contradiction_is_found(text: str, tables: dict[str, Table]) -> None:
    assert list(contradictions("docs/a.md", f"# A page\n\n{text}\n", tables))


@pytest.mark.parametrize(
    "text",
    [
        "A fleet reads 7.7 logs/s.",
        "On Flink the error of a latency is 4 % on average.",
        "The mean error of predicted steps is 9.1 % for PyTorch, for TensorFlow 11.2 %.",
        "Flink's buffers fill in 50 ms; the latency is 20 % of that.",
    ],
)
def test_same_figure_passes(text: str, tables: dict[str, Table]) -> None:
    assert not list(contradictions("docs/a.md", f"# A page\n\n{text}\n", tables))


MADE = Table("2026-11-27", "abcdef0", "python -m x", ("who", ">error"), (("ours", "4.0 ± 3.1"), ("others", "20")))


def test_reference_gives_a_cell_or_its_mean(tmp_path: Path) -> None:
    save(tmp_path / "made.json", MADE)
    assert look_up("made; ours; error", tmp_path) == "4.0 ± 3.1"
    assert look_up("made; ours; error; mean", tmp_path) == "4.0"
    with pytest.raises(LabError, match="0 rows 'theirs'"):
        look_up("made; theirs; error", tmp_path)


def test_page_gets_tables_rows_and_cells(tmp_path: Path) -> None:
    save(tmp_path / "made.json", MADE)
    page = "<!-- table made rows=^ours -->\n<!-- end of made -->\nIt is <!-- = made; others; error -->old<!-- --> %.\n"
    assert filled(page, tmp_path).splitlines() == [
        "<!-- table made rows=^ours -->",
        "",
        "| who | error |",
        "|---|---:|",
        "| ours | 4.0 ± 3.1 |",
        "",
        "<!-- end of made -->",
        "It is <!-- = made; others; error -->20<!-- --> %.",
    ]
    assert filled(filled(page, tmp_path), tmp_path) == filled(page, tmp_path)


def test_command_writes_its_table_with_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "made.json"
    save(file, Table("2000-01-01", "0000000", "python -m old", ("who",), (("x",),), about=("ours",), number="(1)"))
    printed = "\n".join(["text", *rendered(MADE), "end"])
    assert main([str(file), "--table", "who", "--", sys.executable, "-c", f"print({printed!r})"]) == 0
    found = load("made", tmp_path)
    assert (found.columns, found.rows) == (MADE.columns, MADE.rows)
    assert found.command.startswith(sys.executable)
    assert found.measured > "2026"
    assert (found.about, found.number) == (("ours",), "(1)")
    assert json.loads(file.read_text(encoding="utf-8"))["rows"][0] == ["ours", "4.0 ± 3.1"]


def test_command_without_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "made.json"), "--", sys.executable, "-c", "print('nothing')"]) == 1
    assert "prints no Markdown table" in capsys.readouterr().err
    assert not (tmp_path / "made.json").exists()


def test_markdown_tables_keep_alignment_and_bars() -> None:
    assert list(markdown_tables("| a | b |\n|---|---:|\n| x \\| y | 1 |\n")) == [(("a", ">b"), (("x \\| y", "1"),))]


if __name__ == "__main__":
    for each in pages():
        text = each.read_text(encoding="utf-8")
        if (now := filled(text)) != text:
            each.write_text(now, encoding="utf-8")
            print(each.relative_to(ROOT))
