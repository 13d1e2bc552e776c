"""Answers as text, on hand-made answers whose sums can be checked in one's head; the setup text; the reference page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import get_args, get_type_hints

import pytest
from rich.cells import cell_len

import crystalperf as cp
from crystalperf.cli import parts
from crystalperf.cli.kept_help import kept_help
from crystalperf.cli.page import _ONE_COLUMN, Page
from crystalperf.cli.predictions import prediction_text, refusal_text, sweep_text
from crystalperf.cli.reference import helps, page
from crystalperf.cli.remedies import error_sentence, not_recorded_sentence, with_remedy
from crystalperf.cli.render import debug_text
from crystalperf.cli.rows import rows_text
from crystalperf.cli.run_commands import next_command
from crystalperf.cli.screen import MAX_LINES, verdict_text
from crystalperf.cli.text import change, counted, cut_left, percent, printable, time_unit, volume
from crystalperf.indexes.errors import NoAnswerError, Remedy
from crystalperf.query.advise.ranking import ranked
from crystalperf.query.advise.verdict import best_help, bottleneck_of, knee_of, not_recorded_notes
from crystalperf.query.frameworks import Job
from crystalperf.query.frameworks.registry import get
from crystalperf.query.frameworks.spark.deployments import NOT_TRIED, PLACES
from crystalperf.query.frameworks.spark.setup import facts, java_11_settings, settings, spark_text
from crystalperf.query.results.advice import InspectProgram, ReadWorkerLog
from crystalperf.query.results.answers import (
    Debug,
    FunctionTime,
    MissingDataDoubt,
    NextStep,
    Outcome,
    PathItem,
    Prediction,
    ReadingProblem,
    SampleCounts,
    ScopeItem,
    StageFacts,
    StagePrediction,
    Sweep,
    Verdict,
    WhatIf,
)
from crystalperf.query.results.assumptions import AddedSlots, NodeShared, OtherPredictor, SlotsIdle
from crystalperf.query.results.findings import Loss, LostWorkers, NoScope
from crystalperf.query.results.missing import UnendedTasks
from crystalperf.query.results.not_recorded import BlockedThreadsUnsampled, CodeUnlabelled, RecordingLeftOut
from crystalperf.query.results.recommendations import (
    Candidate,
    ChangeSetting,
    FixFailure,
    RecordSamples,
    Saving,
    SettingChange,
)
from crystalperf.query.results.refusals import InvalidQuestion, RemoteReadsUnknown
from crystalperf.query.results.words import Words
from crystalperf.query.text.answers import check_sentences
from crystalperf.query.text.folding import fold_path
from crystalperf.query.text.sentences import text_of, texts_of
from tests import hand_made
from tests.spark_logs import START

ROOT = Path(__file__).parent.parent

PROBLEMS = (ReadingProblem("data loss", "7 tasks are missing"), ReadingProblem("info", "a note"))
HEADER = replace(hand_made.HEADER, problems=PROBLEMS)


def item(id_: str, start_ms: float, end_ms: float, resource: str) -> PathItem:
    parts = dict.fromkeys(("cpu", "disk", "net", "other"), 0.0)
    return PathItem(id_, f"name of {id_}", start_ms, end_ms, parts | {resource: end_ms - start_ms})


UNKNOWN = "unknown to all"
LONG_NAME = "org.apache.spark.network." + "x" * 100 + ".TransportClient.fetch"
PATH = (
    item("driver:0", 0, 4_000, "other"),
    item("stage:0.0", 4_000, 4_100, "cpu"),
    item("stage:1.0", 4_100, 4_300, "cpu"),
    item("stage:2.0", 4_300, 24_000, "net"),
    item("stage:3.0", 24_000, 26_000, "disk"),
)
DEBUG = Debug(
    scope="all",
    framework="spark",
    measure="makespan",
    runtime_ms=26_000,
    bottleneck="net",
    resource_ms={"cpu": 300.0, "disk": 2_000.0, "net": 19_700.0, "other": 4_000.0},
    critical_path=PATH,
    samples=SampleCounts(5_000, 4_000, 3_900, {"not indexed": 100}),
    scopes=(ScopeItem("sql:3", "select 1", 0.0, 26_000.0),),
    findings=(NoScope(5_000.0, "measured", InspectProgram()),),
    functions=(FunctionTime(LONG_NAME, "spark-4.0.1", "net", 0.9, 9_000.0),),
    not_recorded=(BlockedThreadsUnsampled(),),
    vocabulary=get("spark").vocabulary,
)  # fmt: skip


def predicted(setting: str, ms: float | None, **more: object) -> Prediction:
    refused = () if ms is not None else (InvalidQuestion(UNKNOWN),)
    asked = Prediction("all", "makespan", setting, 26_000.0, 26_260.0, ms, refused=refused)
    return replace(asked, **more)  # type: ignore[arg-type]


def verdict(*what_ifs: WhatIf, run: str = "x.duckdb") -> Verdict:
    best, step = best_help(what_ifs, DEBUG.runtime_ms), NextStep("predict", {"setting": "network=2x,4x,8x"})
    return Verdict(run, HEADER, DEBUG, bottleneck_of(DEBUG), 26_260.0, what_ifs, best, step)


def screen(found: Verdict, next_command: str = "crystalperf sql", *, full: bool = False) -> tuple[list[str], str]:
    """Its lines, and its words with single blanks."""
    text = verdict_text(found, next_command, "app-1", full=full)
    lines = text.rstrip("\n").split("\n")
    assert max(map(len, lines)) <= 80
    return lines, " ".join(text.split())


def test_first_screen_answers_first_and_keeps_details_for_full() -> None:
    what_ifs = (
        WhatIf("faster", "network=2x", 16_000.0, interval_ms=(14_000.0, 18_000.0)),
        WhatIf("no faster", "cores=2x", 25_990.0),
        WhatIf("less", "memory=0.5x", None, refused=(InvalidQuestion(UNKNOWN),)),
        WhatIf("more", "memory=2x", None, refused=(InvalidQuestion(UNKNOWN),)),
    )
    found = verdict(*what_ifs, run="/cache/runs/app-1.duckdb")
    lines, words = screen(found)
    assert lines[0].split()[0] == "nightly"
    assert lines[0].endswith("   26.0 s")
    assert "19.7 of 26.0 s (76 %)" in " ".join(lines[:5])
    assert "98 %" not in words  # of the samples: it changes no answer
    assert "network=2x 16.0 -38 % 14.0 to 18.0" in words
    assert "cores=2x" not in words  # what changes nothing has no row
    assert "no faster" in words
    assert "memory=0.5x, memory=2x: unknown" in words  # one reason, once
    assert re.search(r"26\.3 s \(\D*\+1 %\)", words)  # the run as the model replays it
    assert "0.3 0.3 . . ." in words  # two short segments in one row
    assert "26.0 0.3 2.0 19.7 4.0" in words
    assert PROBLEMS[0].meaning in words
    assert lines[-1].endswith("crystalperf sql")
    assert "TransportClient.fetch" not in words
    _, words = screen(found, full=True)
    assert text_of(DEBUG.findings[0], DEBUG.words) in words
    assert "TransportClient.fetch" in words  # the end of a long name says more than its beginning


def test_counts_a_refusal_between_equal_bounds_as_no_effect() -> None:
    """Both bounds of a refused request may say that nothing changes, and then no reason is worth a line."""
    local, unknown = (RemoteReadsUnknown(),), (InvalidQuestion(UNKNOWN),)
    same = WhatIf("no gain", "executors=2x", None, bound_ms=(25_900.0, 26_000.0), refused=local)
    disk = WhatIf("faster", "disk=2x", None, bound_ms=(14_000.0, 26_000.0), refused=unknown)
    half = WhatIf("less", "memory=0.5x", None, bound_ms=(26_000.0, None), refused=unknown)
    _, words = screen(verdict(same, disk, half))
    assert "no gain" in words
    assert "executors=2x" not in words
    assert "all local" not in words
    assert re.search(r"disk=2x\W+14\.0 to 26\.0 s\)?: unknown", words)
    assert "memory=0.5x: unknown" in words
    assert "26.3 s" not in words  # nothing rests on the model, so its error is not shown


RAISE = ChangeSetting(
    price="setting",
    because="rule",
    saving=Saving("modelled", 9_000.0, (-1_000.0, 12_000.0)),
    settings=(SettingChange("a.b", 1, 2),),
)


def test_first_screen_of_a_long_answer_drops_rows_but_no_part() -> None:
    path = tuple(item(f"stage:{number}.0", 1_000 * number, 1_000 * number + 1_000, "cpu") for number in range(26))
    long = "what it is, at a length that takes several lines of the screen, as some rules of a framework do, alas, alas"
    lost = Loss(("1",), 5_000.0, long)
    findings = (LostWorkers(9_000.0, "measured", ReadWorkerLog("1", long), lost, 2, 3, 100.0, 5.0),) * 5
    asked = [WhatIf(f"thing {each} twice as fast", f"thing{each}=2x", 9_000.0 + each) for each in range(12)]
    debug = replace(DEBUG, critical_path=path, findings=findings, not_recorded=(RecordingLeftOut("a.jfr", long),) * 2)
    changes = tuple(SettingChange(f"{name}.{'x' * 45}", 1, 2) for name in ("first", "second"))
    to_do = (replace(RAISE, settings=changes),) * 3
    found = replace(verdict(*asked), debug=debug, recommendations=to_do)
    lines, words = screen(found)
    full, _ = screen(found, full=True)
    assert len(lines) <= MAX_LINES < len(full)
    for part in (
        "19.7 of",
        "--conf first",
        "stage:0.0",
        "total",
        "thing0=2x",
        PROBLEMS[0].meaning,
        "x.duckdb",
    ):
        assert part in words
    assert words.count(long) < " ".join(full).count("alas, alas")


def test_shows_what_a_recommendation_saves_and_the_lines_to_paste() -> None:
    to_do = (
        RAISE,
        FixFailure(
            price="code", because="outcome", saving=Saving("measured", None, (0.0, 2_000.0)), failed="job:1", error="E"
        ),
        RecordSamples(price="record", because="samples", saving=Saving("measured"), framework="Spark"),
    )
    lines, words = screen(replace(verdict(), recommendations=to_do))
    one, two, three = re.split(r" [123] +(?=[`A-Z])", words.partition("Critical path")[0])[1:]
    assert re.findall(r"[\d.]+ s", one) == ["9.0 s", "12.0 s", "1.0 s"]
    assert "(modelled" in one
    assert re.findall(r"[\d.]+ s", two) == ["2.0 s"]
    assert "(measured" in two
    assert not re.findall(r"[\d.]+ s", three)
    assert "       --conf a.b=2" in lines
    saving = replace(RAISE.saving, range_ms=(-1.0, 12_000.0))
    nearly = screen(replace(verdict(), recommendations=(replace(RAISE, saving=saving),)))[1]
    assert re.findall(r"[\d.]+ s", nearly.partition(" `a.b`")[2].partition("Critical")[0]) == ["9.0 s", "12.0 s"]


def test_names_unknown_time_and_the_largest_resource_if_most_time_is_unattributed() -> None:
    waiting = replace(
        DEBUG, bottleneck="other", resource_ms={"cpu": 2_000.0, "disk": 0.0, "net": 0.0, "other": 24_000.0}
    )
    assert bottleneck_of(waiting).kind == "unknown"
    words = " ".join(debug_text(HEADER, waiting).split())
    assert "24.0 of 26.0 s (92 %)" in words
    assert "CPU, 2.0 s" in words


def test_names_a_second_resource_only_where_it_is_close() -> None:
    parts = {"cpu": 9_000.0, "disk": 0.0, "net": 10_000.0, "other": 7_000.0}
    found = bottleneck_of(replace(DEBUG, resource_ms=parts))
    assert (found.name, found.second, found.second_ms) == ("net", "cpu", 9_000.0)
    words = " ".join(debug_text(HEADER, replace(DEBUG, resource_ms=parts)).split())
    assert re.search(r"10\.0 of 26\.0 s \(38 %\)\. \D*\bCPU, 9\.0 s", words)
    assert bottleneck_of(DEBUG).second is None


def test_recommends_nothing_if_missing_data_could_change_the_bottleneck() -> None:
    missing = MissingDataDoubt(UnendedTasks(599, 600, None, 3), 20_000.0)
    doubtful = replace(DEBUG, missing_data=(missing,))
    words = screen(replace(verdict(), debug=doubtful))[1]
    assert words.count(text_of(missing.missing, doubtful.words)) == 1
    assert PROBLEMS[0].meaning not in words  # the missing data says it
    assert bottleneck_of(doubtful).kind == "unknown"
    given = [Candidate(RAISE, at_most_ms=9_000.0)]
    assert ranked(given, doubtful, HEADER, lambda _: None) == ()
    assert len(ranked(given, DEBUG, HEADER, lambda _: None)) == 1


def test_names_a_device_that_is_not_modelled_with_the_answer() -> None:
    assert "(76 %). GPU" in screen(replace(verdict(), debug=replace(DEBUG, unmodelled="GPU")))[1]
    assert "GPU" not in screen(verdict())[1]


def test_lists_no_what_if_that_changes_nothing() -> None:
    _, words = screen(verdict(WhatIf("faster CPU", "cpu_speed=2x", 25_800.0)))
    assert "faster CPU" in words
    assert "cpu_speed=2x" not in words
    assert "What if" not in screen(verdict())[1]


def test_missing_samples_and_missing_indexes_say_what_to_do() -> None:
    blind = replace(HEADER, has_samples=False, indexes=())
    assert "crystalperf setup spark" in debug_text(blind, replace(DEBUG, not_recorded=not_recorded_notes(DEBUG, blind)))
    unplaced = replace(HEADER, indexes=())
    text = debug_text(unplaced, replace(DEBUG, not_recorded=not_recorded_notes(DEBUG, unplaced)))
    assert "`crystalperf index build spark-4.0.1`" in " ".join(text.split())


def test_folding_keeps_order_and_length() -> None:
    shown, rest = fold_path(PATH, 26_000, 8)
    assert [each.id for each in shown] == ["driver:0", "stage:2.0", "stage:3.0"]
    assert [each.id for each in rest] == ["stage:0.0", "stage:1.0"]
    shown, rest = fold_path(PATH[2:], 26_000, 8)  # one short interval is shown rather than summed
    assert len(shown) == 3
    assert rest == []
    shown, rest = fold_path(PATH, 26_000, 1)
    assert [each.id for each in shown] == ["stage:2.0"]
    assert len(rest) == 4


def test_shows_the_predicted_and_the_recorded_time_of_a_prediction() -> None:
    stages = (StagePrediction("stage:2.0", "fetch", 20_000.0, 10_000.0),)
    assumed = (OtherPredictor("guess"),)
    found = predicted("network=2x", 16_000.0, interval_ms=(15_000.0, 17_000.0), stages=stages, assumptions=assumed)
    words = " ".join(prediction_text(HEADER, found).split())
    for part in ("nightly, network=2x", "16.0 s", "26.0 s (-38 %)", "15.0 to 17.0 s", "guess"):
        assert part in words
    assert re.search(r"26\.3 s \(\D*\+1 %\)", words)
    assert "stage:2.0 fetch 20.0 10.0 -50 %" in words


def test_sweep_names_the_settings_of_an_assumption() -> None:
    each, ever, (twice, fourfold) = AddedSlots(with_cores=True), NodeShared(), (SlotsIdle(20, 10), SlotsIdle(40, 10))
    asked = {"cores=2": (ever,), "cores=4": (twice, ever, each), "cores=8": (fourfold, ever, each)}
    points = [predicted(setting, 20_000.0, assumptions=assumed) for setting, assumed in asked.items()]
    text = sweep_text(HEADER, Sweep((*points, predicted("cores=0.1x", None)), ()))
    ever_text, each_text, twice_text, fourfold_text = texts_of((ever, each, twice, fourfold), Words())
    shown = " ".join(text.partition("Assumed")[2].split())
    assert shown == (
        f"- {ever_text} - cores=4 and cores=8: {each_text} - cores=4: {twice_text} - cores=8: {fourfold_text}"
    )


@pytest.mark.parametrize(
    ("times_s", "worth"),
    [
        ((26, 20, 19), 1),
        ((26, 20), 1),
        ((25.9, 25), None),  # less than a tenth below the recorded
    ],
)
def test_sweep_marks_the_last_value_that_is_worth_it(times_s: Sequence[float], worth: int | None) -> None:
    values = (2, 4, 8)[: len(times_s)]
    points = tuple(predicted(f"cores={each}", 1000 * s) for each, s in zip(values, times_s, strict=True))
    found = Sweep(points, values)
    marked = [each.split()[0] for each in sweep_text(HEADER, found).split("\n") if "<-" in each]
    assert marked == ([] if worth is None else [points[worth].setting])
    knee = knee_of(found)
    assert knee is not None
    assert (knee.point if knee.worth else None) == worth
    assert " 10 %" in " ".join(sweep_text(HEADER, found).split())  # the rule


def test_sweep_shows_refused_points() -> None:
    text = sweep_text(HEADER, Sweep((predicted("memory=2x", 20_000.0), predicted("memory=0.5x", None))))
    assert len([each for each in text.split("\n") if "memory=0.5x" in each]) == 2  # its row, and why
    assert text.count(UNKNOWN) == 1


def test_refusal_shows_an_informative_bound() -> None:
    text = refusal_text([predicted("memory=0.5x", None, bound_ms=(30_000.0, None))])
    assert "memory=0.5x: " in text
    assert UNKNOWN in text
    assert text.endswith(" 30.0 s")
    nothing = refusal_text([predicted("memory=0.5x", None, bound_ms=(26_000.0, None))])  # the recorded time
    assert nothing.endswith(UNKNOWN)


def test_words_a_remedy_in_flags_and_commands() -> None:
    remedy = Remedy("state what the run had", {"setting": "network"})
    reported = with_remedy("", remedy)
    assert "--recorded network=" in reported
    assert error_sentence(NoAnswerError("unknown", remedy)) == f"unknown{reported}"
    assert error_sentence(NoAnswerError("unknown")) == "unknown"
    assert refusal_text([predicted("network=1Gbps", None, remedy=remedy)]).endswith(UNKNOWN + reported)
    refused = (InvalidQuestion(UNKNOWN),)
    _, words = screen(verdict(WhatIf("fast", "network=1Gbps", None, refused=refused, remedy=remedy)))
    assert f"network=1Gbps: {UNKNOWN}{reported}" in words
    assert with_remedy("", Remedy("choose an application", {"applications": "a, b"})).endswith(" --app: a, b")
    code = CodeUnlabelled("org.acme.*", remedy=Remedy("index the code", {"prefix": "org.acme"}))
    assert "`crystalperf index build acme-1 --source PATH`" in not_recorded_sentence(code, Words())


def test_every_remedy_has_its_words() -> None:
    for kind in get_args(get_type_hints(Remedy)["kind"]):
        sentence = with_remedy("no", Remedy(kind))
        assert sentence.startswith(("no;", "no,", "no:", "no ("))
        assert "{" not in sentence


def test_the_next_step_is_a_command() -> None:
    run = Path("/x/run.duckdb")
    assert next_command(NextStep("setup", {"framework": "spark"}), run) == "crystalperf setup spark"
    assert next_command(NextStep("build", {"index": "spark-4.0.1"}), run) == "crystalperf index build spark-4.0.1"
    step = NextStep("predict", {"setting": "cores=2x,4x"})
    assert next_command(step, run) == "crystalperf predict /x/run.duckdb --set cores=2x,4x"


def test_names_are_sanitized() -> None:
    assert printable("a\x1b[31mb\x9bc\u202ed\u200be\nf") == "a\\x1b[31mb\\x9bc\\u202ed\\u200be f"
    assert printable("naïve 名前") == "naïve 名前"
    assert printable("\udcff") == "\\udcff"
    evil = replace(HEADER, name="\x1b]0;x\x07")
    assert "\x1b" not in debug_text(evil, DEBUG)


def test_square_brackets_in_names_are_not_markup() -> None:
    assert "[red]x[/red]" in rows_text(["[bold]"], [["[red]x[/red]"]], more=False)


def test_rows_are_aligned_by_their_width_on_screen() -> None:
    rows = [["名前", 1.5], ["a", 20], [None, None]]
    assert rows_text(["name", "n"], rows, more=False) == "name    n\n名前  1.5\na      20\n\n"
    assert rows_text(["n"], [], more=False).startswith("n\n")
    assert len(rows_text(["n"], [[1]], more=True)) > len(rows_text(["n"], [[1]], more=False)) == len("n\n1\n")


def test_long_cells_are_shortened_and_many_columns_are_stacked() -> None:
    lines = rows_text(["long", "n"], [["x" * 100, 1], ["名" * 100, 2]], more=False).split("\n")
    assert lines[1] == "x" * 76 + "…  1"
    assert lines[2] == "名" * 38 + "…  2"
    many = rows_text([f"c{each}" for each in range(30)], [range(30), range(30)], more=False).split("\n")
    assert many[:2] == ["c0   0", "c1   1"]
    assert many[30:32] == ["", "c0   0"]


def test_answer_uses_one_task_of_time() -> None:
    assert time_unit(26_000).number(19_740.0) == "19.7"
    assert time_unit(26_000).number(40.0) == "."
    assert time_unit(26_000).number(None) == "?"
    assert time_unit(900).text(12.4) == "12 ms"
    assert time_unit(2.1).text(0.482) == "0.48 ms"
    assert time_unit(36_000_000).text(36_000_000) == "600.0 min"
    assert time_unit(7.6e9).text(7.6e9) == "2111.1 h", "durations of over a week are in hours"
    assert (percent(1, 1_000), percent(0, 10), percent(1, 0)) == ("<1 %", "0 %", "? %")
    assert (change(57, 100), change(100.2, 100), change(1, 0)) == ("-43 %", "0 %", "?")
    assert cut_left("a.bc.d", 4) == "…c.d"
    assert (counted(1, "query"), counted(1_000, "query")) == ("1 query", "1 000 queries")


# Setup --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", list(PLACES))
def test_setup_can_be_appended_to_spark_defaults(place: str) -> None:
    """Every line is a comment, empty, or a setting that Java's properties would read as we mean it."""
    for folder in ("/tmp", "", "/mnt/recordings"):
        text = spark_text(Job(folder, place))
        lines = [each for each in text.split("\n") if each and not each.startswith("#")]
        assert all(re.fullmatch(r"spark\.[\w.]+ [^\\\s]\S*( -\S+)*", each) for each in lines), lines
        assert [each.split(" ")[0] for each in lines] == list(settings(folder, place))
        prose = [each for each in text.split("\n") if " " in each and "jfr" not in each and "spark." not in each]
        assert max(map(len, prose)) <= 120, max(prose, key=len)


