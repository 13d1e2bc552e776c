"""Comparing the answers of two versions: renames are not differences; figures, order and unmatched fields are."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.same.__main__ import RENAMES, collect, main, write
from lab.same.comparing import ENTRIES, FIELDS, FIGURES, SENTENCES, Differences, compare
from lab.same.inputs import ROOT, given
from lab.same.renames import Renames
from lab.same.tables import LONG, kept_of, table_of

BEFORE: dict[str, Any] = {
    "runtime_ms": 1000.0,
    "findings": [
        {"rule": "idle slots", "cost_ms": 30.0, "what": "4 slots were idle"},
        {"rule": "input", "cost_ms": 20.0, "what": "input was late"},
    ],
    "refused": ["no memory is known", "no disk is known"],
    "stages": [{"id": f"stage:{number}", "task_ms": number * 1.5, "share": 0.5} for number in range(LONG + 1)],
}
AFTER: dict[str, Any] = {
    "runtime_ms": 1000.001,
    "findings": [
        {"kind": "idle-slots", "cost_ms": 30.0, "text": "Four slots stood idle.", "evidence": {"slots": 4}},
        {"kind": "input", "cost_ms": 20.0, "text": "input was late"},
    ],
    "refused": [{"kind": "unknown", "text": "no memory is known"}, {"kind": "unknown", "text": "no disk is known"}],
    "stages": BEFORE["stages"],
}
RENAMED = {
    "renamed": {
        "all": {
            "findings[]/rule": "findings[]/kind",
            "findings[]/what": "findings[]/text",
            "refused[]": "refused[]/text",
        }
    },
    "values": {"findings[]/kind": {"idle slots": "idle-slots"}},
    "added": {"findings[]/evidence": "the numbers of the sentence", "refused[]/kind": "what it is"},
    "text": {"prose": ["text"]},
}


def difference(
    before: Any, after: Any, renamed: Mapping[str, Any] = RENAMED, text: bool = False, public: bool = False
) -> Differences:
    old, new = ({"run": {"public": public, "answers": {"debug": table_of(each)}}} for each in (before, after))
    found = compare(kept_of(old), new, Renames.of(renamed), text=text)
    if not public:
        whole = compare(old, new, Renames.of(renamed), text=text)
        assert {key: sum(each.values()) > 0 for key, each in whole.counts.items()} == {
            key: sum(each.values()) > 0 for key, each in found.counts.items()
        }, "the kept reference finds what two collections find"
    return found


def changed(*place: str | int, to: Any) -> Any:
    after = copy.deepcopy(AFTER)
    holder = after
    for key in place[:-1]:
        holder = holder[key]  # type: ignore[index]
    holder[place[-1]] = to  # type: ignore[index]
    return after


@pytest.mark.parametrize("public", [False, True])
def test_finds_no_difference_in_renamed_fields_and_reworded_sentences(public: bool) -> None:
    assert not list(difference(BEFORE, AFTER, public=public).first)


def test_compares_sentences_only_when_asked() -> None:
    found = difference(BEFORE, AFTER, text=True)
    assert found.counts[SENTENCES].total() == 1
    assert not found.counts[FIGURES]


@pytest.mark.parametrize(
    ("after", "which", "path"),
    [
        (changed("runtime_ms", to=1000.003), FIGURES, "debug runtime_ms"),
        (changed("findings", 0, "cost_ms", to=31.0), FIGURES, "debug findings[]/cost_ms"),
        (changed("findings", 0, "kind", to="idle slots"), FIGURES, "debug findings[]/kind"),
        (changed("findings", to=AFTER["findings"][::-1]), FIGURES, "debug findings[]/kind"),
        (changed("findings", to=AFTER["findings"][:1]), ENTRIES, "debug findings#"),
        (changed("findings", 0, "text", to=""), ENTRIES, "debug findings[]/text"),
        (
            changed("findings", 1, "text", to="input of stage:3 was late"),
            FIGURES,
            "debug findings[]/text, what is named",
        ),
        (changed("refused", to=AFTER["refused"][:1]), ENTRIES, "debug refused#"),
        (changed("refused", to=AFTER["refused"][::-1]), ENTRIES, "debug refused[]/text"),
        (changed("stages", 7, "task_ms", to=11.0), FIGURES, "debug stages[]/task_ms"),
        (changed("stages", to=AFTER["stages"][::-1]), FIGURES, "debug stages[]/task_ms"),
        (changed("findings", 0, "extra", to=1), FIELDS, "debug findings[]/extra"),
    ],
)
def test_reports_what_moved(after: Any, which: str, path: str) -> None:
    assert path in difference(BEFORE, after).counts[which]


def test_compares_numbers_in_fields_of_prose() -> None:
    reported = {"text": {"prose": ["answer"]}}
    before, after = ({"answer": {"text": words, "ms": ms}} for words, ms in (("late", 7.0), ("it was late", 8.0)))
    assert list(difference(before, after, reported).counts[FIGURES]) == ["debug answer/ms"]


@pytest.mark.parametrize("removed", [True, False])
def test_field_without_partner_must_be_stated_as_removed(removed: bool) -> None:
    before = {**BEFORE, "seconds": 4.0}
    stated = {**RENAMED, "removed": {"seconds": "it was the machine's"} if removed else {}}
    assert bool(difference(before, AFTER, stated)) is not removed


def test_empty_value_means_none() -> None:
    reported = {"values": {"errors[]": {"unknown": ""}}}
    before, after = {"errors": ["bad", "unknown"]}, {"errors": ["bad", None]}
    assert not difference(before, after, reported).counts[FIGURES]
    assert difference(before, after).counts[FIGURES]


def test_rename_of_one_kind_of_answer_leaves_the_others() -> None:
    renames = Renames.of({"renamed": {"all": {"a[]": "b[]"}, "sql": {"a[]/name": "a[]/name"}}})
    assert [renames.after(kind, path) for kind in ("debug", "sql") for path in ("x/a[]/name", "a#")] == [
        *("x/b[]/name", "b#"),
        *("x/a[]/name", "b#"),
    ]


def test_keeps_no_text_of_public_logs() -> None:
    kept = kept_of({"run": {"public": True, "answers": {"debug": table_of(BEFORE)}}})
    assert "slots were idle" not in str(kept)
    assert "stage:3" not in str(kept)
    assert "idle slots" in str(kept)


def test_collection_of_a_run_equals_itself(tmp_path: Path) -> None:
    asked = given(["tests/data/flink/one-chain"])
    collected = collect(ROOT, asked, processes=1, nice=0)
    answers = collected["tests/data/flink/one-chain"]["answers"]
    assert {question.split()[0] for question in answers} == {"analyze", "debug", "predict"}
    assert answers["analyze"]["debug/runtime_ms"][0] > 0
    assert not compare(kept_of(collected), collected, Renames.read(RENAMES), text=True)
    write(tmp_path / "one", {"inputs": collected})
    assert main(["compare", str(tmp_path / "one"), str(tmp_path / "one")]) == 0
