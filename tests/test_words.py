"""The lint of prose: the repository is clean, each rule finds its construction, and exempt text passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import words

AREAS = sorted({words.Finding(path, 0, "", "", "").area for path in words.files()} | {"commits"})
PLANTED = {
    "tell": "The log tells which task ran.",
    "lend": "Its shares are lent to the run.",
    "borrow": "The run borrows its shares.",
    "anew": "The rows are read anew.",
    "beside": "Tasks wait beside idle slots.",
    "stretch": "A stretch of 4 s has no tasks.",
    "settle": "The rates settle after ten turns.",
    "rest": "The turns come to rest.",
    "chance": "Its first chance is more memory.",
    "mend": "The skew was mended.",
    "crowd": "A crowded node is slow.",
    "as-such": "The damage is named as such.",
    "as-often-as": "It is sampled as often as the others.",
    "of-before": "The run of before was slower.",
    "want-of": "It fails for want of memory.",
    "next-to-nothing": "The change costs next to nothing.",
    "as-good-as": "The disk is as good as idle.",
    "nobodys": "The time is nobody's.",
    "hold-up": "CPU holds this run up.",
    "speak-for": "Nothing speaks for the scheduler.",
    "none-of": "This file is none of ours.",
    "is-no": "A stage is no job.",
    "door": "Each door has its own words.",
    "room": "The rows have no room.",
    "house": "The rules of the house.",
    "world": "A world with two nodes.",
    "kept-rows": "A stage reads kept rows.",
    "company": "Tasks with more company take longer.",
    "archaic": "A log, whence the times come.",
    "come-along": "The run comes along.",
    "stand": "The name stands in the log.",
    "lie": "The cache lies in your home.",
    "which-of": "It says which of them waited and which of them ran.",
    "for-because": "The prediction is too low, for the other node was slower.",
    "what-sentence": "Some ran. What the sampler came late by was waiting.",
    "what-name": "what came late was waiting",
}


@pytest.mark.parametrize("area", AREAS)
def test_repository_has_no_forbidden_construction(area: str) -> None:
    found = [str(each) for each in words.everything() if each.area == area]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("rule", [rule.name for rule in words.RULES])
def test_rule_finds_its_construction(rule: str) -> None:
    kind = "name" if rule == "what-name" else "text"
    assert rule in [found.name for found, _, _ in words.matches(PLANTED[rule], kind)]


@pytest.mark.parametrize(
    "text",
    [
        "There is no log, and it is no longer than before.",
        "What is the bottleneck?",
        "What to do",
        "Raises an error if there is none of that name, after a stop-the-world pause.",
        "What the log lacks and what it has -----------",
        "What-ifs leave it out of their answers.",
        "What if the network were twice as fast, or the disk",
        "The method `Stage.tell` and the setting `spark.room.size`.",
        'Spark logs "Lost a house of tasks".',
        "The world size of PyTorch, and real-world logs.",
        "Agreement beyond chance.",
        "One table for the driver, for each of its stages a row.",
        "Call tell() or pass --world.",
    ],
)
def test_plain_text_passes(text: str) -> None:
    assert not list(words.matches(text))


def found_in(path: str, text: str) -> list[tuple[int, str]]:
    """Line and rule of each finding in a file's text."""
    return sorted(
        (piece.line + piece.text.count("\n", 0, at), rule.name)
        for piece in words.prose(path, text)
        for rule, at, _ in words.matches(piece.text, piece.kind)
    )


def test_markdown_findings_leave_out_code() -> None:
    text = "# What a heading says\n\nIt is\nread anew, `told`.\n\n```\ntold\n```\n- told\n\n| told | x |\n"
    assert found_in("docs/a.md", text) == [(4, "anew"), (9, "tell"), (11, "tell")]


@pytest.mark.parametrize("newest", ["[Unreleased]", "[0.2.0] - unreleased"])
def test_changelog_findings_are_of_unreleased_sections(newest: str) -> None:
    text = f"# Changelog\n\n## {newest}\n\nIt is read anew.\n\n## [0.1.0] - 2026-12-01\n\nIt is told.\n"
    assert found_in("CHANGELOG.md", text) == [(5, "anew")]


def test_python_findings_have_lines_of_docstring_comment_and_message() -> None:
    text = '"""A module.\n\nIt is told.\n"""\n\n# It is read\n# anew.\nx = told("no room"\n    f"{a} is told")\n'
    assert found_in("query/a.py", text) == [(3, "tell"), (7, "anew"), (8, "room"), (8, "tell")]
    assert not found_in("query/a.py", 'key = "told"\n')


def test_python_findings_of_tests_have_names_but_no_inputs() -> None:
    text = 'def test_what_is_told_is_read():\n    assert read("it is told"), "is told"\n\nclass TestTold:\n    pass\n'
    assert found_in("tests/test_a.py", text) == [(1, "tell"), (1, "what-name"), (2, "tell"), (4, "tell")]


def test_sql_findings_are_of_comments() -> None:
    assert found_in("query/a.sql", "SELECT told -- read anew\nFROM told;\n") == [(1, "anew")]
    assert found_in("query/a.py", 'x = """SELECT told\n    -- read anew\n    FROM told"""\n') == [(2, "anew")]


def test_script_findings_are_of_comments_and_strings() -> None:
    text = "// read\n// anew\nconst told = 'told';\nconst x = `is told ${told}`; /* no room */\n"
    assert found_in("web/src/a.ts", text) == [(2, "anew"), (4, "room"), (4, "tell")]


def test_subject_findings_are_of_form_length_and_words() -> None:
    subjects = [
        ("a", "whatif: reject the run itself in --with"),
        ("b", "Whatif: reject it"),
        ("c", "whatif: say what is told"),
        ("d", "whatif: " + "x" * 60),
    ]
    assert [(each.match[0], each.rule) for each in words.subject_findings(subjects)] == [
        ("b", "form"),
        ("c", "tell"),
        ("d", "length"),
    ]


def test_command_reports_findings_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("It is read anew.\n")
    assert words.main([str(tmp_path / "a.md")]) == 1
    (tmp_path / "a.md").write_text("It is read again.\n")
    assert words.main([str(tmp_path / "a.md")]) == 0


def test_rules_name_a_replacement() -> None:
    assert all(rule.better for rule in words.RULES)
    assert {rule.name for rule in words.RULES} == set(PLANTED)