def test_setup_differs_by_place_and_java() -> None:
    assert list(PLACES) == ["plain", "yarn", "kubernetes", "databricks", "emr", "dataproc"]
    for word, place in PLACES.items():
        text = spark_text(Job("/tmp", word))
        for said in (place.title, "Java 8", "async-profiler", "crystalperf analyze"):
            assert said in text
        assert (NOT_TRIED in text) == (word in ("databricks", "emr", "dataproc"))
    assert "hdfs:///spark-logs" in settings("/tmp", "yarn")["spark.eventLog.dir"]
    assert "spark.eventLog.dir" not in settings("/tmp", "databricks")
    assert "=settings=profile," in java_11_settings("/tmp")["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(
    ("version", "name"),
    [("4.0.1", "eventlog_v2_APP_ID"), ("4.2", "eventlog_v2_APP_ID"), ("3.5.1", "APP_ID"), ("2.4", "APP_ID")],
)
def test_setup_ends_with_the_path_that_the_version_writes(version: str, name: str) -> None:
    text = spark_text(Job("/tmp", version=version))
    assert text.rstrip("\n").endswith(f"crystalperf analyze /tmp/{name} crystalperf-*.jfr hotspot-pid-*.jfr")
    assert ("eventlog_v2" in text) == (version[0] == "4")
    assert facts(Job("/tmp", version=version))["files"]["event_log"] == [f"/tmp/{name}"]
    for each in ("eventlog_v2_APP_ID", "APP_ID"):
        assert f"crystalperf analyze {each} " in spark_text(Job("/tmp", "yarn"))


