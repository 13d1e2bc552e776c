"""Proof of recommendations: what is pasted or edited, and how a rerun is scored."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import zstandard

from lab.advice import tuning
from lab.advice.__main__ import main
from lab.advice.applying import Applied, apply
from lab.advice.cases import CASES, Case
from lab.advice.claims import configured, write_claims
from lab.advice.reruns import JOBS, change_id, duration_ms
from lab.advice.score import Row, proof, table


def recommendation(kind: str, *lines: str, because: str = "") -> dict[str, Any]:
    return {"kind": kind, "because": because, "lines": list(lines), "settings": []}


def row(before_s: list[float], after_s: list[float], ms: float | None, bounds: list[float] | None) -> Row:
    claim = {"kind": "set-partitions", "saving": {"ms": ms, "range_ms": bounds}, "how": "pasted", "change": "c"}
    measured = {"before_ms": [value * 1e3 for value in before_s], "after_ms": [value * 1e3 for value in after_s]}
    return Row("a", 1, claim, measured)


def test_lines_for_the_command_line_lose_their_comments():
    line = "--conf spark.sql.shuffle.partitions=8  # of 800"
    applied = apply(Case("a", "b"), "text", recommendation("set-partitions", line), 2)
    assert applied.arguments == ("--conf", "spark.sql.shuffle.partitions=8")
    assert applied.text == "text"


def test_a_setting_of_the_builder_changes_in_the_program():
    lines = ('.config("spark.x", "8")  # in the program, which sets it', "--conf spark.x=8  # no effect while it does")
    applied = apply(Case("a", "b"), 'b.config("spark.x", "800").go()', recommendation("set-partitions", *lines), 2)
    assert applied.text == 'b.config("spark.x", "8").go()'


def test_more_slots_than_cores_are_not_tried():
    advised = recommendation("more-local-slots", "--master 'local[4]'")
    advised["settings"] = [{"after": "local[4]"}]
    assert not apply(Case("a", "b"), "text", advised, 2).tried
    assert apply(Case("a", "b"), "text", advised, 4).arguments == ("--master", "local[4]")


def test_an_edit_belongs_to_its_reason():
    case = Case("a", "b", edits={"follow-advice:small-files": (("small", "merged"),)})
    assert apply(case, "small", recommendation("follow-advice", because="small-files"), 2).text == "merged"
    assert not apply(case, "small", recommendation("follow-advice", because="driver"), 2).tried


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_each_edit_finds_its_text(case: Case):
    text = (JOBS / case.file).read_text()
    for edit in case.edits.values():
        changed = text
        for before, after in edit:
            assert before in changed
            changed = changed.replace(before, after)
        ast.parse(changed)


def test_a_saving_within_the_claim_is_kept():
    shown = proof(row([10, 10.2, 9.9], [6, 6.1, 5.9], 4200, [3000, 5000]))
    assert shown is not None
    assert shown.kept
    assert not shown.hurts
    assert not shown.saves_little
    assert shown.saved_ms == pytest.approx(4000)


def test_a_claim_of_at_most_something_needs_a_saving():
    shown = proof(row([10, 10.2, 9.9], [10, 10.1, 10], None, [0, 5000]))
    assert shown is not None
    assert not shown.kept
    assert shown.saves_little


def test_a_longer_run_hurts_only_beyond_noise():
    worse = proof(row([10, 10.2, 9.9], [14, 14.1, 13.8], 3000, [1000, 5000]))
    noisy = proof(row([10, 14, 9], [12, 10, 13], 3000, [1000, 5000]))
    assert worse is not None
    assert worse.hurts
    assert noisy is not None
    assert not noisy.hurts


def test_rows_without_reruns_are_in_the_table_and_in_no_total():
    skipped = Row("a", 1, {"kind": "more-workers", "saving": None, "how": "2 cores", "change": None}, None)
    lines = table([skipped, row([10, 10, 10], [6, 6, 6], 4000, [3000, 5000])])
    assert sum(line.startswith("| a |") for line in lines) == 2
    assert "| all | 2 | 1 | 1 | 0 | 0 | 1.00 |" in lines


def test_a_change_is_found_again_by_its_program_and_arguments():
    one = Applied("text", ("--conf", "a=1"), "pasted", True)
    assert change_id(one) == change_id(Applied("text", ("--conf", "a=1"), "edited", True))
    assert change_id(one) != change_id(Applied("text", ("--conf", "a=2"), "pasted", True))
    assert change_id(one) != change_id(Applied("other", ("--conf", "a=1"), "pasted", True))


def test_the_duration_of_a_run_is_that_of_its_application(tmp_path: Path):
    log = tmp_path / "log.zstd"
    events = [("Start", 1_000), ("End", 4_500)]
    lines = [f'{{"Event":"SparkListenerApplication{name}","Timestamp":{ms}}}\n' for name, ms in events]
    log.write_bytes(zstandard.compress("".join([lines[0], '{"Event":"Other"}\n', lines[1]]).encode()))
    assert duration_ms(log) == 3_500


# Whole configurations


def change(name: str, after: str, set_by: str = "") -> dict[str, str]:
    return {"name": name, "after": after, "set_by": set_by}


def claim(*settings: dict[str, str], predicted_ms: float = 20e3) -> dict[str, Any]:
    changed = "tuned" if settings else None
    run = {"runtime_ms": 40e3, "predicted_ms": predicted_ms, "interval_ms": [16e3, 40e3]}
    return {"settings": list(settings), "change": changed, **run}


def took(before_s: list[float], after_s: list[float]) -> dict[str, Any]:
    return {"before_ms": [each * 1e3 for each in before_s], "after_ms": [each * 1e3 for each in after_s]}


def test_a_tuned_configuration_is_pasted_also_where_the_program_sets_it():
    found = configured(
        'b.config("spark.x", "800").go()',
        [change("spark.x", "8", "program"), change("spark.master", "local[2]"), change("spark.y", "1")],
    )
    assert found.text == 'b.config("spark.x", "8").go()'
    assert found.arguments == ("--conf", "spark.x=8", "--master", "local[2]", "--conf", "spark.y=1")


def test_the_table_of_configurations_compares_them_with_the_default_and_the_best_recommendation():
    advice = [{"kind": "more-workers", "change": None}, {"kind": "set-partitions", "change": "single"}]
    rows = {
        ("spill", "tuned"): took([40, 41, 42], [20, 21, 22]),
        ("spill", "single"): took([40, 41, 42], [30, 31, 32]),
    }
    found = tuning.tuned({"case": "spill", "recommendations": advice, "tuned": claim(change("spark.x", "8"))}, rows)
    nothing = tuning.tuned({"case": "etl", "recommendations": [], "tuned": claim()}, rows)
    lines = tuning.table([found, nothing])
    row = next(line for line in lines if line.startswith("| spill"))
    assert [cell.strip() for cell in row.split("|")][3:10] == [
        "41.0", "20.0 (16.0 to 40.0)", "21.0", "0.0", "set-partitions", "31.0", "yes",
    ]  # fmt: skip
    assert "nothing is noticeably better" in next(line for line in lines if line.startswith("| etl"))
    assert "1 rerun: 1 took as long as predicted, 0 longer" in lines[-3]
    assert "1 were faster" in lines[-3]
    assert "gain: 1.00" in lines[-3]


def test_runs_of_other_turns_are_compared_by_their_unchanged_runs():
    slow = tuning.Tuned("a", claim(), "b", took([40, 40, 40], [20, 20, 20]), took([50, 50, 50], [40, 40, 40]))
    assert slow.ahead_ms == (pytest.approx(10e3), 0.0)


def test_tables_need_no_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    advice = [{"kind": "set-partitions", "because": "", "saving": None, "how": "pasted", "change": "c"}]
    write_claims(tmp_path, {"spill": {"case": "spill", "recommendations": advice, "tuned": claim()}})
    assert main(["table", "--out", str(tmp_path)]) == 0
    assert "| spill |" in capsys.readouterr().out
    assert main(["tuned", "--out", str(tmp_path)]) == 0
    assert "| spill |" in capsys.readouterr().out
