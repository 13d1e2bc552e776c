"""The parts of a report on operators, stages, labels and the causes of other time, on hand-made answers."""

from __future__ import annotations

import re
from dataclasses import replace

from crystalperf.cli.render import debug_text
from crystalperf.indexes.resources import known
from crystalperf.query.advise.verdict import bottleneck_of
from crystalperf.query.frameworks.registry import get
from crystalperf.query.results.answers import (
    Cause,
    Debug,
    Disagreement,
    Header,
    OperatorTime,
    PathItem,
    SampleCounts,
    ScopeItem,
    StageFacts,
)
from crystalperf.query.results.assumptions import InputRemote
from crystalperf.query.text.sentences import text_of

WORDS = get("spark").vocabulary
HEADER = Header(
    "app-1", "nightly", "spark", "Spark", "4.0.1", "makespan", 2, 2, 2, 20_000.0, True, (), ("spark-4.0.1",), True,
    known(), WORDS,
)  # fmt: skip
EXECUTORS: dict[Cause, float] = {"no worker": 12_000.0, "unknown": 3_000.0}


def parts(cpu: float = 0.0, disk: float = 0.0, net: float = 0.0, other: float = 0.0) -> dict[str, float]:
    return {"cpu": cpu, "disk": disk, "net": net, "other": other}


def operator(
    node_id: int | None, name: str, cpu: float, basis: str = "samples", scope: str | None = "sql:1"
) -> OperatorTime:
    stages = ("stage:1.0", "stage:10.0", "stage:2.0", "stage:3.1")
    return OperatorTime(scope, node_id, name, stages, basis, parts(cpu=cpu))


def stage(number: int, path_ms: float, spill_bytes: int = 0) -> StageFacts:
    return StageFacts(
        id=f"stage:{number}.0", name="work", scope="sql:1", tasks=6, slots=4, length_ms=5_000.0, path_ms=path_ms,
        median_ms=2_000.0, longest_ms=5_000.0, median_bytes=10.0, most_bytes=30.0, task_ms=16_000.0, idle_ms=4_000.0,
        starting_ms=1_600.0, scheduler_delay_ms=800.0, gc_ms=160.0, spill_bytes=spill_bytes,
        resource_ms=parts(cpu=16_000.0),
    )  # fmt: skip


DEBUG = Debug(
    scope="all",
    measure="makespan",
    runtime_ms=20_000.0,
    bottleneck="no worker",
    resource_ms=parts(cpu=5_000.0, other=15_000.0),
    critical_path=(
        PathItem("driver:0", "start", 0.0, 15_000.0, parts(other=15_000.0)),
        PathItem("stage:1.0", "work", 15_000.0, 20_000.0, parts(cpu=5_000.0)),
    ),
    samples=SampleCounts(100, 90, 90, {}),
    scopes=(),
    other_ms=EXECUTORS,
    stages=(stage(1, 5_000.0),),
    operators=(operator(17, "Exchange by k", 9_000.0), operator(None, "compiling generated code", 700.0)),
    disagreements=(Disagreement("stage:1.0", "disk", 0.4, 0.0, 0.12), Disagreement("stage:2.0", "net", 0.1, 0.5, 0.9)),
    assumptions=(InputRemote("s3a://bucket", None),),
    driver_ms=15_000.0,
    no_task_ms=15_000.0,
    vocabulary=WORDS,
)


def words(debug: Debug) -> str:
    text = debug_text(HEADER, debug)
    assert max(map(len, text.split("\n"))) <= 80
    return " ".join(text.split())


def test_splits_other_time_by_cause() -> None:
    found = bottleneck_of(DEBUG)
    assert (found.kind, found.name, found.time_ms, found.no_task_ms) == ("cause", "no worker", 12_000.0, 15_000.0)
    text = words(DEBUG)
    assert "12.0 of 20.0 s (60 %)" in text
    assert re.findall(r"[\d.]+ s", text.partition(" other: ")[2])[:2] == ["12.0 s", "3.0 s"]


def test_does_not_call_the_unknown_a_cause() -> None:
    unknown = replace(DEBUG, other_ms={"unknown": 15_000.0}, critical_path=DEBUG.critical_path[1:], driver_ms=0.0)
    assert bottleneck_of(unknown).kind == "unknown"
    assert "15.0 of 20.0 s (75 %)" in words(unknown)


def test_marks_operators_that_the_framework_timed() -> None:
    text = words(DEBUG)
    assert "17 Exchange by k 1, 2, 3.1 … 9.0 9.0 . . ." in text
    assert "compiling generated code 1, 2, 3.1 … 0.7 0.7 . . ." in text
    timed = operator(17, "Sort", 9_000.0, "plan metrics")
    alone = words(replace(DEBUG, operators=(timed,)))
    assert "17 Sort 1, 2, 3.1 …" in alone
    assert "Measured by Spark" in alone
    mixed = words(replace(DEBUG, operators=(timed, operator(18, "Filter", 3_000.0))))
    assert "17 * Sort 1, 2, 3.1 …" in mixed
    assert "18 Filter" in mixed
    assert " * " not in alone + text
    assert "easured by Spark" not in text
    several = replace(DEBUG, operators=(*DEBUG.operators, operator(3, "Sort", 500.0, scope="sql:2")))
    assert "sql:2 3 Sort" in words(several)
    assert "Operator" not in words(replace(DEBUG, operators=(operator(None, "not attributed", 9_000.0),)))


def test_shows_skew_of_stages_by_time_and_by_bytes() -> None:
    text = words(DEBUG)
    assert "stage:1.0 6 1.5 2.0 2.5x 3.0x 20 % 10 % 1 %" in text
    assert "MiB" not in text
    spilled = words(replace(DEBUG, stages=tuple(stage(number, number, 3 << 20) for number in range(20))))
    assert spilled.count("3.0 MiB") == 12
    assert " 8 shorter stages " in spilled


def test_shows_labels_that_measurements_rule_out_and_assumptions() -> None:
    text = words(DEBUG)
    assert re.search(r"stage:1\.0: .* 40 %.* 12 % .*stage:2\.0: .* 10 %.* 50 % ", text)
    assert f"- {text_of(DEBUG.assumptions[0], DEBUG.words)}" in text


def test_lists_scopes_by_the_name_that_a_request_takes() -> None:
    text = words(replace(DEBUG, scopes=(ScopeItem("sql:3", "select 1", 1_000.0, None),)))
    assert "sql:3 select 1 1.0 ?" in text