def test_setup_takes_the_first_framework_and_refuses_what_it_does_not_know(
    crystalperf: Callable[..., tuple[int, str, str]],
) -> None:
    assert crystalperf("setup")[:2] == crystalperf("setup", "spark")[:2]
    assert crystalperf("setup", "spark", "--on", "YARN")[1] == crystalperf("setup", "--on", "yarn")[1]
    code, out, err = crystalperf("setup", "spark", "--on", "mesos")
    assert (code, out) == (1, "")
    assert all(each in err for each in ("mesos", *PLACES))
    code, out, err = crystalperf("setup", "spark", "--version", "custom")
    assert (code, out) == (1, "")
    assert "custom" in err


@pytest.mark.parametrize("folder", ["/tmp"])
@pytest.mark.later
def test_setup_flags_start_a_jvm(folder: str, tmp_path: Path) -> None:
    """Java itself takes the flags and leaves a recording."""
    import shutil
    import subprocess

    java = shutil.which("java")
    if java is None:
        pytest.skip("no Java on this machine")
    for values in (settings(str(tmp_path)), java_11_settings(str(tmp_path))):
        flags = values["spark.driver.extraJavaOptions"].split(" ")
        done = subprocess.run([java, *flags, "-version"], capture_output=True, text=True, timeout=120, check=False)
        if "Unrecognized" in done.stderr or "not able" in done.stderr:
            pytest.fail(done.stderr)
        if 'version "1' in done.stderr and 'version "17' not in done.stderr:
            pytest.skip("this Java is older than 17")
        (recording,) = tmp_path.glob("*.jfr")
        assert done.returncode == 0, done.stderr
        assert recording.read_bytes()[:4] == b"FLR\0"
        recording.unlink()


# The reference page -------------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    """The text of a help page, without the marks that differ from one typer to the next."""
    lines = [line for line in text.split("\n") if not line.startswith("Usage:")]
    plain = re.sub(r"<[^>]*>|\[(required|default:[^\]]*)\]|[{}…]|\.\.\.", " ", "\n".join(lines))
    return plain.split()


def test_the_reference_page_equals_the_help() -> None:
    kept = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert words(kept) == words(page()), "write it again with `python -m crystalperf.cli.reference > docs/cli.md`"


def test_volumes_use_the_task_that_fits() -> None:
    reported = [volume(each) for each in (0, 900, 12_345, 1.6 * 2**30, 389_837 * 2**20, 1023.9 * 2**20)]
    assert reported == ["0 bytes", "900 bytes", "12 KiB", "1.6 GiB", "381 GiB", "1.0 GiB"]


def test_first_screen_of_a_run_without_work_has_no_tables(tmp_path: Path) -> None:
    """Three sentences said that there was nothing, next to an empty table."""
    events = [
        {"Event": "SparkListenerLogStart", "Spark Version": "3.4.0"},
        {"Event": "SparkListenerApplicationStart", "App Name": "a", "App ID": "a", "Timestamp": START, "User": "u"},
        {"Event": "SparkListenerExecutorAdded", "Timestamp": START + 500, "Executor ID": "1",
         "Executor Info": {"Host": "h", "Total Cores": 1, "Log Urls": {}}},
        {"Event": "SparkListenerApplicationEnd", "Timestamp": START + 8100},
    ]  # fmt: skip
    (tmp_path / "log").write_text("".join(f"{json.dumps(each)}\n" for each in events), encoding="utf-8")
    found = cp.profile([tmp_path / "log"], output=tmp_path / "run.duckdb").verdict()
    assert found.bottleneck.kind == "nothing"
    _, answer, not_recorded_notes = verdict_text(found, "", "run").split("\n\n")
    assert "8.1 s" in answer
    assert "\n" not in answer
    assert not any(each in not_recorded_notes for each in ("What to do", "total"))


WORDS = ["", "a", "stage:4", "12.5", "a…b → c", " of two", "data 統計", "much longer than the others", "é", "b  "]


def test_the_kept_help_is_that_of_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    for path, text in helps(78).items():
        kept = kept_help([*path.split(), "--help"]) or ""
        assert words(kept) == words(text), "write it again with `python -m crystalperf.cli.kept_help > cli/help.json`"


@pytest.mark.parametrize("arguments", [[], ["--help", "analyze"], ["analyze", "--", "--help"], ["nosuch", "--help"]])
def test_other_arguments_have_no_kept_help(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert kept_help(arguments) is None
    assert kept_help(["--help"])
    monkeypatch.setenv("COLUMNS", "60")
    assert kept_help(["--help"]) is None


def test_a_page_without_colour_is_as_rich_lays_it_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "62")
    texts = [Page(), Page()]
    texts[1]._plain = False
    random = Random(3)
    for _ in range(200):
        count = random.randint(1, 5)
        heads, *rows = [random.choices(WORDS, k=count) for _ in range(random.randint(1, 5))]
        sides, cut = "".join(random.choices("<>", k=count)), random.choice([None, count - 1])
        for each in texts:
            each.table(heads, rows, sides, cut=cut, strong_last=True)
            each.strong(heads[0])
            each.line("  ".join(heads))
    assert texts[0].text() == texts[1].text()


def test_characters_of_one_column_are_so_for_rich() -> None:
    known = [chr(each) for each in range(0x3000) if _ONE_COLUMN.fullmatch(chr(each))]
    assert len(known) > 900
    assert {cell_len(each) for each in known} == {1}


def test_no_name_of_a_wide_table_is_broken() -> None:
    """A column more, of what was spilled, broke `stage:14.0` in two lines."""
    stage = StageFacts(
        id="stage:1414.0", name="work", scope=None, tasks=6758, slots=4, length_ms=18e3, path_ms=18e3, median_ms=1e3,
        longest_ms=29.8e3, median_bytes=1.0, most_bytes=2.0, task_ms=72e3, idle_ms=0.0, starting_ms=0.0,
        scheduler_delay_ms=0.0, gc_ms=19e3, spill_bytes=389_837 << 20, resource_ms={"cpu": 20e3},
    )  # fmt: skip
    page = Page()
    parts.stages(page, replace(DEBUG, stages=(stage,)), time_unit(18e3), 5)
    (row,) = [each for each in page.text().split("\n") if each.startswith("stage:")]
    assert row.startswith("stage:1414.0  6 758 ")
    assert row.endswith("381 GiB")


def test_whatifs_of_a_failed_run_state_where_they_end() -> None:
    found, unit = verdict(), time_unit(DEBUG.runtime_ms)
    failed = replace(found, debug=replace(DEBUG, outcome=Outcome("failed")))
    whole, until = (check_sentences(each, unit, "") for each in (found, failed))
    assert until.startswith(whole)
    assert until.endswith("failure.")
